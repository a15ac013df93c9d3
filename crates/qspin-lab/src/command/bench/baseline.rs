//! `--baseline OLD.jsonl`: what was measured now, beside the same in an earlier run.
//!
//! The rounds of two runs met different moments, so they do not pair; what is compared are the medians with their
//! intervals. Nor do these know what has changed between the runs beside the locks: the locks that are not ours
//! show it.

use std::fmt::Write;

use qspin_table::number::{digits, rate};
use qspin_table::{Cell, Columns};

use crate::bench::stats::median;
use crate::bench::table::heading;
use crate::compare::{Comparison, Outcome, SMALLEST, compare_runs};
use crate::failure::Failure;
use crate::report::columns::{apart, ranked, threads};
use crate::report::family::{is_own, is_reference};
use crate::report::group::label;
use crate::report::{Run, read};
use crate::row::{Machine, Row};

use super::{Args, Workload, quick};

/// Refuses what has no baseline.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    let given = [
        ("--random", args.random.is_some()),
        ("--matrix", args.matrix.is_some()),
        ("--quick without a load of your own", quick::draws(args)),
        ("--workload torture", args.workload == Workload::Torture),
        ("--workload kernel-lock-bench", args.workload == Workload::KernelLockBench),
        ("--steps", args.steps.is_some()),
        ("--kick-ahead", args.kick_ahead.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given && args.baseline.is_some()) {
        Some((option, _)) => Err(Failure::usage(format!(
            "--baseline compares the tables of locks under one load: leave out {option}"
        ))),
        None => Ok(()),
    }
}

/// An earlier run.
pub(super) struct Baseline(Run);

/// A row of now, and that of then.
struct Pair<'a> {
    now: &'a Row,
    then: &'a Row,
    found: Comparison,
}

impl Baseline {
    /// Reads it, if there is one; of a file with several runs the last.
    pub(super) fn read(args: &Args) -> Result<Option<Self>, Failure> {
        let Some(path) = &args.baseline else { return Ok(None) };
        let is_bench = |run: &Run| run.rows.iter().any(|row| row.kind == "bench");
        match read(&[path])?.into_iter().rfind(is_bench) {
            Some(run) => Ok(Some(Self(run))),
            None => Err(Failure::usage(format!(
                "{} has no rows of bench: name a file that `qspin bench --out` wrote",
                path.display()
            ))),
        }
    }

    /// What has changed since.
    pub(super) fn show(&self, machine: &Machine, rows: &[Row]) -> String {
        let Self(old) = self;
        let mut out = format!("\nNow, and in {} of {}\n", old.source, old.machine.started);
        let pairs: Vec<Pair<'_>> = rows
            .iter()
            .filter_map(|now| {
                let then = old.rows.iter().find(|then| then.key() == now.key())?;
                Some(Pair { now, then, found: compare_runs(now, then) })
            })
            .collect();
        if pairs.is_empty() {
            out += "It has no row of the same lock, load and number of threads: nothing is compared.\n";
            return out;
        }
        for threads in threads(rows) {
            let (locks, ends) = apart(ranked(rows, threads));
            let of_now = |row: &Row| pairs.iter().find(|pair| std::ptr::eq(pair.now, row));
            let pairs: Vec<&Pair<'_>> = locks.into_iter().chain(ends).filter_map(of_now).collect();
            if let Some(first) = pairs.first() {
                let heading = heading(first.now, machine.cpus);
                let table = columns().table(pairs).terminal(None);
                let _ = writeln!(out, "\n{heading}\n{table}");
            }
        }
        out.push('\n');
        out += &in_words(&pairs);
        out += &self.differences(machine, &pairs);
        out
    }

    /// What differs beside the locks.
    fn differences(&self, machine: &Machine, pairs: &[Pair<'_>]) -> String {
        let old = &self.0.machine;
        let mut out = String::new();
        for (what, then, now) in [
            ("CPU", &old.cpu, &machine.cpu),
            ("number of CPUs", &old.cpus.to_string(), &machine.cpus.to_string()),
            ("kernel", &old.kernel, &machine.kernel),
            ("version of qspin", &old.version, &machine.version),
        ] {
            if then != now {
                let _ = writeln!(out, "Another {what}: {now}, then {then}.");
            }
        }
        let mut others: Vec<f64> = pairs
            .iter()
            .filter(|pair| !is_own(&pair.now.lock) && !is_reference(&pair.now.lock))
            .map(|pair| pair.found.ratio.median)
            .filter(|ratio| ratio.is_finite())
            .collect();
        if !others.is_empty() {
            let drift = median(&mut others);
            let _ = write!(out, "Locks that are not qspin's changed by × {drift:.2} in the median");
            out += if (drift - 1.0).abs() < SMALLEST {
                ".\n"
            } else {
                ": the machine is not what it was, so measure both again, one after the other.\n"
            };
        }
        out
    }
}

fn columns<'a>() -> Columns<'a, Pair<'a>> {
    let figure = |row: &Row| Cell::from(rate(row.ops_per_s.median)).sorted_by(row.ops_per_s.median);
    Columns::new()
        .text("lock", |pair: &Pair<'_>| label(pair.now))
        .number("ops/s now", "", move |pair| figure(pair.now))
        .number("then", "", move |pair| figure(pair.then))
        .number("now / then", "", |pair| pair.found.ratio.median)
        .number("95 % interval", "", |pair| {
            let ratio = pair.found.ratio;
            // Without bound where the earlier run has a round in which the lock stood still.
            let hi = if ratio.hi.is_finite() { digits(ratio.hi) } else { "∞".to_owned() };
            Cell::from(format!("{} – {hi}", digits(ratio.lo))).sorted_by(ratio.lo)
        })
        .text("", |pair| pair.found.outcome.mark())
}

fn in_words(pairs: &[Pair<'_>]) -> String {
    let count = |wanted| pairs.iter().filter(|pair| pair.found.outcome == wanted).count();
    let mut out = format!(
        "Of {} rows {} are clearly faster than then, {} clearly slower (▼); in {} there is no clear difference (≈)",
        pairs.len(),
        count(Outcome::Better),
        count(Outcome::Worse),
        count(Outcome::Level)
    );
    match count(Outcome::TooFewRounds) {
        0 => out += ".\n",
        few => {
            let _ = writeln!(out, ", and {few} have too few rounds to tell (?).");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{machine, row};

    fn shown(then: Vec<Row>, now: &[Row]) -> String {
        let source = "old.jsonl".to_owned();
        Baseline(Run { source, machine: machine(2), rows: then }).show(&machine(2), now)
    }

    #[test]
    fn each_row_is_compared_with_that_of_the_same_lock_and_load() {
        let then = vec![row("mutex", 2, 2e6), row("std", 2, 1e6), row("mutex", 8, 1e6)];
        let now = [row("std", 2, 1e6), row("mutex", 2, 1e6), row("mutex", 4, 9e6)];
        let text = shown(then, &now);
        let line = |lock: &str| text.lines().find(|line| line.contains(lock)).unwrap_or_default();
        assert!(line("mutex").contains("1 M") && line("mutex").contains("2 M"), "{text}");
        assert!(line("mutex").contains("0.5") && line("mutex").contains('▼'), "{text}");
        assert!(line("std ").contains('≈'), "{text}");
        assert!(!text.contains("4 threads") && !text.contains("8 threads"), "{text}");
        assert!(
            text.contains("Of 2 rows 0 are clearly faster than then, 1 clearly slower"),
            "{text}"
        );
        assert!(text.contains("are not qspin's changed by × 1.00 in the median.\n"), "{text}");
    }

    #[test]
    fn a_machine_that_is_not_what_it_was_is_told() {
        let text = shown(vec![row("std", 2, 1e6)], &[row("std", 2, 2e6)]);
        assert!(text.contains("× 2.00 in the median: the machine is not what it was"), "{text}");
        let text = shown(vec![row("std", 2, 1e6)], &[row("mutex", 2, 2e6)]);
        assert!(text.contains("nothing is compared"), "{text}");
        let mut still = row("mutex", 2, 1e6);
        still.ops_per_s.lo = 0.0;
        let text = shown(vec![still], &[row("mutex", 2, 2e6)]);
        assert!(text.contains("1.96 – ∞"), "{text}");
    }
}
