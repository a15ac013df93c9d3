//! Regrets in lines and tables.

use qspin_table::number::plural;
use qspin_table::{Cell as Shown, Columns, Table, fixed};
use serde_json::Value;

use crate::bench::load::words;

use super::regret::{Cell, Of, Summary, locks, summary};
use super::{AGAIN, ROUNDS_AGAIN, TWIN};

/// So many cells are named.
const WORST: usize = 10;

/// How a ratio reads.
pub fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "∞".to_owned() }
}

/// A cell in words: `8 threads, 1 µs, 2 µs, tailed`; and the machine, where that was drawn, too.
pub fn name(cell: &Cell<'_>) -> String {
    let row = cell.rows[0];
    let machine = row.params.get("machine").and_then(Value::as_str);
    let machine = machine.map_or_else(String::new, |machine| format!("; {machine}"));
    format!("{}, {}{machine}", plural(f64::from(row.threads), "thread"), words::load(row))
}

/// Each contender with its regret, in the order of the rows; the best of the oracle has a star.
pub fn regrets(cell: &Cell<'_>, oracle: &[&str]) -> String {
    let best = cell.best(oracle).map(|row| row.lock.as_str());
    let one = |lock: &str| {
        let regret =
            cell.regret(lock, Of::Throughput, oracle).map_or_else(|| "–".to_owned(), ratio);
        format!("{lock} {regret}{}", if best == Some(lock) { "*" } else { "" })
    };
    cell.rows.iter().map(|row| one(&row.lock)).collect::<Vec<_>>().join("  ")
}

/// A part of what is shown.
pub enum Part {
    /// A heading.
    Heading(String),
    /// A sentence.
    Words(String),
    /// A table, and what it is of.
    Table(String, Table),
}

/// Everything as Markdown.
pub fn markdown(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        out += &match part {
            Part::Heading(text) => format!("## {text}\n\n"),
            Part::Words(text) => format!("{text}\n\n"),
            Part::Table(what, table) => format!("{what}\n\n{}\n", table.markdown()),
        };
    }
    out
}

/// The cells without disturbance and those with one, each with its name; none that is empty.
pub fn apart<'a>(cells: &[Cell<'a>]) -> Vec<(String, Vec<Cell<'a>>)> {
    let named = [(false, "Quiet"), (true, "Disturbed")].map(|(disturbed, name)| {
        let some = cells.iter().filter(|cell| cell.is_disturbed() == disturbed).cloned();
        let some: Vec<Cell<'a>> = some.collect();
        (format!("{name}: {}", plural(some.len() as f64, "cell")), some)
    });
    named.into_iter().filter(|(_, some)| !some.is_empty()).collect()
}

/// All tables: of the quiet cells, of the disturbed ones, and the worst cells of each lock of `named`.
pub fn parts(cells: &[Cell<'_>], oracle: &[&str], named: &[&str]) -> Vec<Part> {
    let mut parts = Vec::new();
    for (name, some) in apart(cells) {
        parts.push(Part::Heading(name));
        for (of, what) in [
            (Of::Throughput, "Regret: throughput of the cell's best over that of the lock"),
            (Of::CpuTime, "CPU time an operation, over the least of the cell"),
            (Of::Wait, "The worst thread's p99.9 of waits, over the least of the cell"),
        ] {
            let lines = ranked(&some, of, oracle);
            // What is simulated has no CPU time and no percentiles.
            if !lines.is_empty() {
                parts.push(Part::Table(what.to_owned(), table(&lines)));
            }
        }
    }
    for lock in named {
        parts.push(Part::Table(format!("The worst cells of `{lock}`"), worst(cells, lock, oracle)));
    }
    parts.extend(control(cells, oracle).map(Part::Words));
    let again = cells.iter().filter(|cell| cell.repeated).count();
    if again > 0 {
        let were = if again == 1 { "was" } else { "were" };
        parts.push(Part::Words(format!(
            "{} had a regret above {AGAIN:.2} and {were} measured again in {ROUNDS_AGAIN} rounds by a fresh \
             process: only that counts.",
            plural(again as f64, "cell")
        )));
    }
    parts
}

/// The locks, the least geometric mean first.
pub fn ranked<'a>(cells: &[Cell<'a>], of: Of, oracle: &[&str]) -> Vec<(&'a str, Summary)> {
    let found = |lock: &str| {
        let all = cells.iter().filter_map(|cell| cell.regret(lock, of, oracle));
        summary(&all.collect::<Vec<f64>>())
    };
    let mut lines: Vec<(&str, Summary)> =
        locks(cells).into_iter().filter_map(|lock| Some((lock, found(lock)?))).collect();
    lines.sort_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean));
    lines
}

/// A line a lock, the best first.
fn table(lines: &[(&str, Summary)]) -> Table {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    Columns::<(&str, Summary)>::new()
        .text("lock", |(lock, _)| Shown::name(lock))
        .number("geometric mean", "", |(_, it)| fixed(it.mean, 3))
        .number("p90", "", |(_, it)| ratio(it.p90))
        .number("worst", "", |(_, it)| ratio(it.worst))
        .number("within 5 %", "", move |(_, it)| percent(it.within_5))
        .number("within 10 %", "", move |(_, it)| percent(it.within_10))
        .table(lines)
}

/// The cells in which a lock has the largest regret.
fn worst(cells: &[Cell<'_>], lock: &str, oracle: &[&str]) -> Table {
    let mut worst: Vec<(&Cell<'_>, f64)> = cells
        .iter()
        .filter_map(|cell| Some((cell, cell.regret(lock, Of::Throughput, oracle)?)))
        .collect();
    worst.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    worst.truncate(WORST);
    let rival = |cell: &Cell<'_>| {
        cell.rival(lock, oracle).map_or_else(String::new, |(row, _)| row.lock.clone())
    };
    let several = cells.iter().any(|cell| cell.seed != cells[0].seed);
    let number = move |cell: &Cell<'_>| {
        if several { format!("{}/{}", cell.seed, cell.number) } else { cell.number.to_string() }
    };
    Columns::<(&Cell<'_>, f64)>::new()
        .text("cell", move |(cell, _)| number(cell))
        .text("load", |(cell, _)| name(cell))
        .number("regret", "", |(_, regret)| ratio(*regret))
        .text("best", move |(cell, _)| Shown::name(&rival(cell)))
        .table(&worst)
}

/// The lock that ran twice, and the name of its second run.
pub fn twins<'a>(cells: &[Cell<'a>]) -> Option<(&'a str, &'a str)> {
    let twin = locks(cells).into_iter().find(|lock| lock.ends_with(TWIN))?;
    Some((twin.trim_end_matches(TWIN), twin))
}

/// What the lock that ran twice shows: how far apart the same lock is from itself.
fn control(cells: &[Cell<'_>], oracle: &[&str]) -> Option<String> {
    let (lock, twin) = twins(cells)?;
    let apart: Vec<f64> = cells
        .iter()
        .filter_map(|cell| {
            let own = cell.regret(lock, Of::Throughput, oracle)?;
            let other = cell.regret(twin, Of::Throughput, oracle)?;
            let apart = (own / other).max(other / own);
            // Both may have done nothing.
            Some(if apart.is_nan() { 1.0 } else { apart })
        })
        .collect();
    let found = summary(&apart)?;
    Some(format!(
        "Noise: `{twin}` is `{lock}` once more. In a cell the two are {} apart in geometric mean, in nine of \
         ten cells at most {}, at worst {}.",
        ratio(found.mean),
        ratio(found.p90),
        ratio(found.worst)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::regret::cells;
    use super::super::regret::tests::drawn;
    use super::*;
    use crate::row::Row;

    #[test]
    fn tables_are_apart_and_the_control_says_what_is_noise() {
        let mut rows: Vec<Row> = Vec::new();
        for number in 1..=5 {
            rows.push(drawn(number, "mutex", 1e6, false));
            rows.push(drawn(number, "mutex-twin", 1.25e6, false));
            rows.push(drawn(number, "std", 2e6, number == 5));
        }
        rows.extend(["mutex", "mutex-twin"].map(|lock| drawn(5, lock, 1e6, true)));
        let cells = cells(&rows);
        let text = markdown(&parts(&cells, &["mutex", "std"], &["mutex"]));
        assert!(
            text.contains("## Quiet: 4 cells") && text.contains("## Disturbed: 1 cell"),
            "{text}"
        );
        assert!(text.contains("`mutex-twin` is `mutex` once more"), "{text}");
        assert!(text.contains("1 cell had a regret above 1.10"), "{text}");
        assert!(text.contains("at worst 1.25"), "{text}");
        assert_eq!(regrets(&cells[0], &["mutex", "std"]), "mutex 2.00  mutex-twin 1.60  std 1.00*");
    }
}
