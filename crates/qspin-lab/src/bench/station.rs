//! A station is a lock with the data it protects and the work done there: what a measuring loop
//! runs, one operation after the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::contender::Contender;

use super::workload::Work;

/// Keeps its content away from its neighbours' cache lines (two: x86 fetches lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// What a measuring thread does again and again.
pub trait Station: Sync {
    /// The kinds of operations whose waits are told apart, by name; at least one.
    const CLASSES: &'static [&'static str];

    /// What a thread keeps for itself.
    type Local;

    /// The state of thread `index` of `threads`.
    fn local(&self, index: usize, threads: usize) -> Self::Local;

    /// Index in [`CLASSES`](Station::CLASSES) of this thread's next operation.
    fn class(&self, local: &Self::Local) -> usize;

    /// Does one operation: acquires, calls `acquired` at once, works, releases, works outside.
    fn operate(&self, local: &mut Self::Local, acquired: impl FnOnce());

    /// What a thread has found out, at its end.
    fn tally(local: Self::Local) -> Tally;

    /// How long the load stays the same, where it changes.
    fn changes_every(&self) -> Option<Duration> {
        None
    }

    /// Changes it, or changes it back.
    fn change(&self) {}

    /// Checks that no thread was ever in the critical section beside another, now that all of them have ended; `found`
    /// is what they have found out together.
    fn verify(&self, found: Tally, operations: u64) -> Result<(), String>;
}

/// What threads have found out about the exclusion, beside their operations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Writes that were done.
    pub writes: u64,
    /// Reads that saw a writer at work.
    pub torn: u64,
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |all, one| Self {
            writes: all.writes + one.writes,
            torn: all.torn + one.torn,
        })
    }
}

/// A mutual exclusion lock under a workload.
pub struct MutexStation<C, W: Work> {
    lock: Box<Padded<C>>,
    shared: Box<Padded<W::Shared>>,
    work: W,
}

impl<C: Contender, W: Work> MutexStation<C, W> {
    /// A fresh lock and fresh data for `work`.
    pub fn new(work: W) -> Self {
        let mut lock = Box::new(Padded(C::new()));
        lock.0.settle();
        let shared = Box::new(Padded(work.shared()));
        Self { lock, shared, work }
    }
}

impl<C: Contender, W: Work> Station for MutexStation<C, W> {
    const CLASSES: &'static [&'static str] = &["lock"];

    type Local = W::Local;

    fn local(&self, index: usize, threads: usize) -> Self::Local {
        self.work.local(index, threads)
    }

    #[inline(always)]
    fn class(&self, _: &Self::Local) -> usize {
        0
    }

    #[inline(always)]
    fn operate(&self, local: &mut Self::Local, acquired: impl FnOnce()) {
        let held = self.lock.0.lock();
        acquired();
        self.work.critical(&self.shared.0, local);
        // SAFETY: `held` was returned by this lock in this thread, three lines above.
        unsafe { self.lock.0.unlock(held) };
        self.work.outside(local);
    }

    fn tally(_: Self::Local) -> Tally {
        Tally::default()
    }

    fn verify(&self, _: Tally, operations: u64) -> Result<(), String> {
        let counted = self.work.counted(&self.shared.0);
        if counted == operations {
            return Ok(());
        }
        Err(format!(
            "{operations} critical sections left a counter of {counted}, so some overlapped"
        ))
    }
}

/// A relaxed load and store, as plain as two moves: only exclusion keeps the count right.
#[inline(always)]
pub fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
