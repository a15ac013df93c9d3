//! How many sleepers of a mutex one release wakes.
//!
//! # Problem
//! One, as a rule: until that one has the lock, threads that run barge. But where the owner of one lock goes on to another
//! of many, hardly any thread comes to a lock with many sleepers: it is idle until the one that was woken runs, and so
//! on. That one lock then bounds what all threads do with the others, since each of them ends up asleep there.
//!
//! # What is learned
//! Where a lock is one of many, as an [`Absence`] tells: a waiter that was woken, and finds it free, adds one; another takes
//! one off.
//!
//! # Source
//! Ours. The convoy of sleepers: Blasgen and others, "The convoy phenomenon", 1979.

use core::sync::atomic::Ordering::Relaxed;

use super::many_locks::{Absence, is_one_of_many};
use super::{SleepPlatform, bucket};
use crate::platform::AtomicWord;

/// The most sleepers that one release wakes. With 32, simulated for 100 ms: 152 threads, 50 ns, 64 locks, 104 CPUs 0.86 of this, and
/// 196 threads, 67 and 197 ns, 63 CPUs 0.90.
const MOST: u32 = 8;

/// How many sleepers on `on` a release wakes.
pub fn number<P: SleepPlatform>(p: &P, on: usize) -> u32 {
    1 + if is_one_of_many(p, on) { bucket::of(p, on).more_wakes.load(Relaxed) } else { 0 }
}

/// A waiter for the lock at `on` has slept from `absence` on, was woken, and finds the lock free or not.
pub fn woke<P: SleepPlatform>(p: &P, on: usize, absence: &Absence, is_free: bool) {
    let more = &bucket::of(p, on).more_wakes;
    let before = more.load(Relaxed);
    let now = match (absence.learn(p, on), is_free) {
        (true, true) => (before + 1).min(MOST - 1),
        (true, false) => before.saturating_sub(1),
        (false, _) => before,
    };
    if now != before {
        more.store(now, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use crate::sleepers::let_it_be_one_of_many;

    const ON: usize = 64;

    /// A waiter was woken, while the owner that it had seen acquired this lock; returns how many a release wakes now.
    fn woken(p: &Scripted, acquired: usize, is_free: bool) -> u32 {
        let absence = Absence::from(p, ON, Some(3));
        p.throughput().unwrap().count(3, acquired);
        woke(p, ON, &absence, is_free);
        number(p, ON)
    }

    #[test]
    fn a_release_wakes_one_sleeper_of_a_lock_whose_owners_come_back() {
        let p = Scripted::yielding(1, 1);
        (0..1000).for_each(|_| assert_eq!(woken(&p, ON, true), 1));
    }

    #[test]
    fn where_woken_waiters_find_one_of_many_locks_free_a_release_wakes_more() {
        let p = Scripted::yielding(1, 1);
        let_it_be_one_of_many(&p, ON);
        (2..=MOST).for_each(|more| assert_eq!(woken(&p, ON + 4, true), more));
        assert_eq!(woken(&p, ON + 4, true), MOST);
        (1..MOST).rev().for_each(|fewer| assert_eq!(woken(&p, ON + 4, false), fewer));
        assert_eq!(woken(&p, ON + 4, false), 1);
        woken(&p, ON + 4, true);
        (0..10).for_each(|_| _ = woken(&p, ON, true));
        assert_eq!(number(&p, ON), 1, "owners come back");
    }
}
