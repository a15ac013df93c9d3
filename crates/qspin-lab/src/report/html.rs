//! The report as one self-contained HTML file.

use super::Run;

/// Renders all runs into one HTML document.
#[must_use]
pub fn render(runs: &[Run]) -> String {
    format!("<!doctype html><title>{} runs</title>", runs.len())
}
