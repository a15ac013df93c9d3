//! `qspin advise`: which lock is chosen on this machine, of what, why, and what would change that.

mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use qspin::platform::topology::{self, Topology};
use qspin::select::{Hints, Inputs};

use crate::failure::Failure;

/// Say which lock fits this machine and program, and why.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The program will have this many threads that lock.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    threads: Option<u32>,
    /// The CPUs are this program's alone: no other program, and no hypervisor, takes them away.
    #[arg(long)]
    dedicated: bool,
    /// As if waiters could neither halt nor be kicked: on a platform without futexes.
    #[arg(long)]
    no_halt: bool,
    /// Look at another machine's files in this folder (`proc`, `sys` and `cpuid` in it) instead.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Prints inputs, choice and reason.
///
/// # Errors
///
/// Wrong input, in the environment or the folder, or when the standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut problems = Vec::new();
    let environment = Hints::of_environment(&mut |problem| problems.push(problem));
    let hints = Hints {
        lock: None,
        threads: args.threads,
        dedicated: args.dedicated.then_some(true),
        can_halt: args.no_halt.then_some(false),
    };
    let hints = hints.or(environment);
    let described = std::env::var_os(topology::VARIABLE).filter(|value| !value.is_empty());
    let inputs = match &args.root {
        Some(root) => {
            let inputs = Inputs::of_folder(root, hints, described.as_deref())
                .map_err(|wrong| Failure::usage(format!("--root {wrong}")))?;
            // The maker of the folder can mend it.
            problems.extend(inputs.problems.iter().cloned());
            inputs
        }
        None => match Topology::from_value(described.as_deref()) {
            Ok(fake) => {
                let topology = fake.unwrap_or_else(Topology::of_this_machine);
                Inputs::of_this_process(hints, &topology)
            }
            Err(problem) => return Err(Failure::usage(problem)),
        },
    };
    if let Some(problem) = problems.first() {
        return Err(Failure::usage(problem));
    }
    let topology = described.as_ref().map(|value| value.to_string_lossy());
    let text = if args.json {
        show::json(&inputs, topology.as_deref())
    } else {
        show::text(&inputs, topology.as_deref())
    };
    super::say(&text)?;
    Ok(ExitCode::SUCCESS)
}
