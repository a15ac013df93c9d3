//! Reading runs: JSON Lines, checked line by line.
//!
//! A report drawn from half a file or a foreign file would be believed, so whatever is not
//! understood is refused with the file and the line. Fields that this version does not know are
//! accepted, since newer ones may write them.
//!
//! A row whose key appeared before *in the same run* replaces it: whoever appends to a file
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
const MOST_ROWS: usize = 100_000;

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
                if *rows > MOST_ROWS {
                    return Err(bad(format!(
                        "more than {MOST_ROWS} rows; report on fewer files at a time"
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
        Some(kind) => Err(format!(
            "kind \"{kind}\" is not known; it must be machine, {}",
            super::number::list(&KINDS.map(String::from), "or")
        )),
        None => Err(format!(
            "the row has no \"kind\"; it must be machine, {}",
            super::number::list(&KINDS.map(String::from), "or")
        )),
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
    not_negative("load", machine.load)?;
    if let Some(quota) = machine.quota_cpus {
        positive("quota_cpus", quota)?;
    }
    if let Some(floor) = machine.floor_ns {
        not_negative("floor_ns", floor)?;
    }
    Ok(())
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
    not_negative("critical_ns", row.critical_ns)?;
    not_negative("outside_ns", row.outside_ns)?;
    interval("ops_per_s", row.ops_per_s)?;
    if let Some(op) = row.op_ns {
        positive("op_ns.mean", op.mean)?;
        not_negative("op_ns.std_dev", op.std_dev.unwrap_or(0.0))?;
    }
    if let Some(wait) = &row.wait_ns {
        waits("wait_ns", wait)?;
    }
    for (kind, wait) in &row.wait_ns_by {
        waits(&format!("wait_ns_by.{kind}"), wait)?;
    }
    if let Some(ns) = row.uncontended_ns {
        interval("uncontended_ns", ns)?;
    }
    if let Some(ratio) = row.floor_ratio {
        interval("floor_ratio", ratio)?;
    }
    if let Some(ratio) = row.fairness.max_min.filter(|ratio| ratio.is_nan() || *ratio < 1.0) {
        return Err(format!("fairness.max_min is {ratio}, and must be 1 or more"));
    }
    if !(0.0..=1.0).contains(&row.fairness.factor) {
        return Err(format!(
            "fairness.factor is {}, and must be a share between 0 and 1",
            row.fairness.factor
        ));
    }
    for &rate in &row.round_ops_per_s {
        not_negative("round_ops_per_s", rate)?;
    }
    if let Some(locality) = row.locality.filter(|share| !(0.0..=1.0).contains(share)) {
        return Err(format!("locality is {locality}, and must be a share between 0 and 1"));
    }
    if let Some(cpu) = row.cpu_ns_per_op {
        not_negative("cpu_ns_per_op", cpu)?;
    }
    // An overhead net of the work may be a little below zero where clocks are noisy.
    if let Some(overhead) = row.overhead_ns_per_op.filter(|ns| !ns.is_finite()) {
        return Err(format!("overhead_ns_per_op is {overhead}, and must be a number"));
    }
    Ok(())
}

fn interval(field: &str, value: Interval) -> Result<(), String> {
    let Interval { median, lo, hi } = value;
    not_negative(&format!("{field}.median"), median)?;
    not_negative(&format!("{field}.lo"), lo)?;
    not_negative(&format!("{field}.hi"), hi)?;
    if lo <= median && median <= hi {
        Ok(())
    } else {
        Err(format!("{field}: lo {lo}, median {median} and hi {hi} must ascend"))
    }
}

fn waits(field: &str, wait: &WaitNs) -> Result<(), String> {
    not_negative(&format!("{field}.p50"), wait.p50)?;
    not_negative(&format!("{field}.p99"), wait.p99)?;
    not_negative(&format!("{field}.p999"), wait.p999)?;
    not_negative(&format!("{field}.max"), wait.max)?;
    not_negative(&format!("{field}.worst_thread_p999"), wait.worst_thread_p999)
}

fn not_negative(field: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(format!("{field} is {value}, and must be 0 or more"))
    }
}

fn positive(field: &str, value: f64) -> Result<(), String> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(format!("{field} is {value}, and must be more than 0"))
    }
}
