//! The table on the terminal: one a number of threads, the fastest lock first.

use std::fmt::Write;

use qspin_table::number::plural;

use crate::report::columns::{self, ENDS, Unit, apart, of_rows, of_rows_uncounted, ranked};
use crate::row::Row;

/// The tables of all numbers of threads; `counted`: with what the locks have counted; `wide`: with all figures, and
/// otherwise with so few that a table has 100 columns of text at most.
#[must_use]
pub fn tables(rows: &[Row], cpus: u32, counted: bool, wide: bool) -> String {
    let columns = if counted { of_rows(Unit::BySize) } else { of_rows_uncounted(Unit::BySize) };
    let columns = if wide { columns } else { columns.without_spare() };
    let mut out = String::new();
    for threads in columns::threads(rows) {
        let (locks, ends) = apart(ranked(rows, threads));
        for (rows, what) in [(locks, String::new()), (ends, format!(": {ENDS}"))] {
            if let Some(first) = rows.first() {
                let heading = heading(first, cpus);
                let _ = writeln!(out, "{heading}{what}\n{}\n", columns.table(rows).terminal(None));
            }
        }
    }
    out
}

/// `8 threads and 2 hogs on 2 CPUs`.
#[must_use]
pub fn heading(row: &Row, cpus: u32) -> String {
    let hogs = match row.hogs {
        0 => String::new(),
        hogs => format!(" and {}", plural(f64::from(hogs), "hog")),
    };
    let cpus = plural(f64::from(cpus), "CPU");
    format!("{}{hogs} on {cpus}", plural(f64::from(row.threads), "thread"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::catalog;
    use crate::row::{Fairness, Interval, WaitNs};
    use crate::verdict::tests::row as plain;

    /// With every figure, as wide as figures are.
    fn row(lock: &str, threads: u32, rate: f64) -> Row {
        let about = |median| Interval { median, lo: median * 0.987, hi: median * 1.013 };
        let mut row = plain(lock, threads, rate);
        row.ops_per_s = about(rate);
        row.wait_ns = row.wait_ns.map(|wait| WaitNs { p50: 123_456.7, p999: 123_456.7, ..wait });
        row.fairness = Fairness { max_min: Some(12_345.6), factor: 0.512 };
        (row.cpu_ns_per_op, row.overhead_ns_per_op) = (Some(12_345.6), Some(12_345.6));
        row.uncontended_ns = (threads == 1).then(|| about(12.34));
        row.floor_ratio = (threads == 1).then(|| about(1.234));
        // One thread hands nothing over.
        row.locality = (threads > 1).then_some(0.123);
        row
    }

    #[test]
    fn without_asking_for_more_a_table_has_a_hundred_columns_at_most() {
        let rows: Vec<Row> = catalog::locks()
            .iter()
            .flat_map(|lock| [row(lock.name, 1, 25_123_456.0), row(lock.name, 128, 93.3)])
            .collect();
        let text = tables(&rows, 128, true, false);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!((80..=100).contains(&widest), "{widest}:\n{text}");
        assert!(tables(&rows, 128, true, true).lines().any(|line| line.chars().count() > 100));
        // Each figure has its own unit.
        assert!(
            text.contains("25.1 M") && text.contains("24.8 – 25.5 M") && text.contains(" 93.3")
        );
        assert!(!text.contains("0.00"), "{text}");
    }

    #[test]
    fn the_ends_of_the_scale_stand_apart() {
        let rows = [row("floor", 1, 9e7), row("mutex", 1, 5e7), row("empty", 1, 1e8)];
        let text = tables(&rows, 2, false, false);
        let parts: Vec<&str> = text.split("1 thread on 2 CPUs").collect();
        assert_eq!(parts.len(), 3, "{text}");
        assert!(parts[1].contains("mutex") && !parts[1].contains("\n floor "), "{text}");
        assert!(parts[2].starts_with(": no lock, to compare with"), "{text}");
        assert!(parts[2].contains("\n floor ") && parts[2].contains("\n empty "), "{text}");
    }
}
