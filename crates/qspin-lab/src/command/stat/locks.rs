//! `qspin stat` of a program that `qspin run --stats` has started: its locks.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Args;
use super::process::Process;
use crate::bench::interrupt::Interrupt;
use crate::command::run::{Live, Look, What, why_not_live};
use crate::command::tell;
use crate::failure::Failure;

/// How long a process that did not count is looked at, for one look.
const FOR: Duration = Duration::from_secs(1);

fn cannot(process: &Process, why: &std::io::Error) -> Failure {
    Failure::usage(format!(
        "cannot switch anything on in {process}: {why}; run as {} or root",
        process.owner()
    ))
}

/// Shows which threads wait for what, and which for each other.
///
/// # Errors
/// A process that is not under the library, or that cannot be written to.
pub(super) fn deadlocks(process: &Process, live: Option<Live>) -> Result<ExitCode, Failure> {
    let Some(mut live) = live else {
        if let Err(why) = std::fs::read_dir(format!("/proc/{}/fd", process.pid)) {
            return Err(process.refusal(&why));
        }
        let why = why_not_live(process.pid)
            .unwrap_or("it runs with its own locks: start it with `qspin run --deadlocks`");
        return Err(Failure::usage(format!(
            "cannot see what threads of {process} wait for: {why}"
        )));
    };
    if live.is_of_the_crate() {
        return Err(Failure::usage(format!(
            "cannot see what threads of {process} wait for: its locks are those of the crate, whose feature `profile` \
             counts and does not write down what threads hold"
        )));
    }
    let was_on = live.tracks();
    live.switch_on(What::Holds).map_err(|why| cannot(process, &why))?;
    if !was_on {
        tell(&format!(
            "{process} writes down what its threads hold from now on, while this looks; what they held before is not \
             known: start it with `qspin run --deadlocks`"
        ));
        std::thread::sleep(FOR);
    }
    let (text, certain) = live.deadlocks()?;
    super::write_on(&mut std::io::stdout().lock(), &text)?;
    Ok(ExitCode::from(u8::from(certain)))
}

/// Shows them, once or again and again.
///
/// # Errors
/// They cannot be read, or not reset: wrong input.
pub(super) fn run(args: &Args, process: &Process, mut live: Live) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::on_signals()?;
    if !live.counts() {
        live.switch_on(What::Counts)
            .and_then(|()| live.reset())
            .map_err(|why| cannot(process, &why))?;
        tell(&format!("{process} counts as long as this looks at it"));
        if args.interval.is_none() {
            process.wait(FOR, &interrupt);
        }
    }
    let Some(interval) = args.interval else {
        let look = live.look()?;
        show(args, process, &live, &look, None)?;
        if args.reset {
            reset(process, &live)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    if args.reset {
        reset(process, &live)?;
    }
    let mut before = live.look()?;
    let mut since = Instant::now();
    let mut times = 0;
    loop {
        let ended = process.wait(interval, &interrupt);
        if interrupt.is_raised() {
            return Ok(ExitCode::SUCCESS);
        }
        // At the end the file lives on, since it is open here: it holds the last counts.
        let look = live.look()?;
        let elapsed = since.elapsed().as_secs_f64();
        since = Instant::now();
        let read_on = show(args, process, &live, &look, Some((&before, elapsed)))?;
        if ended {
            tell(&format!("{process} has ended"));
        }
        times += 1;
        if ended || !read_on || args.count == Some(times) {
            return Ok(ExitCode::SUCCESS);
        }
        before = look;
    }
}

fn reset(process: &Process, live: &Live) -> Result<(), Failure> {
    live.reset().map_err(|why| {
        Failure::usage(format!(
            "cannot reset the counts of {process}: {why}; run as {} or root",
            process.owner()
        ))
    })?;
    tell(&format!("the counts of {process} begin at zero again"));
    Ok(())
}

/// Shows a look; says whether what is shown is still read.
fn show(
    args: &Args,
    process: &Process,
    live: &Live,
    look: &Look,
    before: Option<(&Look, f64)>,
) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    let text = if args.json {
        let mut line = live.json(look, before);
        line["pid"] = json!(process.pid);
        line["name"] = json!(process.name);
        if let Some((_, interval)) = before {
            line["interval_s"] = json!(interval);
        }
        format!("{line}\n")
    } else if before.is_some() && out.is_terminal() {
        // Watching: each picture in the place of the one before.
        format!("\x1b[H\x1b[J{}", live.text(look, before))
    } else {
        live.text(look, before)
    };
    super::write_on(&mut out, &text)
}
