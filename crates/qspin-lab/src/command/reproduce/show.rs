//! What the terminal shows of reproduced tables.

use std::fmt::Write;

use anyhow::anyhow;
use comfy_table::CellAlignment;
use qspin_reproduce::published;
use qspin_reproduce::{
    Cell, Constants, Role, Summary, TABLES, Verdict, cells as planned, study_of,
};

use super::{fitted, percent};
use crate::bench::table::plain;
use crate::failure::Failure;
use crate::report::number::digits;

/// Which tables there are, and what is fitted to how much of them.
///
/// # Errors
///
/// Constants that make a scenario impossible.
pub(super) fn list(constants: &Constants) -> Result<String, Failure> {
    let mut list = plain();
    list.set_header(["table", "what", "cells", "fitted to", "study"]);
    for name in TABLES {
        let table = published::table(name).map_err(|error| anyhow!(error))?;
        let plans = planned(&table, constants).map_err(|why| anyhow!("{name}: {why}"))?;
        let fitted = plans.iter().filter(|plan| plan.role == Role::Calibrated).count();
        list.add_row([
            name.to_owned(),
            table.comments.get("measured").map_or("", String::as_str).to_owned(),
            plans.len().to_string(),
            fitted.to_string(),
            study_of(name).map_or("", |study| study.name).to_owned(),
        ]);
    }
    for column in list.column_iter_mut().skip(2).take(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Ok(format!("{list}\n\nqspin reproduce TABLE… simulates them; --all, all of them.\n"))
}

/// What is published of a cell: a number, or which way.
#[must_use]
pub(super) fn published_of(cell: &Cell) -> String {
    match (&cell.claim, cell.published) {
        (Some(claim), _) => claim.clone(),
        (None, Some(figure)) => digits(figure),
        (None, None) => "–".to_owned(),
    }
}

/// Its error; or, where there is no number, whether it agrees.
#[must_use]
pub(super) fn error_of(cell: &Cell) -> String {
    match cell.agrees {
        Some(true) => "agrees".to_owned(),
        Some(false) => "DISAGREES".to_owned(),
        None => percent(cell.error),
    }
}

/// Every table, then all their errors.
#[must_use]
pub(super) fn tables(verdicts: &[Verdict], constants: &Constants, seed: u64) -> String {
    let mut out = format!("SIMULATED, beside what was published; seed {seed}\n\n");
    for verdict in verdicts {
        let _ = writeln!(out, "{} ({})", verdict.table, verdict.unit);
        let _ = writeln!(out, "{}", fitted(&verdict.table, constants));
        let _ = writeln!(out, "{}\n", cells(verdict));
    }
    let _ = writeln!(out, "{}", summary(verdicts));
    out
}

fn cells(verdict: &Verdict) -> comfy_table::Table {
    let mut table = plain();
    table.set_header(["row", "column", "published", "SIMULATED", "error", "role"]);
    for cell in &verdict.cells {
        table.add_row([
            cell.row.clone(),
            cell.column.clone(),
            published_of(cell),
            cell.simulated.map_or_else(|| "not simulated".to_owned(), digits),
            error_of(cell),
            cell.role.to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(2).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn summary(verdicts: &[Verdict]) -> comfy_table::Table {
    let mut table = plain();
    table.set_header([
        "table",
        "cells",
        "ratio\nerror",
        "value\nerror",
        "largest",
        "no difference\nanywhere",
        "rank\ncorrelation",
    ]);
    let mut line = |name: String, it: &Summary| {
        table.add_row([
            name,
            it.cells.to_string(),
            percent(it.ratio_mae),
            percent(it.value_mae),
            percent(it.max_cell_error),
            percent(it.null_mae),
            it.rank_correlation.map_or_else(|| "–".to_owned(), |it| format!("{it:.2}")),
        ]);
    };
    for verdict in verdicts {
        line(verdict.table.clone(), &verdict.all);
        line("  predicted only".to_owned(), &verdict.predicted);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
