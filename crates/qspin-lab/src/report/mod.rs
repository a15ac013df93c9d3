//! What a run looks like to people: one file an output format.
//!
//! A report is made of [`Run`]s. Contenders of one run were interleaved on one machine and may
//! be compared; rows of different runs never are, so each run keeps a section of its own.

pub mod family;
pub mod group;
pub mod html;
pub mod number;
mod write;

pub use write::write_atomically;

use crate::row::{Machine, Row};

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
