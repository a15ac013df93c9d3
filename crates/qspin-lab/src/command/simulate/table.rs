//! What the terminal shows of simulated rows.

use std::fmt::Write;

use comfy_table::CellAlignment;
use qspin_sim::Plan;
use serde_json::Value;

use crate::bench::table::plain;
use crate::report::number::{digits, duration};
use crate::row::Row;

const HEADER: [&str; 9] = [
    "lock",
    "CPUs",
    "ops/us",
    "remote\n%",
    "spun\n/op",
    "halts\n/op",
    "kicks\n/op",
    "longest\nwait",
    "fairness\nfactor",
];

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
        let mut table = plain();
        table.set_header(HEADER);
        for row in rows {
            table.add_row(cells(row));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(out, "{table}");
    }
    out
}

fn cells(row: &Row) -> [String; 9] {
    let of = |name: &str| row.platform.get(name).copied().unwrap_or(0) as f64;
    let an_operation = |name: &str| digits(of(name) / of("sections").max(1.0));
    let rate = &row.ops_per_s;
    let rate = match row.rounds {
        1 => digits(rate.median / 1e6),
        _ => format!(
            "{} [{}, {}]",
            digits(rate.median / 1e6),
            digits(rate.lo / 1e6),
            digits(rate.hi / 1e6)
        ),
    };
    let remote = 100.0 * of("remote_hand_overs") / of("hand_overs").max(1.0);
    [
        row.params.get("step").and_then(Value::as_str).unwrap_or(&row.lock).to_owned(),
        row.threads.to_string(),
        rate,
        format!("{remote:.0}"),
        duration(of("spun_ns") / of("sections").max(1.0)),
        an_operation("halts"),
        an_operation("kicks"),
        duration(of("longest_wait_ns")),
        format!("{:.2}", row.fairness.factor),
    ]
}
