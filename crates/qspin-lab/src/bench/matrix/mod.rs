//! How one lock stands against others over many cells: where it wins, where it loses, by how much.
//!
//! Two comparisons, which answer two questions. *Yardsticks* are what people would use instead: a
//! cell is won, tied or lost against the fastest of them, by the comparison that everything uses, so
//! that noise neither wins nor loses. *All* are the contenders of the run, the judged lock among
//! them: there the ratio to the fastest of the cell is at most 1, and what counts is how far below.

pub mod cells;
pub mod show;

use crate::compare::{Comparison, compare};
use crate::row::Row;

/// The judged lock beside the fastest yardstick of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared<'a> {
    /// The fastest yardstick.
    pub leader: &'a str,
    /// Throughput beside the leader's.
    pub to_it: Comparison,
}

/// A cell: all contenders under one load with one number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Place<'a> {
    /// A row of each contender; there is at least one.
    pub rows: Vec<&'a Row>,
}

/// A finished run, to be judged.
pub struct Matrix<'a> {
    /// The lock that is judged.
    pub subject: &'static str,
    /// What it is compared with, itself not among them.
    pub yardsticks: Vec<&'static str>,
    /// The cells.
    pub places: Vec<Place<'a>>,
}

impl<'a> Matrix<'a> {
    /// Lays out what was found.
    pub fn new(rows: &'a [Row], subject: &'static str, yardsticks: Vec<&'static str>) -> Self {
        let mut places: Vec<Place<'a>> = Vec::new();
        for row in rows {
            let beside = |place: &&mut Place<'_>| {
                place.threads() == row.threads && place.rows[0].load() == row.load()
            };
            match places.iter_mut().find(beside) {
                Some(place) => place.rows.push(row),
                None => places.push(Place { rows: vec![row] }),
            }
        }
        Self { subject, yardsticks, places }
    }

    /// The contenders, in the order of their rows.
    pub fn locks(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        for row in self.places.iter().flat_map(|place| &place.rows) {
            if !names.contains(&row.lock.as_str()) {
                names.push(row.lock.as_str());
            }
        }
        names
    }

    /// Finished rounds.
    pub fn rounds(&self) -> u32 {
        let rows = self.places.iter().flat_map(|place| &place.rows);
        rows.map(|row| row.rounds).min().unwrap_or(0)
    }

    fn yardsticks_at<'p>(&self, place: &Place<'p>) -> impl Iterator<Item = &'p Row> {
        self.yardsticks.iter().filter_map(|name| place.row(name))
    }

    /// The judged lock against the fastest yardstick.
    pub fn compared<'p>(&self, place: &Place<'p>) -> Option<Compared<'p>> {
        let own = place.row(self.subject)?;
        let leader = fastest(self.yardsticks_at(place))?;
        Some(Compared { leader: &leader.lock, to_it: compare(own, leader) })
    }

    /// What `figure` is for the judged lock, that over the least of the yardsticks, and which that is.
    pub fn over_the_least<'p>(
        &self,
        place: &Place<'p>,
        figure: &Figure<'_>,
    ) -> Option<(f64, f64, &'p str)> {
        let own = figure(place.row(self.subject)?)?;
        let (name, least) = self
            .yardsticks_at(place)
            .filter_map(|row| Some((row.lock.as_str(), figure(row)?)))
            .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        Some((own, own / least, name))
    }
}

impl<'a> Place<'a> {
    /// How many threads.
    pub fn threads(&self) -> u32 {
        self.rows[0].threads
    }

    /// The row of a contender.
    pub fn row(&self, lock: &str) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.lock == lock)
    }

    /// The fastest of all contenders, and a lock's throughput over the fastest's: at most 1.
    pub fn to_the_best(&self, lock: &str) -> Option<(&'a str, f64)> {
        let (own, best) = (self.row(lock)?, fastest(self.rows.iter().copied())?);
        Some((&best.lock, own.ops_per_s.median / best.ops_per_s.median))
    }
}

fn fastest<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.max_by(|one, other| one.ops_per_s.median.total_cmp(&other.ops_per_s.median))
}

/// A figure of a row, where it has it.
pub type Figure<'f> = dyn Fn(&Row) -> Option<f64> + 'f;

/// Operations of the busiest thread over the idlest's, in the run that was made for it; infinite
/// where one was never served.
pub fn max_min(row: &Row) -> Option<f64> {
    row.fairness_s.map(|_| row.fairness.max_min.unwrap_or(f64::INFINITY))
}

/// The longest 99.9th percentile of the waits that one thread had in that run, ns; of all
/// operations, or of a class of them.
pub fn worst_wait(row: &Row, class: Option<&str>) -> Option<f64> {
    let waits = match class {
        None => row.wait_ns,
        Some(class) => row.wait_ns_by.get(class).copied(),
    };
    waits.filter(|_| row.fairness_s.is_some()).map(|waits| waits.worst_thread_p999)
}

/// The geometric mean; none of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::affinity::{Pin, Placement};
    use super::super::found::{Fair, Findings, Found};
    use super::super::plan::{Fairness, Plan};
    use super::super::rows::rows;
    use super::super::waits::Waits;
    use super::cells::{Kind, Limits, plan_cells};
    use super::*;
    use crate::bench::busy::Pace;
    use crate::compare::Outcome;
    use crate::contender::catalog::locks;
    use crate::this_machine::Distances;

    /// A run in which each lock has the same throughput in all cells: `rates` names them.
    pub(crate) fn with<T>(
        rates: &[(&'static str, [u64; 6])],
        check: impl Fn(&Matrix<'_>) -> T,
    ) -> T {
        let all = locks();
        let named = |name| *all.iter().find(|lock| lock.name == name).unwrap();
        let locks: Vec<_> = rates.iter().map(|(name, _)| named(*name)).collect();
        let limits = Limits { threads: vec![1, 4], ..Limits::default() };
        let (settings, scenes) = Kind::Quick.scenes(&limits, Pace::calibrate(), 1);
        let cells = plan_cells(&locks, &scenes);
        let found = Found {
            cells: cells.iter().map(|cell| findings(cell.threads, rates[cell.lock].1)).collect(),
            floor_ns: vec![2.0; 6],
            rounds: 6,
            partial: false,
            failure: None,
            distances: Distances::default(),
            order: Vec::new(),
        };
        let plan = Plan {
            locks,
            settings,
            cells,
            placement: Placement::new(Pin::B, vec![0, 1]),
            pin: "B".to_owned(),
            rounds: 6,
            phase: Duration::from_secs(1),
            turn: Duration::ZERO,
            waits: false,
            fairness: Some(Fairness { length: Duration::from_secs(1), locks: vec!["std"] }),
            cell_by_cell: true,
            counting: Duration::ZERO,
            budget: None,
            seed: 1,
        };
        let rows = rows(&plan, &found);
        check(&Matrix::new(&rows, rates[0].0, vec!["std", "parking_lot"]))
    }

    /// Six rounds of a second; the last thread gets half of what the others get.
    fn findings(threads: usize, rates: [u64; 6]) -> Findings {
        let (mut waits, mut thread) = (Waits::default(), Waits::default());
        thread.ended(1000);
        waits.add_thread(&thread);
        let mut served = vec![rates[0]; threads];
        served[threads - 1] /= 2;
        Findings {
            seconds: vec![1.0; 6],
            operations: rates.iter().map(|rate| vec![*rate; threads]).collect(),
            cpu_ns: vec![1e9; 6],
            fair: Some(Fair { seconds: 1.0, served, waits: vec![waits] }),
            ..Findings::default()
        }
    }

    const STEADY: [u64; 6] = [1000; 6];

    #[test]
    fn a_cell_is_won_tied_or_lost_by_its_interval() {
        let outcome = |own: [u64; 6]| {
            with(&[("yield", own), ("std", STEADY), ("parking_lot", [900; 6])], |matrix| {
                let compared = matrix.compared(&matrix.places[0]).unwrap();
                assert_eq!(compared.leader, "std");
                compared.to_it.outcome
            })
        };
        assert_eq!(outcome([1200, 1210, 1190, 1200, 1200, 1205]), Outcome::Better);
        assert_eq!(outcome([1200, 900, 1100, 950, 1300, 800]), Outcome::Level);
        assert_eq!(outcome([800, 810, 805, 790, 820, 800]), Outcome::Worse);
        assert_eq!(outcome(STEADY), Outcome::Level);
    }

    #[test]
    fn against_everybody_the_judged_lock_itself_may_be_the_best() {
        let locks = [("yield", [500; 6]), ("std", [400; 6]), ("tas", STEADY)];
        with(&locks, |matrix| {
            let place = &matrix.places[0];
            assert_eq!(place.to_the_best("yield"), Some(("tas", 0.5)));
            assert_eq!(place.to_the_best("tas"), Some(("tas", 1.0)));
            assert_eq!(matrix.locks(), ["yield", "std", "tas"]);
            // Against the yardsticks it wins, whatever a spinlock does.
            assert_eq!(matrix.compared(place).unwrap().to_it.outcome, Outcome::Better);
        });
        let mean = geometric_mean(&[0.5, 2.0, 1.0]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12 && geometric_mean(&[]).is_none());
    }

    #[test]
    fn fairness_waits_and_cpu_time_are_those_of_the_lock() {
        with(&[("yield", [500; 6]), ("std", STEADY)], |matrix| {
            let four = matrix.places.iter().find(|place| place.threads() == 4).unwrap();
            assert_eq!(four.row("yield").and_then(max_min), Some(2.0));
            let wait = worst_wait(four.row("std").unwrap(), None).unwrap();
            assert!((990.0..=1010.0).contains(&wait));
            assert_eq!(four.row("std").unwrap().cpu_ns_per_op, Some(1e9 / 4000.0));
            let (own, over, least) = matrix.over_the_least(four, &|row| row.cpu_ns_per_op).unwrap();
            assert_eq!((own, over, least), (1e9 / 2000.0, 2.0, "std"));
            assert_eq!(four.row("tas"), None);
        });
    }
}
