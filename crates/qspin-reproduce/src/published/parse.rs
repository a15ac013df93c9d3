//! From text to a table: the format of `data/published/`, and everything that can be wrong with it.

use std::collections::{BTreeMap, BTreeSet};
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

/// A table on its way from text.
struct Parser<'a> {
    file: &'a str,
    /// Each key of the head with the line it stands on and what it says.
    head: BTreeMap<&'a str, (usize, String)>,
    /// How many lines the head has: lines of the CSV are counted from behind it.
    head_lines: usize,
}

/// The table in a text; `file` is what errors call it.
pub(super) fn table(file: &str, text: &str) -> Result<Table, BadTable> {
    Parser { file, head: BTreeMap::new(), head_lines: 0 }.table(text)
}

impl<'a> Parser<'a> {
    fn error(&self, line: usize, message: impl Into<String>) -> BadTable {
        BadTable { file: self.file.to_string(), line, message: message.into() }
    }

    fn table(mut self, text: &'a str) -> Result<Table, BadTable> {
        let body = self.read_head(text)?;
        if let Some(empty) = body.lines().position(|line| line.trim().is_empty()) {
            return Err(self.error(self.head_lines + empty + 1, "an empty line; remove it"));
        }
        let mut records = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(body.as_bytes())
            .into_records()
            .map(|record| match record {
                Ok(record) => {
                    let line = record.position().map_or(1, csv::Position::line);
                    Ok((self.head_lines + usize::try_from(line).unwrap_or(0), record))
                }
                Err(error) => {
                    let line = error.position().map_or(1, csv::Position::line);
                    let line = self.head_lines + usize::try_from(line).unwrap_or(0);
                    Err(self.error(line, format!("no CSV: {error}")))
                }
            });
        let (header_line, header) = records.next().unwrap_or_else(|| {
            Err(self
                .error(self.head_lines + 1, "no header row: name the columns behind the comments"))
        })?;
        let header: Vec<String> = header.iter().map(str::to_string).collect();
        if let Some(name) = first_twin(&header) {
            return Err(self.error(header_line, format!("two columns are called '{name}'")));
        }
        let (labels, columns) = self.split(&header)?;
        let values = self.values(&columns)?;
        let ratio = self.ratio(&columns)?;
        let deviated = |column: &&String| {
            column.strip_suffix(DEVIATION).is_some_and(|of| !columns.iter().any(|c| c == of))
        };
        if let Some(column) = columns.iter().find(deviated) {
            return Err(self.error(
                header_line,
                format!(
                    "column '{column}' is the deviation of no column: there is none of that name"
                ),
            ));
        }
        let mut rows: Vec<Row> = Vec::new();
        for record in records {
            let (line, record) = record?;
            rows.push(self.row(line, &record, &header, labels.len())?);
        }
        if rows.is_empty() {
            return Err(self.error(header_line, "no rows"));
        }
        let mut seen = BTreeMap::new();
        for row in &rows {
            if let Some(before) = seen.insert(&row.labels, row.line) {
                return Err(self.error(row.line, format!("the labels of line {before} again")));
            }
        }
        let name =
            Path::new(self.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let comments = self.head.iter().map(|(key, (_, said))| (key.to_string(), said.clone()));
        Ok(Table { name, comments: comments.collect(), labels, columns, values, ratio, rows })
    }

    /// Reads the comments; what follows them is returned.
    fn read_head(&mut self, text: &'a str) -> Result<&'a str, BadTable> {
        let mut rest = text;
        while rest.starts_with('#') {
            let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = behind;
            self.head_lines += 1;
            let number = self.head_lines;
            let pair = line.strip_prefix("# ").and_then(|line| line.split_once(": "));
            let Some((key, said)) = pair else {
                return Err(self.error(number, "a comment must be '# key: value'"));
            };
            if !KEYS.contains(&key) {
                let keys = KEYS.join(", ");
                return Err(self.error(number, format!("unknown key '{key}'; known are: {keys}")));
            }
            match self.head.get_mut(key) {
                None => {
                    self.head.insert(key, (number, said.trim().to_string()));
                }
                Some((_, before)) if key == REPEATED => {
                    before.push('\n');
                    before.push_str(said.trim());
                }
                Some((before, _)) => {
                    let message = format!("key '{key}' again; it is on line {before} already");
                    return Err(self.error(number, message));
                }
            }
        }
        for key in &KEYS[..REQUIRED] {
            if !self.head.contains_key(key) {
                return Err(self.error(self.head_lines + 1, format!("the head lacks '# {key}: …'")));
            }
        }
        Ok(rest)
    }

    /// Line and value of a key that every head has.
    fn key(&self, key: &str) -> (usize, &str) {
        let (line, said) = &self.head[key];
        (*line, said)
    }

    /// The header, split into the columns of labels and those of numbers.
    fn split(&self, header: &[String]) -> Result<(Vec<String>, Vec<String>), BadTable> {
        let (line, labels) = self.key("labels");
        let labels: Vec<String> = labels.split(", ").map(str::to_string).collect();
        if !header.starts_with(&labels) {
            let message = format!("the header must begin with the labels '{}'", labels.join(","));
            return Err(self.error(line, message));
        }
        let columns = header[labels.len()..].to_vec();
        Ok((labels, columns))
    }

    /// The index of a column of numbers that a key of the head names.
    fn index(&self, line: usize, columns: &[String], name: &str) -> Result<usize, BadTable> {
        columns.iter().position(|column| column == name).ok_or_else(|| {
            let there = columns.join(", ");
            self.error(line, format!("there is no column '{name}' of numbers; there are: {there}"))
        })
    }

    fn values(&self, columns: &[String]) -> Result<Vec<usize>, BadTable> {
        let (line, values) = self.key("values");
        let values: Vec<String> = values.split(", ").map(str::to_string).collect();
        if let Some(name) = first_twin(&values) {
            return Err(self.error(line, format!("column '{name}' is named twice")));
        }
        values.iter().map(|name| self.index(line, columns, name)).collect()
    }

    fn ratio(&self, columns: &[String]) -> Result<Ratio, BadTable> {
        let (line, ratio) = self.key("ratio");
        if ratio == "none" {
            return Ok(Ratio::None);
        }
        // What the cells compare is said for people: neither has a column.
        for (form, kind) in [("cells: ", Ratio::Cells), ("cells in %: ", Ratio::Percent)] {
            if ratio.strip_prefix(form).is_some_and(|said| said.split(" / ").count() == 2) {
                return Ok(kind);
            }
        }
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
                return Err(self.error(line, message));
            };
            Ok(Quotient {
                new: self.index(line, columns, new)?,
                old: self.index(line, columns, old)?,
                printed: printed.map(|name| self.index(line, columns, name)).transpose()?,
            })
        };
        Ok(Ratio::Columns(ratio.split("; ").map(quotient).collect::<Result<_, _>>()?))
    }

    fn row(
        &self,
        line: usize,
        record: &csv::StringRecord,
        header: &[String],
        labels: usize,
    ) -> Result<Row, BadTable> {
        if record.len() != header.len() {
            let message = format!("{} fields, but the header names {}", record.len(), header.len());
            return Err(self.error(line, message));
        }
        let mut fields = record.iter().zip(header);
        let names = fields.by_ref().take(labels).map(|(field, _)| field.to_string()).collect();
        let cells = fields.map(|(field, column)| {
            cell(field).map_err(|message| {
                self.error(line, format!("column '{column}': '{field}' {message}"))
            })
        });
        Ok(Row { line, labels: names, cells: cells.collect::<Result<_, _>>()? })
    }
}

/// The first name that is there twice.
fn first_twin(names: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    names.iter().find(|name| !seen.insert(*name))
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
