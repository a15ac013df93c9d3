//! `qspin locks`: the table of locks, or of what can be tuned about them.

use std::process::ExitCode;

use comfy_table::{CellAlignment, ContentArrangement, Table};
use qspin::tuning::Tuning;

use crate::bench::table::plain;
use crate::contender::catalog::{self, Lock, Origin};
use crate::failure::Failure;
use crate::tune;

/// List the locks: size, fairness, how they wait, what they are good for.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// List the tunables instead: values, default, which locks read them, what they do.
    #[arg(long)]
    tunables: bool,
}

/// Prints the table.
///
/// # Errors
///
/// When the standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let locks = catalog::locks();
    if args.tunables {
        super::say(&format!("{}\n", tunables(&locks)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let sections = [
        ("Locks of qspin", Origin::Ours),
        ("Peers, measured beside them", Origin::Peer),
        ("Peers of C and C++ libraries", Origin::PeerC),
        ("Ends of the scale", Origin::Baseline),
    ];
    let mut text = String::new();
    for (title, origin) in sections {
        let of: Vec<&Lock> = locks.iter().filter(|lock| lock.origin == origin).collect();
        if !of.is_empty() {
            text += &format!("{title}\n{}\n\n", table(&of));
        }
    }
    super::say(&format!("{}\n", text.trim_end()))?;
    Ok(ExitCode::SUCCESS)
}

fn table(locks: &[&Lock]) -> Table {
    let mut table = plain();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["lock", "bytes", "fairness", "waits how", "NUMA-aware", "for what"]);
    for lock in locks {
        table.add_row([
            lock.name,
            &lock.bytes.to_string(),
            lock.fairness,
            lock.waits,
            if lock.numa_aware { "yes" } else { "no" },
            lock.purpose,
        ]);
    }
    if let Some(bytes) = table.column_mut(1) {
        bytes.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn tunables(locks: &[Lock]) -> Table {
    let mut table = plain();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["tunable", "values", "default", "of", "what it does"]);
    for tunable in Tuning::ALL {
        let heeding: Vec<&str> =
            locks.iter().filter(|lock| lock.heeds(tunable)).map(|lock| lock.name).collect();
        table.add_row([
            tunable.name,
            &tune::range(tunable),
            &tune::show(tunable, (tunable.get)(&Tuning::DEFAULT)),
            &heeding.join(", "),
            tunable.about.trim(),
        ]);
    }
    table
}
