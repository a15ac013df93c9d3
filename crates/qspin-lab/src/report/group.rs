//! Which rows belong into one chart, and how many CPUs their threads had.

use std::collections::BTreeMap;

use qspin_table::number::{duration, plural};
use serde_json::Value;

use super::family::{self, Family};
use crate::row::{Machine, Row};

/// One lock, as it was tuned, at all its numbers of threads.
#[derive(Debug, Clone)]
pub struct Contender<'a> {
    /// Its step, where it is one; else the lock's name, with its tuning in brackets.
    pub name: String,
    /// The lock's name alone.
    pub lock: &'a str,
    /// How its waiters wait.
    pub family: Family,
    /// One of qspin's own.
    pub own: bool,
    /// Ascending by threads.
    pub rows: Vec<&'a Row>,
}

impl<'a> Contender<'a> {
    /// The row at a number of threads.
    #[must_use]
    pub fn at(&self, threads: u32) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.threads == threads)
    }

    /// Measures the harness and not a lock.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        family::is_reference(self.lock)
    }
}

/// The rows of one setting: they differ in lock, tuning and threads only.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// In the order of the first row of each.
    pub contenders: Vec<Contender<'a>>,
    /// The CPUs that the threads and hogs shared; `None` where the rows do not tell.
    pub cpus: Option<f64>,
    first: &'a Row,
}

/// `overcommit` in the params says how many hogs there are at each number of threads, so that
/// the hogs vary inside one chart.
fn hogs_vary(row: &Row) -> bool {
    row.params.contains_key("overcommit")
}

fn setting(row: &Row) -> String {
    let params: Vec<_> = row.params.iter().filter(|(name, _)| *name != STEP).collect();
    format!(
        "{}|{}|{params:?}|{}|{}|{}|{}|{}",
        row.kind,
        row.workload,
        row.critical_ns,
        row.outside_ns,
        row.lines,
        row.pin,
        if hogs_vary(row) { 0 } else { row.hogs }
    )
}

/// The CPUs for the threads of a row: a guest or simulated machine names its own in `params`.
fn cpus_of(machine: &Machine, row: &Row) -> Option<f64> {
    if let Some(cpus) = row.params.get("cpus").and_then(Value::as_f64) {
        return Some(cpus);
    }
    if row.kind == "simulate" {
        return None;
    }
    let allowed = if row.pin == "C" { (machine.cpus / 2).max(1) } else { machine.cpus };
    let allowed = f64::from(allowed);
    Some(machine.quota_cpus.map_or(allowed, |quota| quota.min(allowed)))
}

fn text(value: &Value) -> String {
    match value {
        // Names stand between backticks in sentences.
        Value::String(text) => text.replace('`', "'"),
        other => other.to_string(),
    }
}

/// The param that names a step of a series. A step is a contender, not a setting: its tuning may
/// depend on the number of threads.
const STEP: &str = "step";

/// A lock as it took part: its step, where it is one; else its name, with its tuning in brackets.
#[must_use]
pub fn label(row: &Row) -> String {
    let lock = &row.lock;
    if let Some(step) = row.params.get(STEP) {
        return text(step);
    }
    if row.tune.is_empty() {
        return lock.clone();
    }
    let knobs: Vec<String> = row.tune.iter().map(|(k, v)| format!("{k}={}", text(v))).collect();
    format!("{lock} [{}]", knobs.join(" "))
}

/// What the threads of a row do, in words; `says` chooses among its params. The CPUs are said elsewhere.
pub(super) fn load(row: &Row, says: impl Fn(&str) -> bool) -> Vec<String> {
    let mut parts = Vec::new();
    // Some workloads have no lengths in time; their params say what they do.
    if row.critical_ns > 0.0 || row.outside_ns > 0.0 {
        parts.push(format!("critical {}", duration(row.critical_ns)));
        parts.push(format!("outside {}", duration(row.outside_ns)));
    }
    if row.lines != 1 {
        parts.push(plural(f64::from(row.lines), "line"));
    }
    let said = |name: &str| name != "cpus" && name != STEP && says(name);
    let params = row.params.iter().filter(|(name, _)| said(name));
    parts.extend(params.map(|(name, value)| format!("{name} {}", text(value))));
    parts
}

/// `SIMULATED` or `GUEST` where a row was not measured on threads of this machine.
pub(super) fn mark(row: &Row) -> Option<&'static str> {
    match row.kind.as_str() {
        "simulate" => Some("SIMULATED"),
        "vm" => Some("GUEST"),
        _ => None,
    }
}

/// Sorts rows into groups; groups and contenders keep the order of their first rows.
#[must_use]
pub fn groups<'a>(machine: &Machine, rows: &'a [Row]) -> Vec<Group<'a>> {
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for row in rows {
        let at = *index.entry(setting(row)).or_insert_with(|| {
            groups.push(Group { contenders: Vec::new(), cpus: cpus_of(machine, row), first: row });
            groups.len() - 1
        });
        let contenders = &mut groups[at].contenders;
        let name = label(row);
        match contenders.iter_mut().find(|c| c.name == name) {
            Some(contender) => contender.rows.push(row),
            None => contenders.push(Contender {
                name,
                lock: &row.lock,
                family: Family::of(&row.lock),
                own: family::is_own(&row.lock),
                rows: vec![row],
            }),
        }
    }
    for contender in groups.iter_mut().flat_map(|group| &mut group.contenders) {
        contender.rows.sort_by_key(|row| row.threads);
    }
    groups
}

impl<'a> Group<'a> {
    /// All rows, contender by contender.
    pub fn rows(&self) -> impl Iterator<Item = &'a Row> + '_ {
        self.contenders.iter().flat_map(|c| c.rows.iter().copied())
    }

    /// The numbers of threads that were measured, ascending.
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        let mut threads: Vec<u32> = self.rows().map(|row| row.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Whether more threads (and hogs) than CPUs want to run.
    #[must_use]
    pub fn is_over(&self, row: &Row) -> bool {
        self.cpus.is_some_and(|cpus| f64::from(row.threads) + f64::from(row.hogs) > cpus)
    }

    /// The same for a number of threads at which some lock was measured.
    #[must_use]
    pub fn threads_over(&self, threads: u32) -> bool {
        self.rows().find(|row| row.threads == threads).is_some_and(|row| self.is_over(row))
    }

    /// How many threads find a CPU each; `None` where the rows do not tell.
    #[must_use]
    pub fn room(&self) -> Option<f64> {
        if hogs_vary(self.first) {
            // Only the rows know; the border lies at the largest number of threads that fits.
            let cpus = self.cpus?;
            let fits = self.rows().filter(|row| !self.is_over(row));
            return Some(fits.map(|row| f64::from(row.threads)).fold(0.0, f64::max).min(cpus));
        }
        self.cpus.map(|cpus| (cpus - f64::from(self.first.hogs)).max(0.0))
    }

    /// Some rows come from a run that was interrupted.
    #[must_use]
    pub fn partial(&self) -> bool {
        self.rows().any(|row| row.partial)
    }

    /// `SIMULATED` or `GUEST` where the rows were not measured on threads of this machine.
    #[must_use]
    pub fn mark(&self) -> Option<&'static str> {
        mark(self.first)
    }

    /// The CPUs in words: `2 CPUs`, `2 CPUs that 4 hogs use too`.
    #[must_use]
    pub fn cpus_in_words(&self) -> Option<String> {
        let cpus = plural(self.cpus?, "CPU");
        Some(match self.first.hogs {
            _ if hogs_vary(self.first) => format!("{cpus} shared with hogs"),
            0 => cpus,
            hogs => format!("{cpus} shared with {}", plural(f64::from(hogs), "hog")),
        })
    }

    /// The workload in words: `lengths: critical 100 ns, outside 100 ns, 1 line`.
    #[must_use]
    pub fn title(&self) -> String {
        let row = self.first;
        let mut parts = load(row, |_| true);
        match row.pin.as_str() {
            "A" => parts.push("each thread pinned to its CPU".to_owned()),
            "C" => parts.push("all threads on half of the CPUs".to_owned()),
            _ => {}
        }
        if row.hogs > 0 && !hogs_vary(row) {
            parts.push(plural(f64::from(row.hogs), "hog"));
        }
        if parts.is_empty() {
            row.workload.clone()
        } else {
            format!("{}: {}", row.workload, parts.join(", "))
        }
    }
}
