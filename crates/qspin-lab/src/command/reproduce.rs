//! `qspin reproduce`: simulates the published tables, and says how far off that is.

mod page;
mod show;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use qspin_sim::batch::{self, Job};
use qspin_sim::published::{self, Table};
use qspin_sim::reproduce::{
    CellPlan, Constants, TABLES, Verdict, cells, judge, study_of, value_of,
};
use serde::Serialize;

use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::parse_seed;
use crate::row::SCHEMA;

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
    /// File for a page that shows the same.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

fn parse_table(text: &str) -> Result<&'static str, String> {
    let found = TABLES.iter().find(|&&name| name == text);
    let unknown = || {
        format!(
            "no table that can be reproduced is called `{text}`: choose from {}",
            TABLES.join(", ")
        )
    };
    found.copied().ok_or_else(unknown)
}

/// The exit code of an interrupted run, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    /// Nothing of it was measured here.
    kind: &'static str,
    seed: u64,
    tables: Vec<Verdict>,
}

/// Simulates, judges, and shows.
///
/// # Errors
///
/// Wrong input; a lock that fails in the simulation.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.tables.is_empty() && !args.all {
        if args.json || args.report.is_some() {
            return Err(Failure::usage(format!(
                "which tables? Give --all, or some of {}",
                TABLES.join(", ")
            )));
        }
        super::say(&show::list(&constants(args)?)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let constants = constants(args)?;
    let page = args.report.as_deref().map(Output::prepare).transpose()?;
    let names = TABLES.iter().filter(|name| args.all || args.tables.contains(name));
    let mut tables = Vec::new();
    for name in names {
        let table = published::table(name).map_err(|error| anyhow!(error))?;
        let plans = cells(&table, &constants).map_err(|why| anyhow!("{name}: {why}"))?;
        tables.push((table, plans));
    }
    let interrupt = Interrupt::on_signals()?;
    let verdicts = simulate(args, &tables, &constants, &interrupt)?;
    let partial = verdicts.len() < tables.len();
    let report = Report { schema: SCHEMA, kind: "simulate", seed: args.seed, tables: verdicts };
    if partial {
        super::tell(
            "interrupted: what follows are the tables that were finished, and no page is written",
        );
    }
    if let Some(file) = page.filter(|_| !partial) {
        let path = file.path().to_owned();
        file.finish(&page::page(&report.tables, &constants, args.seed))?;
        super::tell(&format!("wrote {}", path.display()));
    }
    if args.json {
        let json = serde_json::to_string(&report).map_err(|error| anyhow!(error))?;
        super::say(&(json + "\n"))?;
    } else {
        super::say(&show::tables(&report.tables, &constants, args.seed))?;
    }
    Ok(if partial { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
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

/// The verdicts of the tables whose every cell was simulated.
fn simulate(
    args: &Args,
    tables: &[(Table, Vec<CellPlan>)],
    constants: &Constants,
    interrupt: &Interrupt,
) -> Result<Vec<Verdict>, Failure> {
    let plans = || tables.iter().flat_map(|(_, plans)| plans);
    let jobs: Vec<Job> =
        plans().flat_map(|plan| plan.scenarios.iter().map(|it| (it.clone(), args.seed))).collect();
    let bar = ProgressBar::new(jobs.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} SIMULATED {eta}") {
        bar.set_style(style);
    }
    let results = batch::run_until(
        &jobs,
        || interrupt.is_raised(),
        |_, _| {
            bar.inc(1);
            true
        },
    );
    bar.finish_and_clear();
    let mut results = results.into_iter();
    let mut verdicts = Vec::new();
    for (table, plans) in tables {
        let scale = study_of(&table.name).map_or(1.0, |study| constants.scale(study.name));
        let mut values = Vec::new();
        let mut whole = true;
        for plan in plans {
            let of_cell: Vec<_> = results.by_ref().take(plan.scenarios.len()).flatten().collect();
            whole &= of_cell.len() == plan.scenarios.len();
            let cell = table.row_name(&table.rows[plan.row]);
            let value = match value_of(plan, of_cell) {
                Ok(value) => value,
                Err(failure) => {
                    // The cell has no figure; the others have.
                    super::tell(&format!(
                        "SIMULATED {}, {cell}: {}",
                        table.name,
                        failure.to_string().lines().next().unwrap_or_default()
                    ));
                    None
                }
            };
            values.push(value.map(|value| if plan.scaled { value * scale } else { value }));
        }
        if whole {
            verdicts.push(judge(table, plans, &values));
        }
    }
    Ok(verdicts)
}

/// A fraction in percent.
fn percent(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "–".to_owned(), |it| format!("{:.1} %", 100.0 * it))
}

/// What was fitted to what, for one table, in a sentence.
fn fitted(table: &str, constants: &Constants) -> String {
    let Some(study) = study_of(table) else { return String::new() };
    let Some(found) = constants.0.get(study.name) else {
        return format!("study {}: not calibrated; constants where the search begins", study.name);
    };
    let mut values: Vec<String> =
        found.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if study.scaled {
        values.push(format!("scale = {}", found.scale));
    }
    format!(
        "study {} ({}): {}; fitted to {} cells ({}), seed {}, mean error there {}",
        study.name,
        study.about,
        values.join(", "),
        found.cells.len(),
        found.cells.join("; "),
        found.seed,
        percent(Some(found.error))
    )
}
