//! `qspin stat`: the counters of a running process.

mod counters;
mod diff;
mod header;
mod locks;
mod process;
mod show;
mod tune;

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::quantity::parse_seconds;
use crate::tune::Tune;

use counters::{Found, Reading, Search};
use process::Process;
use show::Before;

/// Show what the locks of a running process count, or change their tunables.
///
/// Shows the groups of counters that the process publishes, each with the averages that follow
/// from it. It takes no privilege to look at a process of one's own. docs/statistics.md says what
/// each counter means.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process to look at.
    #[arg(value_name = "PID", value_parser = parse_process, required_unless_present = "diff")]
    process: Option<u32>,
    /// Compare two files that `qspin run --stats=json --stats-out FILE` wrote.
    #[arg(long, value_names = ["OLD", "NEW"], num_args = 2,
          conflicts_with_all = ["process", "interval", "json", "reset", "deadlocks", "tune"])]
    diff: Option<Vec<PathBuf>>,
    /// Show what each thread waits for and holds, and which wait for each other: the exit code is 1 if some do.
    #[arg(long, conflicts_with_all = ["interval", "json", "reset"])]
    deadlocks: bool,
    /// Watch: show the counters with their rates every so many seconds, until interrupted.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    interval: Option<Duration>,
    /// Show them so many times, then stop.
    #[arg(long, value_name = "N", requires = "interval", value_parser = parse_times)]
    count: Option<u64>,
    /// Print a line of JSON each time.
    #[arg(long)]
    json: bool,
    /// Let every counter begin at zero again: after showing them, or before watching.
    #[arg(long)]
    reset: bool,
    /// Change a tunable of the process, as numa_threshold_ns=2000000; may be given several times. For a program
    /// under `qspin run`, and one that calls `qspin::tuning::listen`.
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::tune::parse,
          conflicts_with_all = ["deadlocks", "interval", "json", "reset"])]
    tune: Vec<Tune>,
}

fn parse_process(text: &str) -> Result<u32, String> {
    /// What Linux never exceeds.
    const MAX: u32 = 1 << 22;
    match text.trim().parse::<u32>() {
        Ok(process @ 1..=MAX) => Ok(process),
        _ => Err(format!("`{text}` is no process: give its number, such as 1234 (`pidof NAME`)")),
    }
}

fn parse_times(text: &str) -> Result<u64, String> {
    match text.trim().parse::<u64>() {
        Ok(times) if times > 0 => Ok(times),
        _ => Err(format!("`{text}` is no number of times: give 1 or more")),
    }
}

/// Shows the counters, once or again and again.
///
/// # Errors
///
/// A process that cannot be looked at, or that publishes no counters: wrong input.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some([old, new]) = args.diff.as_deref() {
        return diff::run(old, new);
    }
    let number = args.process.unwrap_or_default();
    let process = Process::open(number)?;
    if !args.tune.is_empty() {
        tune::run(&process, &args.tune)?;
        return Ok(ExitCode::SUCCESS);
    }
    let live = super::run::live(number);
    if args.deadlocks {
        return locks::deadlocks(&process, live);
    }
    if let Some(live) = live {
        // A program with counters of its own shows those, unless its locks are counted anyway.
        if live.counts() || Search::default().first(&process).is_err() {
            return locks::run(args, &process, live);
        }
    }
    let mut search = Search::default();
    let found = search.first(&process).map_err(|why| match super::run::why_not_live(number) {
        Some(why) => Failure::usage(format!("{process} has no statistics to show: {why}")),
        None => why,
    })?;
    if args.reset {
        may_reset(&process, found)?;
    }
    if let Some(interval) = args.interval {
        return watch(args, interval, &process, search);
    }
    show(args, &process, &read(&process, found)?, None)?;
    if args.reset {
        reset(&process, found)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the counters every `interval`, until interrupted or the process has ended.
fn watch(
    args: &Args,
    interval: Duration,
    process: &Process,
    mut search: Search,
) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::on_signals()?;
    if args.reset {
        reset(process, search.known())?;
    }
    let mut before = read(process, search.known())?;
    let mut since = Instant::now();
    let mut times = 0;
    loop {
        let ended = process.wait(interval, &interrupt);
        if interrupt.is_raised() {
            return Ok(ExitCode::SUCCESS);
        }
        // At the end the files live on, since they are open here: they hold the last counts.
        let found = if ended { search.known() } else { search.again(process) };
        let readings = read(process, found)?;
        let elapsed = since.elapsed();
        since = Instant::now();
        let read_on =
            readings.is_empty() || show(args, process, &readings, Some((&before, elapsed)))?;
        if !read_on {
            return Ok(ExitCode::SUCCESS);
        }
        if ended {
            super::tell(&format!("{process} has ended"));
            return Ok(ExitCode::SUCCESS);
        }
        if readings.is_empty() {
            super::tell(&format!(
                "{process} publishes its statistics no longer: it has closed their files, or runs \
                 another program now"
            ));
            return Ok(ExitCode::SUCCESS);
        }
        times += 1;
        if args.count == Some(times) {
            return Ok(ExitCode::SUCCESS);
        }
        before = readings;
    }
}

fn read(process: &Process, found: &[Found]) -> Result<Vec<Reading>, Failure> {
    found.iter().map(|found| found.read().map_err(|why| failed(process, found, &why))).collect()
}

fn reset(process: &Process, found: &[Found]) -> Result<(), Failure> {
    for found in found {
        found.reset().map_err(|why| failed(process, found, &why))?;
    }
    super::tell(&format!("the counters of {process} begin at zero again"));
    Ok(())
}

/// Refuses before anything is shown.
fn may_reset(process: &Process, found: &[Found]) -> Result<(), Failure> {
    match found.iter().find_map(Found::why_not_writable) {
        None => Ok(()),
        Some(why) => Err(Failure::usage(format!(
            "cannot reset the counters of {process}: {why}; run as {} or root",
            process.owner()
        ))),
    }
}

fn failed(process: &Process, found: &Found, why: &str) -> Failure {
    Failure::usage(format!("{process}: the file of the group {} {why}", found.name()))
}

/// Shows the readings; says whether what is shown is still read.
fn show(
    args: &Args,
    process: &Process,
    readings: &[Reading],
    before: Before<'_>,
) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    let text = if args.json {
        show::json(process, readings, before)
    } else if before.is_some() && out.is_terminal() {
        // Watching: each picture in the place of the one before.
        format!("\x1b[H\x1b[J{}", show::text(process, readings, before))
    } else {
        show::text(process, readings, before)
    };
    write_on(&mut out, &text)
}

/// Writes `text`; says whether it is still read.
fn write_on(out: &mut impl Write, text: &str) -> Result<bool, Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::from(error)),
    }
}
