//! From rows to regrets.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bench::matrix::geometric_mean;
use crate::compare::ratio;
use crate::row::Row;

use super::draw::is_disturbed;
use super::{CELL, REPEATED, SEED};

/// A measured cell: a row a contender.
#[derive(Debug, Clone)]
pub struct Cell<'a> {
    /// The seed of the draw.
    pub seed: u64,
    /// Its number.
    pub number: u32,
    /// Whether it was measured again.
    pub repeated: bool,
    /// The rows that count; there is at least one.
    pub rows: Vec<&'a Row>,
}

/// Whether a row is one of a drawn cell.
pub fn is_drawn(row: &Row) -> bool {
    number(row, CELL).is_some()
}

fn number(row: &Row, param: &str) -> Option<u64> {
    row.params.get(param).and_then(Value::as_u64)
}

/// Whether a row is of the second measurement of its cell.
pub fn is_repeated(row: &Row) -> bool {
    row.params.contains_key(REPEATED)
}

/// The cells of rows, ascending; where one was measured again, only that counts.
pub fn cells(rows: &[Row]) -> Vec<Cell<'_>> {
    let mut cells: BTreeMap<(u64, u32), Cell<'_>> = BTreeMap::new();
    for row in rows {
        let Some(at) = number(row, CELL).and_then(|number| u32::try_from(number).ok()) else {
            continue;
        };
        let (seed, repeated) = (number(row, SEED).unwrap_or(0), is_repeated(row));
        let new = || Cell { seed, number: at, repeated, rows: Vec::new() };
        let cell = cells.entry((seed, at)).or_insert_with(new);
        if repeated && !cell.repeated {
            *cell = new();
        }
        if repeated == cell.repeated {
            cell.rows.push(row);
        }
    }
    cells.into_values().collect()
}

/// What a regret is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Throughput: that of the oracle's lock that does most beside it, over the lock's own. Of two locks the rounds are
    /// compared one by one: where the machine is another one from second to second, their medians may be of different
    /// machines.
    Throughput,
    /// CPU time an operation, over the least of the oracle's.
    CpuTime,
    /// The 99.9th percentile of the waits of the thread for which it is longest, over the least of the oracle's.
    Wait,
}

impl<'a> Cell<'a> {
    /// Whether something disturbed it.
    pub fn is_disturbed(&self) -> bool {
        is_disturbed(self.number)
    }

    /// The row of a lock.
    pub fn row(&self, lock: &str) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.lock == lock)
    }

    fn of_oracle<'s>(&'s self, oracle: &'s [&str]) -> impl Iterator<Item = &'a Row> + 's {
        self.rows.iter().copied().filter(|row| oracle.contains(&row.lock.as_str()))
    }

    /// The oracle's lock with the least regret; of several the one with the highest median.
    pub fn best(&self, oracle: &[&str]) -> Option<&'a Row> {
        let cost = |row: &Row| {
            let regret = self.regret(&row.lock, Of::Throughput, oracle);
            [regret.unwrap_or(f64::INFINITY), -row.ops_per_s.median]
        };
        self.of_oracle(oracle).min_by(|one, other| {
            let [one, other] = [cost(one), cost(other)];
            one[0].total_cmp(&other[0]).then(one[1].total_cmp(&other[1]))
        })
    }

    /// The oracle's lock that does most beside this one, and how many times its work, as the median of the rounds.
    pub fn rival(&self, lock: &str, oracle: &[&str]) -> Option<(&'a Row, f64)> {
        let own = self.row(lock)?;
        self.of_oracle(oracle)
            .map(|other| (other, ratio(other, own)))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// A lock's regret; at least 1 for a lock of the oracle's, and infinite for one that did nothing.
    pub fn regret(&self, lock: &str, of: Of, oracle: &[&str]) -> Option<f64> {
        let own = self.row(lock)?;
        match of {
            Of::Throughput => self.rival(lock, oracle).map(|(_, ratio)| ratio),
            Of::CpuTime => over_the_least(own, self.of_oracle(oracle), |row| row.cpu_ns_per_op),
            Of::Wait => over_the_least(own, self.of_oracle(oracle), |row| {
                row.wait_ns.map(|wait| wait.worst_thread_p999)
            }),
        }
    }
}

fn over_the_least<'a>(
    own: &Row,
    oracle: impl Iterator<Item = &'a Row>,
    figure: impl Fn(&Row) -> Option<f64>,
) -> Option<f64> {
    let own = figure(own)?;
    let least = oracle.filter_map(figure).min_by(f64::total_cmp)?;
    (least > 0.0).then(|| own / least)
}

/// Regrets in a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Geometric mean.
    pub mean: f64,
    /// 90th percentile: nine in ten cells have no more.
    pub p90: f64,
    /// The largest.
    pub worst: f64,
    /// Share of the cells with at most 1.05.
    pub within_5: f64,
    /// Share of the cells with at most 1.10.
    pub within_10: f64,
}

/// Summarises regrets; none of nothing.
pub fn summary(regrets: &[f64]) -> Option<Summary> {
    let mut sorted = regrets.to_vec();
    sorted.sort_by(f64::total_cmp);
    let share = |most: f64| {
        sorted.iter().filter(|regret| **regret <= most).count() as f64 / sorted.len() as f64
    };
    Some(Summary {
        mean: geometric_mean(&sorted)?,
        p90: sorted[(sorted.len() * 9).div_ceil(10) - 1],
        worst: *sorted.last()?,
        within_5: share(1.05),
        within_10: share(1.10),
    })
}

/// The contenders, in the order of their first rows.
pub fn locks<'a>(cells: &[Cell<'a>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for row in cells.iter().flat_map(|cell| &cell.rows) {
        if !names.contains(&row.lock.as_str()) {
            names.push(row.lock.as_str());
        }
    }
    names
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::row::WaitNs;
    use crate::verdict::tests::row;

    /// A row of cell `number` of seed 1.
    pub(crate) fn drawn(number: u32, lock: &str, rate: f64, again: bool) -> Row {
        let mut row = row(lock, 8, rate);
        row.round_ops_per_s = vec![rate; 5];
        row.params.insert(CELL.to_owned(), number.into());
        row.params.insert(SEED.to_owned(), 1.into());
        if again {
            row.params.insert(REPEATED.to_owned(), true.into());
        }
        row
    }

    const ORACLE: [&str; 2] = ["std", "mutex"];

    #[test]
    fn regret_is_the_best_of_the_oracle_over_ones_own() {
        let rows = [
            drawn(1, "std", 2e6, false),
            drawn(1, "mutex", 1e6, false),
            drawn(1, "tas", 4e6, false),
        ];
        let cells = cells(&rows);
        let regret = |lock| cells[0].regret(lock, Of::Throughput, &ORACLE);
        assert_eq!(cells.len(), 1);
        assert_eq!(
            [regret("std"), regret("mutex"), regret("tas")],
            [Some(1.0), Some(2.0), Some(0.5)]
        );
        assert_eq!(regret("ticket"), None);
        assert_eq!(locks(&cells), ["std", "mutex", "tas"]);
    }

    #[test]
    fn locks_are_compared_within_rounds() {
        // The machine does half in some rounds, and one lock has met more of these.
        let with = |lock, rates: [f64; 5]| {
            let mut row = drawn(1, lock, rates[2], false);
            row.round_ops_per_s = rates.to_vec();
            row.rounds = 5;
            row
        };
        let rows =
            [with("std", [10.0, 10.0, 10.0, 5.0, 5.0]), with("mutex", [11.0, 11.0, 5.5, 5.5, 5.5])];
        let cell = &cells(&rows)[0];
        let regret = |lock| cell.regret(lock, Of::Throughput, &ORACLE).unwrap();
        assert_eq!(regret("mutex"), 1.0);
        assert!((regret("std") - 1.1).abs() < 1e-9);
        assert_eq!(cell.best(&ORACLE).unwrap().lock, "mutex");
        assert_eq!(cell.rival("std", &ORACLE).unwrap().0.lock, "mutex");
    }

    #[test]
    fn cpu_time_and_waits_are_over_the_least_of_the_oracle() {
        let with = |lock, cpu, wait| {
            let mut row = drawn(5, lock, 1e6, false);
            row.cpu_ns_per_op = Some(cpu);
            row.wait_ns = row.wait_ns.or(Some(WaitNs {
                p50: 1.0,
                p99: 1.0,
                p999: 1.0,
                max: 1.0,
                worst_thread_p999: 1.0,
                samples: 1,
                unfinished: 0,
            }));
            row.wait_ns.as_mut().unwrap().worst_thread_p999 = wait;
            row
        };
        let rows = [with("std", 100.0, 30.0), with("mutex", 150.0, 10.0), with("tas", 50.0, 5.0)];
        let cell = &cells(&rows)[0];
        assert_eq!(cell.regret("mutex", Of::CpuTime, &ORACLE), Some(1.5));
        assert_eq!(cell.regret("std", Of::Wait, &ORACLE), Some(3.0));
        assert_eq!(cell.regret("tas", Of::CpuTime, &ORACLE), Some(0.5));
        assert!(cell.is_disturbed());
    }

    #[test]
    fn of_a_cell_that_was_measured_again_only_that_counts() {
        for order in [[false, true], [true, false]] {
            let rows: Vec<Row> = order
                .into_iter()
                .flat_map(|again| {
                    let mutex = if again { 2e6 } else { 1e6 };
                    [drawn(3, "std", 2e6, again), drawn(3, "mutex", mutex, again)]
                })
                .collect();
            let cells = cells(&rows);
            assert_eq!((cells.len(), cells[0].repeated, cells[0].rows.len()), (1, true, 2));
            assert_eq!(cells[0].regret("mutex", Of::Throughput, &ORACLE), Some(1.0));
        }
    }

    #[test]
    fn a_summary_has_mean_percentile_worst_and_shares() {
        let found = summary(&[1.0, 1.0, 1.0, 1.0, 1.05, 1.06, 1.1, 1.2, 1.5, 4.0]).unwrap();
        assert_eq!((found.p90, found.worst), (1.5, 4.0));
        assert_eq!((found.within_5, found.within_10), (0.5, 0.7));
        let mean = (1.05_f64 * 1.06 * 1.1 * 1.2 * 1.5 * 4.0).powf(0.1);
        assert!((found.mean - mean).abs() < 1e-12);
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[2.0]).unwrap().p90, 2.0);
    }
}
