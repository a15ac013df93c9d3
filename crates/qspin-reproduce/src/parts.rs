//! Parts of the published tables, for several computers.
//!
//! A part is a file of lines of JSON: a `Head`, and a `Line` for each of its cells. Errors are of whole tables,
//! so parts have figures only, and the command that merges them judges. What is judged is planned anew from the head,
//! and the hash of the plan tells whether it is what was simulated.

use serde::{Deserialize, Serialize};

use crate::run::{Figure, OfTable, Planned, Report, SCHEMA, cells_of, planned, verdicts};
use crate::shard::{Part, Shard};
use crate::{Constants, study_of};

/// What the rows of a part are called.
const KIND: &str = "reproduce";

/// What the parts of one reproduction have in common.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    schema: u32,
    kind: String,
    version: String,
    seed: u64,
    tables: Vec<String>,
    constants: Constants,
    /// Which part; taken out where parts are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shard: Option<Shard>,
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
    fn new((Planned { table, .. }, cell): OfTable<'_>, Figure(simulated): Figure) -> Self {
        Self {
            table: table.name.clone(),
            row: table.row_name(&table.rows[cell.row]),
            column: table.columns[cell.column].clone(),
            simulated,
        }
    }

    fn cell(&self) -> [&str; 3] {
        [&self.table, &self.row, &self.column]
    }
}

impl Head {
    /// A head, if this line is one of a part.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let head: Self = serde_json::from_str(line).ok()?;
        (head.kind == KIND && head.shard.is_some()).then_some(head)
    }
}

fn shard(part: Part, tables: &[Planned]) -> serde_json::Result<Shard> {
    let cells = cells_of(tables).map(|(planned, cell)| {
        let line = Line::new((planned, cell), Figure(None));
        let [table, row, column] = line.cell();
        (format!("{table:?} {row:?} {column:?}"), &cell.scenarios[..])
    });
    Shard::new(part, cells, 1)
}

/// Whether this is a line of a part.
pub(crate) fn check(line: &str) -> serde_json::Result<()> {
    serde_json::from_str::<Line>(line).map(drop)
}

/// The text of a part: of `tables` those `cells` that are of it, which were all simulated.
///
/// # Errors
/// Where a figure of the plan is no number.
pub fn text(
    part: Part,
    tables: &[Planned],
    (constants, seed): (Constants, u64),
    cells: &[(OfTable<'_>, Figure)],
) -> serde_json::Result<String> {
    let head = Head {
        schema: SCHEMA,
        kind: KIND.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed,
        tables: tables.iter().map(|it| it.table.name.clone()).collect(),
        constants,
        shard: Some(shard(part, tables)?),
    };
    let mut text = serde_json::to_string(&head)? + "\n";
    for &(cell, figure) in cells {
        text += &(serde_json::to_string(&Line::new(cell, figure))? + "\n");
    }
    Ok(text)
}

/// The text that `qspin reproduce --json` prints, of the lines of all cells in their order.
///
/// # Errors
/// Where they are of what this version of the program does not simulate.
pub(crate) fn whole(head: &Head, of_parts: &Shard, lines: &[String]) -> Result<String, String> {
    let other = || {
        "the parts are of another version of qspin, which simulates something else: merge them with the one that \
         made them"
            .to_owned()
    };
    let names: Vec<&str> = head.tables.iter().map(String::as_str).collect();
    if names.iter().any(|name| study_of(name).is_none()) {
        return Err(other());
    }
    let tables = planned(&names, &head.constants)?;
    let ours = shard(Part::WHOLE, &tables).map_err(|error| error.to_string())?;
    if (&ours.plan, ours.cells) != (&of_parts.plan, of_parts.cells) {
        return Err(other());
    }
    let mut figures = Vec::new();
    for (cell, text) in cells_of(&tables).zip(lines) {
        let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let ours = Line::new(cell, Figure(line.simulated));
        if line.cell() != ours.cell() {
            return Err(format!(
                "a figure of {} stands where that of {} belongs: simulate the parts again",
                line.cell().join(", "),
                ours.cell().join(", ")
            ));
        }
        figures.push(Some(Figure(line.simulated)));
    }
    Report::new(head.seed, verdicts(&tables, figures)).to_json().map_err(|error| error.to_string())
}
