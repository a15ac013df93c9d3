//! Reproduced tables as a page.

use maud::{DOCTYPE, Markup, html};
use qspin_reproduce::{Cell, Constants, Summary, Verdict};

use super::show::{error_of, published_of};
use super::{fitted, percent};
use crate::report::number::digits;

const STYLE: &str = "body{font:16px/1.4 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}\
table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .7em;text-align:right;\
border-bottom:1px solid #8884}th:first-child,td:first-child{text-align:left}\
.calibrated{opacity:.6}small{display:block;max-width:60em}";

/// The page.
#[must_use]
pub(super) fn page(verdicts: &[Verdict], constants: &Constants, seed: u64) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta name="color-scheme" content="light dark";
                title { "SIMULATED: the published tables" }
                style { (STYLE) }
            }
            body {
                h1 { "SIMULATED: the published tables" }
                p { "Seed " (seed) ". Errors are simulated / published − 1. Cells to which constants were fitted are pale." }
                (summary(verdicts))
                @for verdict in verdicts {
                    h2 id=(verdict.table) { (verdict.table) " (" (verdict.unit) ")" }
                    small { (fitted(&verdict.table, constants)) }
                    table {
                        tr { th { "row" } th { "column" } th { "published" } th { "SIMULATED" } th { "error" } th { "role" } }
                        @for cell in &verdict.cells { (line(cell)) }
                    }
                }
            }
        }
    }
    .into_string()
}

fn line(cell: &Cell) -> Markup {
    html! {
        tr class=(cell.role) {
            td { (cell.row) }
            td { (cell.column) }
            td { (published_of(cell)) }
            td { (cell.simulated.map_or_else(|| "not simulated".to_owned(), digits)) }
            td { (error_of(cell)) }
            td { (cell.role) }
        }
    }
}

fn summary(verdicts: &[Verdict]) -> Markup {
    let row = |name: Markup, it: &Summary| {
        html! {
            tr {
                td { (name) }
                td { (it.cells) }
                td { (percent(it.ratio_mae)) }
                td { (percent(it.value_mae)) }
                td { (percent(it.max_cell_error)) }
                td { (percent(it.null_mae)) }
                td { (it.rank_correlation.map_or_else(|| "–".to_owned(), |it| format!("{it:.2}"))) }
            }
        }
    };
    html! {
        table {
            tr {
                th { "table" } th { "cells" } th { "ratio error" } th { "value error" } th { "largest" }
                th { "no difference anywhere" } th { "rank correlation" }
            }
            @for verdict in verdicts {
                (row(html! { a href={ "#" (verdict.table) } { (verdict.table) } }, &verdict.all))
                (row(html! { "predicted only" }, &verdict.predicted))
            }
        }
    }
}
