//! The micro benchmark of document 003: sections made of small units of work.
//!
//! # Source
//! github.com/guowangy/kernel-lock-bench, `spinlock-bench.c`, described, not copied. Each of N kernel threads
//! runs the same number of rounds: acquire a spinlock with interrupts off, L + 1 units of work, release it, M +
//! 1 units of work. A unit is a call that computes 12 and a copy of as many bytes; inside from one shared
//! buffer to another, outside on the thread's own stack. Its README gives a unit of "roughly 15 cycles in
//! Icelake". The result is all rounds, divided by the average time of a thread.
//!
//! # Model
//! A section stores into one shared line, the target of the copies, and loads from another, which is never
//! written. Its further units find both in the core's cache.

use std::sync::atomic::Ordering::Relaxed;

use qspin_core::lock::RawLock;
use qspin_core::platform::AtomicWord;
use serde::{Deserialize, Serialize};

use super::{Station, Work};
use crate::platform::SimPlatform;

/// Rounds of units of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelLockBench {
    /// Length of the critical section, in units less one: the grid's columns.
    pub critical: u32,
    /// Length outside, in units less one: the grid's tables.
    pub non_critical: u32,
    /// Rounds of all threads together.
    pub rounds: u64,
    /// A unit of work.
    pub unit_ns: f64,
    /// What turning interrupts off and on, and the loop, add to a round: half inside, half outside.
    pub overhead_ns: f64,
}

impl Work for KernelLockBench {
    fn lines(&self, _: u32) -> usize {
        2
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        let half = self.overhead_ns / 2.0;
        for _ in 0..self.rounds / u64::from(station.cpus()) {
            station.section(p, 0, || {
                p.load_together([station.word(0, 0), station.word(1, 0)]);
                station.word(0, 0).store(p.number(), Relaxed);
                p.work(half + f64::from(self.critical + 1) * self.unit_ns);
            });
            p.work(half + f64::from(self.non_critical + 1) * self.unit_ns);
        }
    }

    fn throughput(&self, sections: &[u64], finished_ns: &[f64]) -> f64 {
        let mean = finished_ns.iter().sum::<f64>() / finished_ns.len() as f64;
        sections.iter().sum::<u64>() as f64 / mean * 1000.0
    }
}
