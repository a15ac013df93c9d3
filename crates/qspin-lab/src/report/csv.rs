//! The rows as CSV, one column a field: for spreadsheets and statistics programs.
//!
//! Every row carries its machine and its run, so that files can be put together.

use qspin_table::Columns;
use serde_json::Value;

use super::Run;
use crate::row::{Row, WaitNs};

/// Renders all rows of all runs.
#[must_use]
pub fn render(runs: &[Run]) -> String {
    let rows: Vec<(&Run, &Row)> =
        runs.iter().flat_map(|run| run.rows.iter().map(move |row| (run, row))).collect();
    Columns::<(&Run, &Row)>::new()
        .text("source", |(run, _)| run.source.clone())
        .text("started", |(run, _)| run.machine.started.clone())
        .text("cpu", |(run, _)| run.machine.cpu.clone())
        .text("cpus", |(run, _)| run.machine.cpus)
        .text("numa_nodes", |(run, _)| run.machine.numa_nodes)
        .text("hypervisor", |(run, _)| run.machine.hypervisor.clone())
        .text("quota_cpus", |(run, _)| run.machine.quota_cpus)
        .text("kernel", |(run, _)| run.machine.kernel.clone())
        .text("kind", |(_, row)| row.kind.clone())
        .text("workload", |(_, row)| row.workload.clone())
        .text("params", |(_, row)| pairs(row.params.iter().map(|(k, v)| (k, bare(v)))))
        .text("lock", |(_, row)| row.lock.clone())
        .text("tune", |(_, row)| pairs(row.tune.iter().map(|(k, v)| (k, bare(v)))))
        .text("threads", |(_, row)| row.threads)
        .text("critical_ns", |(_, row)| row.critical_ns)
        .text("outside_ns", |(_, row)| row.outside_ns)
        .text("lines", |(_, row)| row.lines)
        .text("pin", |(_, row)| row.pin.clone())
        .text("hogs", |(_, row)| row.hogs)
        .text("rounds", |(_, row)| row.rounds)
        .text("partial", |(_, row)| row.partial)
        .text("ops_per_s_median", |(_, row)| row.ops_per_s.median)
        .text("ops_per_s_lo", |(_, row)| row.ops_per_s.lo)
        .text("ops_per_s_hi", |(_, row)| row.ops_per_s.hi)
        .text("wait_p50_ns", |(_, row)| row.wait_ns.map(|wait| wait.p50))
        .text("wait_p99_ns", |(_, row)| row.wait_ns.map(|wait| wait.p99))
        .text("wait_p999_ns", |(_, row)| row.wait_ns.map(|wait| wait.p999))
        .text("wait_max_ns", |(_, row)| row.wait_ns.map(|wait| wait.max))
        .text("wait_worst_thread_p999_ns", |(_, row)| {
            row.wait_ns.map(|wait| wait.worst_thread_p999)
        })
        .text("fairness_max_min", |(_, row)| row.fairness.max_min)
        .text("fairness_factor", |(_, row)| row.fairness.factor)
        .text("cpu_ns_per_op", |(_, row)| row.cpu_ns_per_op)
        .text("overhead_ns_per_op", |(_, row)| row.overhead_ns_per_op)
        .text("events", |(_, row)| pairs(row.events.iter().map(|(k, v)| (k, v.to_string()))))
        .text("version", |(run, _)| run.machine.version.clone())
        .text("seed", |(run, _)| run.machine.seed)
        .text("floor_ns", |(run, _)| run.machine.floor_ns)
        .text("uncontended_ns_median", |(_, row)| row.uncontended_ns.map(|ns| ns.median))
        .text("uncontended_ns_lo", |(_, row)| row.uncontended_ns.map(|ns| ns.lo))
        .text("uncontended_ns_hi", |(_, row)| row.uncontended_ns.map(|ns| ns.hi))
        .text("floor_ratio_median", |(_, row)| row.floor_ratio.map(|ratio| ratio.median))
        .text("floor_ratio_lo", |(_, row)| row.floor_ratio.map(|ratio| ratio.lo))
        .text("floor_ratio_hi", |(_, row)| row.floor_ratio.map(|ratio| ratio.hi))
        .text("events_ops", |(_, row)| row.events_ops)
        .text("wait_by", |(_, row)| pairs(row.wait_ns_by.iter().map(|(k, wait)| (k, waits(wait)))))
        .text("wait_samples", |(_, row)| row.wait_ns.map(|wait| wait.samples))
        .text("wait_unfinished", |(_, row)| row.wait_ns.map(|wait| wait.unfinished))
        .text("op_ns_mean", |(_, row)| row.op_ns.map(|op| op.mean))
        .text("op_ns_std_dev", |(_, row)| row.op_ns.and_then(|op| op.std_dev))
        .text("locality", |(_, row)| row.locality)
        .text("topology", |(run, _)| run.machine.topology.clone())
        .text("round_ops_per_s", |(_, row)| {
            row.round_ops_per_s.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
        })
        .table(&rows)
        .csv()
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
