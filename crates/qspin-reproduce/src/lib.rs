//! The published tables, simulated: what is fitted to which rows, what is predicted, and how far off.
//!
//! # Rules
//! * A cell is *calibrated* or *predicted*, never both: a constant is fitted to calibrated cells only,
//!   and `tests/reproduce.rs` checks that the search never sees another.
//! * What is not simulated is listed as such, with its reason; it is left out of no table in silence.
//! * Every table stands beside the *null model*: no difference anywhere, each ratio is 1.

mod calibrate;
mod claims;
mod constants;
mod guests;
mod judge;
mod machines;
pub mod merge;
pub mod parts;
pub mod published;
pub mod run;
pub mod shard;
mod studies;

use qspin_sim::failure::Failure;
use qspin_sim::outcome::Outcome;
use qspin_sim::scenario::Scenario;

use crate::published::Table;

pub use calibrate::{Progress, calibrate};
pub use constants::{Calibrated, Constants};
pub use judge::{Cell, Summary, Verdict, judge};
pub use studies::{Knob, STUDIES, Study, study_of};

/// What a cell is to the calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Constants were fitted to it.
    Calibrated,
    /// It was not looked at.
    Predicted,
}

impl Role {
    /// The name, as rows have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Predicted => "predicted",
        }
    }
}

/// How the figure of a cell follows from its simulations; `None` where it does not.
pub type Value = Box<dyn Fn(&[Outcome]) -> Option<f64> + Send + Sync>;

/// What a document states without a number.
pub struct Claim {
    /// What is stated of it, where that is not the column of a number.
    pub column: String,
    /// In words.
    pub words: String,
    /// What that is as a number, where it is one: no difference is a ratio of 1.
    pub figure: Option<f64>,
    /// Whether it is true of the simulated figure.
    pub holds: fn(f64) -> bool,
}

/// One cell of a table, to be simulated.
pub struct CellPlan {
    /// Row and column of the table.
    pub row: usize,
    /// Index into [`Table::columns`].
    pub column: usize,
    /// What it is to the calibration.
    pub role: Role,
    /// What has to be simulated.
    pub scenarios: Vec<Scenario>,
    /// The figure, without the study's scale.
    pub value: Value,
    /// Whether the study's scale applies.
    pub scaled: bool,
    /// What the document states of it in words.
    pub claim: Option<Claim>,
}

/// The tables that can be reproduced, in the order of the documents; then their nulls, which state that
/// there is no difference, or hardly one.
pub const TABLES: [&str; 23] = [
    "000-haswell",
    "000-westmere",
    "000-pending",
    "000-statistics",
    "000-latencies",
    "001-A",
    "001-B",
    "001-C",
    "002-locktorture",
    "002-open1",
    "002-lock2",
    "002-leveldb",
    "002-fsmark-nosync",
    "002-fsmark-fsync",
    "002-aim7",
    "003-1",
    "003-32",
    "003-128",
    "004-openclose",
    "004-dbench",
    "002-tpcc",
    "003-gcc",
    "004-single",
];

/// The cells of a table that are simulated.
///
/// # Errors
/// A table that is not known; constants that make a scenario impossible.
pub fn cells(table: &Table, constants: &Constants) -> Result<Vec<CellPlan>, String> {
    match table.name.as_str() {
        "002-tpcc" | "003-gcc" | "004-single" => return claims::of_one_cell(table, constants),
        "004-dbench" => return claims::dbench(table, constants),
        _ => {}
    }
    match table.name.split_once('-').map(|(document, _)| document) {
        Some("000") => guests::document_000(table, constants),
        Some("001") => guests::document_001(table, constants),
        Some("002") => machines::document_002(table, constants),
        Some("003") => machines::document_003(table, constants),
        Some("004") => machines::document_004(table, constants),
        _ => Err(format!("{} is no table that can be reproduced", table.name)),
    }
}

/// Throughput of the first simulation.
fn throughput(times: f64) -> Value {
    Box::new(move |outcomes| Some(outcomes.first()?.throughput * times))
}

/// Time that the first simulation takes, in seconds.
fn seconds() -> Value {
    Box::new(|outcomes| Some(outcomes.first()?.elapsed_ns / 1e9))
}

/// A job's result for the value of a cell.
///
/// # Errors
/// How its lock failed.
pub fn value_of(
    plan: &CellPlan,
    results: Vec<Result<Outcome, Failure>>,
) -> Result<Option<f64>, Failure> {
    let outcomes = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((plan.value)(&outcomes))
}
