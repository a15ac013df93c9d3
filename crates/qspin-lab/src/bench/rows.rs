//! From what was found to rows.

use std::collections::BTreeMap;

use crate::bench::engine::MutexWork;
use crate::contender::catalog::EMPTY;
use crate::row::{Interval, Row, SCHEMA, WaitNs};

use super::plan::{Cell, Job, Plan};
use super::session::{Findings, Found};
use super::station::RW_CLASSES;
use super::stats::{fairness, interval, median};
use super::waits::Waits;

/// The rows of a run, in the order of the plan.
#[must_use]
pub fn rows(plan: &Plan, found: &Found) -> Vec<Row> {
    if found.rounds == 0 {
        return Vec::new();
    }
    plan.cells
        .iter()
        .zip(&found.cells)
        .filter(|(cell, _)| cell.shown)
        .map(|(&cell, findings)| row(plan, found, cell, findings))
        .collect()
}

fn row(plan: &Plan, found: &Found, cell: Cell, findings: &Findings) -> Row {
    let setting = &plan.settings[cell.setting];
    let totals: Vec<f64> =
        findings.operations.iter().map(|threads| threads.iter().sum::<u64>() as f64).collect();
    let rates: Vec<f64> = totals
        .iter()
        .zip(&findings.seconds)
        .map(|(operations, seconds)| operations / seconds)
        .collect();
    let mut cpu: Vec<f64> =
        findings.cpu_ns.iter().zip(&totals).map(|(cpu, operations)| cpu / operations).collect();
    let pair = (!findings.pair_ns.is_empty()).then(|| interval(&findings.pair_ns));
    let ratios: Vec<f64> =
        findings.pair_ns.iter().zip(&found.floor_ns).map(|(pair, floor)| pair / floor).collect();
    let (wait_ns, wait_ns_by) = waits(&findings.waits);
    Row {
        schema: SCHEMA,
        kind: "bench".to_owned(),
        workload: setting.workload.to_owned(),
        params: setting.params.clone(),
        lock: plan.locks[cell.lock].name.to_owned(),
        tune: BTreeMap::new(),
        threads: cell.threads as u32,
        critical_ns: setting.critical_ns,
        outside_ns: setting.outside_ns,
        lines: setting.lines,
        pin: plan.pin.clone(),
        hogs: cell.hogs as u32,
        rounds: found.rounds as u32,
        ops_per_s: interval(&rates),
        wait_ns,
        wait_ns_by,
        partial: found.partial,
        fairness: fairness(&findings.operations),
        cpu_ns_per_op: finite(median(&mut cpu)),
        overhead_ns_per_op: overhead(plan, found, cell, &rates),
        uncontended_ns: pair,
        floor_ratio: (!ratios.is_empty()).then(|| interval(&ratios)),
        events: findings.events.clone(),
        events_ops: findings.events_ops,
    }
}

/// Where nothing was done, a figure an operation does not exist.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// All waits together, and by class where there is more than one.
fn waits(classes: &[Waits]) -> (Option<WaitNs>, BTreeMap<String, WaitNs>) {
    let mut all = Waits::default();
    for class in classes {
        all.add_round(class);
    }
    let mut by = BTreeMap::new();
    if classes.len() > 1 {
        for (name, class) in RW_CLASSES.iter().zip(classes) {
            if let Some(summary) = class.summary() {
                by.insert((*name).to_owned(), summary);
            }
        }
    }
    (all.summary(), by)
}

/// Wall time an operation beyond what a lock that costs nothing would need: with one thread the
/// time of the same loop without a lock; with more the critical section, which cannot overlap,
/// or the whole work shared among the CPUs, whichever is longer.
fn overhead(plan: &Plan, found: &Found, cell: Cell, rates: &[f64]) -> Option<f64> {
    let bare = plan
        .cells
        .iter()
        .position(|other| plan.locks[other.lock].name == EMPTY && other.setting == cell.setting)?;
    let bare = &found.cells[bare];
    let job = plan.settings[cell.setting].job;
    let critical_ns = match job {
        Job::Mutex(MutexWork::Lengths(_)) => Some(plan.settings[cell.setting].critical_ns),
        // Sections of unknown or random length, or ones that may overlap.
        Job::Mutex(MutexWork::Locktorture(_) | MutexWork::KernelLockBench(_)) | Job::Rw(_) => None,
    };
    let workers = cell.threads.min(plan.placement.cpus()) as f64;
    let mut rounds = Vec::with_capacity(rates.len());
    for (index, rate) in rates.iter().enumerate() {
        let loops: u64 = bare.operations[index].iter().sum();
        let work_ns = bare.seconds[index] * 1e9 / loops as f64;
        let ideal = match (cell.threads, critical_ns) {
            (1, _) => work_ns,
            (_, Some(critical)) => critical.max(work_ns / workers),
            (_, None) => return None,
        };
        rounds.push(1e9 / rate - ideal);
    }
    finite(median(&mut rounds))
}

/// The rounds' throughputs of two cells, as the interval of their ratio round by round.
#[must_use]
pub fn ratio(one: &Findings, other: &Findings) -> Interval {
    let rate = |findings: &Findings, round: usize| {
        findings.operations[round].iter().sum::<u64>() as f64 / findings.seconds[round]
    };
    let ratios: Vec<f64> =
        (0..one.seconds.len()).map(|round| rate(one, round) / rate(other, round)).collect();
    interval(&ratios)
}
