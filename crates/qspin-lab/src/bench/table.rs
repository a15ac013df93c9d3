//! The table on the terminal: one a number of threads, the fastest lock first, one unit a column.

use std::fmt::Write;

use qspin_table::number::plural;

use crate::report::columns::{self, THOUSANDS, of_rows, of_rows_uncounted, ranked};
use crate::row::Row;

/// The tables of all numbers of threads; `counted`: with what the locks have counted.
#[must_use]
pub fn tables(rows: &[Row], cpus: u32, counted: bool) -> String {
    let columns = if counted { of_rows(THOUSANDS) } else { of_rows_uncounted(THOUSANDS) };
    let mut out = String::new();
    for threads in columns::threads(rows) {
        let rows = ranked(rows, threads);
        let _ = writeln!(out, "{}\n{}\n", heading(rows[0], cpus), columns.table(rows));
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
