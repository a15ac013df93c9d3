//! What the terminal shows of rows of a guest.

use std::fmt::Write;

use comfy_table::CellAlignment;

use crate::bench::table::plain;
use crate::report::number::digits;
use crate::row::Row;

/// A lock that halts, and the one that it is compared with.
const PAIRS: [(&str, &str); 4] = [
    ("paravirt", "native"),
    ("paravirt-queued", "native"),
    ("paravirt-ticket", "ticket"),
    ("cna-paravirt", "cna"),
];

const HEADER: [&str; 9] = [
    "lock",
    "ops/s\nk",
    "wait p50\nµs",
    "p99.9\nms",
    "max\nms",
    "max/min",
    "fairness\nfactor",
    "halts\n/op",
    "kicks\n/op",
];

/// A table a number of virtual CPUs, and what halting is worth.
#[must_use]
pub fn tables(rows: &[Row], cpus: u32) -> String {
    let mut vcpus: Vec<u32> = rows.iter().map(|row| row.threads).collect();
    vcpus.dedup();
    let mut out = String::new();
    for vcpus in vcpus {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.threads == vcpus).collect();
        let _ = writeln!(out, "{vcpus} vCPUs on {cpus} CPUs\n{}", table(&rows));
        for line in PAIRS.iter().filter_map(|pair| compare(&rows, *pair)) {
            let _ = writeln!(out, "{line}");
        }
        out.push('\n');
    }
    out
}

fn table(rows: &[&Row]) -> comfy_table::Table {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| b.ops_per_s.median.total_cmp(&a.ops_per_s.median));
    let mut table = plain();
    table.set_header(HEADER);
    for row in rows {
        let wait = |of: fn(&crate::row::WaitNs) -> f64, unit: f64| {
            row.wait_ns.as_ref().map_or_else(|| "–".to_owned(), |wait| digits(of(wait) / unit))
        };
        table.add_row([
            row.lock.clone(),
            digits(row.ops_per_s.median / 1e3),
            wait(|wait| wait.p50, 1e3),
            wait(|wait| wait.p999, 1e6),
            wait(|wait| wait.max, 1e6),
            row.fairness.max_min.map_or_else(|| "∞".to_owned(), digits),
            format!("{:.2}", row.fairness.factor),
            an_operation(row, |name| matches!(name, "halts_on" | "halts_off")),
            an_operation(row, |name| name.starts_with("kicks_") && name != "kicks_unsent"),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Counts of the platform whose names are chosen, an operation.
fn an_operation(row: &Row, chosen: fn(&str) -> bool) -> String {
    let counted: u64 =
        row.platform.iter().filter(|(name, _)| chosen(name)).map(|(_, count)| count).sum();
    match row.wait_ns.map_or(0, |wait| wait.samples - wait.unfinished) {
        0 => "–".to_owned(),
        operations => digits(counted as f64 / operations as f64),
    }
}

/// What halting is worth: throughput and the worst wait, over those of the lock that spins.
fn compare(rows: &[&Row], (halts, spins): (&str, &str)) -> Option<String> {
    let named = |name| rows.iter().find(|row| row.lock == name);
    let (halts, spins) = (named(halts)?, named(spins)?);
    let rate = halts.ops_per_s.median / spins.ops_per_s.median;
    let wait = halts.wait_ns?.max / spins.wait_ns?.max;
    (rate.is_finite() && wait.is_finite()).then(|| {
        format!(
            "{} / {}: throughput × {}, longest wait × {}",
            halts.lock,
            spins.lock,
            digits(rate),
            digits(wait)
        )
    })
}
