//! What a run looks like to people: one file an output format.
//!
//! A report is made of [`Run`]s. Contenders of one run were interleaved on one machine and may
//! be compared; rows of different runs never are, so each run keeps a section of its own.

pub mod chart;
pub mod columns;
pub mod csv;
pub mod family;
mod figures;
pub mod group;
pub mod html;
pub mod machine;
pub mod markdown;
pub mod overcommit;
pub mod read;
pub mod regret;
pub mod svg;

pub use qspin_table::number;
pub use read::read;

use crate::row::{Machine, Row};
use overcommit::Pair;

/// One machine row and the rows measured after it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Where the rows came from, as people know it: the path of the file.
    pub source: String,
    /// The machine.
    pub machine: Machine,
    /// The rows, in the order in which they were written.
    pub rows: Vec<Row>,
}

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One self-contained page.
    Html,
    /// Verdict and tables.
    Md,
    /// All rows, one column a field.
    Csv,
    /// The throughput charts alone.
    Svg,
}

impl Format {
    /// Renders runs in this format.
    #[must_use]
    pub fn render(self, runs: &[Run]) -> String {
        self.render_comparing(runs, &Pair::default())
    }

    /// Renders runs in this format, with the table of two locks where the runs have it and the
    /// format shows tables.
    #[must_use]
    pub fn render_comparing(self, runs: &[Run], pair: &Pair) -> String {
        match self {
            Self::Html => html::render(runs, pair),
            Self::Md => markdown::render(runs, pair),
            Self::Csv => csv::render(runs),
            Self::Svg => svg::render(runs),
        }
    }
}
