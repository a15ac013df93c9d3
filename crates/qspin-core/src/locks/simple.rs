//! The simple spinlock: the owner in the word, and waiters that yield to it.
//!
//! # Problem
//! A waiter that knows the owner of the lock can give its CPU to that very thread, instead of spinning while the
//! owner is not running.
//!
//! # Source
//! powerpc's simple spinlock, which document 004 replaces: the word holds a token of the owner's CPU; under a
//! hypervisor its waiters yield to the owner (`splpar_spin_yield`), at once if it is known not to be running.
//! Remedies (a) and (c) of document 001.
//!
//! # States
//! ```text
//!  free (0) ──acquire──► held (owner's CPU + 1, or ANONYMOUS) ──release──► free
//! ```
//!
//! # Invariants
//! * **SIMPLE-1** By FLAG-1 of [`crate::flag`], while the word is not 0 it names the owner.
//!
//! # Limits
//! Unfair: document 004 measured the fastest thread at 7 times the slowest. For threads no system call yields to
//! one particular thread, so the yield there is undirected.

use core::num::NonZeroU32;
use core::sync::atomic::Ordering::Relaxed;

use crate::flag::{FREE, FlagLock, Manner};
use crate::platform::{AtomicWord, Budget, CpuId, Platform, Until};
use crate::site::Site;

/// The owner has no CPU number: no waiter can yield to it in particular.
const ANONYMOUS: NonZeroU32 = NonZeroU32::MAX;

/// A simple spinlock. See the [module](self) documentation.
pub type SimpleLock<W> = FlagLock<W, Simple>;

/// Waits by polling and yielding in turn, to the owner.
#[derive(Debug, Clone, Copy)]
pub struct Simple;

#[inline]
fn holder(word: u32) -> Option<CpuId> {
    CpuId::new(word.wrapping_sub(1))
}

impl Manner for Simple {
    const TAKE: Site = Site::SimpleTake;
    const RELEASE: Site = Site::SimpleRelease;
    // The word names the owner: if another thread released the lock, the name would be wrong.
    type Guard = lock_api::GuardNoSend;

    #[inline]
    fn token<P: Platform>(p: &P) -> NonZeroU32 {
        p.cpu().map_or(ANONYMOUS, |cpu| NonZeroU32::MIN.saturating_add(cpu.number()))
    }

    #[inline]
    fn begin<P: Platform>(_: &P) -> Self {
        Self
    }

    #[inline]
    fn poll<P: Platform>(&self, p: &P, word: &P::Word) -> u32 {
        let tuning = p.tuning();
        if tuning.heed_preempted {
            let seen = word.load(Relaxed);
            if holder(seen).is_some_and(|owner| p.is_preempted(owner)) {
                return seen;
            }
        }
        p.wait_until(word, Until::is(FREE), Budget::Polls(tuning.simple_polls), Relaxed)
    }

    #[inline]
    fn missed<P: Platform>(&mut self, p: &P, seen: u32) {
        if seen == FREE {
            return;
        }
        match holder(seen) {
            Some(owner) => p.yield_to(owner),
            None => p.yield_cpu(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use super::*;
    use crate::events::NoEvents;
    use crate::lock::RawLock;
    use crate::node::{Node, NodeId};
    use crate::tuning::Tuning;

    #[test]
    fn a_token_names_its_cpu_and_the_anonymous_one_names_none() {
        let last = CpuId::new(CpuId::LIMIT - 1).unwrap();
        assert_eq!(holder(last.number() + 1), Some(last));
        assert_eq!(holder(1).map(CpuId::number), Some(0));
        assert_eq!(holder(ANONYMOUS.get()), None);
        assert_eq!(holder(FREE), None);
    }

    /// The second of two CPUs. The first holds the lock, and releases it when it is yielded to.
    struct Second<'a> {
        tuning: Tuning,
        first_runs: bool,
        lock: &'a SimpleLock<AtomicU32>,
        polls: Cell<u32>,
        yields: Cell<u32>,
    }

    impl Platform for Second<'_> {
        type Word = AtomicU32;
        type Address = AtomicUsize;
        type Events = NoEvents;
        fn events(&self) -> &NoEvents {
            &NoEvents
        }
        fn tuning(&self) -> &Tuning {
            &self.tuning
        }
        fn cpu(&self) -> Option<CpuId> {
            CpuId::new(1)
        }
        fn node(&self, _: NodeId) -> &Node<AtomicU32> {
            unreachable!("a simple lock has no queue")
        }
        fn wait_until(&self, word: &AtomicU32, _: Until, budget: Budget, _: Ordering) -> u32 {
            let Budget::Polls(polls) = budget else { unreachable!("polls are bounded") };
            let seen = word.load(Relaxed);
            if seen != FREE {
                self.polls.set(self.polls.get() + polls);
            }
            seen
        }
        fn relax(&self, _: u32) {
            unreachable!("a simple lock does not pause blindly")
        }
        fn fence(&self, _: Ordering) {}
        fn is_preempted(&self, cpu: CpuId) -> bool {
            cpu.number() == 0 && !self.first_runs
        }
        fn yield_to(&self, owner: CpuId) {
            assert_eq!(owner.number(), 0);
            self.yields.set(self.yields.get() + 1);
            // SAFETY: the first CPU holds the lock, on whose behalf this is done.
            unsafe { self.lock.release(self) };
        }
        fn yield_cpu(&self) {
            unreachable!("the owner is known")
        }
    }

    /// A waiter's polls of the taken lock, and its yields to the owner.
    fn wait(heed_preempted: bool, first_runs: bool) -> (u32, u32) {
        let lock: SimpleLock<AtomicU32> = RawLock::<Second<'_>>::new();
        // The first CPU's token.
        lock.word.store(1, Relaxed);
        let tuning = Tuning { heed_preempted, simple_polls: 77, ..Tuning::DEFAULT };
        let (polls, yields) = (Cell::new(0), Cell::new(0));
        let second = Second { tuning, first_runs, lock: &lock, polls, yields };
        lock.acquire(&second);
        assert!(lock.is_locked(&second));
        (second.polls.get(), second.yields.get())
    }

    #[test]
    fn a_waiter_looks_and_then_yields_to_the_owner_at_once_if_that_does_not_run() {
        assert_eq!(wait(true, true), (77, 1));
        assert_eq!(wait(true, false), (0, 1));
        assert_eq!(wait(false, false), (77, 1), "heed_preempted is off");
    }
}
