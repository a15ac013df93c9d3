//! A kernel build in a guest: document 001's benchmark, as its locks see it.
//!
//! # Source
//! Document 001 measures the time of `make -j20 bzImage` in a guest of 4 CPUs beside hogs. What its CPUs do
//! with locks is not published. So this is a model with few figures, which are to be calibrated on some of the
//! rows: the build is a number of *pieces* that the CPUs share, each of them some work, then a critical section
//! of one of the kernel's locks. Some of the sections acquire the one hot lock, the others one of many.
//!
//! CPUs are not always busy: a build waits for its disk, and where it is serial all but one of its CPUs wait.
//! So a CPU sleeps from time to time, `idle` of its work in all, for `idle_ns` at a time. Hogs do not slow that
//! part of a build down; they slow the rest down in proportion.
//!
//! # Limits
//! No disk: a sleeping CPU wakes by itself. Work, sections and sleep vary evenly between half and one and a
//! half times their average.

use qspin_core::lock::RawLock;
use qspin_core::platform::AtomicWord;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;

use super::{Station, Work};
use crate::platform::SimPlatform;

/// Pieces of work, each with a critical section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelBuild {
    /// Pieces of work in all.
    pub pieces: u64,
    /// Work outside, on average.
    pub outside_ns: f64,
    /// Work in a section, on average.
    pub inside_ns: f64,
    /// Locks; the first of them is the hot one.
    pub locks: u32,
    /// The part of the sections that acquires the hot lock, beside its share: 0 to 1.
    pub hot: f64,
    /// Time that a CPU sleeps, as a fraction of its work outside.
    #[serde(default)]
    pub idle: f64,
    /// How long it sleeps at a time, on average.
    #[serde(default = "stretch")]
    pub idle_ns: f64,
}

/// Longer than the slices of an overcommitted processor, as the serial steps of a build are.
fn stretch() -> f64 {
    5e7
}

impl Work for KernelBuild {
    fn check(&self) -> Result<(), String> {
        let (idle, least) = (self.idle_ns, self.idle * self.outside_ns);
        match self.idle > 0.0 && idle < least {
            true => Err(format!(
                "workload.idle_ns is {idle}: it must be at least {least}, idle times outside_ns"
            )),
            false => Ok(()),
        }
    }

    fn locks(&self) -> u32 {
        self.locks
    }

    fn lines(&self, _: u32) -> usize {
        self.locks as usize
    }

    fn pieces(&self) -> u64 {
        self.pieces
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        while station.take_piece() {
            let (outside, inside, hot, lock) = p.random(|random| {
                let hot = random.unit() < self.hot;
                (0.5 + random.unit(), 0.5 + random.unit(), hot, random.below(self.locks))
            });
            p.work(self.outside_ns * outside);
            if self.idle > 0.0 {
                let (sleeps, long) = p.random(|random| (random.unit(), 0.5 + random.unit()));
                if sleeps * self.idle_ns < self.idle * self.outside_ns {
                    p.sleep(self.idle_ns * long);
                }
            }
            let lock = if hot { 0 } else { lock };
            station.section(p, lock, || {
                station.word(lock as usize, 0).store(p.number(), Relaxed);
                p.work(self.inside_ns * inside);
            });
        }
    }
}
