//! What a run has shown.

use std::collections::BTreeMap;

use super::waits::Waits;
use crate::this_machine::Distances;

/// What a cell has shown over the finished rounds.
#[derive(Debug, Default)]
pub struct Findings {
    /// Length of each round's throughput phase, s.
    pub seconds: Vec<f64>,
    /// Operations of each thread in each round.
    pub operations: Vec<Vec<u64>>,
    /// CPU time of all threads in each round, ns.
    pub cpu_ns: Vec<f64>,
    /// Cost of an uncontended pair in each round, ns; with one thread only.
    pub pair_ns: Vec<f64>,
    /// Waits of all rounds, by class of operation.
    pub waits: Vec<Waits>,
    /// What the run has shown that was made to see how fair the lock is.
    pub fair: Option<Fair>,
    /// Events, counted after the rounds.
    pub events: BTreeMap<String, u64>,
    /// Operations during which events were counted.
    pub events_ops: Option<u64>,
}

/// What a run of its own has shown, which tells how fair a lock is.
#[derive(Debug)]
pub struct Fair {
    /// How long it was to last, s.
    pub seconds: f64,
    /// How often each thread got the lock.
    pub served: Vec<u64>,
    /// The waits, by class of operation; those in progress at the end count with their age.
    pub waits: Vec<Waits>,
}

/// What a run has shown.
#[derive(Debug)]
pub struct Found {
    /// By index of the cell in the plan.
    pub cells: Vec<Findings>,
    /// Cost of the floor's pair in each round, ns.
    pub floor_ns: Vec<f64>,
    /// How far CPUs were from each other when rounds began.
    pub distances: Distances,
    /// Finished rounds.
    pub rounds: usize,
    /// Whether it ended before everything was done: the user stopped it, or something failed.
    pub partial: bool,
    /// What failed after rounds had been finished.
    pub failure: Option<anyhow::Error>,
    /// Order of the finished rounds.
    pub order: Vec<Vec<usize>>,
}

/// One cell's share of a round that has not finished yet.
pub(super) struct Share {
    pub(super) cell: usize,
    pub(super) seconds: f64,
    pub(super) operations: Vec<u64>,
    pub(super) cpu_ns: f64,
    pub(super) pair_ns: Option<f64>,
    pub(super) waits: Vec<Waits>,
}

impl Findings {
    /// Operations of all threads in a round.
    pub fn total(&self, round: usize) -> f64 {
        self.operations[round].iter().sum::<u64>() as f64
    }

    /// CPU time an operation, ns, round by round.
    pub fn cpu_ns_per_op(&self) -> Vec<f64> {
        self.cpu_ns.iter().enumerate().map(|(round, ns)| ns / self.total(round)).collect()
    }

    /// Operations a second of all threads, round by round.
    pub fn rates(&self) -> Vec<f64> {
        (0..self.seconds.len()).map(|round| self.total(round) / self.seconds[round]).collect()
    }
}

impl Found {
    /// Nothing yet of so many cells.
    pub(super) fn nothing(cells: usize) -> Self {
        Self {
            cells: (0..cells).map(|_| Findings::default()).collect(),
            floor_ns: Vec::new(),
            distances: Distances::default(),
            rounds: 0,
            partial: false,
            failure: None,
            order: Vec::new(),
        }
    }

    /// A failure spoils what it met, not the rounds that were finished before it.
    pub(super) fn stopped_by(&mut self, why: anyhow::Error) -> anyhow::Result<()> {
        if self.rounds == 0 {
            return Err(why);
        }
        (self.partial, self.failure) = (true, Some(why));
        Ok(())
    }

    pub(super) fn take(&mut self, shares: Vec<Share>, floor: f64, order: Vec<usize>) {
        for share in shares {
            let cell = &mut self.cells[share.cell];
            cell.seconds.push(share.seconds);
            cell.operations.push(share.operations);
            cell.cpu_ns.push(share.cpu_ns);
            cell.pair_ns.extend(share.pair_ns);
            if cell.waits.is_empty() {
                cell.waits = share.waits;
            } else {
                for (all, round) in cell.waits.iter_mut().zip(&share.waits) {
                    all.add_round(round);
                }
            }
        }
        self.floor_ns.push(floor);
        self.order.push(order);
        self.rounds += 1;
    }
}
