//! Many locks: whether a lock is one of many that threads take in no order, so that its owners do not come right back.
//!
//! # Problem
//! Waiters keep away from a lock so that one thread may have it over and over, and sleep on while threads that run barge.
//! How much the process does tells whether that was good; but each of many locks is a small part of that, so what is gained
//! or lost at one of them is less than chance. There waiters keep away, or sleep, while the lock is idle, and more and more
//! threads come to wait at it.
//!
//! # What is learned
//! A waiter that has kept away or slept looks which lock was acquired last on the CPU of the owner that it saw before. Where
//! that is hardly ever this one, it is one of many: waiters do not keep away, but for the first in each trial, and a
//! release may wake [more than one sleeper](super::wakes).
//!
//! # Source
//! Ours.
//!
//! # Limits
//! Of the locks only default mutexes and reader-writer locks are seen.

use core::sync::atomic::Ordering::Relaxed;

use super::throughput::{Last, Since};
use super::{SleepPlatform, bucket, score};
use crate::platform::{AtomicWord, ConstWord};

/// Points taken off for an owner that has come back; one that has gone to another lock adds one. So of more than so many
/// locks that threads take at random each is one of many.
const BACK_WEIGHT: u32 = 8;
/// From this many points on a lock is one of many. Of four locks so many others in a row are rare.
const HOLDS: u32 = 8 * BACK_WEIGHT;
/// The most points.
const MAX: u32 = HOLDS + 2 * BACK_WEIGHT;

/// Where all owners have come back, one waiter in two to this power looks whether they do. Xeon, 2 CPUs, empty sections, 8
/// threads, over the same without looking: 0.55 to 0.62 where each waiter looks, 0.86 to 0.99 with this.
const LOOK_BITS: u32 = 4;

/// Whether the locks of a bucket are of many. The points are read and written without any order.
#[derive(Debug)]
pub(super) struct ManyLocks<W> {
    points: W,
    /// The acquisition that was noted last: many waiters may see the same one.
    noted: W,
}

impl<W: AtomicWord> ManyLocks<W> {
    pub(super) fn new() -> Self {
        Self { points: W::new(0), noted: W::new(0) }
    }

    fn holds(&self) -> bool {
        self.points.load(Relaxed) >= HOLDS
    }

    /// Whether a waiter looks. That takes the counter's line from the owner, which comes back so soon perhaps that this
    /// matters.
    #[inline]
    fn is_possible<P: SleepPlatform>(&self, p: &P) -> bool {
        self.points.load(Relaxed) != 0 || score::one_in(p, LOOK_BITS)
    }

    /// An owner has come back, or gone to another lock, which is this acquisition of its CPU.
    fn note(&self, acquisition: u32, is_back: bool) {
        if self.noted.load(Relaxed) == acquisition {
            return;
        }
        self.noted.store(acquisition, Relaxed);
        let before = self.points.load(Relaxed);
        let now = if is_back { before.saturating_sub(BACK_WEIGHT) } else { MAX.min(before + 1) };
        if now != before {
            self.points.store(now, Relaxed);
        }
    }
}

impl<W: ConstWord> ManyLocks<W> {
    /// The same for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub(super) const NONE: Self = Self { points: W::ZERO, noted: W::ZERO };
}

/// Whether the lock at `on` is one of many.
pub(super) fn is_one_of_many<P: SleepPlatform>(p: &P, on: usize) -> bool {
    bucket::of(p, on).trials.many.holds()
}

/// A waiter keeps away from a lock, or sleeps.
#[derive(Debug)]
pub struct Absence {
    /// The last acquisition on the owner's CPU before it, where that is known.
    before: Option<Last>,
}

impl Absence {
    /// It begins, while the owner is on this CPU.
    pub fn from<P: SleepPlatform>(p: &P, on: usize, owner: Option<u32>) -> Self {
        let all = p.throughput().filter(|_| bucket::of(p, on).trials.many.is_possible(p));
        Self { before: all.zip(owner).map(|(all, cpu)| all.last(cpu)) }
    }

    /// It has ended. Returns whether the lock at `on` is one of many, if it says something about that.
    pub(super) fn learn<P: SleepPlatform>(&self, p: &P, on: usize) -> bool {
        let many = &bucket::of(p, on).trials.many;
        let Some((all, before)) = p.throughput().zip(self.before) else { return false };
        let (since, now) = (all.since(before, on), all.last(before.cpu()));
        // Otherwise the owner has kept the lock, or waits, or does other things.
        if since != Since::Nothing {
            many.note(now.count(), since == Since::This);
        }
        since != Since::Nothing && many.holds()
    }
}

/// The lock at `on` is one of many, until waiters learn.
#[cfg(test)]
pub(crate) fn let_it_be_one_of_many<P: SleepPlatform>(p: &P, on: usize) {
    bucket::of(p, on).trials.many.points.store(MAX, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    const ON: usize = 64;

    /// Whether the lock is one of many after an absence, in which these were acquired on the owner's CPU.
    fn learn(p: &Scripted, acquired: &[usize]) -> bool {
        let absence = Absence::from(p, ON, Some(3));
        acquired.iter().for_each(|&on| p.throughput().unwrap().count(3, on));
        absence.learn(p, ON)
    }

    /// Of 10 000 absences, with one owner in so many that comes back, how many end with the lock as one of many.
    fn many_of(one_in: u32) -> usize {
        let p = Scripted::yielding(1, 1);
        let last = |number: u32| if number.is_multiple_of(one_in) { ON } else { ON + 4 };
        (1..=10_000).filter(|&number| learn(&p, &[last(number)])).count()
    }

    #[test]
    fn a_lock_to_which_owners_hardly_ever_come_back_is_one_of_many() {
        assert_eq!(many_of(1), 0);
        assert_eq!(many_of(4), 0);
        assert!(many_of(16) > 9_800);
        assert!(many_of(64) > 9_800);
    }

    #[test]
    fn a_few_owners_that_come_back_outweigh_many_that_have_gone() {
        let p = Scripted::yielding(1, 1);
        (0..10_000).for_each(|_| {
            learn(&p, &[ON + 4]);
        });
        let until = (1..100).find(|_| !learn(&p, &[ON]));
        assert_eq!(until, Some(3));
    }

    #[test]
    fn the_last_acquisition_counts_and_no_acquisition_says_nothing() {
        let p = Scripted::yielding(1, 1);
        (0..10_000).for_each(|_| assert!(!learn(&p, &[ON + 4, ON]) && !learn(&p, &[])));
        let unknown = Absence::from(&p, ON, None);
        let uncounted = Scripted::new(1);
        let absence = Absence::from(&uncounted, ON, Some(3));
        for _ in 0..10_000 {
            p.throughput().unwrap().count(3, ON + 4);
            assert!(!unknown.learn(&p, ON));
            assert!(!absence.learn(&uncounted, ON));
        }
    }
}
