//! `qspin manual DIR`: the manual pages and what shells complete, made of the descriptions of the options. For
//! `qspin-install`, so it is hidden.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use crate::failure::Failure;

/// Write the manual pages and the completions of shells into a directory.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory, which must be there.
    directory: PathBuf,
}

/// Writes `qspin.1`, a page for each subcommand, `qspin.bash`, `_qspin` and `qspin.fish`.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let directory = &args.directory;
    if !directory.is_dir() {
        return Err(Failure::usage(format!(
            "{} is no directory: name one that is there",
            directory.display()
        )));
    }
    write(directory).with_context(|| format!("cannot write into {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn write(directory: &Path) -> anyhow::Result<()> {
    let command = shown();
    clap_mangen::generate_to(command.clone(), directory)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command.clone(), "qspin", directory)?;
    }
    // clap knows no sections beyond its own.
    let page = directory.join("qspin.1");
    let text = fs::read_to_string(&page)? + SEE_ALSO;
    Ok(fs::write(page, text)?)
}

/// Behind the page of qspin.
const SEE_ALSO: &str = ".SH \"EXIT STATUS\"\n0; 2 for wrong input; 1 where the machine or a lock failed; 130 when \
interrupted. qspin run ends as its program does.\n.SH \"SEE ALSO\"\nqspin(3), the locks for C and C++\n";

/// The command without what is hidden.
fn shown() -> clap::Command {
    let whole = Cli::command();
    let version = env!("CARGO_PKG_VERSION");
    let subcommands = whole
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| command.clone().version(version).disable_version_flag(true));
    clap::Command::new("qspin")
        .version(version)
        .about(whole.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommands(subcommands.collect::<Vec<_>>())
}
