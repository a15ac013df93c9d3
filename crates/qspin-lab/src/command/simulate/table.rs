//! What the terminal shows of simulated rows.

use std::fmt::Write;

use qspin_sim::Plan;
use qspin_table::{Columns, fixed};
use serde_json::Value;

use crate::compare::{Comparison, Outcome, compare};
use crate::report::number::{digits, duration};
use crate::row::Row;

/// The tables, under a title that says what they are.
#[must_use]
pub(super) fn tables(plan: &Plan, rows: &[Row], seed: u64, seeds: u32) -> String {
    let mut out = format!("SIMULATED, not measured: {}\n", plan.base.machine.name);
    if !plan.about.is_empty() {
        let _ = writeln!(out, "{}", plan.about);
    }
    let last = seed.wrapping_add(u64::from(seeds) - 1);
    let _ = match seeds {
        1 => writeln!(out, "seed {seed}"),
        _ => writeln!(out, "medians of seeds {seed} to {last}, and their 95 % intervals"),
    };
    if rows.is_empty() {
        out.push_str("no cell was finished\n");
        return out;
    }
    let loads: &[Option<&str>] = &match plan.loads[..] {
        [] => vec![None],
        _ => plan.loads.iter().map(|load| Some(load.name.as_str())).collect(),
    };
    for load in loads {
        let of_load = |row: &&Row| row.params.get("load").and_then(Value::as_str) == *load;
        let rows: Vec<&Row> = rows.iter().filter(of_load).collect();
        if rows.is_empty() {
            continue;
        }
        if let Some(load) = load {
            let _ = writeln!(out, "\nSIMULATED: {load}");
        }
        let _ = writeln!(out, "{}", columns(&rows).table(rows.clone()));
    }
    if seeds > 1 {
        out.push_str(
            "against the first of its CPUs: its work over the other's, by seeds, with the 95 % interval; = where that is \
             no clear difference\n",
        );
    }
    out
}

/// What the first row of as many CPUs is to this one: nothing for itself, nor from one seed.
fn against_first(rows: &[&Row], row: &Row) -> Option<String> {
    let first = rows.iter().find(|it| it.threads == row.threads)?;
    if std::ptr::eq(*first, row) || row.rounds == 1 {
        return None;
    }
    let Comparison { ratio, outcome } = compare(row, *first);
    let [median, lo, hi] = [ratio.median, ratio.lo, ratio.hi].map(digits);
    let mark = match outcome {
        Outcome::Better | Outcome::Worse => "",
        Outcome::Level => " =",
        Outcome::TooFewRounds => " ?",
    };
    Some(format!("{median} [{lo}, {hi}]{mark}"))
}

fn columns<'a>(rows: &[&'a Row]) -> Columns<'a, Row> {
    let of_all = rows.to_vec();
    let of = |row: &Row, name: &str| row.platform.get(name).copied().unwrap_or(0) as f64;
    let an_operation = move |row: &Row, name: &str| of(row, name) / of(row, "sections").max(1.0);
    let step =
        |row: &Row| row.params.get("step").and_then(Value::as_str).unwrap_or(&row.lock).to_owned();
    let rate = |row: &Row| {
        let [median, lo, hi] =
            [row.ops_per_s.median, row.ops_per_s.lo, row.ops_per_s.hi].map(|it| digits(it / 1e6));
        if row.rounds == 1 { median } else { format!("{median} [{lo}, {hi}]") }
    };
    let remote =
        move |row: &Row| 100.0 * of(row, "remote_hand_overs") / of(row, "hand_overs").max(1.0);
    Columns::new()
        .text("lock", step)
        .number("CPUs", "", |row| row.threads)
        .number("ops/us", "", rate)
        .number("against\nthe first", "", move |row| against_first(&of_all, row))
        .optional()
        .number("remote", "%", move |row| fixed(remote(row), 0))
        .number("spun\n/op", "", move |row| duration(an_operation(row, "spun_ns")))
        .number("halts\n/op", "", move |row| an_operation(row, "halts"))
        .number("kicks\n/op", "", move |row| an_operation(row, "kicks"))
        .number("mean\nwait", "", move |row| duration(of(row, "mean_wait_ns")))
        .number("longest\nwait", "", move |row| duration(of(row, "longest_wait_ns")))
        .number("fairness\nfactor", "", |row| digits(row.fairness.factor))
}
