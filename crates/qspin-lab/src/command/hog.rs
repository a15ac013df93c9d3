//! `qspin hog`: spins beside a measurement until its parent dies.

use std::process::ExitCode;

use crate::bench::hogs::spin_beside;
use crate::failure::Failure;

/// Spin beside a measurement.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process whose end is this one's.
    #[arg(long)]
    parent: u32,
}

/// Spins.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    spin_beside(args.parent);
    Ok(ExitCode::SUCCESS)
}
