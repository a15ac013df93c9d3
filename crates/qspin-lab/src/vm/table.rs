//! What the terminal shows of rows of a guest.

use std::fmt::Write;

use crate::report::columns::{self, THOUSANDS, ranked};
use crate::report::number::digits;
use crate::row::Row;

/// A lock that halts, and the one that it is compared with.
const PAIRS: [(&str, &str); 4] = [
    ("paravirt", "native"),
    ("paravirt-queued", "native"),
    ("paravirt-ticket", "ticket"),
    ("cna-paravirt", "cna"),
];

/// A table a number of virtual CPUs, and what halting is worth.
#[must_use]
pub fn tables(rows: &[Row], cpus: u32) -> String {
    let columns = columns::of_rows(THOUSANDS)
        .number("halts\n/op", "", |row| {
            an_operation(row, |name| matches!(name, "halts_on" | "halts_off"))
        })
        .number("kicks\n/op", "", |row| {
            an_operation(row, |name| name.starts_with("kicks_") && name != "kicks_unsent")
        });
    let mut out = String::new();
    for vcpus in columns::threads(rows) {
        let rows = ranked(rows, vcpus);
        let table = columns.table(rows.iter().copied());
        let _ = writeln!(out, "{vcpus} vCPUs on {cpus} CPUs\n{table}");
        for line in PAIRS.iter().filter_map(|pair| compare(&rows, *pair)) {
            let _ = writeln!(out, "{line}");
        }
        out.push('\n');
    }
    out
}

/// Counts of the platform whose names are chosen, an operation.
fn an_operation(row: &Row, chosen: fn(&str) -> bool) -> Option<f64> {
    let counted: u64 =
        row.platform.iter().filter(|(name, _)| chosen(name)).map(|(_, count)| count).sum();
    let operations = row.wait_ns.map_or(0, |wait| wait.samples - wait.unfinished);
    (operations > 0).then(|| counted as f64 / operations as f64)
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
