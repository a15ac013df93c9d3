//! Parts of the published tables, for several computers; `qspin report merge` makes the whole of them.
//!
//! A part is a file of lines of JSON: a [`Head`], and a [`Line`] for each of its cells. Errors are of whole tables,
//! so parts have figures only, and who merges them judges. What is judged is planned anew from the head, and the
//! hash of the plan tells whether it is what was simulated.

use std::path::Path;

use anyhow::Context;
use qspin_sim::reproduce::{CellPlan, Constants};
use serde::{Deserialize, Serialize};

use super::{Figure, Planned, Report, cells_of, parse_table, planned, verdicts};
use crate::command::tell;
use crate::failure::Failure;
use crate::output::Output;
use crate::row::SCHEMA;
use crate::shard::{Part, Shard};

/// What the parts of one reproduction have in common.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::command) struct Head {
    schema: u32,
    kind: String,
    version: String,
    seed: u64,
    tables: Vec<String>,
    constants: Constants,
    /// Which part; taken out where parts are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::command) shard: Option<Shard>,
}

/// A cell of a part.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    table: String,
    row: String,
    column: String,
    /// Scale and all; none where the simulation has no such figure.
    simulated: Option<f64>,
}

impl Line {
    fn new(planned: &Planned, plan: &CellPlan) -> Self {
        let table = &planned.table;
        Self {
            table: table.name.clone(),
            row: table.row_name(&table.rows[plan.row]),
            column: table.columns[plan.column].clone(),
            simulated: None,
        }
    }

    fn is_of_the_cell_of(&self, other: &Self) -> bool {
        (&self.table, &self.row, &self.column) == (&other.table, &other.row, &other.column)
    }
}

impl Head {
    /// For the file of one part.
    ///
    /// # Errors
    ///
    /// When a figure of the plan is no number.
    pub(super) fn new(
        part: Part,
        tables: &[Planned],
        constants: Constants,
        seed: u64,
    ) -> Result<Self, Failure> {
        Ok(Self {
            schema: SCHEMA,
            kind: super::KIND.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            tables: tables.iter().map(|it| it.table.name.clone()).collect(),
            constants,
            shard: Some(shard(part, tables)?),
        })
    }

    /// A head, if this line is one of a part.
    pub(in crate::command) fn parse(line: &str) -> Option<Self> {
        let head: Self = serde_json::from_str(line).ok()?;
        (head.kind == super::KIND && head.shard.is_some()).then_some(head)
    }
}

fn shard(part: Part, tables: &[Planned]) -> Result<Shard, Failure> {
    let cells = cells_of(tables).map(|(planned, plan)| {
        let Line { table, row, column, .. } = Line::new(planned, plan);
        (format!("{table:?} {row:?} {column:?}"), &plan.scenarios[..])
    });
    Shard::new(part, cells, 1)
}

/// Whether this is a line of a part.
pub(in crate::command) fn check(line: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<Line>(line).map(drop)
}

/// Writes a part whose cells were all simulated.
///
/// # Errors
///
/// When the disk is full.
pub(super) fn write(
    out: Output,
    head: &Head,
    cells: &[(&Planned, &CellPlan)],
    figures: &[Figure],
) -> Result<(), Failure> {
    let mut text = serde_json::to_string(head).context("a head is no JSON")? + "\n";
    for ((planned, plan), &Figure(simulated)) in cells.iter().zip(figures) {
        let line = Line { simulated, ..Line::new(planned, plan) };
        text += &(serde_json::to_string(&line).context("a figure is no JSON")? + "\n");
    }
    let path = out.path().to_owned();
    out.finish(&text)?;
    say_where(&path);
    Ok(())
}

fn say_where(path: &Path) {
    tell(&format!("wrote {}", path.display()));
}

/// The text that `qspin reproduce --json` prints, of the lines of all cells in their order.
///
/// # Errors
///
/// When they are of what this version of the program does not simulate.
pub(in crate::command) fn whole(
    head: &Head,
    shard_of_parts: &Shard,
    lines: &[String],
) -> Result<String, Failure> {
    let other = || {
        Failure::usage(
            "the parts are of another version of qspin, which simulates something else: merge them with the \
             one that made them",
        )
    };
    let names = head.tables.iter().map(|name| parse_table(name)).collect::<Result<Vec<_>, _>>();
    let tables = planned(&names.map_err(|_| other())?, &head.constants)?;
    let ours = shard(Part::WHOLE, &tables)?;
    if (&ours.plan, ours.cells) != (&shard_of_parts.plan, shard_of_parts.cells) {
        return Err(other());
    }
    let mut figures = Vec::new();
    for ((planned, plan), text) in cells_of(&tables).zip(lines) {
        let cell = Line::new(planned, plan);
        let line: Line = serde_json::from_str(text).context("a line of a part")?;
        if !line.is_of_the_cell_of(&cell) {
            return Err(Failure::usage(format!(
                "a figure of {}, {}, {} stands where that of {}, {}, {} belongs: simulate the parts again",
                line.table, line.row, line.column, cell.table, cell.row, cell.column
            )));
        }
        figures.push(Some(Figure(line.simulated)));
    }
    Report::new(head.seed, verdicts(&tables, figures)).to_json()
}
