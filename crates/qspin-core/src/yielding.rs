//! Spin a bounded time, then yield the CPU: `yield`.
//!
//! # Problem
//! The holder's virtual CPU may have been preempted, perhaps in favour of the very waiter that
//! spins for it. A waiter that has spun for long had better let somebody else run.
//!
//! # Source
//! Document 001: Srivatsa Vaddagiri, "Paravirt-spinlock implementation for KVM guests (Version
//! 0)", remedy (a), undirected as in the first version; its model is Xen's lock of the time.
//!
//! # States
//! ```text
//!  free (0) ──take──► held (1) ──release──► free
//! ```
//!
//! # Invariants
//! * **Y1** As B1 of the backoff lock: set by a compare-exchange from 0, cleared by the holder.
//!
//! # Limits
//! Unfair. A yield gives the CPU to anybody, not to the holder; where nobody else can run it
//! costs a system call and changes nothing.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawLock};
use crate::platform::{AtomicWord, Budget, ConstWord, Platform, Until};
use crate::site::Site;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// A lock whose waiters yield. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct YieldLock<W> {
    word: W,
}

impl<W: AtomicWord> YieldLock<W> {
    #[inline]
    fn take<P: Platform<Word = W>>(&self, p: &P) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`.
        let order = p.ordering(Site::YieldTake, Acquire);
        self.word.compare_exchange(FREE, HELD, order).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow<P: Platform<Word = W>>(&self, p: &P) {
        loop {
            let looks = Budget::Looks(p.tuning().yield_looks);
            let seen = p.wait_until(&self.word, Until::is(FREE), looks, Relaxed);
            if seen != FREE {
                p.yield_cpu();
            } else if self.take(p) {
                return;
            }
        }
    }
}

// SAFETY: Y1 gives exclusion; `YieldTake` acquires what `YieldRelease` releases.
unsafe impl<P: Platform> RawLock<P> for YieldLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(FREE) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        if !self.take(p) {
            self.acquire_slow(p);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        self.word.load(Relaxed) == FREE && self.take(p)
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        // ORDERING: Release pairs with the Acquire of the next taker (`YieldTake`).
        self.word.store(FREE, p.ordering(Site::YieldRelease, Release));
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

impl<W: ConstWord> ConstLock for YieldLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO };
    type Guard = lock_api::GuardSend;
}
