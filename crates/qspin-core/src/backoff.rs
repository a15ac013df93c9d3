//! Test-and-set with bounded binary exponential backoff: `backoff`, and without it: `tas`.
//!
//! # Problem
//! When a test-and-set lock is freed, every waiter sees it and tries at once: a storm of
//! compare-exchanges, of which one succeeds and each moves the line.
//!
//! # Source
//! Document 003: Wangyang Guo, "x86/paravirt: add backoff mechanism to virt_spin_lock". The
//! lock that a Linux guest falls back to where it can neither halt nor kick.
//!
//! # States
//! ```text
//!  free (0) ──take──► held (1) ──release──► free
//! ```
//! A miss is followed by the pause, whatever its reason. The pause doubles only after an
//! attempt that *failed*: that is evidence of competitors, a lock merely seen taken is not.
//!
//! # Invariants
//! * **B1** The word is 1 exactly while somebody holds the lock; only a compare-exchange from
//!   0 sets it, only the holder clears it.
//!
//! # Limits
//! Unfair: nothing bounds a wait. The last waiter may sit out a long pause although the lock
//! is free (the slight regression that the document reports at mid contention).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawLock};
use crate::platform::{AtomicWord, ConstWord, Platform};
use crate::site::Site;
use crate::tuning::BACKOFF_CAP;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Test-and-set with backoff; the pause is at most `CAP` pause instructions.
#[derive(Debug)]
#[repr(transparent)]
pub struct BackoffLock<W, const CAP: u32 = BACKOFF_CAP> {
    word: W,
}

/// Plain test-and-set with one pause after a miss: `virt_spin_lock` before document 003.
pub type TasLock<W> = BackoffLock<W, 1>;

impl<W: AtomicWord, const CAP: u32> BackoffLock<W, CAP> {
    /// `acquire`'s own attempt counts as having seen the lock taken: how often it had been free
    /// and snatched away is not known.
    #[cold]
    #[inline(never)]
    fn acquire_slow<P: Platform<Word = W>>(&self, p: &P) {
        let mut pauses = CAP.min(1);
        p.relax(pauses);
        loop {
            let seen = self.word.load(Relaxed);
            // ORDERING: Acquire pairs with the Release of `release`.
            let order = p.ordering(Site::BackoffTake, Acquire);
            if seen == FREE && self.word.compare_exchange(FREE, HELD, order).is_ok() {
                return;
            }
            p.relax(pauses);
            if seen == FREE {
                pauses = pauses.saturating_mul(2).min(CAP);
            }
        }
    }
}

// SAFETY: B1 gives exclusion; `BackoffTake` acquires what `BackoffRelease` releases.
unsafe impl<P: Platform, const CAP: u32> RawLock<P> for BackoffLock<P::Word, CAP> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(FREE) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        // ORDERING: Acquire pairs with the Release of `release`.
        let order = p.ordering(Site::BackoffTake, Acquire);
        if self.word.compare_exchange(FREE, HELD, order).is_err() {
            self.acquire_slow(p);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        self.word.load(Relaxed) == FREE
            && self
                .word
                .compare_exchange(FREE, HELD, p.ordering(Site::BackoffTake, Acquire))
                .is_ok()
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        // ORDERING: Release pairs with the Acquire of the next taker (`BackoffTake`).
        self.word.store(FREE, p.ordering(Site::BackoffRelease, Release));
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

impl<W: ConstWord, const CAP: u32> ConstLock for BackoffLock<W, CAP> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO };
    type Guard = lock_api::GuardSend;
}
