//! A station is a lock with the data it protects and the work done there: what a measuring loop
//! runs, one operation after the other.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::contender::{Contender, RwContender};

use super::busy::busy;
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

/// Readers and writers of one lock, `readers` reads to `writers` writes, mixed at random.
pub struct RwStation<C> {
    lock: Box<Padded<C>>,
    shared: Box<Padded<RwShared>>,
    mix: Mix,
}

/// The kinds of operations of a reader-writer lock.
pub const RW_CLASSES: [&str; 2] = ["read", "write"];

/// How often which operation comes, and how long it takes.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    /// Reads in `readers + writers` operations.
    pub readers: u32,
    /// Writes in `readers + writers` operations.
    pub writers: u32,
    /// Steps of work under the lock.
    pub critical: u64,
    /// Steps of work between two operations.
    pub outside: u64,
    /// Seed of the threads' choices.
    pub seed: u64,
}

/// A writer changes both; a reader that sees them differ saw a writer at work.
#[derive(Debug, Default)]
struct RwShared {
    first: AtomicU64,
    second: AtomicU64,
}

/// A thread's part in [`RwStation`].
pub struct RwLocal {
    random: fastrand::Rng,
    writes_next: bool,
    writes: u64,
    torn: u64,
    value: u64,
}

impl RwLocal {
    fn draw(&mut self, mix: &Mix) {
        self.writes_next = self.random.u32(0..mix.readers + mix.writers) < mix.writers;
    }
}

impl<C: RwContender> RwStation<C> {
    /// A fresh lock and fresh data.
    pub fn new(mix: Mix) -> Self {
        Self {
            lock: Box::new(Padded(C::new())),
            shared: Box::new(Padded(RwShared::default())),
            mix,
        }
    }
}

/// A relaxed load and store, as plain as two moves: only exclusion keeps the count right.
#[inline(always)]
pub fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl<C: RwContender> Station for RwStation<C> {
    const CLASSES: &'static [&'static str] = &RW_CLASSES;

    type Local = RwLocal;

    fn local(&self, index: usize, _: usize) -> RwLocal {
        let mut local = RwLocal {
            random: fastrand::Rng::with_seed(self.mix.seed ^ (index as u64 + 1)),
            writes_next: false,
            writes: 0,
            torn: 0,
            value: index as u64 + 1,
        };
        local.draw(&self.mix);
        local
    }

    #[inline(always)]
    fn class(&self, local: &RwLocal) -> usize {
        usize::from(local.writes_next)
    }

    #[inline(always)]
    fn operate(&self, local: &mut RwLocal, acquired: impl FnOnce()) {
        let shared = &self.shared.0;
        if local.writes_next {
            let held = self.lock.0.write();
            acquired();
            count(&shared.first);
            local.value = busy(local.value, self.mix.critical);
            count(&shared.second);
            // SAFETY: `held` was returned by this lock's `write` in this thread, just above.
            unsafe { self.lock.0.write_unlock(held) };
            local.writes += 1;
        } else {
            let held = self.lock.0.read();
            acquired();
            let first = shared.first.load(Ordering::Relaxed);
            local.value = busy(local.value, self.mix.critical);
            let second = shared.second.load(Ordering::Relaxed);
            // SAFETY: `held` was returned by this lock's `read` in this thread, just above.
            unsafe { self.lock.0.read_unlock(held) };
            local.torn += u64::from(first != second);
        }
        local.draw(&self.mix);
        local.value = busy(local.value, self.mix.outside);
    }

    fn tally(local: RwLocal) -> Tally {
        // A thread that worked must have a result, or the compiler may drop the work.
        std::hint::black_box(local.value);
        Tally { writes: local.writes, torn: local.torn }
    }

    fn verify(&self, Tally { writes, torn }: Tally, _: u64) -> Result<(), String> {
        for counted in [&self.shared.0.first, &self.shared.0.second] {
            let counted = counted.load(Ordering::Relaxed);
            if counted != writes {
                return Err(format!(
                    "{writes} writes left a counter of {counted}, so some overlapped"
                ));
            }
        }
        if torn > 0 {
            return Err(format!("{torn} reads saw a writer at work"));
        }
        Ok(())
    }
}
