//! The simple spinlock: the owner in the word, and waiters that yield to it.
//!
//! # Problem
//! A waiter that knows who holds the lock can give its CPU to just that one, instead of
//! spinning while the holder is not running.
//!
//! # Source
//! powerpc's simple spinlock, which document 004 replaces: the word holds a token of the
//! owner's CPU; under a hypervisor its waiters yield to the holder (`splpar_spin_yield`).
//!
//! # States
//! ```text
//!  free (0) ──take──► held (owner's CPU + 1, or ANONYMOUS) ──release──► free
//! ```
//!
//! # Invariants
//! * **M1** The word is set only by a compare-exchange from 0 and cleared only by the holder;
//!   so while it is not 0 it names the holder.
//!
//! # Limits
//! Unfair: document 004 measured the fastest thread at 7 times the slowest. On threads no
//! system call yields to one particular thread, so the yield there is undirected.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawLock};
use crate::platform::{AtomicWord, Budget, ConstWord, CpuId, Platform, Until};
use crate::site::Site;

const FREE: u32 = 0;
/// The holder has no CPU number; nobody can yield to it in particular.
const ANONYMOUS: u32 = u32::MAX;

/// A simple spinlock. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct SimpleLock<W> {
    word: W,
}

#[inline]
fn token<P: Platform>(p: &P) -> u32 {
    match p.cpu() {
        Some(cpu) => cpu.number() + 1,
        None => ANONYMOUS,
    }
}

#[inline]
fn holder(word: u32) -> Option<CpuId> {
    CpuId::new(word.wrapping_sub(1))
}

impl<W: AtomicWord> SimpleLock<W> {
    #[inline]
    fn take<P: Platform<Word = W>>(&self, p: &P) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`.
        let order = p.ordering(Site::SimpleTake, Acquire);
        self.word.compare_exchange(FREE, token(p), order).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow<P: Platform<Word = W>>(&self, p: &P) {
        loop {
            let looks = Budget::Looks(p.tuning().simple_looks);
            let seen = p.wait_until(&self.word, Until::is(FREE), looks, Relaxed);
            if seen == FREE {
                if self.take(p) {
                    return;
                }
            } else {
                match holder(seen) {
                    Some(cpu) => p.yield_to(cpu),
                    None => p.yield_cpu(),
                }
            }
        }
    }
}

// SAFETY: M1 gives exclusion; `SimpleTake` acquires what `SimpleRelease` releases.
unsafe impl<P: Platform> RawLock<P> for SimpleLock<P::Word> {
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
        // ORDERING: Release pairs with the Acquire of the next taker (`SimpleTake`).
        self.word.store(FREE, p.ordering(Site::SimpleRelease, Release));
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

impl<W: ConstWord> ConstLock for SimpleLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO };
    // The word names the owner: released by another thread it would have named the wrong one.
    type Guard = lock_api::GuardNoSend;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_cpu_and_the_anonymous_one_names_nobody() {
        let last = CpuId::new(CpuId::LIMIT - 1).unwrap();
        assert_eq!(holder(last.number() + 1), Some(last));
        assert_eq!(holder(1).map(CpuId::number), Some(0));
        assert_eq!(holder(ANONYMOUS), None);
    }
}
