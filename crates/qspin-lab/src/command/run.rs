//! `qspin run`: a program with qspin's locks in the place of the C library's.
//!
//! The locks come from a library that the dynamic linker loads before the program's own
//! (`crates/qspin-preload`). Whether it was loaded, and what its locks do, it writes into a file in memory
//! that this command opens for it, so nothing stays behind, however the program ends.

mod compare;
mod deadlock;
mod futexes;
mod launch;
mod library;
mod live;
mod profile;
mod program;
mod report;
mod switch;
mod symbols;
mod table;
mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use qspin_core::locks::{Id, LOCKS};

use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::parse_count;
use crate::tune::{self, Tune};

pub(super) use live::{Live, Look, live, why_not_live};
pub(super) use profile::FORMAT;
pub use profile::Format;
pub(super) use report::slots_in;
pub(super) use switch::What;
pub use watch::OnDeadlock;

/// Exit code where the library was not loaded.
const NOT_LOADED: u8 = 3;
/// Exit code where the program has no lock that could be served.
const LOCKS_NOTHING: u8 = 4;

/// Run a program with these locks in the place of the C library's.
///
/// Its mutexes, condition variables, reader-writer locks and spinlocks are served by qspin; the program is not
/// changed. The exit code is the program's, or 128 and the number of the signal that ended it; 3 if the
/// locks could not be put in place, 4 if there is nothing to count or compare, and as a shell's 127 or 126 if
/// the program is not there or not executable. docs/run.md has the rest.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The lock that serves the program's mutexes.
    #[arg(long, value_name = "NAME", value_parser = parse_lock, default_value = Id::Mutex.name())]
    lock: &'static str,
    /// The lock that serves the program's reader-writer locks; without this option one that lets a reader in
    /// again before waiting writers, as the C library's does. With it such a reader may wait for ever.
    #[arg(long, value_name = "NAME", value_parser = parse_rwlock)]
    rwlock: Option<&'static str>,
    /// A tunable of the locks, as queue_polls=64; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = tune::parse)]
    tune: Vec<Tune>,
    /// Count what the locks do, and show it on stderr at the end; `qspin stat PID` shows it live.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    stats: Option<Format>,
    /// Write the statistics to this file instead of stderr.
    #[arg(long, value_name = "FILE", requires = "stats")]
    stats_out: Option<PathBuf>,
    /// Watch for deadlocks, and say them on stderr with all stacks; `abort` also ends the process, by SIGABRT.
    #[arg(long, value_name = "ACTION", num_args = 0..=1, require_equals = true, default_missing_value = "report",
          conflicts_with = "compare")]
    deadlocks: Option<OnDeadlock>,
    /// Run the program so many times with these locks and as many with the C library's, in turns, and
    /// show the ratio, after one run that shows whether it locks at all. What the program prints is not shown.
    #[arg(long, value_name = "N", value_parser = parse_pairs, conflicts_with = "stats")]
    compare: Option<u32>,
    /// With --compare: what to compare is not the time, but the number that follows TEXT where the program
    /// last prints it; more is better.
    #[arg(long, value_name = "TEXT", requires = "compare")]
    figure: Option<String>,
    /// The program, and what it is given.
    #[arg(value_name = "CMD", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// The locks of the register that exclude: each can serve in the place of a program's mutexes.
fn parse_lock(text: &str) -> Result<&'static str, String> {
    parse(text, false, "lock")
}

/// Those that readers share: each can serve in the place of its reader-writer locks.
fn parse_rwlock(text: &str) -> Result<&'static str, String> {
    parse(text, true, "reader-writer lock")
}

fn parse(text: &str, shared: bool, what: &str) -> Result<&'static str, String> {
    let found = Id::named(text).map(Id::lock).filter(|lock| lock.shared == shared);
    found.map(|lock| lock.name).ok_or_else(|| {
        let all = LOCKS.iter().filter(|lock| lock.shared == shared);
        let names: Vec<_> = all.map(|lock| lock.name).collect();
        format!("no {what} called `{text}` can serve a program: choose from {}", names.join(", "))
    })
}

fn parse_pairs(text: &str) -> Result<u32, String> {
    parse_count(text, "pairs of runs", 1000, ", such as 5")
}

/// Runs the program.
///
/// # Errors
///
/// A library that is not there: wrong input. A program that is not there, or cannot be executed.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Some((name, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("there is no program to run: write qspin run -- CMD"));
    };
    if args.stats == Some(Format::Pprof) && args.stats_out.is_none() {
        return Err(Failure::usage(
            "a pprof file is not for a terminal: name it with --stats-out FILE",
        ));
    }
    let out = args.stats_out.as_deref().map(Output::prepare).transpose()?;
    let program = program::find(name)?;
    let library = library::find()?;
    if let Some(why) = program::why_not_loaded(&program) {
        return Ok(not_loaded(&program, &why));
    }
    let command = launch::Launch {
        program: &program,
        name,
        arguments,
        library: &library,
        lock: args.lock,
        rwlock: args.rwlock.unwrap_or_default(),
        tunes: &args.tune,
        stats: args.stats.is_some(),
        deadlocks: args.deadlocks,
    };
    if let Some(pairs) = args.compare {
        return compare::run(&command, pairs, args.figure.as_deref());
    }
    let ended = command.run_with_library(launch::Output::Shown)?;
    if let Some(code) = check(&command, &ended)? {
        return Ok(code);
    }
    if args.stats.is_some() && ended.code == 0 && ended.report.locks_nothing() {
        return Ok(locks_nothing(ended.futexes));
    }
    if let Some(format) = args.stats {
        let written = profile::write(format, &ended.report, &ended.maps)?;
        match out {
            Some(out) => out.finish_bytes(&written)?,
            None => {
                if format == Format::Table {
                    super::tell(&format!("the locks of {}:", program.display()));
                }
                eprint!("{}", String::from_utf8_lossy(&written));
            }
        }
    }
    Ok(ExitCode::from(ended.code))
}

/// Whether the program ran with the lock that is wanted; the exit code if it ran with its own.
fn check(launch: &launch::Launch<'_>, ended: &launch::Ended) -> Result<Option<ExitCode>, Failure> {
    let of_the_library = |process: &&report::Process| !process.is_of_the_crate();
    if ended.report.of_another_version {
        return Err(Failure::usage(format!(
            "{} is of another version than this command: use the one that is installed with it",
            launch.library.display()
        )));
    }
    let Some(first) = ended.report.processes.iter().find(of_the_library) else {
        let why =
            "it was run, but the dynamic linker did not load them, or it has another user's rights";
        return Ok(Some(not_loaded(launch.program, why)));
    };
    let unknown = if first.lock != launch.lock {
        launch.lock
    } else if first.rwlock != launch.rwlock {
        launch.rwlock
    } else {
        return Ok(None);
    };
    Err(Failure::usage(format!(
        "{} knows no lock called {unknown}: it is of another version than this command",
        launch.library.display()
    )))
}

/// Says that and why the program runs, or would run, with its own locks.
fn not_loaded(program: &Path, why: &str) -> ExitCode {
    super::tell(&format!("the locks cannot be put in place in {}: {why}", program.display()));
    ExitCode::from(NOT_LOADED)
}

/// Says that there is nothing to serve.
fn locks_nothing(futexes: futexes::Futexes) -> ExitCode {
    super::tell(&format!(
        "this program locks nothing through the C library: it calls no function of pthread's or C11's locks, so none of \
         these locks is used. Locks of its own (programs in Go, Java or Rust have them) are not reached{}. Those of a \
         program in Rust are counted if it uses qspin::Mutex, with the crate's feature `profile`",
        futexes.text()
    ));
    ExitCode::from(LOCKS_NOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_found_by_name_and_what_is_none_is_answered_with_all() {
        assert_eq!(parse_lock("paravirt_stealing"), Ok("paravirt-stealing"));
        assert_eq!(parse_lock(" CNA"), Ok("cna"));
        for name in ["yield", "yielding"] {
            assert_eq!(parse_lock(name), Ok("yield"));
        }
        assert_eq!(parse_lock("paravirt_queued"), Ok("paravirt-queued"));
        assert!(parse_lock("rwlock").is_err(), "readers share it");
        assert_eq!(parse_rwlock("Paravirt_RW"), Ok("paravirt-rw"));
        assert_eq!(parse_rwlock("default-rw"), Ok("rwlock"));
        let said = parse_rwlock("mutex").unwrap_err();
        assert!(said.contains("rwlock, queued-rw, paravirt-rw"), "{said}");
        let said = parse_lock("moon").unwrap_err();
        assert!(said.contains("`moon`") && said.contains("paravirt, "), "{said}");
        for wrong in ["0", "-1", "", "many", "1001"] {
            assert!(parse_pairs(wrong).unwrap_err().contains("1 to 1000"), "{wrong}");
        }
    }
}
