//! What the tests of halting locks share: they set the tunables of the process and look at its
//! counters, so they run one after the other.

#![allow(dead_code, reason = "each test needs another part")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use qspin::events::{self, Event};
use qspin::tuning::{self, Tuning};

static ALONE: Mutex<()> = Mutex::new(());

/// One test at a time, with tunables of its own.
pub(crate) struct Alone(
    #[allow(dead_code, reason = "released when dropped")] MutexGuard<'static, ()>,
);

impl Alone {
    /// Waits until it is alone, and puts these tunables in force.
    pub(crate) fn with(tuning: Tuning) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        set(tuning);
        events::reset();
        Self(alone)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        tuning::set(&Tuning::DEFAULT);
    }
}

/// Puts these tunables in force.
pub(crate) fn set(tuning: Tuning) {
    tuning::set(Box::leak(Box::new(tuning)));
}

/// A waiter halts after a single poll.
pub(crate) fn halting() -> Tuning {
    let mut tuning = Tuning::DEFAULT;
    let looks = |tunable: &&tuning::Tunable| tunable.name.ends_with("_polls");
    for tunable in Tuning::ALL.iter().filter(looks) {
        (tunable.set)(&mut tuning, tunable.min);
    }
    tuning
}

/// How often this has happened.
pub(crate) fn count(event: Event) -> u64 {
    events::snapshot().into_iter().find(|(other, _)| *other == event).map_or(0, |(_, n)| n)
}

/// How often any thread has halted.
pub(crate) fn halts() -> u64 {
    count(Event::WaitHeadCount) + count(Event::WaitNodeCount)
}

/// Waits for it.
pub(crate) fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}
