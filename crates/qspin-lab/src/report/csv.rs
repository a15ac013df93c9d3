//! The rows as CSV, one column a field: for spreadsheets and statistics programs.
//!
//! Every row carries its machine and its run, so that files can be put together.

use serde_json::Value;

use super::Run;
use crate::row::{Machine, Row, WaitNs};

const HEADER: [&str; 51] = [
    "source",
    "started",
    "cpu",
    "cpus",
    "numa_nodes",
    "hypervisor",
    "quota_cpus",
    "kernel",
    "kind",
    "workload",
    "params",
    "lock",
    "tune",
    "threads",
    "critical_ns",
    "outside_ns",
    "lines",
    "pin",
    "hogs",
    "rounds",
    "partial",
    "ops_per_s_median",
    "ops_per_s_lo",
    "ops_per_s_hi",
    "wait_p50_ns",
    "wait_p99_ns",
    "wait_p999_ns",
    "wait_max_ns",
    "wait_worst_thread_p999_ns",
    "fairness_max_min",
    "fairness_factor",
    "cpu_ns_per_op",
    "overhead_ns_per_op",
    "events",
    "version",
    "seed",
    "floor_ns",
    "uncontended_ns_median",
    "uncontended_ns_lo",
    "uncontended_ns_hi",
    "floor_ratio_median",
    "floor_ratio_lo",
    "floor_ratio_hi",
    "events_ops",
    "wait_by",
    "wait_samples",
    "wait_unfinished",
    "op_ns_mean",
    "op_ns_std_dev",
    "locality",
    "topology",
];

/// Renders all rows of all runs.
#[must_use]
pub fn render(runs: &[Run]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |record: &[String]| {
        writer
            .write_record(record)
            .expect("writing to memory does not fail, and all records have the header's length");
    };
    write(&HEADER.map(String::from));
    for run in runs {
        for row in &run.rows {
            write(&record(&run.source, &run.machine, row));
        }
    }
    let bytes = writer.into_inner().expect("flushing memory does not fail");
    String::from_utf8(bytes).expect("made of strings")
}

/// A missing value is an empty cell.
fn cell<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// `name=value` pairs: readable in one cell.
fn pairs<'a>(map: impl IntoIterator<Item = (&'a String, String)>) -> String {
    let pairs: Vec<String> = map.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join(" ")
}

/// The waits of one kind of operation, in the order of the columns of all waits.
fn waits(wait: &WaitNs) -> String {
    [wait.p50, wait.p99, wait.p999, wait.max, wait.worst_thread_p999]
        .map(|ns| ns.to_string())
        .join("/")
}

fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn record(source: &str, machine: &Machine, row: &Row) -> [String; HEADER.len()] {
    let wait = row.wait_ns;
    [
        source.to_owned(),
        machine.started.clone(),
        machine.cpu.clone(),
        machine.cpus.to_string(),
        machine.numa_nodes.to_string(),
        machine.hypervisor.clone(),
        cell(machine.quota_cpus),
        machine.kernel.clone(),
        row.kind.clone(),
        row.workload.clone(),
        pairs(row.params.iter().map(|(k, v)| (k, bare(v)))),
        row.lock.clone(),
        pairs(row.tune.iter().map(|(k, v)| (k, bare(v)))),
        row.threads.to_string(),
        row.critical_ns.to_string(),
        row.outside_ns.to_string(),
        row.lines.to_string(),
        row.pin.clone(),
        row.hogs.to_string(),
        row.rounds.to_string(),
        row.partial.to_string(),
        row.ops_per_s.median.to_string(),
        row.ops_per_s.lo.to_string(),
        row.ops_per_s.hi.to_string(),
        cell(wait.map(|wait| wait.p50)),
        cell(wait.map(|wait| wait.p99)),
        cell(wait.map(|wait| wait.p999)),
        cell(wait.map(|wait| wait.max)),
        cell(wait.map(|wait| wait.worst_thread_p999)),
        cell(row.fairness.max_min),
        row.fairness.factor.to_string(),
        cell(row.cpu_ns_per_op),
        cell(row.overhead_ns_per_op),
        pairs(row.events.iter().map(|(k, v)| (k, v.to_string()))),
        machine.version.clone(),
        machine.seed.to_string(),
        cell(machine.floor_ns),
        cell(row.uncontended_ns.map(|ns| ns.median)),
        cell(row.uncontended_ns.map(|ns| ns.lo)),
        cell(row.uncontended_ns.map(|ns| ns.hi)),
        cell(row.floor_ratio.map(|ratio| ratio.median)),
        cell(row.floor_ratio.map(|ratio| ratio.lo)),
        cell(row.floor_ratio.map(|ratio| ratio.hi)),
        cell(row.events_ops),
        pairs(row.wait_ns_by.iter().map(|(k, wait)| (k, waits(wait)))),
        cell(wait.map(|wait| wait.samples)),
        cell(wait.map(|wait| wait.unfinished)),
        cell(row.op_ns.map(|op| op.mean)),
        cell(row.op_ns.and_then(|op| op.std_dev)),
        cell(row.locality),
        cell(machine.topology.clone()),
    ]
}
