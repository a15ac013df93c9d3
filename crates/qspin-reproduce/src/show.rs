//! What is shown of reproduced tables, on a terminal and as a page.

use std::fmt::Write;

use maud::{DOCTYPE, html};
use qspin_table::number::digits;
use qspin_table::{Cell as Shown, Columns, Table};

use crate::{Cell, Constants, Role, Summary, Verdict, run::planned, study_of, tables};

/// Which tables there are, and what is fitted to how much of them.
///
/// # Errors
/// Constants that make a scenario impossible.
pub fn list(constants: &Constants) -> Result<String, String> {
    let tables: Vec<&str> = tables().collect();
    let fitted = |cells: &[crate::CellPlan]| {
        cells.iter().filter(|plan| plan.role == Role::Calibrated).count()
    };
    let list = Columns::new()
        .text("table", |it: &crate::run::Planned| it.table.name.clone())
        .text("what", |it| it.table.comments.get("measured").cloned().unwrap_or_default())
        .number("cells", "", |it| it.cells.len())
        .number("fitted to", "", |it| fitted(&it.cells))
        .text("study", |it| study_of(&it.table.name).map_or("", |study| &study.name))
        .table(&planned(&tables, constants)?);
    Ok(format!("{list}\n\nqspin reproduce TABLE… simulates them; --all, all of them.\n"))
}

/// Every table, then all their errors.
#[must_use]
pub fn text(verdicts: &[Verdict], constants: &Constants, seed: u64) -> String {
    let mut out = format!("SIMULATED, beside what was published; seed {seed}\n\n");
    for verdict in verdicts {
        let _ = writeln!(out, "{} ({})", verdict.table, verdict.unit);
        let _ = writeln!(out, "{}", fitted(&verdict.table, constants));
        let _ = writeln!(out, "{}\n", cells(verdict));
    }
    let _ = writeln!(out, "{}", summary(verdicts));
    out
}

/// Errors of all tables, then each of them, as Markdown: `data/results/accuracy.md`.
#[must_use]
pub fn markdown(verdicts: &[Verdict], constants: &Constants, seed: u64) -> String {
    let mut out = format!(
        "# The published tables, SIMULATED\n\nWritten by `qspin reproduce --all --seed {seed} --markdown`: not to be \
         edited. What it means, and what is wrong: [docs/accuracy.md](../../docs/accuracy.md).\n\n{}\n",
        summary(verdicts).markdown()
    );
    for verdict in verdicts {
        out.push_str(&section(verdict, constants));
    }
    out
}

/// One table of it.
#[must_use]
pub fn section(verdict: &Verdict, constants: &Constants) -> String {
    let (name, unit) = (&verdict.table, &verdict.unit);
    let (fitted, cells) = (fitted(name, constants), cells(verdict).markdown());
    format!("\n## {name} ({unit})\n\n{fitted}\n\n{cells}\n")
}

const STYLE: &str = "body{font:16px/1.4 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}\
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .7em;text-align:right;\
border-bottom:1px solid #8884}tbody th{font-weight:inherit}th:first-child{text-align:left}\
.calibrated{opacity:.6}small{display:block;max-width:60em}";

/// The same as a page.
#[must_use]
pub fn page(verdicts: &[Verdict], constants: &Constants, seed: u64) -> String {
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
                (summary(verdicts).html("summary", "errors of all tables"))
                @for verdict in verdicts {
                    h2 id=(verdict.table) { (verdict.table) " (" (verdict.unit) ")" }
                    small { (fitted(&verdict.table, constants)) }
                    (cells(verdict).html("cells", &verdict.table))
                }
            }
        }
    }
    .into_string()
}

fn cells(verdict: &Verdict) -> Table {
    let columns = Columns::new()
        .text("row", |cell: &Cell| cell.row.clone())
        .text("column", |cell| cell.column.clone())
        .number("published", "", |cell| cell.claim.clone().or(cell.published.map(digits)))
        .number("SIMULATED", "", |cell| {
            cell.simulated.map_or_else(|| "not simulated".to_owned(), digits)
        })
        .number("error", "", |cell| match cell.agrees {
            Some(true) => "agrees".to_owned(),
            Some(false) => "DISAGREES".to_owned(),
            None => percent(cell.error),
        })
        .text("role", |cell| cell.role);
    let mut table = columns.table([]);
    for cell in &verdict.cells {
        columns.add_to(&mut table, cell);
        table.mark(cell.role, None);
    }
    table
}

fn summary(verdicts: &[Verdict]) -> Table {
    let lines: Vec<(Shown, &Summary)> = verdicts
        .iter()
        .flat_map(|it| {
            let all = Shown::from(it.table.as_str()).link(&it.table);
            [(all, &it.all), ("  predicted only".into(), &it.predicted)]
        })
        .collect();
    Columns::new()
        .text("table", |(name, _): &(Shown, &Summary)| name.clone())
        .number("cells", "", |(_, it)| it.cells)
        .number("ratio\nerror", "", |(_, it)| percent(it.ratio_mae))
        .number("value\nerror", "", |(_, it)| percent(it.value_mae))
        .number("largest", "", |(_, it)| percent(it.max_cell_error))
        .number("no difference\nanywhere", "", |(_, it)| percent(it.null_mae))
        .number("rank\ncorrelation", "", |(_, it)| it.rank_correlation.map(|it| format!("{it:.2}")))
        .table(&lines)
}

/// A fraction in percent.
fn percent(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "–".to_owned(), |it| format!("{:.1} %", 100.0 * it))
}

/// What was fitted to what, for one table, in a sentence.
#[must_use]
pub fn fitted(table: &str, constants: &Constants) -> String {
    let Some(study) = study_of(table) else { return String::new() };
    let Some(found) = constants.0.get(&study.name) else {
        return format!("study {}: not calibrated; constants where the search begins", study.name);
    };
    let mut values: Vec<String> =
        found.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if study.scaled {
        values.push(format!("scale = {}", found.scale));
    }
    format!(
        "study {} ({}): {}; fitted to {} cells ({}), seed {}, mean error there {}",
        study.name,
        study.about,
        values.join(", "),
        found.cells.len(),
        found.cells.join("; "),
        found.seed,
        percent(Some(found.error))
    )
}
