//! `qspin bench --workload torture`: no figures, but a verdict on each lock.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use qspin_table::number::{digits, plural};
use qspin_table::{Cell, Columns};

use crate::bench::affinity::{Placement, allowed_cpus};
use crate::bench::busy::Pace;
use crate::bench::hogs::Hogs;
use crate::bench::interrupt::Interrupt;
use crate::bench::plan::Variant;
use crate::bench::torture::{Outcome, TIMEOUT, Torment, seen};
use crate::contender::catalog::Engine;
use crate::failure::Failure;
use crate::this_machine;

use super::contend::{self, Entrant};
use super::{Args, INTERRUPTED, QUICK_BUDGET};

/// How long each lock is tortured where nothing is said, and the least with `--quick`.
const SECONDS: Duration = Duration::from_secs(5);
const QUICK_SECONDS: Duration = Duration::from_secs(1);
/// The most threads where nothing is said: a spinlock that is strictly fair needs a time slice a
/// thread for each turn.
const MAX_THREADS: usize = 64;

/// A lock's line in the table.
struct Line {
    lock: String,
    threads: usize,
    outcome: Outcome,
}

/// Tortures the locks one after the other, up to the first that does not hold.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let entrants = entrants(args)?;
    let interrupt = Interrupt::on_signals()?;
    let seed = args.seed();
    let cpus = allowed_cpus();
    let threads = if args.threads.is_empty() {
        vec![(4 * cpus.len()).min(MAX_THREADS.max(cpus.len() + 1))]
    } else {
        args.threads.clone()
    };
    let most = threads.iter().copied().max().unwrap_or(1);
    let made = this_machine::threads_possible(most);
    if made < most {
        return Err(anyhow!("the machine made {made} of {most} threads: ask for fewer").into());
    }
    let hogs_beside = |threads| args.load().hogs(threads, cpus.len());
    let mut hogs = Hogs::start(threads.iter().map(|n| hogs_beside(*n)).max().unwrap_or(0))
        .context("cannot start the hogs")?;
    let torment = Torment {
        threads: most,
        placement: Placement::new(args.pin, cpus.clone()),
        time: time(args, entrants.len() * threads.len()),
        timeout: TIMEOUT,
        seed,
        pace: Pace::calibrate(),
    };
    let names: Vec<&str> = entrants.iter().map(|entrant| entrant.lock.name).collect();
    let counts: Vec<String> = threads.iter().map(ToString::to_string).collect();
    super::super::say(&format!(
        "torture   {} s a lock, seed {seed}, {}, pin {}, hogs {}\n{}locks     {}\nthreads   {}\n\n",
        digits(torment.time.as_secs_f64()),
        plural(cpus.len() as f64, "CPU"),
        args.pin,
        threads.iter().map(|n| hogs_beside(*n).to_string()).collect::<Vec<_>>().join(" "),
        super::topology(this_machine::made_up().as_deref()),
        names.join(" "),
        counts.join(" "),
    ))?;

    let bar = progress(entrants.len() * threads.len());
    let mut lines: Vec<Line> = Vec::new();
    'all: for &threads in &threads {
        hogs.run(hogs_beside(threads));
        for entrant in &entrants {
            let lock = entrant.lock;
            let Engine::Mutex(engine) = lock.engine else { continue };
            let variant = entrant.variant(threads as u32);
            // What is left of a lock that stalls lives with the tuning that it had.
            qspin::tuning::set(variant.tuning);
            let name = name(lock.name, &variant);
            bar.set_message(format!("{name} × {threads}"));
            let outcome = (engine.torture)(&Torment { threads, ..torment.clone() }, &interrupt)?;
            let over = outcome.interrupted || !outcome.wrong.is_empty();
            lines.push(Line { lock: name, threads, outcome });
            if over {
                break 'all;
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    super::super::say(&format!("{}\n", table(&lines)))?;
    match lines.last() {
        Some(Line { lock, threads, outcome }) if !outcome.wrong.is_empty() => {
            Err(anyhow!("{lock} with {threads} threads, seed {seed}: {}", seen(outcome)).into())
        }
        Some(Line { outcome, .. }) if outcome.interrupted => Ok(ExitCode::from(INTERRUPTED)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A lock with its tuning in brackets, as reports have it.
fn name(lock: &str, variant: &Variant) -> String {
    let tune = variant.tune();
    if tune.is_empty() {
        return lock.to_owned();
    }
    let knobs: Vec<String> = tune
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or(&value.to_string())))
        .collect();
    format!("{lock} [{}]", knobs.join(" "))
}

/// The locks that were asked for. One that excludes no thread takes part only if it is named,
/// to see it fail.
fn entrants(args: &Args) -> Result<Vec<Entrant>, Failure> {
    let mut entrants = contend::entrants(args)?;
    entrants.retain(|Entrant { lock, .. }| {
        !lock.is_for_one_thread() || args.locks.iter().any(|name| name.trim() == lock.name)
    });
    Ok(entrants)
}

fn time(args: &Args, tortures: usize) -> Duration {
    match args.seconds {
        Some(seconds) => seconds,
        None if args.quick => (QUICK_BUDGET / tortures as u32).clamp(QUICK_SECONDS, SECONDS),
        None => SECONDS,
    }
}

fn progress(tortures: usize) -> ProgressBar {
    let bar = ProgressBar::new(tortures as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len}  {elapsed}  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

fn table(lines: &[Line]) -> String {
    let verdict = |line: &Line| match (&line.outcome.wrong[..], line.outcome.interrupted) {
        ([], false) => "held",
        ([], true) => "held, interrupted",
        _ => "FAILED",
    };
    let columns = Columns::<Line>::new()
        .text("lock", |line| line.lock.clone())
        .number("threads", "", |line| line.threads)
        .number("seconds", "", |line| line.outcome.elapsed.as_secs_f64())
        .number("acquisitions", "", |line| line.outcome.acquisitions)
        .number("by trying\n(in vain)", "", |line| {
            Cell::from(line.outcome.by_trying).note(line.outcome.refused.to_string())
        })
        .number("in\nhandlers", "", |line| line.outcome.in_handlers)
        .number("signals\nhandled", "", |line| line.outcome.signals)
        .number("handlers\nnested", "", |line| line.outcome.deepest)
        .number("sleeps\ninside", "", |line| line.outcome.sleeps)
        .number("threads\nborn", "", |line| line.outcome.born)
        .number("longest\nwait", "ms", |line| line.outcome.longest.as_secs_f64() * 1e3)
        .text("verdict", verdict);
    columns.table(lines).to_string()
}
