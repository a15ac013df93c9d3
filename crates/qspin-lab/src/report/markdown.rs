//! The report as Markdown: for an issue, a mail or a terminal.

use super::Run;
use super::group::{Contender, Group, groups};
use super::machine;
use super::number::digits;
use super::overcommit::{self, Pair};
use crate::row::Row;
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
        let groups = groups(&run.machine, &run.rows);
        for group in &groups {
            out += &setting(group, if runs.len() > 1 { "###" } else { "##" });
        }
        out += &card(run);
    }
    for table in overcommit::tables(runs, pair) {
        out += &table.markdown("##", escape);
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
    let mut ranked: Vec<(&Contender<'_>, &Row)> = group
        .contenders
        .iter()
        .filter_map(|contender| Some((contender, contender.at(threads)?)))
        .collect();
    ranked.sort_by(|a, b| {
        let (left, right) = (a.1.ops_per_s.median, b.1.ops_per_s.median);
        right.total_cmp(&left).then_with(|| a.0.name.cmp(&b.0.name))
    });
    let over = if group.threads_over(threads) { ", more than CPUs" } else { "" };
    let plural = if threads == 1 { "" } else { "s" };
    // Few locks count it.
    let local = ranked.iter().any(|(_, row)| row.locality.is_some());
    let (heading, rule) = if local { (" local hand-overs |", "---:|") } else { ("", "") };
    let mut out = format!(
        "\n**{threads} thread{plural}{over}**\n\n\
         | lock | ops/s (M) | 95 % interval (M) | wait p50 (µs) | p99 (µs) | p99.9 (µs) \
         | max (µs) | worst thread p99.9 (µs) | max/min | fairness factor | CPU/op (ns) \
         | overhead/op (ns) | uncontended (ns) | over floor (×) |{heading}\n\
         |:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|{rule}\n"
    );
    for (contender, row) in ranked {
        let million = |ops: f64| digits(ops / 1e6);
        let wait = |of: fn(crate::row::WaitNs) -> f64| {
            row.wait_ns.map_or_else(dash, |wait| digits(of(wait) / 1e3))
        };
        let mut cells = vec![
            format!("{}{}", escape(&contender.name), if row.partial { " (partial)" } else { "" }),
            million(row.ops_per_s.median),
            format!("{}–{}", million(row.ops_per_s.lo), million(row.ops_per_s.hi)),
            wait(|wait| wait.p50),
            wait(|wait| wait.p99),
            wait(|wait| wait.p999),
            wait(|wait| wait.max),
            wait(|wait| wait.worst_thread_p999),
            row.fairness.max_min.map_or_else(|| "∞".to_owned(), digits),
            digits(row.fairness.factor),
            row.cpu_ns_per_op.map_or_else(dash, digits),
            row.overhead_ns_per_op.map_or_else(dash, digits),
            row.uncontended_ns.map_or_else(dash, |ns| digits(ns.median)),
            row.floor_ratio.map_or_else(dash, |ratio| digits(ratio.median)),
        ];
        if local {
            cells.push(row.locality.map_or_else(dash, digits));
        }
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out
}

fn dash() -> String {
    "–".to_owned()
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

/// Text from a file must not become a table cell, a heading or HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out += "&lt;",
            '&' => out += "&amp;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
