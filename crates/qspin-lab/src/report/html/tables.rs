//! The figures as tables: fairness at a glance, and every row.

use maud::{Markup, html};
use qspin_table::{Cell, Columns, Table, fixed};

use crate::report::columns::{self, ENDS, Unit};
use crate::report::group::{Contender, Group};
use crate::report::number::times;
use crate::row::Row;
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
    let mut columns =
        Columns::<Contender<'_>>::new().text("lock", |contender| contender.name.clone());
    for threads in threads {
        let over = if group.threads_over(threads) { "> CPUs" } else { "" };
        columns = columns.number(&format!("{threads} threads"), over, move |contender| {
            contender.at(threads).map(|row| cell(group, contender, row))
        });
    }
    let mut table = columns.table([]);
    for contender in ranked {
        columns.add_to(&mut table, contender);
        mark(&mut table, contender);
    }
    html! {
        h3 { "Fairness" }
        p.sub {
            "The share of the turns that the busier half of the threads got (0.5 is fair, 1 is \
             starvation), and the busiest thread's turns over the idlest's. Fairest first."
        }
        (table.html("heat", "Fairness"))
    }
}

/// The page's script lights and hides the rows of a lock.
fn mark(table: &mut Table, contender: &Contender<'_>) {
    table.mark(format!("s {}", contender.family.class()), Some(&contender.name));
}

fn cell(group: &Group<'_>, contender: &Contender<'_>, row: &Row) -> Cell {
    let starving = starves(group, contender, row);
    let max_min = row.fairness.max_min.map_or_else(|| "∞".to_owned(), times);
    fixed(row.fairness.factor, 2)
        // 0.5 is fair and has no colour; from 0.9 on it is full.
        .heat(((row.fairness.factor - 0.5) / 0.4).clamp(0.0, 1.0))
        .note(format!("{max_min}×"))
        .badge(starving.as_ref().map(|_| "starves"), "warn")
        .title(starving.map(|starving| starving.how))
}

/// Every row; the script makes the columns sortable.
pub(super) fn raw(group: &Group<'_>) -> Markup {
    let columns = columns::of_all_rows(Unit::BySize);
    let of = |references: bool| {
        let mut table = columns.table([]);
        for contender in group.contenders.iter().filter(|c| c.is_reference() == references) {
            for row in &contender.rows {
                columns.add_to(&mut table, row);
                mark(&mut table, contender);
            }
        }
        table
    };
    let (locks, ends) = (of(false), of(true));
    html! {
        details.raw open="" {
            summary { h3 { "All figures" } }
            (locks.html("sortable", "All figures"))
            @if !ends.is_empty() {
                p.sub { "And with " (ENDS) ":" }
                (ends.html("sortable", ENDS))
            }
        }
    }
}
