//! Pace: how a waiter polls the lock while it is awake, as the waiters of this lock have learned it.
//!
//! # Problem
//! A poll takes the lock's cache line from its owner. Where the owner stays away from the lock for longer than it
//! takes to hand the line over, a waiter that does not poll at that moment leaves the lock idle: two CPUs do the
//! work of one. Where the owner comes right back, a waiter that polls at that moment acquires the lock at the
//! price of a transfer of the line, which takes longer than the section, and two CPUs do less than one. No
//! constant is right for both, nor for two machines.
//!
//! # What is learned
//! Which of the two this lock is. One wait in so many is a *probe*: the waiter watches the lock, and when it
//! finds it free it does not acquire it at once, but goes on watching for as long as a hand-over takes here. If
//! the CPU that had the lock has it again by then, the owner comes right back: waiters should poll rarely. If the
//! lock is still free, they should watch. A probe costs one hand-over. The score stands in the lock's bucket,
//! with the measured time of a hand-over; locks that share a bucket share what is learned. It is a guess:
//! whatever it says, a waiter is correct.
//!
//! # Source
//! Ours. HotSpot, .NET and glibc learn for each lock how long to spin from whether spinning has acquired the
//! lock. That does not tell the two cases apart: in both it acquires the lock.
//!
//! # Limits
//! A lock is one or the other. Where a thousand short absences come with one long one, the thousand decide.

use core::sync::atomic::Ordering::Relaxed;

use super::{SleepPlatform, bucket, score};
use crate::platform::{AtomicWord, Budget, Until};

/// One wait in two to this power is a probe.
const PROBE_BITS: u32 = 3;
/// A lock that stays free counts twice. Where absences are as long as a hand-over in the mean, and exponentially
/// distributed, watching and polling rarely are worth the same, and 63 of 100 absences are shorter than a hand-over.
const AWAY_WEIGHT: i32 = 2;
/// The longest hand-over that is believed, in nanoseconds.
const MAX_HANDOVER_NS: u32 = 2000;

/// How one wait polls.
#[derive(Debug)]
pub struct Pace {
    rare: bool,
    probes: bool,
}

impl Pace {
    /// The pace of a wait that begins now, for the lock at `on`.
    #[inline]
    pub fn of<P: SleepPlatform>(p: &P, on: usize) -> Self {
        if p.pause_ns() == 0 {
            return Self { rare: false, probes: false };
        }
        let probes = score::one_in(p, PROBE_BITS);
        // A probe must watch to see the lock come free: a rare poll finds it free some time after the release.
        let rare = !probes && bucket::of(p, on).pace.holds();
        Self { rare, probes }
    }

    /// Whether the waiter polls once in a slice, instead of watching.
    #[inline]
    #[must_use]
    pub fn is_rare(&self) -> bool {
        self.rare
    }

    /// Lets so many pauses pass, or fewer where the waiter watches and `until` is met; returns the word.
    #[inline]
    pub fn poll<P: SleepPlatform>(&self, p: &P, word: &P::Word, until: Until, pauses: u32) -> u32 {
        if !self.rare {
            return p.wait_until(word, until, Budget::Looks(pauses), Relaxed);
        }
        p.relax(pauses);
        word.load(Relaxed)
    }

    /// Whether this wait, when it finds the lock free, should [go on watching](Self::probe).
    #[inline]
    #[must_use]
    pub fn probes(&self) -> bool {
        self.probes
    }

    /// Watches the word while it is still `free`, for as long as a hand-over takes; returns it. `is_back` says of
    /// a word whether the previous owner holds it. Called once in a wait, which from then on polls as was
    /// learned.
    #[cold]
    pub fn probe<P: SleepPlatform>(
        &mut self,
        p: &P,
        on: usize,
        word: &P::Word,
        free: u32,
        is_back: impl FnOnce(u32) -> bool,
    ) -> u32 {
        self.probes = false;
        let bucket = bucket::of(p, on);
        // Twice that: the owner that comes back has to fetch the line from this waiter, and then the waiter has
        // to see it.
        let ns = 2 * bucket.handover_ns.load(Relaxed);
        let pause_ns = p.pause_ns().max(1);
        let pauses = 1 + (ns + pause_ns / 2) / pause_ns;
        let now = p.wait_until(word, Until::is_not(free), Budget::Looks(pauses), Relaxed);
        if now == free {
            bucket.pace.add(-AWAY_WEIGHT);
        } else if is_back(now) {
            bucket.pace.add(1);
        }
        // Otherwise another waiter has acquired the lock, which says nothing.
        self.rare = bucket.pace.holds();
        now
    }

    /// Acquires the lock by `take` after a probe; notes how long that took, without the clock's own time. The
    /// median is kept: in some hand-overs the waiter was preempted.
    pub fn take<P: SleepPlatform>(p: &P, on: usize, take: impl FnOnce() -> bool) -> bool {
        let clock = p.now_ns();
        let begin = p.now_ns();
        let taken = take();
        // A clock may go back.
        let took = p.now_ns().saturating_sub(begin).saturating_sub(begin.saturating_sub(clock));
        let median = &bucket::of(p, on).handover_ns;
        let before = median.load(Relaxed);
        let step = before / 8 + 1;
        let now = if took > before.into() { before + step } else { before.saturating_sub(step) };
        median.store(now.min(MAX_HANDOVER_NS), Relaxed);
        taken
    }
}
