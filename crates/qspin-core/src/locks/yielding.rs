//! Spin a bounded time, then yield the CPU: `yield`.
//!
//! # Problem
//! The owner's virtual CPU may have been preempted, perhaps in favour of the very waiter that spins for it. A
//! waiter that has spun for long should let another thread run.
//!
//! # Source
//! Document 001: Srivatsa Vaddagiri, "Paravirt-spinlock implementation for KVM guests (Version 0)", remedy (a),
//! undirected as in the first version; its model is Xen's lock of the time.
//!
//! # States and invariants
//! Those of [`crate::flag`]; held is 1.
//!
//! # Limits
//! Unfair. A yield gives the CPU to any thread, not to the owner; where no other can run it costs a system call
//! and changes nothing. [`crate::locks::simple`] knows the owner.

use core::sync::atomic::Ordering::Relaxed;

use crate::flag::{FREE, FlagLock, Manner};
use crate::platform::{Budget, Platform, Until};
use crate::site::Site;

/// A lock whose waiters yield. See the [module](self) documentation.
pub type YieldLock<W> = FlagLock<W, Yielding>;

/// Waits by polling and yielding in turn, to any thread.
#[derive(Debug, Clone, Copy)]
pub struct Yielding;

impl Manner for Yielding {
    const TAKE: Site = Site::YieldTake;
    const RELEASE: Site = Site::YieldRelease;
    type Guard = lock_api::GuardSend;

    #[inline]
    fn begin<P: Platform>(_: &P) -> Self {
        Self
    }

    #[inline]
    fn poll<P: Platform>(&self, p: &P, word: &P::Word) -> u32 {
        p.wait_until(word, Until::is(FREE), Budget::Polls(p.tuning().yield_polls), Relaxed)
    }

    #[inline]
    fn missed<P: Platform>(&mut self, p: &P, seen: u32) {
        if seen != FREE {
            p.yield_cpu();
        }
    }
}
