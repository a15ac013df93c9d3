//! The subcommands of `qspin-check`: one file each.

mod arguments;
mod emit;
mod genmc;
mod loom;
mod mutate;
mod planted;
mod plants;
mod replay;
mod report;
mod shuttle;

use std::process::ExitCode;

use arguments::Arguments;

const USAGE: &str = "\
qspin-check: the locks of qspin under model checkers

  qspin-check loom    [--lock NAME] [--scenario NAME] [--seconds N] [--preemptions N] [--deeper N]
                                                      every schedule, within bounds, or so many preemptions more
  qspin-check shuttle [--lock NAME] [--scenario NAME] [--seed S] [--executions N]
                                                      random schedules of more CPUs
  qspin-check mutate  [--seconds N] [--site NAME] [--lock NAME] [--depth full] [--known FILE] [--markdown FILE]
                                                      each memory ordering weakened, alone
  qspin-check planted [--seconds N]                   locks with known bugs must be caught
  qspin-check plants  [--seconds N] [--plant NAME] [--seed S] [--markdown FILE]
                                                      bugs planted in a copy of the source must be caught
  qspin-check replay  --lock NAME --scenario NAME --strategy random|pctN --seed S
                                                      one execution of shuttle again
  qspin-check genmc   [--lock NAME] [--sizes 2x1,3x1] [--seconds N] [--gib N] [--markdown FILE]
                                                      every execution of a small client under RC11 and IMM, where
                                                      GenMC is installed; sizes are threads x sections of each
  qspin-check genmc   --orderings all|SITE [--seconds N] [--gib N] [--markdown FILE]
                                                      each memory ordering weakened, alone, under GenMC
  qspin-check emit    --lock NAME|all [--threads N] [--sections N] [--out FILE|FOLDER]
                                                      LLVM IR of such a client

Exit status: 0 if everything is as it must be, 1 if not, 2 for a command that makes no sense.
";

/// Runs a command line; returns its exit status.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    match dispatch(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("qspin-check: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command line; returns whether everything is as it must be, or why the command makes no sense.
fn dispatch(arguments: &[String]) -> Result<bool, String> {
    let names = "loom, shuttle, mutate, planted, plants, replay, genmc, emit, help";
    let (name, rest) = arguments.split_first().ok_or(format!("no command; there are {names}"))?;
    let arguments = Arguments::parse(rest)?;
    match name.as_str() {
        "loom" => loom::run(arguments),
        "shuttle" => shuttle::run(arguments),
        "mutate" => mutate::run(arguments),
        "planted" => planted::run(arguments),
        "plants" => plants::run(arguments),
        "replay" => replay::run(arguments),
        "genmc" => genmc::run(arguments),
        "emit" => emit::run(arguments),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(true)
        }
        _ => Err(format!("unknown command `{name}`; there are {names}")),
    }
}
