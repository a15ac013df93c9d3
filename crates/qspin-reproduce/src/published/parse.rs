//! From text to a table: the format of `data/published/`, and everything that can be wrong with it.

use std::collections::btree_map::{BTreeMap, Entry};
use std::path::Path;

use super::{BadTable, DEVIATION, Quotient, Ratio, Row, Table};

/// Every key that the head of a table may have. Those but the last two are in every head.
const KEYS: [&str; 12] = [
    "document",
    "table",
    "machine",
    "measured",
    "unit",
    "better",
    "deviation",
    "labels",
    "values",
    "ratio",
    "workload",
    "note",
];
/// How many of [`KEYS`], from the first, must be there.
const REQUIRED: usize = 10;
/// The one key that may come more than once.
const REPEATED: &str = "note";

/// What is wrong, and on which line.
type ParseError = (usize, String);

/// The table in a text; `file` is what errors call it.
pub(super) fn table(file: &str, text: &str) -> Result<Table, BadTable> {
    let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    read(name, text).map_err(|(line, message)| BadTable { file: file.to_owned(), line, message })
}

fn read(name: String, text: &str) -> Result<Table, ParseError> {
    let head_lines = text.lines().take_while(|line| line.starts_with('#')).count();
    let head = head(text.lines().take(head_lines), head_lines + 1)?;
    let no_row = |line: &str| line.trim().is_empty() || line.starts_with('#');
    if let Some(at) = text.lines().skip(head_lines).position(no_row) {
        return Err((
            head_lines + at + 1,
            "an empty line, or a late comment; remove it".to_owned(),
        ));
    }
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).comment(Some(b'#'));
    let mut records = reader.from_reader(text.as_bytes()).into_records().map(|record| {
        let line = |at: Option<&csv::Position>| at.map_or(0, |at| at.line() as usize);
        let record =
            record.map_err(|error| (line(error.position()), format!("no CSV: {error}")))?;
        Ok((line(record.position()), record))
    });
    let header_line = head_lines + 1;
    let (_, header) = records.next().unwrap_or_else(|| {
        Err((header_line, "no header row: name the columns behind the comments".to_owned()))
    })?;
    let header: Vec<String> = header.iter().map(str::to_owned).collect();
    if let Some(name) = first_twin(&header) {
        return Err((header_line, format!("two columns are called '{name}'")));
    }
    // Lines and values of keys that every head has.
    let key = |key: &str| (head[key].0, head[key].1.split(", ").map(str::to_owned).collect());
    let (line, labels): (_, Vec<String>) = key("labels");
    let Some(columns) = header.strip_prefix(&labels[..]) else {
        let message = format!("the header must begin with the labels '{}'", labels.join(","));
        return Err((line, message));
    };
    let (line, values): (_, Vec<String>) = key("values");
    if let Some(name) = first_twin(&values) {
        return Err((line, format!("column '{name}' is named twice")));
    }
    let values = values.iter().map(|name| index(line, columns, name)).collect::<Result<_, _>>()?;
    let ratio = ratio(&head["ratio"], columns)?;
    let is_lost = |column: &&String| {
        column.strip_suffix(DEVIATION).is_some_and(|of| !columns.iter().any(|it| it == of))
    };
    if let Some(column) = columns.iter().find(is_lost) {
        let message =
            format!("column '{column}' is the deviation of no column: there is none of that name");
        return Err((header_line, message));
    }
    let rows = records.map(|record| row(record?, &header, labels.len()));
    let rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Err((header_line, "no rows".to_owned()));
    }
    let mut seen = BTreeMap::new();
    for row in &rows {
        if let Some(before) = seen.insert(&row.labels, row.line) {
            return Err((row.line, format!("the labels of line {before} again")));
        }
    }
    let columns = columns.to_vec();
    let comments = head.into_iter().map(|(key, (_, said))| (key.to_owned(), said)).collect();
    Ok(Table { name, comments, labels, columns, values, ratio, rows })
}

/// Each key of the head with the line it stands on and what it says; `behind` is the line after the head.
fn head<'a>(
    lines: impl Iterator<Item = &'a str>,
    behind: usize,
) -> Result<BTreeMap<&'a str, (usize, String)>, ParseError> {
    let mut head = BTreeMap::new();
    for (number, line) in (1..).zip(lines) {
        let pair = line.strip_prefix("# ").and_then(|line| line.split_once(": "));
        let (key, said) =
            pair.ok_or_else(|| (number, "a comment must be '# key: value'".to_owned()))?;
        if !KEYS.contains(&key) {
            let keys = KEYS.join(", ");
            return Err((number, format!("unknown key '{key}'; known are: {keys}")));
        }
        match head.entry(key) {
            Entry::Vacant(place) => {
                place.insert((number, said.trim().to_owned()));
            }
            Entry::Occupied(mut before) if key == REPEATED => {
                before.get_mut().1 += &format!("\n{}", said.trim());
            }
            Entry::Occupied(before) => {
                let before = before.get().0;
                return Err((number, format!("key '{key}' again; it is on line {before} already")));
            }
        }
    }
    match KEYS[..REQUIRED].iter().find(|&key| !head.contains_key(key)) {
        Some(key) => Err((behind, format!("the head lacks '# {key}: …'"))),
        None => Ok(head),
    }
}

/// The index of a column of numbers that a key of the head names.
fn index(line: usize, columns: &[String], name: &str) -> Result<usize, ParseError> {
    columns.iter().position(|column| column == name).ok_or_else(|| {
        let there = columns.join(", ");
        (line, format!("there is no column '{name}' of numbers; there are: {there}"))
    })
}

fn ratio((line, ratio): &(usize, String), columns: &[String]) -> Result<Ratio, ParseError> {
    if ratio == "none" {
        return Ok(Ratio::None);
    }
    // What the cells compare is said for people: neither has a column.
    for (form, kind) in [("cells: ", Ratio::Cells), ("cells in %: ", Ratio::Percent)] {
        if ratio.strip_prefix(form).is_some_and(|said| said.split(" / ").count() == 2) {
            return Ok(kind);
        }
    }
    let index = |name: &str| index(*line, columns, name);
    let quotient = |said: &str| {
        let (quotient, printed) = match said.split_once(", printed in ") {
            Some((quotient, printed)) => (quotient, Some(printed)),
            None => (said, None),
        };
        let Some((new, old)) = quotient.split_once(" / ") else {
            let message = format!(
                "'{said}' is no ratio: write 'none', 'cells: new / old', 'cells in %: new / old', \
                 or columns as 'new / old' or 'new / old, printed in column'"
            );
            return Err((*line, message));
        };
        let printed = printed.map(index).transpose()?;
        Ok(Quotient { new: index(new)?, old: index(old)?, printed })
    };
    Ok(Ratio::Columns(ratio.split("; ").map(quotient).collect::<Result<_, _>>()?))
}

fn row(
    (line, record): (usize, csv::StringRecord),
    header: &[String],
    labels: usize,
) -> Result<Row, ParseError> {
    if record.len() != header.len() {
        let message = format!("{} fields, but the header names {}", record.len(), header.len());
        return Err((line, message));
    }
    let mut fields = record.iter().zip(header);
    let names = fields.by_ref().take(labels).map(|(field, _)| field.to_owned()).collect();
    let cells = fields.map(|(field, column)| {
        cell(field).map_err(|why| (line, format!("column '{column}': '{field}' {why}")))
    });
    Ok(Row { line, labels: names, cells: cells.collect::<Result<_, _>>()? })
}

/// The first name that is there twice.
fn first_twin(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name)
}

/// The number in a cell. `3m25.0s` is 205 seconds; nothing is no number.
fn cell(field: &str) -> Result<Option<f64>, &'static str> {
    const WANTED: &str = "is no number: write digits with at most one point (12.50), or minutes and \
                          seconds (3m25.0s), or nothing where nothing is printed";
    let decimal = |text: &str| {
        // Rust also reads 'inf', 'nan', '1e3' and '+1', which no table prints.
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if plain { text.parse::<f64>().ok() } else { None }
    };
    if field.is_empty() {
        return Ok(None);
    }
    let number = match field.strip_suffix('s').and_then(|time| time.split_once('m')) {
        None => decimal(field),
        Some((minutes, seconds)) => match (minutes.parse::<u32>(), decimal(seconds)) {
            (Ok(_), Some(seconds)) if seconds >= 60.0 => {
                return Err("has 60 seconds or more beside its minutes");
            }
            (Ok(minutes), Some(seconds)) => Some(f64::from(minutes) * 60.0 + seconds),
            _ => None,
        },
    };
    number.map(Some).ok_or(WANTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# document: 009\n# table: first\n# machine: toy\n# measured: speed\n# unit: m/s\n\
         # better: higher\n# deviation: none\n# labels: threads\n# values: old, new\n# ratio: new / old\n";

    fn parse(head: &str, body: &str) -> Result<Table, BadTable> {
        Table::parse("toy/009-toy.csv", &format!("{head}{body}"))
    }

    fn message(head: &str, body: &str) -> String {
        parse(head, body).expect_err("is wrong").to_string()
    }

    #[test]
    fn a_table_is_read() {
        let head = format!("{HEAD}# note: one\n# note: two\n");
        let table = parse(&head, "threads,old,old std-dev,new\n1,2.50,0.1,5\n2,,,3m25.5s\n")
            .expect("right");
        assert_eq!(table.name, "009-toy");
        assert_eq!(table.comments["note"], "one\ntwo");
        assert_eq!(table.columns, ["old", "old std-dev", "new"]);
        assert_eq!(table.values, [0, 2]);
        assert_eq!(table.deviation(0), Some(1));
        assert_eq!(table.deviation(2), None);
        assert_eq!(table.rows[1].line, 15);
        assert_eq!(table.rows[1].cells, [None, None, Some(205.5)]);
        assert_eq!(table.row_name(&table.rows[1]), "2 threads");
        assert_eq!(table.ratios(&table.rows[0]), [(2, 2.0)]);
        assert_eq!(table.ratios(&table.rows[1]), [], "half a ratio is none");
        assert_eq!(table.row(&["2"]), Some(&table.rows[1]));
    }

    #[test]
    fn ratios_have_four_forms() {
        let with = |ratio: &str| {
            let head = HEAD.replace("new / old", ratio);
            let table = parse(&head, "threads,old,new,gain\n1,2,5,2.5\n").expect("right");
            table.ratios(&table.rows[0])
        };
        assert_eq!(with("none"), []);
        assert_eq!(with("cells: this / that"), [(0, 2.0), (1, 5.0)]);
        assert_eq!(with("cells in %: this / that"), [(0, 1.02), (1, 1.05)]);
        assert_eq!(with("new / old, printed in gain; old / new"), [(1, 2.5), (0, 0.4)]);
    }

    #[test]
    fn rows_are_named_for_readers() {
        let head = HEAD.replace("labels: threads", "labels: patch, vCPUs, remark");
        let table =
            parse(&head, "patch,vCPUs,remark,old,new\n4,32,,1,1\n5,48,slow,1,1\n").expect("right");
        let names: Vec<_> = table.rows.iter().map(|row| table.row_name(row)).collect();
        assert_eq!(names, ["patch 4, 32 vCPUs", "patch 5, 48 vCPUs, slow"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        let body = "threads,old,new\n1,2,3\n";
        let cases = [
            (
                HEAD.replace("# unit: m/s\n", ""),
                body,
                "toy/009-toy.csv:10: the head lacks '# unit: …'",
            ),
            (HEAD.replace("# unit", "# unti"), body, "toy/009-toy.csv:5: unknown key 'unti'"),
            (HEAD.replace("# unit: m/s", "# unit"), body, "toy/009-toy.csv:5: a comment must be"),
            (
                format!("{HEAD}# unit: s\n"),
                body,
                "toy/009-toy.csv:11: key 'unit' again; it is on line 5",
            ),
            (HEAD.to_string(), "", "toy/009-toy.csv:11: no header row"),
            (HEAD.to_string(), "threads,old,new\n", "toy/009-toy.csv:11: no rows"),
            (
                HEAD.to_string(),
                "threads,old,new,old\n1,2,3,2\n",
                ":11: two columns are called 'old'",
            ),
            (
                HEAD.to_string(),
                "cpus,old,new\n1,2,3\n",
                ":8: the header must begin with the labels",
            ),
            (HEAD.to_string(), "threads,old\n1,2\n", ":9: there is no column 'new' of numbers"),
            (HEAD.replace("old, new", "old, old"), body, ":9: column 'old' is named twice"),
            (HEAD.replace("new / old", "new to old"), body, ":10: 'new to old' is no ratio"),
            (HEAD.replace("new / old", "gain / old"), body, ":10: there is no column 'gain'"),
            (HEAD.replace("new / old", "cells: all"), body, ":10: 'cells: all' is no ratio"),
            (
                HEAD.to_string(),
                "threads,old,new,far std-dev\n1,2,3,4\n",
                ":11: column 'far std-dev' is",
            ),
            (
                HEAD.to_string(),
                "threads,old,new\n1,2,3\n2,2\n",
                ":13: 2 fields, but the header names 3",
            ),
            (HEAD.to_string(), "threads,old,new\n1,2,3\n\n2,2,3\n", ":13: an empty line"),
            (
                HEAD.to_string(),
                "threads,old,new\n1,2,3\n1,4,5\n",
                ":13: the labels of line 12 again",
            ),
            (
                HEAD.to_string(),
                "threads,old,new\n1,2,1e3\n",
                ":12: column 'new': '1e3' is no number",
            ),
            (
                HEAD.to_string(),
                "threads,old,new\n1,2,nan\n",
                ":12: column 'new': 'nan' is no number",
            ),
            (HEAD.to_string(), "threads,old,new\n1,2,.\n", ":12: column 'new': '.' is no number"),
            (
                HEAD.to_string(),
                "threads,old,new\n1,\"6,515\",3\n",
                ":12: column 'old': '6,515' is no",
            ),
            (
                HEAD.to_string(),
                "threads,old,new\n1,3m60.0s,3\n",
                ":12: column 'old': '3m60.0s' has 60",
            ),
        ];
        for (head, body, wanted) in cases {
            let said = message(&head, body);
            assert!(said.contains(wanted), "wanted '{wanted}', got '{said}'");
        }
        let said =
            Table::read(Path::new("/nowhere/009-toy.csv")).expect_err("is not there").to_string();
        assert!(said.starts_with("/nowhere/009-toy.csv: cannot be read: "), "{said}");
    }
}
