//! The kernel's lock torture, with a spinlock: the first table of CNA v15 (document 002).
//!
//! # Source
//! Linux 5.12, `kernel/locking/locktorture.c` (Paul E. McKenney, Davidlohr Bueso), described, not
//! copied. Each of N writers, for ever:
//!
//! 1. draws a random number (one in 2^20 times it sleeps for a tick: left out here);
//! 2. acquires the lock;
//! 3. reads and sets a flag that says that the lock is held, reads the readers' flag, and adds one to its own
//!    count of acquisitions;
//! 4. draws: one in N · 2000 · 100 times it delays for 100 ms; one in N · 4 times it delays for
//!    2 µs; one in N · 20000 times it may be preempted (left out);
//! 5. clears the flag and stores the time of the release;
//! 6. releases the lock.
//!
//! The counts are an array of 16 bytes per writer, so four writers share a line. The flags and the time lie in
//! one line here. The kernel's threads are free to run anywhere, and spread.
//!
//! So a section takes 1 µs / N on average for the delays alone: half of it from the short ones, half
//! from those of 100 ms. Document 002's 2.7 · 10^7 operations of one thread are a run of 30 s.
//!
//! # Long delays
//! In a few simulated milliseconds there are none, or far too many. So they are averaged by default: none is
//! simulated, and their share of a run is subtracted from its result.
//!
//! # Limits
//! No sleeping, no preemption, no stuttering (pauses of all threads together).

use std::sync::atomic::Ordering::Relaxed;

use qspin_core::lock::RawLock;
use qspin_core::platform::AtomicWord;
use serde::{Deserialize, Serialize};

use super::{Station, Work};
use crate::platform::SimPlatform;

/// How the delays of 100 ms are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LongDelays {
    /// None is simulated; their average share is subtracted from the result.
    #[default]
    Averaged,
    /// They are drawn as in the source.
    Drawn,
}

/// Lock torture by writers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locktorture {
    /// What a writer computes inside, beside the delays and the shared lines: drawing a random number.
    pub inside_ns: f64,
    /// What it computes outside: drawing, and the loop.
    pub outside_ns: f64,
    /// The short delay. Source: 2 µs.
    #[serde(default = "short")]
    pub short_delay_ns: f64,
    /// The long delay. Source: 100 ms.
    #[serde(default = "long")]
    pub long_delay_ns: f64,
    /// How the long delays are treated.
    #[serde(default)]
    pub long_delays: LongDelays,
}

fn short() -> f64 {
    2e3
}

fn long() -> f64 {
    1e8
}

/// The odds of a short delay: one in this many sections of each writer, for each writer.
const SHORT_ODDS: u32 = 4;
/// The same for a long one: 2000 times its milliseconds.
const LONG_ODDS: u32 = 200_000;

const FLAGS: usize = 0;
const COUNTS: usize = 1;
/// Words of a writer's counts.
const COUNT_WORDS: usize = 4;

impl Locktorture {
    fn delay(&self, p: &SimPlatform, writers: u32) {
        let (long, short) = p.random(|random| {
            let long = random.below(writers * LONG_ODDS) == 0;
            (long, random.below(writers * SHORT_ODDS) == 0)
        });
        if long && self.long_delays == LongDelays::Drawn {
            p.work(self.long_delay_ns);
        }
        if short {
            p.work(self.short_delay_ns);
        }
    }
}

impl Work for Locktorture {
    fn lines(&self, cpus: u32) -> usize {
        COUNTS + (cpus as usize * COUNT_WORDS).div_ceil(16)
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        let mine = p.number() as usize * COUNT_WORDS;
        let count = station.word(COUNTS + mine / 16, mine % 16 + 2);
        let held = station.word(FLAGS, 0);
        let readers = station.word(FLAGS, 1);
        let released = station.word(FLAGS, 2);
        while !p.is_over() {
            p.work(self.outside_ns);
            station.section(p, 0, || {
                p.load_together([held, count]);
                held.load(Relaxed);
                held.store(1, Relaxed);
                readers.load(Relaxed);
                station.count(count);
                p.work(self.inside_ns);
                self.delay(p, station.cpus());
                held.store(0, Relaxed);
                released.store(p.time_ns() as u32, Relaxed);
            });
        }
    }

    fn throughput(&self, sections: &[u64], finished_ns: &[f64]) -> f64 {
        let last = finished_ns.iter().copied().fold(0.0, f64::max);
        let all = sections.iter().sum::<u64>() as f64;
        let ns_a_section = last / all;
        let long = match self.long_delays {
            LongDelays::Drawn => 0.0,
            LongDelays::Averaged => {
                self.long_delay_ns / (f64::from(LONG_ODDS) * sections.len() as f64)
            }
        };
        1000.0 / (ns_a_section + long)
    }
}
