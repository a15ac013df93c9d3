//! The subcommands of `qspin`, one file each.
//!
//! A subcommand is `#[derive(clap::Args)] pub struct Args` and
//! `pub fn run(args: &Args) -> Result<ExitCode, Failure>`; adding one is a `mod`, a variant of
//! [`Command`] and an arm of [`run()`].

pub mod advise;
pub mod bench;
pub mod calibrate;
pub mod hog;
pub mod locks;
pub mod manual;
mod proc;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod simulate;
pub mod stat;
pub mod vm;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::output::Output;

/// Measure locks, and show what was measured.
#[derive(Debug, Parser)]
#[command(name = "qspin", bin_name = "qspin", version, disable_help_subcommand = true)]
pub struct Cli {
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// What `qspin` can be asked to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the locks: size, fairness, how they wait, what they are good for.
    Locks(locks::Args),
    /// Say which lock fits this machine and program, and why.
    Advise(advise::Args),
    /// Measure locks on this machine, side by side, and say which is best.
    Bench(Box<bench::Args>),
    /// Make a report from the rows of one or more runs.
    Report(report::Args),
    /// Run a program with these locks in the place of the C library's.
    Run(run::Args),
    /// Simulate the published tables, and say how far off that is.
    Reproduce(reproduce::Args),
    /// Fit the constants of the simulated machines to some rows of the published tables.
    Calibrate(calibrate::Args),
    /// Predict locks on a machine that a text file describes.
    Simulate(simulate::Args),
    /// Show what the locks of a running process count.
    Stat(stat::Args),
    /// Measure locks in a guest, on virtual CPUs that the host takes away.
    Vm(Box<vm::Args>),
    /// Spin beside a measurement; started by `bench --hogs`.
    #[command(hide = true)]
    Hog(hog::Args),
    /// Write the manual pages and the completions of shells into a directory.
    #[command(hide = true)]
    Manual(manual::Args),
}

/// Does what was asked.
///
/// # Errors
///
/// What the subcommand says: wrong input or a failed operation.
pub fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Locks(args) => locks::run(args),
        Command::Advise(args) => advise::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Report(args) => report::run(args),
        Command::Run(args) => run::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Stat(args) => stat::run(args),
        Command::Vm(args) => vm::run(args),
        Command::Hog(args) => hog::run(args),
        Command::Manual(args) => manual::run(args),
    }
}

/// The exit code of an interrupted run, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

/// A bar that shows how far a simulation is, and behind that `what`.
fn bar(length: u64, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{bar:20}} {{pos}}/{{len}} {what}{{eta}}"));
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Prints `text`; a reader that has seen enough and gone is no failure.
fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other.context("cannot write to standard output")?),
    }
}

/// Writes `text` into `out`, and says so; prints it where there is no such file.
fn write(out: Option<Output>, text: &str) -> Result<(), Failure> {
    let Some(out) = out else { return say(text) };
    let path = out.path().to_owned();
    out.finish(text)?;
    tell(&format!("wrote {}", path.display()));
    Ok(())
}

/// Says `line` to the user. Where that fails, work goes on.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "qspin: {line}");
}
