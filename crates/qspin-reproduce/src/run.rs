//! Tables on their way from a plan to what is said of them: planned, simulated, judged.

use serde::Serialize;

use qspin_sim::batch::{self, Job};

use crate::published::{self, Table};
use crate::{CellPlan, Constants, Verdict, cells, judge, study_of};

/// The version of the JSON that is written here.
pub(crate) const SCHEMA: u32 = 1;

/// A table, and how each of its cells is simulated.
pub struct Planned {
    /// What is published.
    pub table: Table,
    /// Its cells, as far as they are simulated.
    pub cells: Vec<CellPlan>,
    /// What a figure to which the scale applies is multiplied with.
    scale: f64,
}

/// The tables of these names.
///
/// # Errors
/// A name that is none; constants that make a scenario impossible.
pub fn planned(names: &[&str], constants: &Constants) -> Result<Vec<Planned>, String> {
    let plan = |name: &&str| {
        let table = published::table(name).map_err(|error| error.to_string())?;
        let cells = cells(&table, constants).map_err(|why| format!("{name}: {why}"))?;
        let scale = study_of(name).map_or(1.0, |study| constants.scale(&study.name));
        Ok(Planned { table, cells, scale })
    };
    names.iter().map(plan).collect()
}

/// A cell of a table.
pub type OfTable<'a> = (&'a Planned, &'a CellPlan);

/// All cells of these tables, in order.
pub fn cells_of(tables: &[Planned]) -> impl Iterator<Item = OfTable<'_>> {
    tables.iter().flat_map(|it| it.cells.iter().map(move |cell| (it, cell)))
}

/// What the simulation of a cell gives, scale and all; it may have no such figure.
#[derive(Debug, Clone, Copy)]
pub struct Figure(pub Option<f64>);

/// The figures of these cells, and of those that have none because a lock failed, how. A cell that was not
/// simulated to its end, because `stopped`, is `None`; `ended` is called after each simulation.
pub fn simulate(
    cells: &[OfTable<'_>],
    seed: u64,
    stopped: impl Fn() -> bool,
    ended: impl Fn(),
) -> (Vec<Option<Figure>>, Vec<String>) {
    let scenarios = cells.iter().flat_map(|(_, cell)| &cell.scenarios);
    let jobs: Vec<Job> = scenarios.map(|it| (it.clone(), seed)).collect();
    let results = batch::run_until(&jobs, stopped, |_, _| {
        ended();
        true
    });
    let (mut results, mut failed) = (results.into_iter(), Vec::new());
    let mut figure = |&(Planned { table, scale, .. }, cell): &OfTable<'_>| {
        let runs: Vec<_> = results.by_ref().take(cell.scenarios.len()).collect();
        let value = cell.value(runs.into_iter().collect::<Option<_>>()?).unwrap_or_else(|why| {
            let (row, why) = (table.row_name(&table.rows[cell.row]), why.to_string());
            let why = why.lines().next().unwrap_or_default();
            failed.push(format!("SIMULATED {}, {row}: {why}", table.name));
            None
        });
        let value = value.map(|value| if cell.scaled { value * scale } else { value });
        // A part could not say it.
        Some(Figure(value.filter(|value| value.is_finite())))
    };
    (cells.iter().map(&mut figure).collect(), failed)
}

/// The verdicts of the tables whose every cell was simulated.
pub fn verdicts(
    tables: &[Planned],
    figures: impl IntoIterator<Item = Option<Figure>>,
) -> Vec<Verdict> {
    let mut figures = figures.into_iter();
    let verdict = |Planned { table, cells, .. }: &Planned| {
        let of_table: Vec<_> = figures.by_ref().take(cells.len()).collect();
        let whole: Option<Vec<_>> = of_table.into_iter().map(|it| it.map(|it| it.0)).collect();
        Some(judge(table, cells, &whole?))
    };
    tables.iter().filter_map(verdict).collect()
}

/// What `qspin reproduce --json` prints.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: u32,
    /// Nothing of it was measured here.
    kind: &'static str,
    seed: u64,
    /// What is said of the tables.
    pub tables: Vec<Verdict>,
}

impl Report {
    /// Of these verdicts, simulated with this seed.
    #[must_use]
    pub fn new(seed: u64, tables: Vec<Verdict>) -> Self {
        Self { schema: SCHEMA, kind: "simulate", seed, tables }
    }

    /// The line.
    ///
    /// # Errors
    /// Where a figure is no number.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
