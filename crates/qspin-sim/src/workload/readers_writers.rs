//! Readers and writers of one lock, until the time is over: the load of `qspin bench --workload rw`.
//!
//! # Model
//! Each operation is, at random, a write or a read: some work outside, then a section. A reader loads a line that
//! the lock protects; a writer loads and stores it. Of a lock without a readers' side, readers are owners.

use std::sync::atomic::Ordering::Relaxed;

use qspin_core::lock::RawLock;
use qspin_core::platform::AtomicWord;
use serde::{Deserialize, Serialize};

use super::{Station, Work};
use crate::platform::SimPlatform;

/// Sections that read, and sections that write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadersWriters {
    /// Work inside.
    pub inside_ns: f64,
    /// Work outside, on average: from nothing to twice as much.
    pub outside_ns: f64,
    /// The part of the operations that write: 0 to 1.
    pub written: f64,
}

impl Work for ReadersWriters {
    fn lines(&self, _: u32) -> usize {
        1
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        let word = station.word(0, 0);
        while !p.is_over() {
            let (writes, part) =
                p.random(|random| (random.unit() < self.written, 2.0 * random.unit()));
            p.work(self.outside_ns * part);
            if writes {
                station.section(p, 0, || {
                    station.count(word);
                    p.work(self.inside_ns);
                });
            } else {
                station.reading(p, 0, || {
                    word.load(Relaxed);
                    p.work(self.inside_ns);
                });
            }
        }
    }
}
