//! The sentence at the end: which lock is best here, and how sure that is.

use crate::row::{Machine, Row};

/// The verdict on the rows of one run, in words; several lines, the last without a line break.
#[must_use]
pub fn verdict(machine: &Machine, rows: &[Row]) -> String {
    format!("{} rows on {}", rows.len(), machine.cpu)
}
