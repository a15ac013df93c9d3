//! The command `qspin`.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use qspin::select::{self, Hints};
use qspin_lab::command::{self, Cli};
use qspin_lab::failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    // Locks that are measured go by a quota, and by where the CPUs are, as in a program that has asked for it.
    select::decide(Hints::NONE);
    match command::run(&cli.command) {
        Ok(code) => code,
        Err(failure) => complain(&failure),
    }
}

/// Says in one line what is wrong with the command line; help and version are not errors.
fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Help asked for goes to stdout; nothing can be done where that is closed.
            let _ = error.print();
            ExitCode::from(u8::from(error.use_stderr()) * 2)
        }
        _ => {
            let text = error.to_string();
            let said: Vec<&str> = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
                .collect();
            let line = said.join("; ");
            let line = line.strip_prefix("error: ").unwrap_or(&line);
            complain(&Failure::usage(line))
        }
    }
}

fn complain(failure: &Failure) -> ExitCode {
    command::tell(&failure.line());
    ExitCode::from(failure.exit_code())
}
