//! Test-and-set with bounded binary exponential backoff: `backoff`, and without it: `tas`.
//!
//! # Problem
//! When a test-and-set lock is released, every waiter sees it and tries at once: a storm of compare-exchanges, of
//! which one succeeds and each moves the line.
//!
//! # Source
//! Document 003: Wangyang Guo, "x86/paravirt: add backoff mechanism to virt_spin_lock". The lock that a Linux
//! guest falls back to where it can neither halt nor kick.
//!
//! # States and invariants
//! Those of [`crate::flag`]; held is 1. The waiter pauses after each miss, whatever its reason. The pause doubles
//! only after an attempt that *failed*: that is evidence of competitors, a lock merely seen taken is not.
//!
//! # Limits
//! Unfair: nothing bounds a wait. The last waiter may sit out a long pause although the lock is free (the slight
//! regression that the document reports at mid contention).

use core::sync::atomic::Ordering::Relaxed;

use crate::flag::{FREE, FlagLock, Manner};
use crate::platform::{AtomicWord, Platform};
use crate::site::Site;
use crate::tuning::BACKOFF_CAP;

/// Test-and-set with backoff; the pause is at most `CAP` pause instructions.
pub type BackoffLock<W, const CAP: u32 = BACKOFF_CAP> = FlagLock<W, Backoff<CAP>>;

/// Plain test-and-set with one pause after a miss: `virt_spin_lock` before document 003.
pub type TasLock<W> = BackoffLock<W, 1>;

/// Backs off for up to `CAP` pause instructions between two polls.
#[derive(Debug, Clone, Copy)]
pub struct Backoff<const CAP: u32> {
    pauses: u32,
}

impl<const CAP: u32> Manner for Backoff<CAP> {
    const TAKE: Site = Site::BackoffTake;
    const RELEASE: Site = Site::BackoffRelease;
    type Guard = lock_api::GuardSend;

    /// The failed attempt of `acquire` counts as having seen the lock taken: how often it was free before and
    /// lost to another thread is not known.
    #[inline]
    fn begin<P: Platform>(p: &P) -> Self {
        let pauses = CAP.min(1);
        p.relax(pauses);
        Self { pauses }
    }

    #[inline]
    fn poll<P: Platform>(&self, _: &P, word: &P::Word) -> u32 {
        word.load(Relaxed)
    }

    #[inline]
    fn missed<P: Platform>(&mut self, p: &P, seen: u32) {
        p.relax(self.pauses);
        if seen == FREE {
            self.pauses = self.pauses.saturating_mul(2).min(CAP);
        }
    }
}
