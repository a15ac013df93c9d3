//! The subcommands of `qspin`, one file each.
//!
//! A subcommand is `#[derive(clap::Args)] pub struct Args` and
//! `pub fn run(args: &Args) -> Result<ExitCode, Failure>`; adding one is a `mod`, a variant of
//! [`Command`] and an arm of [`run`].

pub mod report;

use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

/// What `qspin` can be asked to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a report from the rows of one or more runs.
    Report(report::Args),
}

/// Does what was asked.
///
/// # Errors
///
/// What the subcommand says: wrong input or a failed operation.
pub fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Report(args) => report::run(args),
    }
}
