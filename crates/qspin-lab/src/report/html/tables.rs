//! The figures as tables: fairness at a glance, and every row.

use maud::{Markup, html};

use crate::report::group::{Contender, Group};
use crate::report::number::{digits, times};
use crate::row::{Fairness, Row};
use crate::verdict::starves;

/// Fairness of each lock at each number of threads; the worst is last.
pub(super) fn fairness(group: &Group<'_>) -> Markup {
    let threads: Vec<u32> = group.threads().into_iter().filter(|t| *t > 1).collect();
    if threads.is_empty() {
        return html! {};
    }
    let worst = |contender: &Contender<'_>| {
        let rows = contender.rows.iter().filter(|row| row.threads > 1);
        rows.map(|row| row.fairness.factor).fold(0.0, f64::max)
    };
    let mut ranked: Vec<&Contender<'_>> = group
        .contenders
        .iter()
        .filter(|contender| !contender.is_reference() && worst(contender) > 0.0)
        .collect();
    ranked.sort_by(|a, b| worst(a).total_cmp(&worst(b)).then_with(|| a.name.cmp(&b.name)));
    html! {
        h3 { "Fairness" }
        p.sub {
            "The share of the turns that the busier half of the threads got (0.5 is fair, 1 is \
             starvation), and the busiest thread's turns over the idlest's. Fairest first."
        }
        div.scroll tabindex="0" role="region" aria-label="Fairness" {
            table.heat {
                thead {
                    tr {
                        th scope="col" { "lock" }
                        @for count in &threads {
                            th scope="col" {
                                (count) " threads"
                                @if group.threads_over(*count) { span.sub { " > CPUs" } }
                            }
                        }
                    }
                }
                tbody {
                    @for contender in ranked {
                        tr.s.(contender.family.class()) data-lock=(contender.name) {
                            th scope="row" { (contender.name) }
                            @for count in &threads {
                                (cell(group, contender, contender.at(*count)))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(group: &Group<'_>, contender: &Contender<'_>, row: Option<&Row>) -> Markup {
    let Some(row) = row else {
        return html! { td.none { "–" } };
    };
    let Fairness { max_min, factor } = row.fairness;
    // 0.5 is fair and has no colour; from 0.9 on it is full.
    let heat = ((factor - 0.5) / 0.4).clamp(0.0, 1.0);
    let starving = starves(group, contender, row);
    html! {
        td style={ "--heat:" (digits(heat)) } title=[starving.as_ref().map(|s| s.how.clone())] {
            span.factor { (format!("{factor:.2}")) }
            span.ratio { (max_min.map_or_else(|| "∞".to_owned(), times)) "×" }
            @if starving.is_some() { span.badge.warn { "starves" } }
        }
    }
}

struct Column {
    name: &'static str,
    unit: &'static str,
    value: fn(&Row) -> Option<f64>,
}

const fn column(name: &'static str, unit: &'static str, value: fn(&Row) -> Option<f64>) -> Column {
    Column { name, unit, value }
}

/// One unit a column, so that a column can be read downwards.
const COLUMNS: [Column; 16] = [
    column("operations", "M/s", |row| Some(row.ops_per_s.median / 1e6)),
    column("low", "M/s", |row| Some(row.ops_per_s.lo / 1e6)),
    column("high", "M/s", |row| Some(row.ops_per_s.hi / 1e6)),
    column("wait p50", "µs", |row| Some(row.wait_ns?.p50 / 1e3)),
    column("p99", "µs", |row| Some(row.wait_ns?.p99 / 1e3)),
    column("p99.9", "µs", |row| Some(row.wait_ns?.p999 / 1e3)),
    column("longest", "µs", |row| Some(row.wait_ns?.max / 1e3)),
    column("unluckiest p99.9", "µs", |row| Some(row.wait_ns?.worst_thread_p999 / 1e3)),
    column("max/min", "×", |row| Some(row.fairness.max_min.unwrap_or(f64::INFINITY))),
    column("factor", "share", |row| Some(row.fairness.factor)),
    column("local hand-overs", "share", |row| row.locality),
    column("CPU time", "ns/op", |row| row.cpu_ns_per_op),
    column("overhead", "ns/op", |row| row.overhead_ns_per_op),
    column("uncontended", "ns", |row| Some(row.uncontended_ns?.median)),
    column("over floor", "×", |row| Some(row.floor_ratio?.median)),
    column("rounds", "", |row| Some(f64::from(row.rounds))),
];

/// Every row; the script makes the columns sortable.
pub(super) fn raw(group: &Group<'_>) -> Markup {
    html! {
        details.raw open="" {
            summary { h3 { "All figures" } }
            @let columns: Vec<&Column> = COLUMNS
                .iter()
                .filter(|column| group.rows().any(|row| (column.value)(row).is_some()))
                .collect();
            div.scroll tabindex="0" role="region" aria-label="All figures" {
                table.sortable {
                    thead {
                        tr {
                            th scope="col" { "lock" }
                            th scope="col" { "threads" }
                            @for column in &columns {
                                th scope="col" { (column.name) span.unit { (column.unit) } }
                            }
                        }
                    }
                    tbody {
                        @for contender in &group.contenders {
                            @for row in &contender.rows {
                                tr.s.(contender.family.class()) data-lock=(contender.name) {
                                    th scope="row" {
                                        (contender.name)
                                        @if row.partial { span.badge.warn { "partial" } }
                                        @if contender.is_reference() { span.badge { "reference" } }
                                    }
                                    td data-v=(row.threads) { (row.threads) }
                                    @for column in &columns { (number((column.value)(row))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn number(value: Option<f64>) -> Markup {
    html! {
        @match value {
            None => { td.none { "–" } }
            Some(value) if value.is_infinite() => { td data-v="Infinity" { "∞" } }
            Some(value) => { td data-v=(value) { (digits(value)) } }
        }
    }
}
