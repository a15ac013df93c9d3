//! Patience: how long a waiter stays awake before it sleeps.
//!
//! # Problem
//! To sleep and to be woken costs some microseconds, and whoever wakes pays most of it on the way out of its
//! critical section. To stay awake costs the CPU, and every look at the lock takes the line from its owner.
//!
//! # What it does
//! A waiter looks, with pauses between that grow; then it also yields the CPU after each pause; then it is to
//! sleep. While nobody else needs the CPU a yield returns at once, and to go on looking harms nobody.
//!
//! A yield that returns late has given the CPU to somebody who used it up: a thread that does something else.
//! Whoever yields then is behind that one each time, for a whole slice, and marked as awake at that; but who
//! sleeps is soon put before it when woken. So after a long yield the waiter sleeps, and so do the next waits
//! of its thread. A yield to those who use the same lock is not long: they wait soon themselves.
//!
//! # Limits
//! Threads that compute for less than `mutex_yield_us` at a time are not noticed. What a thread has found out
//! holds for all of its locks.

use core::sync::atomic::Ordering::Relaxed;

use super::SleepPlatform;
use crate::node::NodeId;
use crate::platform::AtomicWord;

/// What is left of a waiter's patience.
#[derive(Debug)]
pub struct Patience {
    looks: u32,
    /// Pause instructions before the next look.
    pauses: u32,
    yields: u32,
}

impl Patience {
    /// That of one who has just begun to wait, or was woken.
    pub fn new<P: SleepPlatform>(p: &P) -> Self {
        let tuning = p.tuning();
        let yields = if crowded(p) { 0 } else { tuning.mutex_yields };
        Self { looks: tuning.mutex_looks, pauses: tuning.mutex_first_pauses, yields }
    }

    /// That of one past whom nobody gets in: it is soon rewarded, whatever it is otherwise.
    pub fn of_heir<P: SleepPlatform>(p: &P) -> Self {
        let tuning = p.tuning();
        Self { looks: 0, pauses: tuning.mutex_pauses, yields: tuning.mutex_heir_yields }
    }

    /// That of one who is to sleep at once.
    #[must_use]
    pub const fn none() -> Self {
        Self { looks: 0, pauses: 1, yields: 0 }
    }

    /// Whether it is not yet to yield.
    #[inline]
    #[must_use]
    pub fn only_looks(&self) -> bool {
        self.looks > 0
    }

    /// Whether it is to sleep.
    #[inline]
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.looks == 0 && self.yields == 0
    }

    /// Lets some time pass until the next look. It is not over yet.
    #[inline]
    pub fn wait<P: SleepPlatform>(&mut self, p: &P) {
        p.relax(self.pauses);
        if self.looks > 0 {
            self.looks -= 1;
            self.pauses = (self.pauses * 2).min(p.tuning().mutex_pauses);
        } else {
            self.yields -= 1;
            self.yield_cpu(p);
        }
    }

    fn yield_cpu<P: SleepPlatform>(&mut self, p: &P) {
        let tuning = p.tuning();
        let before = p.now_ns();
        p.yield_cpu();
        let ns = p.now_ns().saturating_sub(before);
        if ns >= u64::from(tuning.mutex_yield_us) * 1000 {
            self.yields = 0;
            if let Some(left) = waits_left(p) {
                left.store(tuning.mutex_crowded_waits, Relaxed);
            }
        }
    }
}

/// Waits of this CPU that are not to yield, as far as is known. Nobody else's CPU looks at it; a handler that
/// interrupts the change of it makes it a little wrong.
fn waits_left<P: SleepPlatform>(p: &P) -> Option<&P::Word> {
    Some(&p.sleeper(NodeId::new(p.cpu()?, 0)?).crowded)
}

/// Whether this wait is one of them.
fn crowded<P: SleepPlatform>(p: &P) -> bool {
    let Some(left) = waits_left(p) else { return false };
    let waits = left.load(Relaxed);
    if waits > 0 {
        left.store(waits - 1, Relaxed);
    }
    waits > 0
}
