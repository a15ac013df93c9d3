//! What the locks have counted: each counter an operation, under both of its names, and the
//! averages that follow.

use std::collections::BTreeMap;
use std::fmt::Write;

use qspin::events::{Averages, Event};
use qspin_table::number::{list, plural};
use qspin_table::{Cell, Columns, Table};

use crate::report::columns;
use crate::report::group::label;
use crate::row::Row;

use super::table::heading;

/// Contenders beside each other: more do not fit a screen.
const BESIDE: usize = 4;

/// The derived averages: name of the average, Linux's name for it, unit, and its value.
type Average = (&'static str, &'static str, &'static str, fn(&Averages) -> Option<f64>);

const AVERAGES: [Average; 3] = [
    ("kick latency", "pv_latency_kick", "ns", |averages| averages.kick_latency_ns),
    ("wake latency", "pv_latency_wake", "ns", |averages| averages.wake_latency_ns),
    ("hops a hash", "pv_hash_hops", "", |averages| averages.hops_a_hash),
];

/// The tables of all numbers of threads.
#[must_use]
pub fn show(rows: &[Row], cpus: u32) -> String {
    let mut out = String::from("Counters an operation\n");
    if rows.iter().all(|row| row.events_ops.is_none()) {
        // Counting comes after the rounds.
        out += "\nNothing was counted: the run ended before.\n";
    }
    for threads in columns::threads(rows) {
        let at = |row: &&Row| row.threads == threads && row.events_ops.is_some();
        let counting: Vec<&Row> = rows.iter().filter(at).collect();
        let (busy, idle): (Vec<&Row>, Vec<&Row>) =
            counting.into_iter().partition(|row| !row.events.is_empty());
        for some in busy.chunks(BESIDE) {
            let _ = writeln!(out, "\n{}\n{}", heading(some[0], cpus), table(some));
        }
        if !idle.is_empty() {
            let names: Vec<String> = idle.iter().map(|row| label(row)).collect();
            let _ = writeln!(
                out,
                "\n{}: nothing happened that is counted in {}.",
                plural(f64::from(threads), "thread"),
                list(&names, "and")
            );
        }
    }
    out
}

/// A line: its two names, and its value of a row.
type Counter = (String, &'static str, Box<dyn Fn(&Row) -> Cell>);

fn table(rows: &[&Row]) -> Table {
    let events = Event::ALL.into_iter().map(|event| -> Counter {
        let value = move |row: &Row| an_operation(row, event).into();
        (event.name().to_owned(), event.alias().unwrap_or(""), Box::new(value))
    });
    let averages = AVERAGES.into_iter().map(|(name, alias, unit, average)| -> Counter {
        let name = if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") };
        let value = move |row: &Row| average(&Averages::of(|event| count(row, event))).into();
        (name, alias, Box::new(value))
    });
    let local: Counter =
        ("hand-over locality, share".to_owned(), "", Box::new(|row| row.locality.into()));
    let mut columns = Columns::<Counter>::new()
        .text("counter", |(name, ..)| name.clone())
        .text("Linux", |(_, alias, _)| *alias);
    for row in rows {
        columns = columns.number(&label(row), "", |(.., value)| value(row));
    }
    columns.table(&events.chain(averages).chain([local]).collect::<Vec<_>>())
}

/// Share of the hand-overs that went to a waiter near the one before, `local / (local + remote)`;
/// `None` where none was counted.
#[must_use]
pub fn locality(events: &BTreeMap<String, u64>) -> Option<f64> {
    let count = |event: Event| events.get(event.name()).copied().unwrap_or(0) as f64;
    let local = count(Event::CnaLocalHandoff);
    let all = local + count(Event::CnaRemoteHandoff);
    (all > 0.0).then(|| local / all)
}

fn count(row: &Row, event: Event) -> u64 {
    row.events.get(event.name()).copied().unwrap_or(0)
}

fn an_operation(row: &Row, event: Event) -> Option<f64> {
    match (count(row, event), row.events_ops) {
        (0, _) => Some(0.0),
        (count, Some(operations)) if operations > 0 => Some(count as f64 / operations as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::row;

    fn counted(lock: &str, operations: u64, events: &[(Event, u64)]) -> Row {
        let events = events.iter().map(|(event, n)| (event.name().to_owned(), *n)).collect();
        Row {
            locality: locality(&events),
            events,
            events_ops: Some(operations),
            ..row(lock, 8, 1e6)
        }
    }

    #[test]
    fn locality_is_the_local_share_of_the_hand_overs_and_nothing_where_there_were_none() {
        let of = |local, remote| {
            let events = [(Event::CnaLocalHandoff, local), (Event::CnaRemoteHandoff, remote)];
            counted("cna", 1000, &events).locality
        };
        assert_eq!((of(30, 10), of(5, 0), of(0, 5)), (Some(0.75), Some(1.0), Some(0.0)));
        assert_eq!((of(0, 0), counted("native", 9, &[]).locality), (None, None));
    }

    #[test]
    fn a_run_that_ended_before_it_counted_says_so() {
        assert!(show(&[row("paravirt", 8, 1e6)], 2).contains("Nothing was counted"));
    }

    #[test]
    fn every_counter_stands_there_an_operation_with_both_names_and_the_averages() {
        let rows = [
            counted(
                "paravirt",
                1000,
                &[
                    (Event::UnlockKickCount, 100),
                    (Event::LockKickCount, 100),
                    (Event::KickLatencies, 400_000),
                    (Event::HashCount, 10),
                    (Event::HashHopsCount, 15),
                ],
            ),
            counted("cna", 1000, &[(Event::CnaLocalHandoff, 9), (Event::CnaRemoteHandoff, 1)]),
            counted("tas", 1000, &[]),
            row("std", 8, 1e6),
        ];
        let shown = show(&rows, 2);
        let line = |name: &str| -> Vec<&str> {
            let line = shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
            line.split('|').map(str::trim).collect()
        };
        for event in Event::ALL {
            assert_eq!(line(event.name())[1], event.alias().unwrap_or(""), "{shown}");
        }
        assert_eq!(line("unlock_kick_count")[2], "0.1");
        assert_eq!(line("wait_head_count")[2], "0");
        let kick = ["kick latency, ns", "pv_latency_kick", "2000", "–"];
        assert_eq!(line("kick latency, ns"), kick);
        assert_eq!(line("wake latency, ns")[2], "–");
        assert_eq!(line("hops a hash")[2], "1.5");
        assert_eq!(line("hand-over locality, share")[1..], ["", "–", "0.9"]);
        assert!(shown.contains("nothing happened that is counted in tas."), "{shown}");
        assert!(!shown.contains("std"), "a lock that does not count was shown: {shown}");
    }
}
