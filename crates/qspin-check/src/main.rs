//! The command `qspin-check`: the locks of qspin under model checkers.

use std::process::ExitCode;

use qspin_check::command;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    command::run(&arguments)
}
