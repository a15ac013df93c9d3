//! `qspin locks`: the table of locks, or of what can be tuned about them.

use std::process::ExitCode;

use qspin::tuning::{Group, Tunable, Tuning};
use qspin_table::{Columns, Table};

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
        for group in Group::ALL {
            super::say(&format!("{}\n{}\n", group.title(), tunables(&locks, group)))?;
        }
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
    Columns::<Lock>::new()
        .text("lock", |lock| lock.name)
        .number("bytes", "", |lock| lock.bytes)
        .text("fairness", |lock| lock.fairness)
        .text("waits how", |lock| lock.waits)
        .text("NUMA-aware", |lock| if lock.numa_aware { "yes" } else { "no" })
        .text("for what", |lock| lock.purpose)
        .prose()
        .table(locks.iter().copied())
}

fn tunables(locks: &[Lock], group: Group) -> Table {
    let heeding = |tunable: &Tunable| {
        let heeding = locks.iter().filter(|lock| lock.heeds(tunable)).map(|lock| lock.name);
        heeding.collect::<Vec<_>>().join(", ")
    };
    Columns::<Tunable>::new()
        .text("tunable", |tunable| tunable.name)
        .text("values", tune::range)
        .text("default", |tunable| tune::show(tunable, (tunable.get)(&Tuning::DEFAULT)))
        .text("of", heeding)
        .text("what it does", |tunable| tunable.about.trim())
        .prose()
        .table(Tuning::ALL.iter().filter(|tunable| tunable.group == group))
}
