//! `qspin reproduce`: simulates the published tables, and says how far off that is.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use qspin_reproduce::run::{Figure, OfTable, Report, cells_of, planned, simulate, verdicts};
use qspin_reproduce::shard::Part;
use qspin_reproduce::{Constants, parts, show, tables};

use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::parse_seed;

/// Simulate the published tables, and say how far off that is.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Tables, by name; `qspin reproduce` alone lists them.
    #[arg(value_name = "TABLE", value_parser = parse_table)]
    tables: Vec<&'static str>,
    /// All of them.
    #[arg(long, conflicts_with = "tables")]
    all: bool,
    /// Seed of the simulations.
    #[arg(long, value_name = "SEED", allow_hyphen_values = true, default_value = "1",
          value_parser = parse_seed)]
    seed: u64,
    /// Constants of another calibration, as `qspin calibrate --out` writes them.
    #[arg(long, value_name = "FILE.toml")]
    constants: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Print Markdown instead: what data/results/accuracy.md holds of all tables.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// File for a page that shows the same.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Part I of N of the cells, for one of several computers; `qspin report merge` puts the parts
    /// together.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true, value_parser = Part::parse,
          requires = "out", conflicts_with_all = ["json", "markdown", "report"])]
    shard: Option<Part>,
    /// File for the part.
    #[arg(long, value_name = "PART.jsonl", requires = "shard")]
    out: Option<PathBuf>,
}

fn parse_table(text: &str) -> Result<&'static str, String> {
    let known = || tables().collect::<Vec<_>>().join(", ");
    let unknown =
        || format!("no table that can be reproduced is called `{text}`: choose from {}", known());
    tables().find(|&name| name == text).ok_or_else(unknown)
}

/// Simulates, judges, and shows.
///
/// # Errors
///
/// Wrong input; a lock that fails in the simulation.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.tables.is_empty() && !args.all {
        if args.json || args.markdown || args.report.is_some() || args.shard.is_some() {
            let known = tables().collect::<Vec<_>>().join(", ");
            return Err(Failure::usage(format!("which tables? Give --all, or some of {known}")));
        }
        let list = show::list(&constants(args)?).map_err(|why| anyhow!(why))?;
        super::say(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let constants = constants(args)?;
    let page = args.report.as_deref().map(Output::prepare).transpose()?;
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let chosen = tables().filter(|name| args.all || args.tables.contains(name));
    let chosen: Vec<_> = chosen.collect();
    let planned = planned(&chosen, &constants).map_err(|why| anyhow!(why))?;
    let mut cells: Vec<_> = cells_of(&planned).collect();
    let interrupt = Interrupt::on_signals()?;
    if let Some(part) = args.shard {
        cells = part.of(cells);
        let figures = simulated(&cells, args.seed, &interrupt);
        let figures: Option<Vec<Figure>> = figures.into_iter().collect();
        let Some(figures) = figures else {
            super::tell("interrupted: the part is not written");
            return Ok(ExitCode::from(super::INTERRUPTED));
        };
        let cells: Vec<_> = cells.into_iter().zip(figures).collect();
        let text = parts::text(part, &planned, (constants, args.seed), &cells);
        super::write(out, &text.map_err(|error| anyhow!(error))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let verdicts = verdicts(&planned, simulated(&cells, args.seed, &interrupt));
    let partial = verdicts.len() < planned.len();
    let report = Report::new(args.seed, verdicts);
    if partial {
        super::tell(
            "interrupted: what follows are the tables that were finished, and no page is written",
        );
    }
    if page.is_some() && !partial {
        super::write(page, &show::page(&report.tables, &constants, args.seed))?;
    }
    if args.json {
        super::say(&report.to_json().map_err(|error| anyhow!(error))?)?;
    } else if args.markdown {
        super::say(&show::markdown(&report.tables, &constants, args.seed))?;
    } else {
        super::say(&show::text(&report.tables, &constants, args.seed))?;
    }
    Ok(if partial { ExitCode::from(super::INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn constants(args: &Args) -> Result<Constants, Failure> {
    let Some(path) = &args.constants else {
        return Ok(Constants::frozen().map_err(|why| anyhow!(why))?);
    };
    let wrong = |why: &dyn std::fmt::Display| {
        let path = path.display();
        Failure::usage(format!("{path}: {why}; name a file that `qspin calibrate --out` wrote"))
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(&error.kind()))?;
    Constants::from_toml(&text).map_err(|why| wrong(&why))
}

/// [`simulate`], with a bar that shows how far it is.
fn simulated(cells: &[OfTable<'_>], seed: u64, interrupt: &Interrupt) -> Vec<Option<Figure>> {
    let simulations = cells.iter().map(|(_, cell)| cell.scenarios.len() as u64).sum();
    let bar = super::bar(simulations, "SIMULATED ");
    let (figures, failed) = simulate(cells, seed, || interrupt.is_raised(), || bar.inc(1));
    bar.finish_and_clear();
    // These cells have no figure; the others have.
    failed.iter().for_each(|line| super::tell(line));
    figures
}
