//! Several locks, each with data of its own, under a load that varies.
//!
//! Beside [`MutexStation`](super::station::MutexStation), whose one lock needs no index: a loop that looks up
//! its lock costs more, and the cheapest locks would show it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::contender::Contender;

use super::busy::busy;
use super::station::{Padded, Station, Tally};
use super::workload::lengths::Lines;
use super::workload::varied::{Script, Varied};

/// Mutual exclusion locks under a load that varies.
pub struct ManyStation<C> {
    locks: Box<[Padded<C>]>,
    data: Box<[Padded<Lines>]>,
    turn: Turn,
    work: Varied,
}

/// Which load it is, where two of them take turns. Written ten times a second, read by every operation: on a
/// cache line that every CPU has.
#[derive(Debug, Default)]
pub struct Turn(Padded<AtomicUsize>);

impl Turn {
    /// 0 or 1.
    #[inline(always)]
    pub fn now(&self) -> usize {
        self.0.0.load(Ordering::Relaxed)
    }

    /// The other one's turn; called by one thread.
    pub fn change(&self) {
        self.0.0.store(1 - self.now(), Ordering::Relaxed);
    }
}

/// A thread's part.
pub struct Local {
    script: Script,
    value: u64,
}

impl<C: Contender> ManyStation<C> {
    /// Fresh locks and fresh data.
    pub fn new(work: Varied) -> Self {
        let mut locks: Box<[Padded<C>]> =
            (0..work.locks.max(1)).map(|_| Padded(C::new())).collect();
        for lock in &mut locks {
            lock.0.settle();
        }
        let data = work.shared().map(Padded).collect();
        Self { locks, data, turn: Turn::default(), work }
    }
}

impl<C: Contender> Station for ManyStation<C> {
    const CLASSES: &'static [&'static str] = &["lock"];

    type Local = Local;

    fn local(&self, index: usize, threads: usize) -> Local {
        Local { script: Script::new(&self.work, index, threads), value: index as u64 + 1 }
    }

    #[inline(always)]
    fn class(&self, _: &Local) -> usize {
        0
    }

    #[inline(always)]
    fn operate(&self, local: &mut Local, acquired: impl FnOnce()) {
        let step = local.script.next(self.turn.now());
        let index = step.lock as usize;
        let lock = &self.locks[index].0;
        let held = lock.lock();
        acquired();
        self.data[index].0.write();
        local.value = busy(local.value, u64::from(step.critical));
        local.script.leave_now_and_then();
        // SAFETY: `held` was returned by this lock in this thread, five lines above.
        unsafe { lock.unlock(held) };
        local.value = busy(local.value, u64::from(step.outside));
    }

    fn tally(local: Local) -> Tally {
        // A thread that worked must have a result, or the compiler may drop the work.
        std::hint::black_box(local.value);
        Tally::default()
    }

    fn changes_every(&self) -> Option<Duration> {
        self.work.changes_every()
    }

    fn change(&self) {
        self.turn.change();
    }

    fn verify(&self, _: Tally, operations: u64) -> Result<(), String> {
        let counted = self.data.iter().map(|data| data.0.counted()).fold(0, u64::saturating_add);
        if counted == operations {
            return Ok(());
        }
        Err(format!(
            "{operations} critical sections left counters of {counted}, so some overlapped"
        ))
    }
}
