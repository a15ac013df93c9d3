//! From options to workloads, and from a workload's rows to its own picture on the terminal.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::bench::busy::Pace;
use crate::bench::engine::MutexWork;
use crate::bench::found::{Findings, Found};
use crate::bench::grid::grids;
use crate::bench::plan::{Beside, Job, Plan, Setting};
use crate::bench::station::Mix;
use crate::bench::workload::kernel_lock_bench::KernelLockBench;
use crate::bench::workload::lengths::Lengths;
use crate::bench::workload::locktorture::{LONG_NS, Locktorture, SHORT_NS, summary};
use crate::compare::{Comparison, Outcome, Sample, too_few};
use crate::quantity::Ratio;
use crate::row::Row;

use super::{Args, Workload};

/// Lengths of the published grids.
const NON_CRITICALS: [u32; 3] = [1, 32, 128];
const CRITICALS: [u32; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];

/// The workloads that were asked for.
pub(super) fn settings(args: &Args, pace: Pace, seed: u64) -> Vec<Setting> {
    let steps = |time: Duration| pace.steps(time.as_nanos() as u64);
    let mut setting = Setting {
        workload: "lengths",
        params: BTreeMap::new(),
        critical_ns: args.critical().as_nanos() as f64,
        outside_ns: args.outside().as_nanos() as f64,
        lines: args.lines(),
        job: Job::Mutex(MutexWork::Lengths(Lengths {
            critical: steps(args.critical()),
            outside: steps(args.outside()),
            lines: args.lines() as usize,
        })),
        beside: Beside::default(),
    };
    if let Some(times) = args.overcommit {
        setting.params.insert("overcommit".to_owned(), times.into());
    }
    match args.workload {
        // Torture measures nothing, and has no use for this.
        Workload::Lengths | Workload::Torture => {}
        Workload::Locktorture => {
            setting.workload = "locktorture";
            (setting.critical_ns, setting.outside_ns, setting.lines) = (0.0, 0.0, 1);
            setting.job = Job::Mutex(MutexWork::Locktorture(Locktorture {
                short: pace.steps(SHORT_NS),
                long: pace.steps(LONG_NS),
                seed,
            }));
        }
        Workload::KernelLockBench => return kernel_lock_bench(&setting),
        Workload::Rw => {
            let (readers, writers) = readers_to_writers(args);
            setting.workload = "rw";
            setting.lines = 1;
            setting.params.insert("readers".to_owned(), readers.into());
            setting.params.insert("writers".to_owned(), writers.into());
            setting.job = Job::Rw(Mix {
                readers,
                writers,
                critical: steps(args.critical()),
                outside: steps(args.outside()),
                seed,
            });
        }
    }
    vec![setting]
}

fn readers_to_writers(args: &Args) -> (u32, u32) {
    match args.ratio {
        Some(Ratio::Readers(readers, writers)) => (readers, writers),
        _ => (9, 1),
    }
}

fn kernel_lock_bench(base: &Setting) -> Vec<Setting> {
    let mut settings = Vec::new();
    for non_critical in NON_CRITICALS {
        for critical in CRITICALS {
            let mut setting = base.clone();
            setting.workload = "kernel-lock-bench";
            (setting.critical_ns, setting.outside_ns, setting.lines) = (0.0, 0.0, 1);
            setting.params.insert("critical".to_owned(), critical.into());
            setting.params.insert("non_critical".to_owned(), non_critical.into());
            setting.job =
                Job::Mutex(MutexWork::KernelLockBench(KernelLockBench { critical, non_critical }));
            settings.push(setting);
        }
    }
    settings
}

/// What the terminal shows of the rows.
pub(super) fn show(
    args: &Args,
    plan: &Plan,
    found: &Found,
    rows: &[Row],
    tables: impl FnOnce() -> String,
) -> String {
    match args.workload {
        Workload::Lengths | Workload::Rw | Workload::Torture => tables(),
        Workload::Locktorture => format!("{}{}", tables(), summaries(plan, found)),
        Workload::KernelLockBench => show_grids(args, plan, found, rows),
    }
}

/// What locktorture itself would print of each lock: the sum of all rounds.
fn summaries(plan: &Plan, found: &Found) -> String {
    let mut out = String::new();
    for (cell, findings) in plan.cells.iter().zip(&found.cells).filter(|(cell, _)| cell.shown) {
        let mut writes = vec![0; cell.threads];
        for round in &findings.operations {
            for (all, round) in writes.iter_mut().zip(round) {
                *all += round;
            }
        }
        let name = format!("{}@{}", plan.locks[cell.lock].name, cell.threads);
        let _ = writeln!(out, "{name:<20} {}", summary(&writes));
    }
    out
}

/// The throughputs of two cells, round by round.
fn side_by_side(one: &Findings, other: &Findings) -> Comparison {
    crate::compare::compare(Sample::Rounds(&one.rates()), Sample::Rounds(&other.rates()))
}

/// How the comparison came out, in a sentence.
fn compare(plan: &Plan, found: &Found, one: &str, other: &str) -> String {
    let of = |name: &str| -> Vec<usize> {
        let named = |index: &usize| plan.locks[plan.cells[*index].lock].name == name;
        (0..plan.cells.len()).filter(named).collect()
    };
    // Both lists are in the order of the plan: settings, then threads.
    let outcomes: Vec<Outcome> = of(one)
        .into_iter()
        .zip(of(other))
        .map(|(one, other)| side_by_side(&found.cells[one], &found.cells[other]).outcome)
        .collect();
    if let Some(too_few) = too_few(found.rounds, &format!("to tell `{one}` and `{other}` apart")) {
        return too_few;
    }
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let (faster, slower) = (count(Outcome::Better), count(Outcome::Worse));
    format!(
        "`{one}` is clearly faster than `{other}` in {faster} of {} cells and clearly slower in \
         {slower}; in the other {} there is no clear difference.",
        outcomes.len(),
        outcomes.len() - faster - slower
    )
}

fn show_grids(args: &Args, plan: &Plan, found: &Found, rows: &[Row]) -> String {
    let mut threads: Vec<usize> = plan.cells.iter().map(|cell| cell.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let at = |lock: &str, non_critical: u32, threads: usize, critical: u32| {
        plan.cells.iter().position(|cell| {
            let params = &plan.settings[cell.setting].params;
            plan.locks[cell.lock].name == lock
                && cell.threads == threads
                && params.get("critical") == Some(&critical.into())
                && params.get("non_critical") == Some(&non_critical.into())
        })
    };
    if let Some(Ratio::Locks(one, other)) = &args.ratio {
        let value = |non_critical, threads, critical| {
            let of = |lock| at(lock, non_critical, threads, critical).map(|i| &found.cells[i]);
            match (of(one), of(other)) {
                (Some(one), Some(other)) => side_by_side(one, other).ratio.median,
                _ => f64::NAN,
            }
        };
        return format!(
            "First row: critical section length\nFirst column: threads\n\
             Values: {one} vs {other}, throughput based, higher is better\n\n{}\n{}\n",
            grids(&NON_CRITICALS, &threads, &CRITICALS, &value),
            compare(plan, found, one, other)
        );
    }
    let mut out = String::from(
        "First row: critical section length\nFirst column: threads\n\
         Values: throughput in million acquisitions a second, higher is better\n",
    );
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.lock.as_str()) {
            names.push(&row.lock);
        }
    }
    for name in names {
        let value = |non_critical: u32, threads: usize, critical: u32| {
            rows.iter()
                .find(|row| {
                    row.lock == name
                        && row.threads as usize == threads
                        && row.params.get("critical") == Some(&critical.into())
                        && row.params.get("non_critical") == Some(&non_critical.into())
                })
                .map_or(f64::NAN, |row| row.ops_per_s.median / 1e6)
        };
        let _ = write!(out, "\n{name}\n{}", grids(&NON_CRITICALS, &threads, &CRITICALS, &value));
    }
    out
}
