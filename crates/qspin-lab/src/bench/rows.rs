//! From what was found to rows.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bench::engine::MutexWork;
use crate::contender::catalog::EMPTY;
use crate::remedy;
use crate::row::{Row, SCHEMA, WaitNs};

use super::counters::locality;
use super::found::{Findings, Found};
use super::plan::{Cell, Job, Plan, Setting};
use super::rw_station::RW_CLASSES;
use super::stats::{fairness, interval, median, spread};
use super::waits::Waits;

/// The rows of a run, in the order of the plan.
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
    let mut cpu = findings.cpu_ns_per_op();
    let pair = (!findings.pair_ns.is_empty()).then(|| interval(&findings.pair_ns));
    let ratios: Vec<f64> =
        findings.pair_ns.iter().zip(&found.floor_ns).map(|(pair, floor)| pair / floor).collect();
    // A run that was made for them tells more than the rounds.
    let fair = findings.fair.as_ref();
    let (wait_ns, wait_ns_by) = waits(fair.map_or(&findings.waits, |fair| &fair.waits));
    let shared = fair.map_or_else(
        || fairness(&findings.operations),
        |fair| fairness(std::slice::from_ref(&fair.served)),
    );
    Row {
        workload: setting.workload.to_owned(),
        params: params(setting, cell),
        tune: cell.variant.tune(),
        threads: cell.threads as u32,
        critical_ns: setting.critical_ns,
        outside_ns: setting.outside_ns,
        lines: setting.lines,
        pin: plan.pin.clone(),
        hogs: cell.hogs as u32,
        wait_ns,
        wait_ns_by,
        partial: found.partial,
        fairness: shared,
        fairness_s: fair.map(|fair| fair.seconds),
        cpu_ns_per_op: finite(median(&mut cpu)),
        overhead_ns_per_op: overhead(plan, found, cell, findings),
        uncontended_ns: pair,
        floor_ratio: (!ratios.is_empty()).then(|| interval(&ratios)),
        events: findings.events.clone(),
        events_ops: findings.events_ops,
        locality: locality(&findings.events),
        ..of_rounds("bench", plan.locks[cell.lock].name, findings.rates(), &findings.operations)
    }
}

/// A row of a lock that says nothing but what its rounds were: their throughputs, and the operations
/// of each thread.
pub fn of_rounds(kind: &str, lock: &str, rates: Vec<f64>, operations: &[Vec<u64>]) -> Row {
    Row {
        schema: SCHEMA,
        kind: kind.to_owned(),
        workload: "lengths".to_owned(),
        params: BTreeMap::new(),
        lock: lock.to_owned(),
        tune: BTreeMap::new(),
        threads: operations.first().map_or(0, Vec::len) as u32,
        critical_ns: 0.0,
        outside_ns: 0.0,
        lines: 1,
        pin: "B".to_owned(),
        hogs: 0,
        rounds: rates.len() as u32,
        ops_per_s: interval(&rates),
        op_ns: spread(&rates.iter().map(|rate| 1e9 / rate).collect::<Vec<f64>>()),
        round_ops_per_s: rates,
        wait_ns: None,
        wait_ns_by: BTreeMap::new(),
        partial: false,
        fairness: fairness(operations),
        fairness_s: None,
        cpu_ns_per_op: None,
        overhead_ns_per_op: None,
        uncontended_ns: None,
        floor_ratio: None,
        events: BTreeMap::new(),
        events_ops: None,
        locality: None,
        platform: BTreeMap::new(),
    }
}

/// What the workload, and the step or the remedy, add to the key.
fn params(setting: &Setting, cell: Cell) -> BTreeMap<String, Value> {
    let mut params = setting.params.clone();
    if let Some(step) = cell.variant.step {
        params.insert("step".to_owned(), step.into());
    }
    if let Some(remedy) = cell.variant.remedy {
        params.insert(remedy::PARAM.to_owned(), remedy.to_string().into());
    }
    params
}

/// Where nothing was done, a figure an operation does not exist.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// All waits together, and by class where there is more than one.
pub(super) fn waits(classes: &[Waits]) -> (Option<WaitNs>, BTreeMap<String, WaitNs>) {
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

/// Time an operation beyond what a lock that costs nothing would need.
///
/// With one thread: CPU time beyond that of the same loop without a lock in the same round; a
/// thread that was preempted is not the lock's fault. With more: wall time beyond the critical
/// section, which cannot overlap, or the whole work shared among the CPUs, whichever is longer.
fn overhead(plan: &Plan, found: &Found, cell: Cell, findings: &Findings) -> Option<f64> {
    let bare = plan
        .cells
        .iter()
        .position(|other| plan.locks[other.lock].name == EMPTY && other.setting == cell.setting)?;
    let bare = &found.cells[bare];
    let setting = &plan.settings[cell.setting];
    let critical_ns = match setting.job {
        Job::Mutex(MutexWork::Lengths(_)) => Some(setting.critical_ns),
        // Sections of unknown or random length, or ones that may overlap.
        Job::Mutex(
            MutexWork::Locktorture(_) | MutexWork::KernelLockBench(_) | MutexWork::Varied(_),
        )
        | Job::Rw(_) => None,
    };
    let workers = cell.threads.min(plan.placement.cpus()) as f64;
    let mut rounds = Vec::with_capacity(found.rounds);
    for round in 0..found.rounds {
        let work_ns = bare.cpu_ns[round] / bare.total(round);
        rounds.push(match (cell.threads, critical_ns) {
            (1, _) => findings.cpu_ns[round] / findings.total(round) - work_ns,
            (_, Some(critical_ns)) => {
                findings.seconds[round] * 1e9 / findings.total(round)
                    - critical_ns.max(work_ns / workers)
            }
            (_, None) => return None,
        });
    }
    finite(median(&mut rounds))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::affinity::{Pin, Placement};
    use crate::bench::plan::{Beside, cells};
    use crate::bench::workload::lengths::Lengths;
    use crate::compare::compare;
    use crate::contender::catalog::locks;
    use crate::this_machine::Distances;

    /// A plan of `std` at one and two threads, with the empty lock measured but not shown.
    fn plan() -> Plan {
        let named = |name: &str| locks().into_iter().find(|lock| lock.name == name);
        let mut chosen: Vec<_> = named("std").into_iter().collect();
        let settings = vec![Setting {
            workload: "lengths",
            params: BTreeMap::new(),
            critical_ns: 100.0,
            outside_ns: 100.0,
            lines: 1,
            job: Job::Mutex(MutexWork::Lengths(Lengths { critical: 1, outside: 1, lines: 1 })),
            beside: Beside::default(),
        }];
        let cells = cells(&mut chosen, &settings, &[1, 2], |_| 0, named(EMPTY));
        Plan {
            locks: chosen,
            settings,
            cells,
            placement: Placement::new(Pin::B, vec![0, 1]),
            pin: "B".to_owned(),
            rounds: 3,
            phase: Duration::from_secs(1),
            turn: Duration::ZERO,
            waits: true,
            fairness: None,
            cell_by_cell: false,
            counting: Duration::ZERO,
            budget: None,
            seed: 1,
        }
    }

    /// Three rounds of a second in which all threads did `operations` each.
    fn findings(threads: usize, operations: u64, cpu_s: f64) -> Findings {
        Findings {
            seconds: vec![1.0; 3],
            operations: vec![vec![operations; threads]; 3],
            cpu_ns: vec![cpu_s * 1e9; 3],
            ..Findings::default()
        }
    }

    #[test]
    fn figures_are_medians_and_overhead_is_net_of_the_work() {
        let plan = plan();
        let found = Found {
            cells: vec![
                findings(1, 4_000_000, 1.0),
                findings(1, 5_000_000, 1.0),
                findings(2, 2_500_000, 2.0),
            ],
            floor_ns: vec![2.0; 3],
            rounds: 3,
            partial: true,
            failure: None,
            distances: Distances::default(),
            order: Vec::new(),
        };
        let rows = rows(&plan, &found);
        assert_eq!(rows.len(), 2, "the empty lock is not shown");
        let (alone, two) = (&rows[0], &rows[1]);
        assert_eq!((alone.lock.as_str(), alone.threads, two.threads), ("std", 1, 2));
        assert_eq!(alone.ops_per_s.median, 4e6);
        assert_eq!(two.ops_per_s.median, 5e6);
        assert_eq!(two.op_ns.map(|op| (op.mean, op.std_dev)), Some((200.0, Some(0.0))));
        // 250 ns where the bare loop takes 200.
        assert_eq!(alone.overhead_ns_per_op, Some(50.0));
        // 200 ns where the critical section, or half of the work, would take 100.
        assert_eq!(two.overhead_ns_per_op, Some(100.0));
        assert_eq!(two.cpu_ns_per_op, Some(400.0));
        assert_eq!((two.fairness.max_min, two.fairness.factor), (Some(1.0), 0.5));
        assert!(alone.partial && alone.wait_ns.is_none());
        let ratio = compare(alone, two).ratio;
        assert_eq!((ratio.lo, ratio.median, ratio.hi), (0.8, 0.8, 0.8));
    }

    #[test]
    fn a_standstill_has_no_figures_an_operation() {
        let plan = plan();
        let found = Found {
            cells: vec![findings(1, 1, 1.0), findings(1, 1, 1.0), findings(2, 0, 2.0)],
            floor_ns: vec![2.0; 3],
            rounds: 3,
            partial: false,
            failure: None,
            distances: Distances::default(),
            order: Vec::new(),
        };
        let two = &rows(&plan, &found)[1];
        assert_eq!(two.ops_per_s.median, 0.0);
        assert_eq!((two.cpu_ns_per_op, two.overhead_ns_per_op), (None, None));
        assert_eq!(two.op_ns, None);
        assert_eq!((two.fairness.max_min, two.fairness.factor), (None, 1.0));
    }
}
