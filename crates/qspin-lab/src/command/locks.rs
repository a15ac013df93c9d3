//! `qspin locks`: the table of locks.

use std::process::ExitCode;

use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::bench::table::plain;
use crate::contender::catalog::{self, Lock, Origin};
use crate::failure::Failure;

/// List the locks: size, fairness, how they wait, what they are good for.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints the table.
///
/// # Errors
///
/// When the standard output cannot be written.
pub fn run(_: &Args) -> Result<ExitCode, Failure> {
    let locks = catalog::locks();
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
