//! `qspin calibrate`: fits the constants of the simulated machines to some rows of the published tables; or
//! measures this machine, for the simulator to have it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use qspin_reproduce::{Constants, Study, calibrate, studies};

use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::parse_seed;
use crate::this_machine::{self, THOROUGH};

/// Fit the constants of the simulated machines to some rows of the published tables, or measure this one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Studies [default: all]. The others' constants stay what they are.
    #[arg(value_name = "STUDY", value_parser = parse_study)]
    studies: Vec<&'static Study>,
    /// Points that each search tries.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "120",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    evaluations: u32,
    /// Four points each: to see that it works.
    #[arg(long, conflicts_with = "evaluations")]
    quick: bool,
    /// Time cache-line transfers between this machine's CPUs instead, and describe it for
    /// `qspin simulate --machine FILE.toml`.
    #[arg(long, conflicts_with_all = ["studies", "evaluations", "quick", "seed"])]
    measure: bool,
    /// Seed of search and simulations.
    #[arg(long, value_name = "SEED", allow_hyphen_values = true, default_value = "1",
          value_parser = parse_seed)]
    seed: u64,
    /// File to write; without it, the standard output. The project's own is
    /// data/calibrated/constants.toml.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,
}

fn parse_study(text: &str) -> Result<&'static Study, String> {
    let known = || studies().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = studies().find(|it| it.name == text);
    found.ok_or_else(|| format!("no study is called `{text}`: choose from {}", known()))
}

const QUICK: u32 = 4;

/// Searches, and writes what was found.
///
/// # Errors
///
/// Wrong input; a lock that fails in the simulation.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    if args.measure {
        return measure(out);
    }
    let mut constants = Constants::frozen().map_err(|why| anyhow!(why))?;
    let interrupt = Interrupt::on_signals()?;
    let evaluations = if args.quick { QUICK } else { args.evaluations };
    let asked = |study: &&Study| {
        args.studies.is_empty() || args.studies.iter().any(|it| it.name == study.name)
    };
    for study in studies().filter(asked) {
        let bar = super::bar(evaluations.into(), "{msg} ");
        let progress = |number: u32, error: f64| {
            bar.set_position(number.into());
            bar.set_message(format!("{}, error {:.1} %", study.name, 100.0 * error.sqrt()));
            !interrupt.is_raised()
        };
        let found = calibrate(study, &constants, evaluations, args.seed, &progress);
        bar.finish_and_clear();
        if interrupt.is_raised() {
            super::tell("interrupted: nothing was written");
            return Ok(ExitCode::from(super::INTERRUPTED));
        }
        let found = found.map_err(|why| anyhow!("{}: {why}", study.name))?;
        if let Some(found) = found {
            let (error, cells) = (100.0 * found.error, found.cells.len());
            super::tell(&format!("{}: mean error {error:.1} % on its {cells} cells", study.name));
            constants.0.insert(study.name.clone(), found);
        }
    }
    let text = constants.to_toml().map_err(|why| anyhow!(why))?;
    super::write(out, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures this machine, and describes it.
fn measure(out: Option<Output>) -> Result<ExitCode, Failure> {
    let measured = this_machine::measure(THOROUGH)?;
    for pair in &measured.pairs {
        super::tell(pair);
    }
    let text = toml::to_string(&measured.machine).map_err(|why| anyhow!(why))?;
    super::write(out, &text)?;
    Ok(ExitCode::SUCCESS)
}
