//! How one lock stands against others over many cells: where it wins, where it loses, by how much.
//!
//! Two comparisons, which answer two questions. *Yardsticks* are what people would use instead: a
//! cell is won, tied or lost against the fastest of them, by the comparison that everything uses, so
//! that noise neither wins nor loses. *Everybody* are all contenders of the run, the judged lock among
//! them: there the ratio to the fastest of the cell is at most 1, and what counts is how far below.

pub mod cells;
pub mod show;

use crate::compare::{Comparison, Sample, compare};

use super::found::{Findings, Found};
use super::plan::Plan;
use super::rows::{finite, waits};
use super::stats::{fairness, median};

/// The judged lock beside the fastest yardstick of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// The fastest yardstick.
    pub leader: &'static str,
    /// Throughput beside the leader's.
    pub to_it: Comparison,
}

/// All contenders under one setting with one number of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index of the setting in the plan.
    pub setting: usize,
    /// How many threads.
    pub threads: usize,
    /// Hogs outside the process.
    pub hogs: usize,
    /// The contenders' cells, by their indices in the plan.
    pub cells: Vec<usize>,
}

/// A finished run, to be judged.
pub struct Matrix<'a> {
    /// What was measured.
    pub plan: &'a Plan,
    /// What was found.
    pub found: &'a Found,
    /// The lock that is judged.
    pub subject: &'static str,
    /// What it is compared with.
    pub yardsticks: Vec<&'static str>,
    /// The cells.
    pub places: Vec<Place>,
}

impl<'a> Matrix<'a> {
    /// Lays out what was found.
    #[must_use]
    pub fn new(
        plan: &'a Plan,
        found: &'a Found,
        subject: &'static str,
        yardsticks: Vec<&'static str>,
    ) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for (index, cell) in plan.cells.iter().enumerate().filter(|(_, cell)| cell.shown) {
            let same = |place: &&mut Place| {
                (place.setting, place.threads, place.hogs)
                    == (cell.setting, cell.threads, cell.hogs)
            };
            match places.iter_mut().find(same) {
                Some(place) => place.cells.push(index),
                None => places.push(Place {
                    setting: cell.setting,
                    threads: cell.threads,
                    hogs: cell.hogs,
                    cells: vec![index],
                }),
            }
        }
        Self { plan, found, subject, yardsticks, places }
    }

    /// The contenders, in the order of the plan.
    #[must_use]
    pub fn locks(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for place in &self.places {
            for &cell in &place.cells {
                let name = self.name(cell);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    fn name(&self, cell: usize) -> &'static str {
        self.plan.locks[self.plan.cells[cell].lock].name
    }

    fn findings(&self, place: &Place, lock: &str) -> Option<&Findings> {
        let cell = place.cells.iter().find(|&&cell| self.name(cell) == lock)?;
        Some(&self.found.cells[*cell])
    }

    /// The median throughput of a lock, operations a second.
    #[must_use]
    pub fn rate(&self, place: &Place, lock: &str) -> Option<f64> {
        self.findings(place, lock).map(rate)
    }

    /// The judged lock against the fastest yardstick.
    #[must_use]
    pub fn compared(&self, place: &Place) -> Option<Compared> {
        let own = self.findings(place, self.subject)?;
        let others = self.yardsticks.iter().filter(|name| **name != self.subject);
        let (leader, best) = others
            .filter_map(|&name| Some((name, self.findings(place, name)?)))
            .max_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)))?;
        let to_it = compare(Sample::Rounds(&own.rates()), Sample::Rounds(&best.rates()));
        Some(Compared { leader, to_it })
    }

    /// The fastest of all contenders, and a lock's throughput over the fastest's: at most 1.
    #[must_use]
    pub fn to_the_best(&self, place: &Place, lock: &str) -> Option<(&'static str, f64)> {
        let own = self.rate(place, lock)?;
        let (leader, best) = place
            .cells
            .iter()
            .map(|&cell| (self.name(cell), rate(&self.found.cells[cell])))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        Some((leader, own / best))
    }

    /// Operations of the busiest thread over the idlest's; infinite where one was never served.
    #[must_use]
    pub fn max_min(&self, place: &Place, lock: &str) -> Option<f64> {
        let fair = self.findings(place, lock)?.fair.as_ref()?;
        let shared = fairness(std::slice::from_ref(&fair.served));
        Some(shared.max_min.unwrap_or(f64::INFINITY))
    }

    /// The longest 99.9th percentile of the waits that one thread had, ns; of all operations, or of
    /// a class of them.
    #[must_use]
    pub fn worst_wait(&self, place: &Place, lock: &str, class: Option<&str>) -> Option<f64> {
        let fair = self.findings(place, lock)?.fair.as_ref()?;
        let (all, by) = waits(&fair.waits);
        let summary = match class {
            None => all,
            Some(class) => by.get(class).cloned(),
        };
        summary.map(|waits| waits.worst_thread_p999)
    }

    /// CPU time of all threads an operation, ns; none where nothing was done.
    #[must_use]
    pub fn cpu(&self, place: &Place, lock: &str) -> Option<f64> {
        finite(median(&mut self.findings(place, lock)?.cpu_ns_per_op()))
    }

    /// What `figure` is for the judged lock, over the least of the yardsticks.
    #[must_use]
    pub fn over_the_least(
        &self,
        place: &Place,
        figure: impl Fn(&Place, &str) -> Option<f64>,
    ) -> Option<(f64, f64, &'static str)> {
        let own = figure(place, self.subject)?;
        let others = self.yardsticks.iter().filter(|name| **name != self.subject);
        let (name, least) = others
            .filter_map(|&name| Some((name, figure(place, name)?)))
            .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        Some((own, own / least, name))
    }
}

fn rate(findings: &Findings) -> f64 {
    median(&mut findings.rates())
}

/// The geometric mean; none of nothing.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::affinity::{Pin, Placement};
    use super::super::found::Fair;
    use super::super::plan::Fairness;
    use super::super::waits::Waits;
    use super::cells::{Kind, Limits, plan_cells};
    use super::*;
    use crate::bench::busy::Pace;
    use crate::compare::Outcome;
    use crate::contender::catalog::locks;

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
        check(&Matrix::new(&plan, &found, rates[0].0, vec!["std", "parking_lot"]))
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
            assert_eq!(matrix.to_the_best(place, "yield"), Some(("tas", 0.5)));
            assert_eq!(matrix.to_the_best(place, "tas"), Some(("tas", 1.0)));
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
            let four = matrix.places.iter().find(|place| place.threads == 4).unwrap();
            assert_eq!(matrix.max_min(four, "yield"), Some(2.0));
            let wait = matrix.worst_wait(four, "std", None).unwrap();
            assert!((990.0..=1010.0).contains(&wait));
            assert_eq!(matrix.cpu(four, "std"), Some(1e9 / 4000.0));
            let (own, over, least) =
                matrix.over_the_least(four, |place, lock| matrix.cpu(place, lock)).unwrap();
            assert_eq!((own, over, least), (1e9 / 2000.0, 2.0, "std"));
            assert_eq!(matrix.cpu(four, "tas"), None);
        });
    }
}
