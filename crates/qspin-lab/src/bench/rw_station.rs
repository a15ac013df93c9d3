//! Readers and writers, mixed at random, under a load that may vary.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::contender::RwContender;

use super::busy::busy;
use super::many::Turn;
use super::station::{Padded, Station, Tally, count};
use super::workload::varied::{Script, Varied};

/// Readers and writers, `readers` reads to `writers` writes.
pub struct RwStation<C> {
    locks: Box<[Padded<C>]>,
    shared: Box<[Padded<RwShared>]>,
    turn: Turn,
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
    /// The work, and the seed of the threads' choices; writers write two words of one line, however many
    /// lines it says.
    pub work: Varied,
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
    script: Script,
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
    /// Fresh locks and fresh data.
    pub fn new(mix: Mix) -> Self {
        let locks = 0..mix.work.locks.max(1);
        Self {
            locks: locks.clone().map(|_| Padded(C::new())).collect(),
            shared: locks.map(|_| Padded(RwShared::default())).collect(),
            turn: Turn::default(),
            mix,
        }
    }
}

impl<C: RwContender> Station for RwStation<C> {
    const CLASSES: &'static [&'static str] = &RW_CLASSES;

    type Local = RwLocal;

    fn local(&self, index: usize, threads: usize) -> RwLocal {
        let mut local = RwLocal {
            random: fastrand::Rng::with_seed(self.mix.work.seed ^ (index as u64 + 1)),
            script: Script::new(&self.mix.work, index, threads),
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
        let step = local.script.next(self.turn.now());
        let index = step.lock as usize;
        let (lock, shared) = (&self.locks[index].0, &self.shared[index].0);
        if local.writes_next {
            let held = lock.write();
            acquired();
            count(&shared.first);
            local.value = busy(local.value, u64::from(step.critical));
            local.script.leave_now_and_then();
            count(&shared.second);
            // SAFETY: `held` was returned by this lock's `write` in this thread, just above.
            unsafe { lock.write_unlock(held) };
            local.writes += 1;
        } else {
            let held = lock.read();
            acquired();
            let first = shared.first.load(Ordering::Relaxed);
            local.value = busy(local.value, u64::from(step.critical));
            local.script.leave_now_and_then();
            let second = shared.second.load(Ordering::Relaxed);
            // SAFETY: `held` was returned by this lock's `read` in this thread, just above.
            unsafe { lock.read_unlock(held) };
            local.torn += u64::from(first != second);
        }
        local.draw(&self.mix);
        local.value = busy(local.value, u64::from(step.outside));
    }

    fn tally(local: RwLocal) -> Tally {
        // A thread that worked must have a result, or the compiler may drop the work.
        std::hint::black_box(local.value);
        Tally { writes: local.writes, torn: local.torn }
    }

    fn changes_every(&self) -> Option<Duration> {
        self.mix.work.changes_every()
    }

    fn change(&self) {
        self.turn.change();
    }

    fn verify(&self, Tally { writes, torn }: Tally, _: u64) -> Result<(), String> {
        let counted = |of: fn(&RwShared) -> u64| self.shared.iter().map(|it| of(&it.0)).sum();
        let (first, second): (u64, u64) = (
            counted(|it| it.first.load(Ordering::Relaxed)),
            counted(|it| it.second.load(Ordering::Relaxed)),
        );
        for counted in [first, second] {
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
