//! The published tables, simulated: what is fitted to which rows, what is predicted, and how far off.
//!
//! * [`published`]: the documents' tables;
//! * [`studies`]: what is fitted, and what is simulated for each of their cells: the files of `studies/`;
//! * [`Constants`]: what was fitted; [`calibrate`]: the search for it;
//! * [`run`]: plans, simulates and judges; [`judge`]: how far off a table is; [`show`]: for people;
//! * [`shard`], [`parts`], [`merge`]: parts of a sweep or of the tables, and how they become one again.
//!
//! # Rules
//! * A cell is *calibrated* or *predicted*, never both: a constant is fitted to calibrated cells only,
//!   and `tests/reproduce.rs` checks that the search never sees another.
//! * What is not simulated is listed as such, with its reason; it is left out of no table in silence.
//! * Every table stands beside the *null model*: no difference anywhere, each ratio is 1.

mod calibrate;
mod constants;
mod judge;
pub mod merge;
pub mod parts;
pub mod published;
pub mod run;
pub mod shard;
pub mod show;
mod studies;

use qspin_sim::{Failure, Outcome, Scenario};
use serde::Deserialize;

pub use calibrate::{Progress, calibrate};
pub use constants::{Calibrated, Constants};
pub use judge::{Cell, Summary, Verdict, judge, spearman};
pub use studies::{Knob, Study, cells, studies, study_of};

/// What a cell is to the calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Constants were fitted to it.
    Calibrated,
    /// It was not looked at.
    Predicted,
    /// What it says is given to the simulation, which gives it back: it has no error.
    Given,
}

impl Role {
    /// The name, as rows have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Predicted => "predicted",
            Self::Given => "given",
        }
    }
}

/// How the figure of a cell follows from its simulations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// So many times the throughput, on average over its simulations.
    Throughput(f64),
    /// How long it takes, in seconds.
    Seconds,
    /// A figure of the first of two simulations over that of the second; of four, that of the first two over that of the
    /// others.
    Ratio(Compared),
    /// By how much the throughput of the first of two is more than that of the second, in percent.
    Gain,
    /// Sections of the busiest CPU over those of the least busy.
    Unfairness,
    /// What a kick takes, in microseconds.
    Kick,
    /// From a kick to the return of the halt, in microseconds.
    WakeUp,
    /// One of the locks' counts.
    Count(String),
}

/// What is compared of two simulations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    /// Operations.
    Throughput,
    /// The longest wait.
    LongestWait,
    /// The mean wait: of waiters that do not halt, cycles of contention.
    MeanWait,
}

/// What a document states without a number.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What is stated of it, where that is not the column of a number.
    pub column: Option<String>,
    /// In words.
    pub words: String,
    /// What that is as a number, where it is one: no difference is a ratio of 1.
    pub figure: Option<f64>,
    /// The least and the most that a simulated figure may be for it to be true.
    pub holds: [f64; 2],
}

impl Claim {
    /// Whether it is true of a simulated figure.
    fn agrees(&self, figure: f64) -> bool {
        let [least, most] = self.holds;
        (least..=most).contains(&figure)
    }
}

/// One cell of a table, to be simulated.
pub struct CellPlan {
    /// Row and column of the table.
    pub row: usize,
    /// Index into [`published::Table::columns`].
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

/// What states that there is no difference, or hardly one.
const NULLS: [&str; 3] = ["002-tpcc", "003-gcc", "004-single"];

/// The tables that can be reproduced, in the order of the documents; then their nulls.
pub fn tables() -> impl Iterator<Item = &'static str> {
    let known = published::names().filter(|name| study_of(name).is_some());
    known.filter(|name| !NULLS.contains(name)).chain(NULLS)
}

impl CellPlan {
    /// The figure of the cell from its simulations; `None` where they have none.
    ///
    /// # Errors
    /// How a lock failed.
    pub fn value(&self, runs: Vec<Result<Outcome, Failure>>) -> Result<Option<f64>, Failure> {
        Ok(self.figure(&runs.into_iter().collect::<Result<Vec<_>, _>>()?))
    }

    fn figure(&self, runs: &[Outcome]) -> Option<f64> {
        let first = runs.first()?;
        let ratio = |of: fn(&Outcome) -> f64| match runs {
            [one, other] => Some(of(one) / of(other)),
            [one, other, third, fourth] => Some(of(one) / of(other) / (of(third) / of(fourth))),
            _ => None,
        };
        match &self.value {
            Value::Throughput(times) => {
                let all = runs.iter().map(|run| run.throughput).sum::<f64>();
                Some(all / runs.len() as f64 * times)
            }
            Value::Seconds => Some(first.elapsed_ns / 1e9),
            Value::Ratio(Compared::Throughput) => ratio(|run| run.throughput),
            Value::Ratio(Compared::LongestWait) => ratio(|run| run.longest_wait_ns),
            Value::Ratio(Compared::MeanWait) => ratio(|run| run.mean_wait_ns),
            Value::Gain => Some(100.0 * (ratio(|run| run.throughput)? - 1.0)),
            Value::Unfairness => first.max_min,
            Value::Kick => {
                Some(self.scenarios[0].hypervisor.as_ref().map_or(0.0, |it| it.kick) / 1e3)
            }
            Value::WakeUp => Some(first.mean_wake_ns? / 1e3),
            Value::Count(name) => {
                Some(first.events.get(name.as_str()).copied().unwrap_or(0) as f64)
            }
        }
    }
}
