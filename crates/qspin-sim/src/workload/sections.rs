//! Sections of given lengths, so many of them, counted: the workload of tests.
//!
//! # Model
//! Each CPU runs `count` critical sections. Each adds one to a word that the lock protects, by a load and a
//! store, then works. At the end the word must equal the number of sections: a lost update means that the lock
//! does not exclude, or does not order.

use qspin_core::lock::RawLock;
use qspin_core::platform::Platform;
use serde::{Deserialize, Serialize};

use super::{Station, Work};
use crate::platform::SimPlatform;

/// A fixed number of sections per CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sections {
    /// Sections a CPU.
    pub count: u64,
    /// Work inside.
    pub inside_ns: f64,
    /// Work outside, on average: from nothing to twice as much.
    pub outside_ns: f64,
    /// Locks; each section acquires one at random.
    #[serde(default = "one")]
    pub locks: u32,
    /// Whether the counted word lies in the line of its lock.
    #[serde(default)]
    pub beside: bool,
}

fn one() -> u32 {
    1
}

impl Work for Sections {
    fn locks(&self) -> u32 {
        self.locks
    }

    fn lines(&self, _: u32) -> usize {
        self.locks as usize
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        for _ in 0..self.count {
            let lock = p.random(|random| random.below(self.locks));
            station.section(p, lock, || {
                let word = if self.beside {
                    station.beside(lock, 0)
                } else {
                    station.word(lock as usize, 0)
                };
                station.count(word);
                p.work(self.inside_ns);
            });
            let part = p.random(crate::engine::Random::unit);
            p.work(self.outside_ns * 2.0 * part);
        }
        // Other CPUs see every store of this CPU.
        p.fence(std::sync::atomic::Ordering::SeqCst);
    }
}
