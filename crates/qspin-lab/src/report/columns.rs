//! The figures of a row, as the columns of every table that shows rows: on the terminal, in Markdown and in a
//! page.

use std::collections::BTreeSet;

use qspin_table::{Cell, Columns, fixed};

use super::group::label;
use super::number::{digits, rate, rates};
use crate::row::{Row, WaitNs};

/// The unit of throughput.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// One for a column: how many operations a second it is, and its sign.
    One(f64, &'static str),
    /// That which fits the figure: locks of one table may be five powers of ten apart.
    BySize,
}

/// For figures that stand beside each other, and are not far apart.
pub const THOUSANDS: Unit = Unit::One(1e3, "k");

/// A lock's name as it took part, and whether its run was interrupted; then its figures, those that were
/// counted among them.
#[must_use]
pub fn of_rows<'a>(unit: Unit) -> Columns<'a, Row> {
    figures(Columns::new().text("lock", named), unit, true)
}

/// The same without what was counted.
#[must_use]
pub fn of_rows_uncounted<'a>(unit: Unit) -> Columns<'a, Row> {
    figures(Columns::new().text("lock", named), unit, false)
}

/// The same of several numbers of threads in one table.
#[must_use]
pub fn of_all_rows<'a>(unit: Unit) -> Columns<'a, Row> {
    let name = |row: &Row| {
        let reference = super::family::is_reference(&row.lock).then_some("reference");
        named(row).badge(reference, "")
    };
    let columns = Columns::new().text("lock", name);
    let columns = columns.number("threads", "", |row| f64::from(row.threads));
    figures(columns, unit, true).number("rounds", "", |row| f64::from(row.rounds))
}

/// As it took part, and whether its run was interrupted.
fn named(row: &Row) -> Cell {
    Cell::from(label(row)).badge(row.partial.then_some("partial"), "warn")
}

fn figures<'a>(columns: Columns<'a, Row>, unit: Unit, counted: bool) -> Columns<'a, Row> {
    let sign = match unit {
        Unit::One(_, sign) => sign,
        Unit::BySize => "",
    };
    let throughput = move |row: &Row| match unit {
        Unit::One(one, _) => Cell::from(row.ops_per_s.median / one),
        Unit::BySize => Cell::from(rate(row.ops_per_s.median)).sorted_by(row.ops_per_s.median),
    };
    let wait = |of: fn(&WaitNs) -> f64| move |row: &Row| Some(of(row.wait_ns.as_ref()?) / 1e3);
    let interval = move |row: &Row| {
        let (lo, hi) = (row.ops_per_s.lo, row.ops_per_s.hi);
        let text = match unit {
            Unit::One(one, _) => format!("{} – {}", digits(lo / one), digits(hi / one)),
            Unit::BySize => rates(lo, hi),
        };
        Cell::from(text).sorted_by(lo)
    };
    columns
        .number("ops/s", sign, throughput)
        .number("95 % interval", sign, interval)
        .number("wait p50", "µs", wait(|wait| wait.p50))
        .optional()
        .number("p99", "µs", wait(|wait| wait.p99))
        .optional()
        .spare()
        .number("p99.9", "µs", wait(|wait| wait.p999))
        .optional()
        .number("max", "µs", wait(|wait| wait.max))
        .optional()
        .spare()
        .number("worst\nthread\np99.9", "µs", wait(|wait| wait.worst_thread_p999))
        .optional()
        .spare()
        // One thread shares with none.
        .number("max/min", "", |row| {
            (row.threads > 1).then(|| row.fairness.max_min.unwrap_or(f64::INFINITY))
        })
        .optional()
        .number("fairness\nfactor", "", |row| fixed(row.fairness.factor, 2))
        .spare()
        .number("local\nhand-\novers", "", move |row| row.locality.filter(|_| counted))
        .optional()
        .number("CPU/op", "ns", |row| row.cpu_ns_per_op)
        .optional()
        .number("overhead\n/op", "ns", |row| row.overhead_ns_per_op)
        .optional()
        .spare()
        .number("tight\npair", "ns", |row| row.uncontended_ns.map(|pair| fixed(pair.median, 2)))
        .optional()
        .number("pair /\nfloor", "", |row| row.floor_ratio.map(|ratio| fixed(ratio.median, 2)))
        .optional()
}

/// The numbers of threads of rows, ascending.
pub fn threads<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<u32> {
    rows.into_iter().map(|row| row.threads).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The rows of locks, and those of the ends of the scale, which are no locks.
#[must_use]
pub fn apart(rows: Vec<&Row>) -> (Vec<&Row>, Vec<&Row>) {
    rows.into_iter().partition(|row| !super::family::is_reference(&row.lock))
}

/// What stands above the table of the ends of the scale.
pub const ENDS: &str = "no lock, to compare with";

/// The rows with so many threads, the fastest lock first.
pub fn ranked<'a>(rows: impl IntoIterator<Item = &'a Row>, threads: u32) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = rows.into_iter().filter(|row| row.threads == threads).collect();
    rows.sort_by(|a, b| {
        let (left, right) = (a.ops_per_s.median, b.ops_per_s.median);
        right.total_cmp(&left).then_with(|| label(a).cmp(&label(b)))
    });
    rows
}
