//! `qspin stat` of a program that `qspin run --stats` has started: its locks.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

use super::Args;
use super::process::Process;
use crate::bench::interrupt::Interrupt;
use crate::command::run::{Live, Look};
use crate::command::tell;
use crate::failure::Failure;

/// Shows them, once or again and again.
///
/// # Errors
/// They cannot be read, or not reset: wrong input.
pub(super) fn run(args: &Args, process: &Process, mut live: Live) -> Result<ExitCode, Failure> {
    let Some(interval) = args.interval else {
        let look = live.look()?;
        show(args, process, &live, &look, None)?;
        if args.reset {
            reset(process, &live)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let interrupt = Interrupt::on_signals()?;
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

/// Shows a look; says whether somebody still reads what is shown.
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
