//! A judged matrix in Markdown, which is readable on a terminal too: so the documentation shows what
//! the run has printed.

use std::collections::BTreeSet;

use qspin_table::number::{digits, duration, list, plural};
use qspin_table::{Cell, Columns, fixed};

use crate::bench::load::words;
use crate::compare::{Outcome, too_few};
use crate::row::Row;

use super::{Compared, Figure, Matrix, Place, geometric_mean, max_min, worst_wait};

/// What the judged lock was meant to keep, as the tables name what goes beyond it: operations of the
/// busiest thread over the idlest's.
const MAX_MIN: f64 = 1.5;
/// The worst wait, and the CPU time an operation, over the least of the yardsticks.
const OVER_THE_LEAST: f64 = 1.1;
/// Throughput over the fastest of all contenders.
const TO_THE_BEST: f64 = 0.85;

/// Everything.
#[must_use]
pub fn markdown(matrix: &Matrix<'_>) -> String {
    let mut out = ratios(matrix);
    out += &everybody(matrix);
    out += &fairness(matrix);
    out += &cpu(matrix);
    out += &throughputs(matrix);
    out
}

/// The judged lock against the yardsticks.
fn ratios(matrix: &Matrix<'_>) -> String {
    let subject = matrix.subject;
    let yardsticks: Vec<String> = matrix.yardsticks.iter().map(|name| quoted(name)).collect();
    let rounds = matrix.rounds();
    let mut out = format!(
        "## `{subject}` against the best of {}\n\n\
         Throughput over that of the fastest of these in the cell, median of {}; ≈ no clear \
         difference, ▼ clearly less.\n\n",
        list(&yardsticks, "and"),
        plural(f64::from(rounds), "round"),
    );
    out += &by_threads(matrix, &|place| {
        let compared = matrix.compared(place)?.to_it;
        let shown = format!("{} {:.2}", compared.outcome.mark(), compared.ratio.median);
        Some(shown.trim_start().to_owned())
    });
    let compared: Vec<_> =
        matrix.places.iter().filter_map(|place| Some((place, matrix.compared(place)?))).collect();
    let count = |outcome| compared.iter().filter(|(_, one)| one.to_it.outcome == outcome).count();
    let medians: Vec<f64> = compared.iter().map(|(_, one)| one.to_it.ratio.median).collect();
    let worst = compared
        .iter()
        .min_by(|(_, one), (_, other)| one.to_it.ratio.median.total_cmp(&other.to_it.ratio.median));
    if let (Some(mean), Some((place, worst))) = (geometric_mean(&medians), worst) {
        out += &format!(
            "\n{}: {}, {}, {}; geometric mean {mean:.2}, worst {:.2} ({}, behind {}).\n",
            plural(compared.len() as f64, "cell"),
            plural_of(count(Outcome::Better), "win", "wins"),
            plural_of(count(Outcome::Level), "tie", "ties"),
            plural_of(count(Outcome::Worse), "loss", "losses"),
            worst.to_it.ratio.median,
            name(place),
            quoted(worst.leader),
        );
    }
    if let Some(too_few) = too_few(rounds as usize, "for an interval") {
        out += &format!("\n{too_few}\n");
    }
    let losses: Vec<_> =
        compared.iter().filter(|(_, one)| one.to_it.outcome == Outcome::Worse).collect();
    if !losses.is_empty() {
        let lost = Columns::<(&Place, Compared)>::new()
            .text("lost cell", |(place, _)| name(place))
            .text("to", |(_, one)| Cell::name(one.leader))
            .number("ratio", "", |(_, one)| fixed(one.to_it.ratio.median, 3))
            .number("95 % interval", "", |(_, one)| {
                format!("{:.3} – {:.3}", one.to_it.ratio.lo, one.to_it.ratio.hi)
            })
            .table(losses);
        out += &format!("\n{}", lost.markdown());
    }
    out
}

/// All contenders against the fastest of each cell.
fn everybody(matrix: &Matrix<'_>) -> String {
    let mut lines: Vec<(f64, f64, &str, String)> = Vec::new();
    for lock in matrix.locks() {
        let ratios: Vec<(&Place, &str, f64)> = matrix
            .places
            .iter()
            .filter_map(|place| {
                let (leader, ratio) = place.to_the_best(lock)?;
                Some((place, leader, ratio))
            })
            .collect();
        let values: Vec<f64> = ratios.iter().map(|(_, _, ratio)| *ratio).collect();
        let worst = ratios.iter().min_by(|(_, _, one), (_, _, other)| one.total_cmp(other));
        if let (Some(mean), Some((place, leader, least))) = (geometric_mean(&values), worst) {
            let at = format!("{}: {}", name(place), quoted(leader));
            lines.push((mean, *least, lock, at));
        }
    }
    lines.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let all = Columns::<(f64, f64, &str, String)>::new()
        .text("lock", |(_, _, lock, _)| Cell::name(lock))
        .number("geometric mean", "", |(mean, ..)| fixed(*mean, 3))
        .number("worst", "", |(_, worst, ..)| ratio(*worst))
        .text("there the fastest is", |(.., at)| Cell::with_names(at.clone()))
        .table(&lines)
        .markdown();
    let mut out = format!(
        "\n## Everybody against the best of each cell\n\n\
         Throughput over that of the fastest contender of the cell, which is 1.\n\n{all}"
    );
    let far = matrix.places.iter().filter_map(|place| {
        let (leader, behind) = place.to_the_best(matrix.subject)?;
        (behind < TO_THE_BEST).then_some((place, leader, behind))
    });
    let far: Vec<_> = far.collect();
    if !far.is_empty() {
        let table = Columns::<(&Place, &str, f64)>::new()
            .text("cell", |(place, ..)| name(place))
            .text("fastest", |(_, leader, _)| Cell::name(leader))
            .number("ratio", "", |(.., behind)| ratio(*behind))
            .table(&far)
            .markdown();
        out += &format!(
            "\nCells in which `{}` is below {TO_THE_BEST} of the fastest:\n\n{table}",
            matrix.subject
        );
    }
    out
}

fn fairness(matrix: &Matrix<'_>) -> String {
    let subject = matrix.subject;
    let of_subject = matrix.places.iter().filter_map(|place| place.row(subject));
    let Some(seconds) = of_subject.clone().find_map(|row| row.fairness_s) else {
        return String::new();
    };
    let mut out = format!(
        "\n## How evenly `{subject}` is shared\n\n\
         Operations of the busiest thread over those of the idlest, in one run of {}.\n\n",
        duration(seconds * 1e9)
    );
    out += &by_threads(matrix, &|place| place.row(subject).and_then(max_min).map(ratio));
    out += &beyond(
        matrix,
        &format!("above {MAX_MIN}"),
        &|place| {
            let found = place.row(subject).and_then(max_min).filter(|ratio| *ratio > MAX_MIN)?;
            let theirs = matrix
                .yardsticks_at(place)
                .filter_map(|row| Some(format!("{} {}", quoted(&row.lock), ratio(max_min(row)?))));
            Some([ratio(found), theirs.collect::<Vec<_>>().join(", ")])
        },
        ["max/min", "theirs"],
    );
    let classes: &[(Option<&str>, &str)] = if of_subject.clone().any(|row| row.workload == "rw") {
        &[(Some("read"), "readers'"), (Some("write"), "writers'")]
    } else {
        &[(None, "thread's")]
    };
    for (class, whose) in classes {
        let wait = |row: &Row| worst_wait(row, *class);
        out += &format!(
            "\nThe worst {whose} 99.9th percentile of waits, ms (waits in progress count with their \
             age); behind the stroke, over the least of the yardsticks.\n\n"
        );
        out += &by_threads(matrix, &|place| {
            let own = wait(place.row(subject)?)?;
            let over = matrix.over_the_least(place, &wait).map(|(_, over, _)| over);
            let over = over.map(|over| format!(" / {}", ratio(over))).unwrap_or_default();
            Some(format!("{}{over}", digits(own / 1e6)))
        });
        out += &beyond_the_least(matrix, &wait);
    }
    out
}

fn cpu(matrix: &Matrix<'_>) -> String {
    let mut out =
        "\n## CPU time an operation\n\nOf all threads, ns; medians of the rounds.\n\n".to_owned();
    out += &by_lock(matrix, &|row| row.cpu_ns_per_op);
    out += &beyond_the_least(matrix, &|row| row.cpu_ns_per_op);
    out
}

fn throughputs(matrix: &Matrix<'_>) -> String {
    let mut out =
        "\n## Throughput\n\nThousand operations a second; medians of the rounds.\n\n".to_owned();
    out += &by_lock(matrix, &|row| Some(row.ops_per_s.median / 1e3));
    out
}

/// The cells in which the judged lock needs more than the least of the yardsticks, by more than what
/// it was meant to keep.
fn beyond_the_least(matrix: &Matrix<'_>, figure: &Figure<'_>) -> String {
    beyond(
        matrix,
        &format!("more than {OVER_THE_LEAST} times the least of the yardsticks"),
        &|place| {
            let (_, over, least) = matrix.over_the_least(place, figure)?;
            (over > OVER_THE_LEAST).then(|| [ratio(over), quoted(least)])
        },
        ["ratio", "least"],
    )
}

/// A list of the cells for which `say` says something, or a sentence that there is none.
fn beyond(
    matrix: &Matrix<'_>,
    what: &str,
    say: &dyn Fn(&Place) -> Option<[String; 2]>,
    headings: [&str; 2],
) -> String {
    let said = matrix.places.iter().filter_map(|place| Some((name(place), say(place)?)));
    let said: Vec<(String, [String; 2])> = said.collect();
    let count = said.len();
    if count == 0 {
        return format!("\nNo cell is {what}.\n");
    }
    let table = Columns::<(String, [String; 2])>::new()
        .text("cell", |(name, _)| name.clone())
        .number(headings[0], "", |(_, [figure, _])| figure.clone())
        .text(headings[1], |(_, [_, beside])| Cell::with_names(beside.clone()))
        .table(&said)
        .markdown();
    let are = if count == 1 { "is" } else { "are" };
    format!("\n{} {are} {what}:\n\n{table}", plural(count as f64, "cell"))
}

/// A line a load, a column a number of threads.
fn by_threads(matrix: &Matrix<'_>, value: &dyn Fn(&Place) -> Option<String>) -> String {
    let mut loads: Vec<String> = Vec::new();
    for place in &matrix.places {
        let load = words::load(place.rows[0]);
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    let mut columns =
        Columns::<String>::new().text("critical, outside / threads", |load| load.clone());
    let threads: BTreeSet<u32> = matrix.places.iter().map(Place::threads).collect();
    for threads in threads {
        columns = columns.number(&threads.to_string(), "", move |named: &String| {
            let here =
                |place: &&Place| place.threads() == threads && words::load(place.rows[0]) == *named;
            matrix.places.iter().find(here).and_then(value)
        });
    }
    columns.table(&loads).markdown()
}

/// A line a cell, a column a lock.
fn by_lock(matrix: &Matrix<'_>, value: &Figure<'_>) -> String {
    let mut columns = Columns::<Place>::new().text("cell", |place| name(place));
    for lock in matrix.locks() {
        columns = columns.number(lock, "", move |place| value(place.row(lock)?));
    }
    columns.table(&matrix.places).markdown()
}

/// `1 µs, 2 µs; 8 threads`.
fn name(place: &Place) -> String {
    words::cell(place.rows[0])
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}

fn ratio(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "∞".to_owned(),
        _ if value >= 9.995 => format!("{value:.0}"),
        _ if value < 0.1 => digits(value),
        _ => format!("{value:.2}"),
    }
}

fn plural_of(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::*;

    #[test]
    fn losses_are_named_and_counted() {
        let locks = [
            ("yield", [800; 6]),
            ("std", [1000; 6]),
            ("parking_lot", [500; 6]),
            ("tas", [1600; 6]),
        ];
        let text = with(&locks, markdown);
        assert!(
            text.contains("22 cells: 0 wins, 0 ties, 22 losses; geometric mean 0.80"),
            "{text}"
        );
        assert!(text.contains("| 10 µs, 20 µs; 4 threads"), "{text}");
        assert!(text.contains("▼ 0.80") && text.contains("below 0.85 of the fastest"), "{text}");
        assert!(text.contains("max/min") && text.contains("22 cells are more than 1.1"), "{text}");
        let table = |line: &&str| line.starts_with('|');
        assert!(text.lines().filter(table).all(|line| line.ends_with('|')), "{text}");
    }

    #[test]
    fn a_lock_that_wins_loses_no_cell() {
        let locks = [("yield", [2000; 6]), ("std", [1000; 6]), ("parking_lot", [500; 6])];
        let text = with(&locks, markdown);
        assert!(text.contains("22 wins, 0 ties, 0 losses; geometric mean 2.00"), "{text}");
        assert!(!text.contains("lost cell") && text.contains("No cell is more than 1.1"), "{text}");
    }

    #[test]
    fn what_stands_around_the_threads_is_in_the_name_of_the_cell() {
        use super::super::cells::{Kind, Limits};
        use crate::verdict::tests::row;
        let pace = crate::bench::busy::Pace::calibrate();
        let names = |kind: Kind| -> Vec<String> {
            let (settings, scenes) = kind.scenes(&Limits::default(), pace, 1);
            let named = scenes.iter().map(|scene| {
                let setting = &settings[scene.setting];
                words::load(&Row {
                    params: setting.params.clone(),
                    critical_ns: setting.critical_ns,
                    outside_ns: setting.outside_ns,
                    hogs: scene.hogs as u32,
                    ..row("yield", 8, 1e6)
                })
            });
            named.collect()
        };
        let expected = [
            "0, 100 ns, 2 hogs inside",
            "0, 100 ns, 2 hogs outside",
            "0, 100 ns, 4 hogs inside",
            "0, 100 ns, 4 hogs outside",
            "0, 100 ns, quota of 0.5 CPUs",
            "0, 100 ns, quota of 1 CPU",
            "0, 100 ns, 1 holder in 64 sleeps",
            "0, 100 ns, 1 holder in 64 yields",
        ];
        assert_eq!(names(Kind::Disturbed)[..8], expected);
        assert_eq!(names(Kind::Rwlock)[1], "99:1, 0, 0");
    }
}
