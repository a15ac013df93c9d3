//! What the terminal shows of reproduced tables.

use std::fmt::Write;

use comfy_table::CellAlignment;
use qspin_sim::reproduce::{Constants, Summary, Verdict};

use super::{fitted, percent};
use crate::bench::table::plain;
use crate::report::number::digits;

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
            digits(cell.published),
            cell.simulated.map_or_else(|| "not simulated".to_owned(), digits),
            percent(cell.error),
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
