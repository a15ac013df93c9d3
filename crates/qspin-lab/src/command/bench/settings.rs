//! From options to workloads, and from a workload's rows to its own picture on the terminal.

use std::fmt::Write;

use crate::bench::busy::Pace;
use crate::bench::engine::MutexWork;
use crate::bench::found::Found;
use crate::bench::grid::{Value, grids};
use crate::bench::load::Load;
use crate::bench::plan::{Job, Plan, Setting};
use crate::bench::workload::kernel_lock_bench::KernelLockBench;
use crate::bench::workload::locktorture::{LONG_NS, Locktorture, SHORT_NS, summary};
use crate::compare::{Outcome, compare, too_few};
use crate::quantity::Ratio;
use crate::row::Row;

use super::{Args, Workload};

/// Lengths of the published grids.
const NON_CRITICALS: [u32; 3] = [1, 32, 128];
const CRITICALS: [u32; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];

/// The workloads that were asked for.
pub(super) fn settings(args: &Args, pace: Pace, seed: u64) -> Vec<Setting> {
    let load = Load {
        lengths: args.lengths.unwrap_or_default(),
        locks: args.lock_count.unwrap_or(1),
        lines: args.lines(),
        holder: args.holder,
        then: args.phases,
        mix: (args.workload == Workload::Rw).then(|| readers_to_writers(args)),
        hogs_inside: args.hogs_inside as usize,
        quota: args.quota,
        ..Load::of(args.critical(), args.outside())
    };
    let mut setting = load.setting(pace, seed);
    if let Some(times) = args.overcommit {
        setting.params.insert("overcommit".to_owned(), times.into());
    }
    match args.workload {
        // Torture measures nothing, and has no use for this.
        Workload::Lengths | Workload::Rw | Workload::Torture => {}
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
        Workload::KernelLockBench => show_grids(args, rows),
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

/// How the comparison came out, in a sentence.
fn in_words(rows: &[Row], one: &str, other: &str) -> String {
    let (ones, others) =
        (rows.iter().filter(|row| row.lock == one), rows.iter().filter(|row| row.lock == other));
    // Both are in the order of the plan: settings, then threads.
    let outcomes: Vec<Outcome> =
        ones.zip(others).map(|(one, other)| compare(one, other).outcome).collect();
    let rounds = rows.iter().map(|row| row.rounds).min().unwrap_or(0);
    let what = format!("to tell `{one}` and `{other}` apart");
    if let Some(too_few) = too_few(rounds as usize, &what) {
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

fn show_grids(args: &Args, rows: &[Row]) -> String {
    const AXES: &str = "First row: critical section length\nFirst column: threads\n";
    let mut threads: Vec<usize> = rows.iter().map(|row| row.threads as usize).collect();
    threads.sort_unstable();
    threads.dedup();
    let at = |lock: &str, non_critical: u32, threads: usize, critical: u32| {
        rows.iter().find(|row| {
            row.lock == lock
                && row.threads as usize == threads
                && row.params.get("critical") == Some(&critical.into())
                && row.params.get("non_critical") == Some(&non_critical.into())
        })
    };
    let all = |value: &Value<'_>| grids(&NON_CRITICALS, &threads, &CRITICALS, value);
    if let Some(Ratio::Locks(one, other)) = &args.ratio {
        let ratio = |non_critical, threads, critical| {
            let of = |lock| at(lock, non_critical, threads, critical);
            Some(compare(of(one)?, of(other)?).ratio.median)
        };
        return format!(
            "{AXES}Values: {one} vs {other}, throughput based, higher is better\n\n{}\n{}\n",
            all(&|non_critical, threads, critical| ratio(non_critical, threads, critical)
                .unwrap_or(f64::NAN)),
            in_words(rows, one, other)
        );
    }
    let mut out =
        format!("{AXES}Values: throughput in million acquisitions a second, higher is better\n");
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.lock.as_str()) {
            names.push(&row.lock);
        }
    }
    for name in names {
        let value = |non_critical, threads, critical| {
            let row = at(name, non_critical, threads, critical);
            row.map_or(f64::NAN, |row| row.ops_per_s.median / 1e6)
        };
        let _ = write!(out, "\n{name}\n{}", all(&value));
    }
    out
}
