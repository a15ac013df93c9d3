//! The table of a series: a line a contender, each compared with the line that it builds on and
//! with the first, a column a number of threads; and below it in words what followed.

use std::ptr;

use qspin_table::number::{digits, list, plural, times};
use qspin_table::{Cell, Columns, Table};

use crate::compare::{Comparison, Outcome, SMALLEST, compare, too_few};
use crate::report::columns;
use crate::row::{Interval, Row};

/// A line of the table.
#[derive(Debug)]
pub struct Line<'a> {
    /// What stands in front.
    pub label: String,
    /// Where the line stands that it builds on; none for the first and for references.
    pub base: Option<usize>,
    /// Whether it only shows where others stand.
    pub reference: bool,
    /// Its rows, ascending by threads.
    pub rows: Vec<&'a Row>,
}

impl Line<'_> {
    fn at(&self, threads: u32) -> Option<&Row> {
        self.rows.iter().copied().find(|row| row.threads == threads)
    }
}

/// How a line came out against another at a number of threads.
fn compared(lines: &[Line<'_>], line: usize, with: usize, threads: u32) -> Option<Comparison> {
    Some(compare(lines[line].at(threads)?, lines[with].at(threads)?))
}

/// The place of the first line that is no reference.
fn first(lines: &[Line<'_>]) -> Option<usize> {
    lines.iter().position(|line| !line.reference)
}

/// The table, its legend, and what followed in words; `starving` are the rows in which threads
/// starve.
#[must_use]
pub fn show(title: &str, lines: &[Line<'_>], starving: &[&Row]) -> String {
    let threads = columns::threads(lines.iter().flat_map(|line| line.rows.iter().copied()));
    let legend = format!(
        "k ops/s with its 95 % interval; / base: over the line that it builds on, / first: over the \
         first.\n≈ no clear difference, round by round: the 95 % interval of the ratio touches 1, or the ratio \
         is less than {SMALLEST} from it.\n"
    );
    format!("{}\n\n{legend}\n{}\n", table(title, lines, &threads), words(lines, &threads, starving))
}

fn table(title: &str, lines: &[Line<'_>], threads: &[u32]) -> Table {
    let first = first(lines);
    let mut columns = Columns::<usize>::new().text(title, |&index| lines[index].label.clone());
    for &threads in threads {
        let at = move |index: usize| lines[index].at(threads);
        let thousands = |ops: f64| digits(ops / 1e3);
        let interval = move |&index: &usize| {
            let Interval { lo, hi, .. } = at(index)?.ops_per_s;
            Some(format!("{}–{}", thousands(lo), thousands(hi)))
        };
        let ratio = move |index: usize, with: Option<usize>| {
            Some(show_ratio(compared(lines, index, with?, threads)?))
        };
        let to_first = move |&index: &usize| {
            ratio(index, first.filter(|first| !lines[index].reference && *first != index))
        };
        columns = columns
            .number(&plural(f64::from(threads), "thread"), "k ops/s", move |&index| {
                at(index).map(|row| thousands(row.ops_per_s.median))
            })
            .number("95 %\ninterval", "", interval)
            .number("/ base", "", move |&index| ratio(index, lines[index].base))
            .number("/ first", "", to_first)
            .number("local", "", move |&index| Cell::from(at(index).and_then(|row| row.locality)))
            .optional();
    }
    columns.table(&(0..lines.len()).collect::<Vec<_>>())
}

fn show_ratio(Comparison { ratio, outcome }: Comparison) -> String {
    match outcome {
        _ if !ratio.median.is_finite() => "?".to_owned(),
        _ if outcome.is_clear() => format!("{:.2}", ratio.median),
        _ => format!("{:.2} {}", ratio.median, outcome.mark()),
    }
}

/// Which lines gained, lost, or made no clear difference, a sentence a number of threads.
fn words(lines: &[Line<'_>], threads: &[u32], starving: &[&Row]) -> String {
    let rounds = lines.iter().flat_map(|line| &line.rows).map(|row| row.rounds).min().unwrap_or(0);
    if let Some(too_few) = too_few(rounds as usize, "to tell the lines apart (?)") {
        return too_few;
    }
    let sentences = threads.iter().map(|&threads| sentence(lines, threads, starving));
    sentences.collect::<Vec<_>>().join("\n")
}

fn sentence(lines: &[Line<'_>], threads: u32, starving: &[&Row]) -> String {
    let with = |wanted: Outcome| -> Vec<String> {
        let compared = lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| Some((line, compared(lines, index, line.base?, threads)?)));
        compared
            .filter(|(_, compared)| compared.outcome == wanted)
            .map(|(line, compared)| match wanted {
                Outcome::Level => number(&line.label).to_owned(),
                _ => format!("{} ({})", line.label, times(compared.ratio.median)),
            })
            .collect()
    };
    let mut parts = Vec::new();
    for (outcome, what) in [
        (Outcome::Better, "gained"),
        (Outcome::Worse, "lost"),
        (Outcome::Level, "made no clear difference"),
    ] {
        let names = with(outcome);
        if !names.is_empty() {
            parts.push(format!("{} {what}", list(&names, "and")));
        }
    }
    if let (Some(first), Some(last)) = (first(lines), lines.len().checked_sub(1))
        && first < last
        && let Some(compared) = compared(lines, last, first, threads)
    {
        parts.push(format!("the last line does {} times the first", times(compared.ratio.median)));
    }
    let unfair: Vec<String> = lines
        .iter()
        .filter(|line| {
            line.at(threads).is_some_and(|own| starving.iter().any(|row| ptr::eq(*row, own)))
        })
        .map(|line| number(&line.label).to_owned())
        .collect();
    if !unfair.is_empty() {
        let verb = if unfair.len() == 1 { "starves" } else { "starve" };
        parts.push(format!("{} {verb} threads", list(&unfair, "and")));
    }
    if parts.is_empty() {
        parts.push("nothing to compare".to_owned());
    }
    format!("With {}: {}.", plural(f64::from(threads), "thread"), parts.join("; "))
}

/// The number of a label that begins with one, else the label: what made no difference needs no
/// more words.
fn number(label: &str) -> &str {
    let first = label.split(' ').next().unwrap_or(label);
    if first.starts_with(|c: char| c.is_ascii_digit()) { first } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::row;

    fn lines(rows: &[Row]) -> Vec<Line<'_>> {
        rows.iter()
            .enumerate()
            .map(|(index, row)| Line {
                label: row.lock.clone(),
                base: index.checked_sub(1).filter(|&base| base > 0),
                reference: index == 0,
                rows: vec![row],
            })
            .collect()
    }

    #[test]
    fn each_line_is_compared_with_its_base_and_with_the_first_that_is_no_reference() {
        let rows = [row("std", 8, 9e6), row("a", 8, 1e6), row("b", 8, 2e6), row("c", 8, 2.01e6)];
        let shown = show("step", &lines(&rows), &[]);
        let cells = |label: &str| -> Vec<String> {
            let line = shown.lines().find(|line| line.trim_start().starts_with(label)).unwrap();
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        assert_eq!(cells("std ")[3..], ["–", "–"]);
        assert_eq!(cells("a ")[1..], ["1000", "990–1010", "–", "–"]);
        assert_eq!(cells("b ")[3..], ["2.00", "2.00"]);
        assert_eq!(cells("c ")[3..], ["1.00 ≈", "2.01"]);
        assert!(shown.contains("With 8 threads: b (2.0) gained; c made no clear difference; "));
        assert!(shown.contains("; the last line does 2.0 times the first."), "{shown}");
    }

    #[test]
    fn how_local_hand_overs_are_stands_beside_the_lines_that_count_them() {
        let cna = Row { locality: Some(0.875), ..row("cna", 8, 2e6) };
        let rows = [row("std", 8, 9e6), row("native", 8, 1e6), cna];
        let shown = show("step", &lines(&rows), &[]);
        let last = |label: &str| {
            let line = shown.lines().find(|line| line.trim_start().starts_with(label)).unwrap();
            line.rsplit('|').next().unwrap().trim().to_owned()
        };
        assert_eq!([last("native"), last("cna"), last("std")], ["–", "0.875", "–"]);
        assert!(shown.contains("| local"), "{shown}");
        assert!(!show("step", &lines(&rows[..2]), &[]).contains("local"));
    }

    #[test]
    fn a_line_that_starves_threads_is_named_whatever_it_gained() {
        let rows = [row("std", 8, 9e6), row("a", 8, 1e6), row("b", 8, 2e6)];
        let shown = show("step", &lines(&rows), &[&rows[2]]);
        assert!(shown.contains("b (2.0) gained; "), "{shown}");
        assert!(shown.contains("; b starves threads."), "{shown}");
    }

    #[test]
    fn what_made_no_difference_is_told_by_number_where_it_has_one() {
        assert_eq!(
            ["6' adaptive: neighbour", "10 culled", "a lock"].map(number),
            ["6'", "10", "a lock"]
        );
    }

    #[test]
    fn a_loss_is_told_and_so_are_too_few_rounds() {
        let mut rows = [row("std", 2, 9e6), row("a", 2, 4e6), row("b", 2, 1e6)];
        assert!(show("step", &lines(&rows), &[]).contains("With 2 threads: b (0.25) lost; "));
        rows[2].rounds = 2;
        let shown = show("step", &lines(&rows), &[]);
        assert!(shown.contains("0.25 ?"), "{shown}");
        assert!(shown.contains("2 rounds are too few to tell the lines apart"), "{shown}");
        rows[1].ops_per_s = Interval { median: 0.0, lo: 0.0, hi: 0.0 };
        assert!(!show("step", &lines(&rows), &[]).contains("inf"));
    }
}
