//! Event counters of the process, for the locks that count.
//!
//! Every lock comes in two instantiations, `Mutex` and `CountedMutex`. The first has not one
//! instruction for counting; the second counts here, all locks of the process together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::platform::cpu;

pub use qspin_core::events::{Event, Events, NoEvents};

/// Shards that threads spread their counts over. Two threads that share one lose time to its
/// cache line, never a count.
const SHARDS: usize = 64;

/// The counts of the threads that share a shard; a cache line of its own.
#[repr(align(64))]
struct Shard([AtomicU64; Event::ALL.len()]);

static SHARDED: [Shard; SHARDS] =
    [const { Shard([const { AtomicU64::new(0) }; Event::ALL.len()]) }; SHARDS];

/// Counts events in the counters of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted;

impl Events for Counted {
    const ENABLED: bool = true;

    #[inline]
    fn add(&self, event: Event, amount: u64) {
        // A thread without a number shares a shard with those of number 0.
        let number = cpu::current().map_or(0, |cpu| cpu.number());
        SHARDED[number as usize % SHARDS].0[event as usize].fetch_add(amount, Relaxed);
    }
}

/// How often each event happened in this process since the last [`reset`].
///
/// Counters are read one after the other while threads count on: each is exact once the threads
/// that count are done, their relation is approximate before.
#[must_use]
pub fn snapshot() -> Vec<(Event, u64)> {
    let sum =
        |event: Event| SHARDED.iter().map(|shard| shard.0[event as usize].load(Relaxed)).sum();
    Event::ALL.into_iter().map(|event| (event, sum(event))).collect()
}

/// Sets every counter to zero.
pub fn reset() {
    for shard in &SHARDED {
        for counter in &shard.0 {
            counter.store(0, Relaxed);
        }
    }
}
