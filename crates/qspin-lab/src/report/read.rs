//! Reading runs: JSON Lines, checked line by line.
//!
//! A report drawn from half a file or a foreign file would be believed, so whatever is not
//! understood is refused with the file and the line. Fields that this version does not know are
//! accepted, since newer ones may write them.
//!
//! A row whose key appeared before *in the same run* replaces it: a user that appends to a file
//! measured again. A machine row begins a new run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Run;
use crate::failure::Failure;
use crate::row::{Interval, Key, Machine, Row, SCHEMA, WaitNs};

/// Kinds of rows that carry measurements.
pub const KINDS: [&str; 3] = ["bench", "vm", "simulate"];
/// A row has about a kilobyte; whatever is longer than this is no row, and reading on would only
/// fill the memory.
const LONGEST_LINE: u64 = 1 << 20;
/// A report of more rows could not be read by a person, nor shown by a browser.
const MAX_ROWS: usize = 100_000;

/// Reads all runs of all files; `-` is the standard input.
///
/// # Errors
///
/// The first line that is not understood: its file, its number, what is wrong with it and what
/// would be right.
pub fn read(paths: &[impl AsRef<Path>]) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    let mut rows = 0;
    for path in paths {
        let path = path.as_ref();
        if path == Path::new("-") {
            read_one("standard input", std::io::stdin().lock(), &mut runs, &mut rows)?;
            continue;
        }
        let name = path.display().to_string();
        let cannot = |why: &dyn std::fmt::Display| {
            Failure::usage(format!(
                "cannot read {name}: {why}; name a file that `qspin bench --out` wrote"
            ))
        };
        if path.is_dir() {
            return Err(cannot(&"it is a directory"));
        }
        let file = File::open(path).map_err(|error| cannot(&error.kind()))?;
        read_one(&name, BufReader::new(file), &mut runs, &mut rows)?;
    }
    Ok(runs)
}

/// Reads the runs of one source, which `name` calls by its name in messages.
fn read_one(
    name: &str,
    mut source: impl BufRead,
    runs: &mut Vec<Run>,
    rows: &mut usize,
) -> Result<(), Failure> {
    let before = runs.len();
    let mut seen: BTreeMap<Key, usize> = BTreeMap::new();
    let mut line = Vec::new();
    let mut number = 0_usize;
    loop {
        line.clear();
        number += 1;
        let bad = |what: String| Failure::usage(format!("{name}:{number}: {what}"));
        let length = source
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|error| bad(format!("cannot be read: {error}")))?;
        if length == 0 {
            break;
        }
        let whole = line.ends_with(b"\n");
        if !whole && length as u64 == LONGEST_LINE {
            return Err(bad("the line is longer than 1 MiB, so it is no row".into()));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match parse(&line, whole).map_err(bad)? {
            Line::Machine(machine) => {
                seen.clear();
                runs.push(Run { source: name.to_owned(), machine: *machine, rows: Vec::new() });
            }
            Line::Row(row) => {
                let Some(run) = runs.get_mut(before..).and_then(<[Run]>::last_mut) else {
                    return Err(bad(format!(
                        "this `{}` row stands before any `machine` row; a run begins with one",
                        row.kind
                    )));
                };
                *rows += 1;
                if *rows > MAX_ROWS {
                    return Err(bad(format!(
                        "more than {MAX_ROWS} rows; report on fewer files at a time"
                    )));
                }
                match seen.get(&row.key()) {
                    Some(&at) => run.rows[at] = *row,
                    None => {
                        seen.insert(row.key(), run.rows.len());
                        run.rows.push(*row);
                    }
                }
            }
        }
    }
    let nothing = match &runs[before..] {
        [] => "is empty",
        new if new.iter().all(|run| run.rows.is_empty()) => "has a machine row, but no lock's row",
        _ => return Ok(()),
    };
    Err(Failure::usage(format!(
        "{name} {nothing}; nothing was measured, so run `qspin bench --out` again"
    )))
}

enum Line {
    Machine(Box<Machine>),
    Row(Box<Row>),
}

/// `whole`: the line ends with a line break, so it was written to its end.
fn parse(line: &[u8], whole: bool) -> Result<Line, String> {
    let mut value: Value = serde_json::from_slice(line).map_err(|error| {
        if !whole && error.is_eof() {
            "the last line is torn (the run was cut off while it wrote); \
             remove that line or run again"
                .to_owned()
        } else {
            format!("not a row of a run: {error}; every line must be one JSON object")
        }
    })?;
    printable(&mut value);
    let Value::Object(fields) = &value else {
        return Err("not a row of a run: every line must be one JSON object".into());
    };
    match fields.get("schema").map(Value::as_u64) {
        None => {
            return Err(format!(
                "not a row of a run: it has no \"schema\"; a row begins {{\"schema\":{SCHEMA},\"kind\":…"
            ));
        }
        Some(schema) if schema != Some(u64::from(SCHEMA)) => {
            return Err(format!(
                "schema {} is not known; this version reads schema {SCHEMA}",
                fields["schema"]
            ));
        }
        Some(_) => {}
    }
    match fields.get("kind").and_then(Value::as_str) {
        Some("machine") => {
            let machine: Machine = typed(value)?;
            check_machine(&machine)?;
            Ok(Line::Machine(Box::new(machine)))
        }
        Some(kind) if KINDS.contains(&kind) => {
            let row: Row = typed(value)?;
            check_row(&row)?;
            Ok(Line::Row(Box::new(row)))
        }
        kind => {
            let what = kind.map_or("the row has no \"kind\"".to_owned(), |kind| {
                format!("kind \"{kind}\" is not known")
            });
            let kinds = super::number::list(&KINDS.map(String::from), "or");
            Err(format!("{what}; it must be machine, {kinds}"))
        }
    }
}

/// Control characters would break a line of text, and are no XML at all.
fn printable(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(char::is_control) => {
            *text = text.replace(char::is_control, " ");
        }
        Value::Array(items) => items.iter_mut().for_each(printable),
        Value::Object(fields) => fields.values_mut().for_each(printable),
        _ => {}
    }
}

/// Names stand in sentences, tables and pictures: no blanks, no marks that mean something there.
fn check_name(field: &str, name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    if !name.is_empty() && name.len() <= 64 && name.chars().all(plain) {
        Ok(())
    } else {
        Err(format!("{field} {name:?} is no name; up to 64 letters, digits and _ - . + make one"))
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let what = error.into_inner();
        if path == "." {
            format!("not a whole row: {what}")
        } else {
            format!("not a whole row: {path}: {what}")
        }
    })
}

fn check_machine(machine: &Machine) -> Result<(), String> {
    if machine.cpus == 0 {
        return Err("cpus is 0, and must be 1 or more".into());
    }
    not_negative("", &[("load", Some(machine.load)), ("floor_ns", machine.floor_ns)])?;
    positive("quota_cpus", machine.quota_cpus)
}

fn check_row(row: &Row) -> Result<(), String> {
    check_name("lock", &row.lock)?;
    check_name("workload", &row.workload)?;
    for knob in row.tune.keys().chain(row.params.keys()) {
        check_name("tune or params:", knob)?;
    }
    if row.threads == 0 {
        return Err("threads is 0, and must be 1 or more".into());
    }
    let lengths = [
        ("critical_ns", Some(row.critical_ns)),
        ("outside_ns", Some(row.outside_ns)),
        ("op_ns.std_dev", row.op_ns.and_then(|op| op.std_dev)),
        ("cpu_ns_per_op", row.cpu_ns_per_op),
    ];
    not_negative("", &lengths)?;
    positive("op_ns.mean", row.op_ns.map(|op| op.mean))?;
    interval("ops_per_s", Some(row.ops_per_s))?;
    interval("uncontended_ns", row.uncontended_ns)?;
    interval("floor_ratio", row.floor_ratio)?;
    row.wait_ns.iter().try_for_each(|wait| waits("wait_ns.", wait))?;
    for (kind, wait) in &row.wait_ns_by {
        waits(&format!("wait_ns_by.{kind}."), wait)?;
    }
    let is_share = |share: &f64| (0.0..=1.0).contains(share);
    const SHARE: &str = "a share between 0 and 1";
    check("fairness.max_min", row.fairness.max_min, |ratio| *ratio >= 1.0, "1 or more")?;
    check("fairness.factor", Some(row.fairness.factor), is_share, SHARE)?;
    check("locality", row.locality, is_share, SHARE)?;
    // An overhead net of the work may be a little below zero where clocks are noisy.
    check("overhead_ns_per_op", row.overhead_ns_per_op, |ns| ns.is_finite(), "a number")
}

fn interval(field: &str, value: Option<Interval>) -> Result<(), String> {
    let Some(Interval { median, lo, hi }) = value else { return Ok(()) };
    let ends = [(".median", Some(median)), (".lo", Some(lo)), (".hi", Some(hi))];
    not_negative(field, &ends)?;
    if lo <= median && median <= hi {
        return Ok(());
    }
    Err(format!("{field}: lo {lo}, median {median} and hi {hi} must ascend"))
}

fn waits(field: &str, wait: &WaitNs) -> Result<(), String> {
    let figures = [
        ("p50", Some(wait.p50)),
        ("p99", Some(wait.p99)),
        ("p999", Some(wait.p999)),
        ("max", Some(wait.max)),
        ("worst_thread_p999", Some(wait.worst_thread_p999)),
    ];
    not_negative(field, &figures)
}

fn not_negative(of: &str, fields: &[(&str, Option<f64>)]) -> Result<(), String> {
    fields.iter().try_for_each(|(field, value)| {
        let right = |value: &f64| value.is_finite() && *value >= 0.0;
        check(&format!("{of}{field}"), *value, right, "0 or more")
    })
}

fn positive(field: &str, value: Option<f64>) -> Result<(), String> {
    check(field, value, |value| value.is_finite() && *value > 0.0, "more than 0")
}

/// A value that is there is `right`.
fn check(
    field: &str,
    value: Option<f64>,
    right: impl Fn(&f64) -> bool,
    must_be: &str,
) -> Result<(), String> {
    match value.filter(|value| !right(value)) {
        Some(value) => Err(format!("{field} is {value}, and must be {must_be}")),
        None => Ok(()),
    }
}
