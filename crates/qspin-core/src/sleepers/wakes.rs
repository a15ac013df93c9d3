//! How many sleepers of a mutex one release wakes.
//!
//! # Problem
//! One, as a rule: until that one has the lock, threads that run barge. But where the owner of one lock goes on to another
//! of many, hardly any thread comes to a lock with many sleepers: it is idle until the one that was woken runs, and so
//! on. That one lock then bounds what all threads do with the others, since each of them ends up asleep there.
//!
//! # What is learned
//! A waiter that was woken, and finds the lock free, adds one; another takes one off.
//!
//! # Source
//! Ours. The convoy of sleepers: Blasgen and others, "The convoy phenomenon", 1979.

use core::sync::atomic::Ordering::Relaxed;

use super::returns::{self, Absence};
use super::{SleepPlatform, bucket};
use crate::platform::AtomicWord;

/// The most sleepers that one release wakes.
const MOST: u32 = 8;

/// How many sleepers on `on` a release wakes.
pub fn number<P: SleepPlatform>(p: &P, on: usize) -> u32 {
    1 + if returns::are_strangers(p, on) { bucket::of(p, on).more_wakes.load(Relaxed) } else { 0 }
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
