//! `qspin reproduce`: simulates the published tables, and says how far off that is.

mod page;
pub(in crate::command) mod parts;
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
use qspin_sim::{Failure as Failed, Outcome};
use serde::Serialize;

use crate::bench::interrupt::Interrupt;
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::parse_seed;
use crate::row::SCHEMA;
use crate::shard::Part;

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
    /// Part I of N of the cells, for one of several computers; `qspin report merge` puts the parts
    /// together.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true, value_parser = Part::parse,
          requires = "out", conflicts_with_all = ["json", "report"])]
    shard: Option<Part>,
    /// File for the part.
    #[arg(long, value_name = "PART.jsonl", requires = "shard")]
    out: Option<PathBuf>,
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

/// What the rows of a part are called.
const KIND: &str = "reproduce";

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    /// Nothing of it was measured here.
    kind: &'static str,
    seed: u64,
    tables: Vec<Verdict>,
}

impl Report {
    fn new(seed: u64, tables: Vec<Verdict>) -> Self {
        Self { schema: SCHEMA, kind: "simulate", seed, tables }
    }

    fn to_json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string(self).map_err(|error| anyhow!(error))? + "\n")
    }
}

/// A table, and how each of its cells is simulated.
struct Planned {
    table: Table,
    plans: Vec<CellPlan>,
    /// What a figure to which the scale applies is multiplied with.
    scale: f64,
}

/// The tables of these names.
fn planned(names: &[&str], constants: &Constants) -> Result<Vec<Planned>, Failure> {
    let mut tables = Vec::new();
    for name in names {
        let table = published::table(name).map_err(|error| anyhow!(error))?;
        let plans = cells(&table, constants).map_err(|why| anyhow!("{name}: {why}"))?;
        let scale = study_of(&table.name).map_or(1.0, |study| constants.scale(study.name));
        tables.push(Planned { table, plans, scale });
    }
    Ok(tables)
}

/// All cells of these tables, in order.
fn cells_of(tables: &[Planned]) -> impl Iterator<Item = (&Planned, &CellPlan)> {
    tables.iter().flat_map(|it| it.plans.iter().map(move |plan| (it, plan)))
}

/// What the simulation of a cell gives, scale and all; it may have no such figure.
#[derive(Debug, Clone, Copy)]
struct Figure(Option<f64>);

/// Simulates, judges, and shows.
///
/// # Errors
///
/// Wrong input; a lock that fails in the simulation.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.tables.is_empty() && !args.all {
        if args.json || args.report.is_some() || args.shard.is_some() {
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
    let out = args.out.as_deref().map(Output::prepare).transpose()?;
    let chosen = TABLES.into_iter().filter(|name| args.all || args.tables.contains(name));
    let tables = planned(&chosen.collect::<Vec<_>>(), &constants)?;
    let mut cells: Vec<_> = cells_of(&tables).collect();
    let interrupt = Interrupt::on_signals()?;
    if let Some((part, out)) = args.shard.zip(out) {
        cells = part.of(cells);
        let head = parts::Head::new(part, &tables, constants, args.seed)?;
        let figures: Option<Vec<Figure>> =
            simulate(&cells, args.seed, &interrupt).into_iter().collect();
        let Some(figures) = figures else {
            super::tell("interrupted: the part is not written");
            return Ok(ExitCode::from(INTERRUPTED));
        };
        parts::write(out, &head, &cells, &figures)?;
        return Ok(ExitCode::SUCCESS);
    }
    let verdicts = verdicts(&tables, simulate(&cells, args.seed, &interrupt));
    let partial = verdicts.len() < tables.len();
    let report = Report::new(args.seed, verdicts);
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
        super::say(&report.to_json()?)?;
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

/// The figures of these cells; of one that was not simulated to its end, nothing.
fn simulate(
    cells: &[(&Planned, &CellPlan)],
    seed: u64,
    interrupt: &Interrupt,
) -> Vec<Option<Figure>> {
    let scenarios = cells.iter().flat_map(|(_, plan)| &plan.scenarios);
    let jobs: Vec<Job> = scenarios.map(|it| (it.clone(), seed)).collect();
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
    let of_cell = |&(planned, plan): &(&Planned, &CellPlan)| {
        let ended: Vec<_> = results.by_ref().take(plan.scenarios.len()).flatten().collect();
        (ended.len() == plan.scenarios.len()).then(|| figure(planned, plan, ended))
    };
    cells.iter().map(of_cell).collect()
}

/// What the runs of a cell give.
fn figure(planned: &Planned, plan: &CellPlan, ended: Vec<Result<Outcome, Failed>>) -> Figure {
    let table = &planned.table;
    let value = match value_of(plan, ended) {
        Ok(value) => value,
        Err(failure) => {
            // The cell has no figure; the others have.
            super::tell(&format!(
                "SIMULATED {}, {}: {}",
                table.name,
                table.row_name(&table.rows[plan.row]),
                failure.to_string().lines().next().unwrap_or_default()
            ));
            None
        }
    };
    let value = value.map(|value| if plan.scaled { value * planned.scale } else { value });
    // A part could not say it.
    Figure(value.filter(|value| value.is_finite()))
}

/// The verdicts of the tables whose every cell was simulated.
fn verdicts(tables: &[Planned], figures: Vec<Option<Figure>>) -> Vec<Verdict> {
    let mut figures = figures.into_iter();
    let mut verdicts = Vec::new();
    for Planned { table, plans, .. } in tables {
        let of_table: Vec<_> = figures.by_ref().take(plans.len()).collect();
        let whole: Option<Vec<_>> = of_table.into_iter().map(|it| it.map(|it| it.0)).collect();
        verdicts.extend(whole.map(|values| judge(table, plans, &values)));
    }
    verdicts
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
