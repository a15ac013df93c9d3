//! From outcomes to rows.

use std::collections::BTreeMap;

use qspin_sim::plan::Cell;
use qspin_sim::workload::{Spread, Workload};
use qspin_sim::{Outcome, Pinning};
use serde_json::Value;

use crate::bench::counters::locality;
use crate::bench::rows::of_rounds;
use crate::bench::stats::median;
use crate::row::Row;

/// The row of a cell, from its runs; `None` without any. `asked` runs were asked for, of `several` locks or one.
#[must_use]
pub(super) fn row(cell: &Cell, several: bool, runs: &[Outcome], asked: u32) -> Option<Row> {
    let first = runs.first()?;
    let scenario = &cell.scenario;
    let rates: Vec<f64> = runs.iter().map(|run| run.throughput * 1e6).collect();
    let shares: Vec<Vec<u64>> = runs.iter().map(Outcome::shares).collect();
    let mut events = BTreeMap::new();
    for (name, count) in runs.iter().flat_map(|run| &run.events) {
        *events.entry((*name).to_owned()).or_insert(0) += count;
    }
    // Spinning is a part of it only: a waiter that is halted waits as well.
    let mut waits: Vec<f64> = runs.iter().map(|run| run.mean_wait_ns).collect();
    let (workload, critical_ns, outside_ns) = workload(&scenario.workload);
    Some(Row {
        workload: workload.to_owned(),
        params: params(cell, several),
        tune: scenario.tuning.iter().map(|(name, &value)| (name.clone(), value.into())).collect(),
        threads: scenario.cpus,
        critical_ns,
        outside_ns,
        lines: lines(&scenario.workload),
        pin: pin(&scenario.pinning).to_owned(),
        hogs: scenario.hogs,
        partial: runs.len() < asked as usize,
        overhead_ns_per_op: Some(median(&mut waits)).filter(|ns| ns.is_finite()),
        locality: locality(&events),
        events,
        events_ops: Some(first.sections.iter().sum()).filter(|_| runs.len() == 1),
        platform: platform(runs),
        ..of_rounds("simulate", scenario.lock.name(), rates, &shares)
    })
}

/// What the simulated machine did, all runs together; times are the mean or the longest of them.
fn platform(runs: &[Outcome]) -> BTreeMap<String, u64> {
    let sum = |of: fn(&Outcome) -> u64| runs.iter().map(of).sum::<u64>();
    let count = runs.len() as f64;
    let mean = |of: fn(&Outcome) -> f64| (runs.iter().map(of).sum::<f64>() / count) as u64;
    let longest = runs.iter().map(|run| run.longest_wait_ns).fold(0.0, f64::max);
    [
        ("sections", sum(|run| run.sections.iter().sum())),
        ("hand_overs", sum(|run| run.hand_overs)),
        ("remote_hand_overs", sum(|run| run.remote_hand_overs)),
        ("halts", sum(|run| run.halts)),
        ("kicks", sum(|run| run.kicks)),
        ("yields", sum(|run| run.yields)),
        ("pause_loop_exits", sum(|run| run.pause_loop_exits)),
        ("preemptions", sum(|run| run.preemptions)),
        ("spun_ns", sum(|run| run.spun_ns as u64)),
        ("stolen_ns", sum(|run| run.stolen_ns as u64)),
        ("elapsed_ns", sum(|run| run.elapsed_ns as u64)),
        ("mean_wait_ns", mean(|run| run.mean_wait_ns)),
        ("longest_wait_ns", longest as u64),
    ]
    .into_iter()
    .map(|(name, count)| (name.to_owned(), count))
    .collect()
}

/// The name of a workload, and its lengths where it has one of each.
fn workload(workload: &Workload) -> (&'static str, f64, f64) {
    match workload {
        Workload::Sections(it) => ("sections", it.inside_ns, it.outside_ns),
        Workload::Locktorture(_) => ("locktorture", 0.0, 0.0),
        Workload::KernelLockBench(_) => ("kernel-lock-bench", 0.0, 0.0),
        Workload::FutexMutex(it) => ("futex-mutex", it.inside_ns, it.outside_ns),
        Workload::KernelBuild(it) => ("kernel-build", it.inside_ns, it.outside_ns),
        Workload::Lengths(it) => ("lengths", it.inside_ns, it.outside_ns),
        Workload::ReadersWriters(it) => ("rw", it.inside_ns, it.outside_ns),
        Workload::SystemCalls(_) => ("system-calls", 0.0, 0.0),
    }
}

/// The lines that a section writes, where that was chosen.
fn lines(workload: &Workload) -> u32 {
    if let Workload::Lengths(it) = workload { it.writes } else { 0 }
}

/// A variant is a step, which the report shows as a contender; a load is a setting of its own.
fn params(cell: &Cell, several: bool) -> BTreeMap<String, Value> {
    let mut params = BTreeMap::new();
    if let Some(variant) = &cell.variant {
        let step = match several {
            false => variant.clone(),
            true => format!("{}, {variant}", cell.scenario.lock.name()),
        };
        params.insert("step".to_owned(), step.into());
    }
    if let Some(load) = &cell.load {
        params.insert("load".to_owned(), load.as_str().into());
    }
    if let Workload::Lengths(it) = &cell.scenario.workload {
        match it.spread {
            Spread::Fixed => {}
            Spread::Exponential => drop(params.insert("lengths".to_owned(), "exponential".into())),
            Spread::Tailed => drop(params.insert("lengths".to_owned(), "tailed".into())),
        }
        if it.locks > 1 {
            params.insert("locks".to_owned(), it.locks.into());
        }
    }
    if let Workload::ReadersWriters(it) = &cell.scenario.workload {
        let writers = (1000.0 * it.written).round() as u32;
        params.insert("readers".to_owned(), (1000 - writers).into());
        params.insert("writers".to_owned(), writers.into());
    }
    if let Workload::KernelLockBench(it) = &cell.scenario.workload {
        params.insert("critical".to_owned(), it.critical.into());
        params.insert("non_critical".to_owned(), it.non_critical.into());
    }
    params
}

/// The nearest of the pinning scenarios of the other commands.
fn pin(pinning: &Pinning) -> &'static str {
    match pinning {
        Pinning::Own => "A",
        Pinning::Any => "B",
        Pinning::To(_) => "C",
    }
}
