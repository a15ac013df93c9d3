//! The table on the terminal: one a number of threads, the fastest lock first, one unit a column.

use std::fmt::Write;

use comfy_table::presets::ASCII_NO_BORDERS;
use comfy_table::{CellAlignment, LineStyle, Table};

use crate::report::group::label;
use crate::report::number::digits;
use crate::row::{Interval, Row, WaitNs};

/// A column: its heading with the unit, when it is shown, and its value.
struct Column {
    heading: &'static str,
    when: When,
    value: fn(&Row) -> Option<String>,
}

/// When a column is shown, if any row has a value for it.
#[derive(PartialEq, Eq)]
enum When {
    Always,
    /// On a terminal that is wide enough.
    Wide,
    /// Where somebody asked for what the locks count.
    Stats,
}

/// What is shown beside the columns that always are.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// What takes a wide terminal.
    pub wide: bool,
    /// What the locks have counted.
    pub stats: bool,
}

impl Extent {
    fn shows(self, column: &Column) -> bool {
        match column.when {
            When::Always => true,
            When::Wide => self.wide,
            When::Stats => self.stats,
        }
    }
}

/// The narrowest terminal that shows every column.
pub const WIDE: u16 = 118;

const COLUMNS: [Column; 14] = [
    Column {
        heading: "ops/s\nk",
        when: When::Always,
        value: |row| Some(thousands(row.ops_per_s.median)),
    },
    Column {
        heading: "95 % interval\nk",
        when: When::Always,
        value: |row| {
            let Interval { lo, hi, .. } = row.ops_per_s;
            Some(format!("{} – {}", thousands(lo), thousands(hi)))
        },
    },
    Column {
        heading: "wait p50\nµs", when: When::Always, value: |row| wait(row, |wait| wait.p50)
    },
    Column { heading: "p99\nµs", when: When::Wide, value: |row| wait(row, |wait| wait.p99) },
    Column { heading: "p99.9\nµs", when: When::Always, value: |row| wait(row, |wait| wait.p999) },
    Column { heading: "max\nµs", when: When::Wide, value: |row| wait(row, |wait| wait.max) },
    Column {
        heading: "worst\nthread\np99.9 µs",
        when: When::Wide,
        value: |row| wait(row, |wait| wait.worst_thread_p999),
    },
    Column {
        heading: "max/min",
        when: When::Always,
        value: |row| Some(row.fairness.max_min.map_or_else(|| "∞".to_owned(), digits)),
    },
    Column {
        heading: "fairness\nfactor",
        when: When::Wide,
        value: |row| Some(format!("{:.2}", row.fairness.factor)),
    },
    Column {
        heading: "local\nhand-\novers",
        when: When::Stats,
        value: |row| row.locality.map(digits),
    },
    Column {
        heading: "CPU/op\nns",
        when: When::Always,
        value: |row| row.cpu_ns_per_op.map(digits),
    },
    Column {
        heading: "overhead\n/op ns",
        when: When::Wide,
        value: |row| row.overhead_ns_per_op.map(digits),
    },
    Column {
        heading: "tight\npair ns",
        when: When::Always,
        value: |row| row.uncontended_ns.map(|pair| format!("{:.2}", pair.median)),
    },
    Column {
        heading: "pair /\nfloor",
        when: When::Always,
        value: |row| row.floor_ratio.map(|ratio| format!("{:.2}", ratio.median)),
    },
];

fn thousands(per_second: f64) -> String {
    digits(per_second / 1e3)
}

fn wait(row: &Row, value: fn(&WaitNs) -> f64) -> Option<String> {
    row.wait_ns.as_ref().map(|wait| digits(value(wait) / 1e3))
}

/// The tables of all numbers of threads.
#[must_use]
pub fn tables(rows: &[Row], cpus: u32, extent: Extent) -> String {
    let mut threads: Vec<u32> = rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut out = String::new();
    for threads in threads {
        let mut rows: Vec<&Row> = rows.iter().filter(|row| row.threads == threads).collect();
        rows.sort_by(|a, b| b.ops_per_s.median.total_cmp(&a.ops_per_s.median));
        let _ = writeln!(out, "{}\n{}\n", heading(rows[0], cpus), table(&rows, extent));
    }
    out
}

/// `8 threads and 2 hogs on 2 CPUs`.
#[must_use]
pub fn heading(row: &Row, cpus: u32) -> String {
    let threads = match row.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let hogs = match row.hogs {
        0 => String::new(),
        1 => " and 1 hog".to_owned(),
        hogs => format!(" and {hogs} hogs"),
    };
    let cpus = match cpus {
        1 => "1 CPU".to_owned(),
        cpus => format!("{cpus} CPUs"),
    };
    format!("{threads}{hogs} on {cpus}")
}

/// A table without lines between its rows.
#[must_use]
pub fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_NO_BORDERS.row_separator(LineStyle::none()));
    table
}

fn table(rows: &[&Row], extent: Extent) -> Table {
    // A column that no row has a value for is not shown.
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column| extent.shows(column))
        .filter(|column| rows.iter().any(|row| (column.value)(row).is_some()))
        .collect();
    let mut table = plain();
    let headings = columns.iter().map(|column| column.heading);
    table.set_header(["lock"].into_iter().chain(headings));
    for row in rows {
        let values =
            columns.iter().map(|column| (column.value)(row).unwrap_or_else(|| "–".to_owned()));
        table.add_row([label(row)].into_iter().chain(values));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
