//! The report as Markdown: for an issue, a mail or a terminal.

use qspin_table::escape;

use super::Run;
use super::columns::{self, ENDS, Unit, apart, ranked};
use super::group::{Group, groups};
use super::machine;
use super::number::plural;
use super::overcommit::{self, Pair};
use super::regret;
use crate::verdict::judge;
use crate::verdict::words::sentences;

/// Renders all runs into one document.
#[must_use]
pub fn render(runs: &[Run], pair: &Pair) -> String {
    let mut out = String::from("# Which lock here?\n");
    for run in runs {
        if runs.len() > 1 {
            out += &format!("\n## {}: {}\n", escape(&run.source), escape(&run.machine.cpu));
        }
        let groups = groups(&run.machine, regret::chosen(run));
        for group in &groups {
            out += &setting(group, if runs.len() > 1 { "###" } else { "##" });
        }
        if regret::is_random(run) {
            out += &regret::markdown(run);
        }
        out += &card(run);
    }
    for table in overcommit::tables(runs, pair) {
        out += &table.markdown("##");
    }
    out
}

fn setting(group: &Group<'_>, heading: &str) -> String {
    let mark = group.mark().map(|mark| format!(" — **{mark}**"));
    let mut out = format!("\n{heading} {}{}\n\n", escape(&group.title()), mark.unwrap_or_default());
    for line in sentences(group, &judge(group)) {
        // Names stand in backticks already; the rest holds nothing that Markdown would take.
        out += &format!("- {line}\n");
    }
    for threads in group.threads() {
        out += &table(group, threads);
    }
    out
}

fn table(group: &Group<'_>, threads: u32) -> String {
    let over = if group.threads_over(threads) { ", more than CPUs" } else { "" };
    let columns = columns::of_rows(Unit::BySize);
    let (locks, ends) = apart(ranked(group.rows(), threads));
    let mut out = String::new();
    for (rows, what) in [(locks, String::new()), (ends, format!(": {ENDS}"))] {
        if !rows.is_empty() {
            let threads = plural(f64::from(threads), "thread");
            out += &format!("\n**{threads}{over}{what}**\n\n{}", columns.table(rows).markdown());
        }
    }
    out
}

fn card(run: &Run) -> String {
    let mut out = String::from("\n**Machine**\n\n");
    for (name, value) in machine::facts(run) {
        out += &format!("- {name}: {}\n", escape(&value));
    }
    for warning in &run.machine.warnings {
        out += &format!("- ⚠ {}\n", escape(warning));
    }
    out
}
