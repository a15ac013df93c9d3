//! A load in words, out of the row that it was measured for.

use std::collections::BTreeMap;

use qspin_table::number::{duration, plural};

use serde_json::Value;

use crate::row::Row;

fn time(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { duration(ns) }
}

/// `1 µs, 2 µs, 4 hogs outside`: the length inside, that outside, and all that is not plain.
pub fn load(row: &Row) -> String {
    let param = |name: &str| row.params.get(name);
    let mut parts = Vec::new();
    if let (Some(readers), Some(writers)) = (param("readers"), param("writers")) {
        parts.push(format!("{readers}:{writers}"));
    }
    parts.push(time(row.critical_ns));
    parts.push(time(row.outside_ns));
    parts.extend(varied(&row.params));
    if row.lines != 1 {
        parts.push(plural(f64::from(row.lines), "line"));
    }
    if row.hogs > 0 {
        parts.push(format!("{} outside", plural(f64::from(row.hogs), "hog")));
    }
    parts.join(", ")
}

/// The same of the params alone, each with a comma before it.
pub fn params(params: &BTreeMap<String, Value>) -> String {
    varied(params).iter().map(|part| format!(", {part}")).collect()
}

fn varied(params: &BTreeMap<String, Value>) -> Vec<String> {
    let param = |name: &str| params.get(name);
    let number = |name: &str| param(name)?.as_f64();
    let mut parts = Vec::new();
    if let Some(lengths) = param("lengths") {
        parts.push(lengths.as_str().unwrap_or_default().to_owned());
    }
    if let Some(locks) = number("locks") {
        parts.push(plural(locks, "lock"));
    }
    if let Some(hogs) = number("hogs_inside") {
        parts.push(format!("{} inside", plural(hogs, "hog")));
    }
    if let Some(cpus) = number("quota") {
        parts.push(format!("quota of {}", plural(cpus, "CPU")));
    }
    if let (Some(does), Some(one_in)) = (param("holder"), param("one_in")) {
        parts.push(format!("1 holder in {one_in} {}", does.as_str().unwrap_or_default()));
    }
    if let (Some(critical), Some(outside)) = (number("then_critical_ns"), number("then_outside_ns"))
    {
        parts.push(format!("by turns {}, {}", time(critical), time(outside)));
    }
    parts
}

/// `1 µs, 2 µs; 8 threads`.
pub fn cell(row: &Row) -> String {
    format!("{}; {}", load(row), plural(f64::from(row.threads), "thread"))
}
