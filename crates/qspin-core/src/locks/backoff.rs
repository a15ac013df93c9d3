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
/// Test-and-set with backoff; the pause is at most `CAP` pause instructions, or [`Tuning::backoff_cap`].
///
/// [`Tuning::backoff_cap`]: crate::tuning::Tuning::backoff_cap
pub type BackoffLock<W, const CAP: u32 = TUNED> = FlagLock<W, Backoff<CAP>>;

/// As a cap: what the tunable says.
pub const TUNED: u32 = 0;

/// Plain test-and-set with one pause after a miss: `virt_spin_lock` before document 003.
pub type TasLock<W> = BackoffLock<W, 1>;

/// Backs off for up to `CAP` pause instructions between two polls.
#[derive(Debug, Clone, Copy)]
pub struct Backoff<const CAP: u32> {
    pauses: u32,
}

impl<const CAP: u32> Backoff<CAP> {
    #[inline]
    fn cap<P: Platform>(p: &P) -> u32 {
        if CAP == TUNED { p.tuning().backoff_cap } else { CAP }
    }
}

impl<const CAP: u32> Manner for Backoff<CAP> {
    const TAKE: Site = Site::BackoffTake;
    const RELEASE: Site = Site::BackoffRelease;
    type Guard = lock_api::GuardSend;

    /// The failed attempt of `acquire` counts as having seen the lock taken: how often it was free before and
    /// lost to another thread is not known.
    #[inline]
    fn begin<P: Platform>(p: &P) -> Self {
        let pauses = 1;
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
            self.pauses = self.pauses.saturating_mul(2).min(Self::cap(p));
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::{Cell, RefCell};
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::vec::Vec;

    use super::*;
    use crate::events::NoEvents;
    use crate::lock::RawLock;
    use crate::node::{Node, NodeId};
    use crate::platform::CpuId;
    use crate::tuning::Tuning;

    /// How a look and the attempt after it come out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Miss {
        /// The lock is seen taken, so there is no attempt.
        Taken,
        /// It is seen free, and another thread is faster.
        Lost,
    }
    use Miss::{Lost, Taken};

    std::thread_local! {
        static NEXT: Cell<Option<Miss>> = const { Cell::new(None) };
    }

    /// A word of which the script says how operations come out.
    struct Scripted(AtomicU32);

    impl AtomicWord for Scripted {
        fn new(value: u32) -> Self {
            Self(AtomicU32::new(value))
        }
        fn load(&self, _: Ordering) -> u32 {
            u32::from(NEXT.get() == Some(Taken))
        }
        fn store(&self, value: u32, order: Ordering) {
            self.0.store(value, order);
        }
        fn compare_exchange(&self, old: u32, new: u32, order: Ordering) -> Result<u32, u32> {
            assert_ne!(NEXT.get(), Some(Taken), "an attempt at a lock that was seen taken");
            let lost = NEXT.get() == Some(Lost);
            if lost { Err(1) } else { self.0.compare_exchange(old, new, order, Relaxed) }
        }
        fn swap(&self, _: u32, _: Ordering) -> u32 {
            unreachable!("the lock has no exchange")
        }
        fn fetch_add(&self, _: u32, _: Ordering) -> u32 {
            unreachable!("the lock has no addition")
        }
        fn fetch_or(&self, _: u32, _: Ordering) -> u32 {
            unreachable!("the lock has no bits")
        }
        fn fetch_and(&self, _: u32, _: Ordering) -> u32 {
            unreachable!("the lock has no bits")
        }
    }

    /// A waiter whose misses are scripted: one before each pause.
    struct Waiter {
        script: RefCell<std::vec::IntoIter<Miss>>,
        pauses: RefCell<Vec<u32>>,
        tuning: Tuning,
    }

    impl Platform for Waiter {
        type Word = Scripted;
        type Address = AtomicUsize;
        type Events = NoEvents;
        fn events(&self) -> &NoEvents {
            &NoEvents
        }
        fn tuning(&self) -> &Tuning {
            &self.tuning
        }
        fn cpu(&self) -> Option<CpuId> {
            None
        }
        fn node(&self, _: NodeId) -> &Node<Scripted> {
            unreachable!("the lock has no queue")
        }
        fn relax(&self, pauses: u32) {
            self.pauses.borrow_mut().push(pauses);
            NEXT.set(self.script.borrow_mut().next());
        }
    }

    /// The pauses of an acquisition whose first attempt fails, and which then misses so.
    fn pauses<const CAP: u32>(backoff_cap: u32, misses: &[Miss]) -> Vec<u32> {
        let script = misses.to_vec();
        let p = Waiter {
            script: RefCell::new(script.into_iter()),
            pauses: RefCell::default(),
            tuning: Tuning { backoff_cap, ..Tuning::DEFAULT },
        };
        let lock = <BackoffLock<Scripted, CAP> as RawLock<Waiter>>::new();
        NEXT.set(Some(Lost));
        RawLock::<Waiter>::acquire(&lock, &p);
        assert_eq!(NEXT.get(), None, "acquired before the script was over");
        assert_eq!(lock.word.0.load(Relaxed), 1);
        p.pauses.into_inner()
    }

    #[test]
    fn a_pause_doubles_only_after_an_attempt_that_failed() {
        // The first pause is that of the attempt with which the acquisition began.
        assert_eq!(pauses::<TUNED>(64, &[]), [1]);
        assert_eq!(pauses::<TUNED>(64, &[Taken; 4]), [1, 1, 1, 1, 1]);
        assert_eq!(pauses::<TUNED>(64, &[Lost; 4]), [1, 1, 2, 4, 8]);
        let mixed = [Taken, Lost, Taken, Taken, Lost, Lost, Taken, Lost];
        assert_eq!(pauses::<TUNED>(64, &mixed), [1, 1, 1, 2, 2, 2, 4, 8, 8]);
    }

    #[test]
    fn no_pause_is_longer_than_the_cap() {
        assert_eq!(pauses::<TUNED>(64, &[Lost; 9]), [1, 1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(pauses::<TUNED>(48, &[Lost; 9])[5..], [16, 32, 48, 48, 48]);
        assert_eq!(pauses::<TUNED>(1024, &[Lost; 12])[9..], [256, 512, 1024, 1024]);
        assert_eq!(pauses::<TUNED>(1, &[Lost; 5]), [1; 6]);
        assert_eq!(pauses::<4>(64, &[Lost; 5]), [1, 1, 2, 4, 4, 4]);
        assert_eq!(pauses::<1>(64, &[Lost, Taken, Lost]), [1; 4], "plain test-and-set");
    }
}
