//! A loop of system calls, as seen by the locks that they acquire.
//!
//! # Source
//! Micro benchmarks such as will-it-scale's repeat one or two system calls for ever. What such a call does with
//! a contended lock is in the kernel's source: how many sections, which lines of shared data each of them reads
//! and writes, and which words of those lie in the line of the lock itself. A scenario lists that as *steps*;
//! nothing of it is in the code.
//!
//! For example `open1` of CNA v15 (document 002), in which each thread opens a file of its own and closes it
//! again, has two steps on the `file_lock` of the process's table of files: to find and claim a free
//! descriptor, and to clear it. Both write the table's bitmap, a line of its own, and `next_fd`, which lies in
//! the lock's line.
//!
//! # Limits
//! No thread sleeps. Lines that are touched outside the sections are private, so part of `outside_ns`, except
//! for `counts`.

use std::sync::atomic::Ordering::Relaxed;

use qspin_core::lock::RawLock;
use qspin_core::platform::AtomicWord;
use serde::{Deserialize, Serialize};

use super::{Station, Work};
use crate::platform::SimPlatform;

/// One critical section, and what comes before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Work before it, since the last one.
    pub outside_ns: f64,
    /// Work inside, beside the lines.
    pub inside_ns: f64,
    /// Which of the locks.
    #[serde(default)]
    pub lock: u32,
    /// Lines of the lock's data that it reads.
    #[serde(default)]
    pub reads: u32,
    /// Lines of the lock's data, the first ones, that it reads and writes.
    #[serde(default)]
    pub writes: u32,
    /// Lines of the lock's data behind those, each of which it asks for when the one before has come, as a list's links
    /// are, and writes; on average.
    #[serde(default)]
    pub chain: f64,
    /// Words in the lock's own line that it reads and writes.
    #[serde(default)]
    pub beside: u32,
    /// Lines that all CPUs share, each changed by one read-modify-write before the section, outside any lock:
    /// reference counts.
    #[serde(default)]
    pub counts: u32,
}

impl Step {
    /// Lines that are asked for together.
    fn together(&self) -> u32 {
        self.reads.max(self.writes)
    }
}

/// Steps, one after the other, repeated; one pass is an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemCalls {
    /// Locks.
    #[serde(default = "one")]
    pub locks: u32,
    /// The steps.
    pub steps: Vec<Step>,
}

fn one() -> u32 {
    1
}

const MAX_LOCKS: u32 = 1 << 12;

impl SystemCalls {
    /// Lines of data of each lock.
    fn lines_a_lock(&self) -> u32 {
        self.steps.iter().map(|step| step.together() + step.chain.ceil() as u32).max().unwrap_or(0)
    }

    /// Lines that are shared beside those, behind them.
    fn counts(&self) -> u32 {
        self.steps.iter().map(|step| step.counts).max().unwrap_or(0)
    }
}

impl Work for SystemCalls {
    fn check(&self) -> Result<(), String> {
        if self.locks > MAX_LOCKS || self.steps.is_empty() {
            return Err(format!(
                "workload: system-calls needs at least one step, and at most {MAX_LOCKS} locks"
            ));
        }
        match self.steps.iter().find(|step| step.lock >= self.locks) {
            Some(Step { lock, .. }) => {
                let last = self.locks - 1;
                Err(format!("workload: there is no lock {lock}: they are 0 to {last}"))
            }
            None => Ok(()),
        }
    }

    fn locks(&self) -> u32 {
        self.locks
    }

    fn lines(&self, _: u32) -> usize {
        (self.locks * self.lines_a_lock() + self.counts()) as usize
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        let lines = self.lines_a_lock();
        let mut due = vec![0.0; self.steps.len()];
        while !p.is_over() {
            for (step, due) in self.steps.iter().zip(&mut due) {
                let line = |number: u32| station.word((step.lock * lines + number) as usize, 0);
                p.work(step.outside_ns);
                for count in 0..step.counts {
                    station.word((self.locks * lines + count) as usize, 0).fetch_add(1, Relaxed);
                }
                station.section(p, step.lock, || {
                    p.load_together((0..step.together()).map(line));
                    *due += step.chain;
                    let chain = step.together()..step.together() + *due as u32;
                    *due -= due.floor();
                    for number in (0..step.writes).chain(chain) {
                        station.count(line(number));
                    }
                    for word in 0..step.beside {
                        station.count(station.beside(step.lock, word as usize));
                    }
                    p.work(step.inside_ns);
                });
            }
        }
    }

    fn throughput(&self, sections: &[u64], finished_ns: &[f64]) -> f64 {
        let last = finished_ns.iter().copied().fold(0.0, f64::max);
        let operations = sections.iter().sum::<u64>() as f64 / self.steps.len() as f64;
        operations / last * 1000.0
    }
}
