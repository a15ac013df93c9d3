//! Pace: how often a waiter polls the lock while it is awake, as the waiters of this lock have learned it.
//!
//! # Problem
//! A poll takes the lock's cache line from its owner. Where the owner stays away from the lock for longer than it
//! takes to hand the line over, a waiter that does not poll at that moment leaves the lock idle: two CPUs do the
//! work of one. Where the owner comes right back, a waiter that polls at that moment acquires the lock at the
//! price of a transfer of its line and of the data's, which takes longer than the section, and two CPUs do less
//! than one. No constant is right for both, nor for two machines.
//!
//! # What it does
//! A waiter polls at the interval that was [found to be best](super::trials): it watches, or backs off up to that
//! interval, or keeps away. Some waits read the clock, so that an epoch of what is learned may begin, and note how long a
//! hand-over takes.
//!
//! A waiter that finds the lock free, and a second time or more often loses it to others, backs off for a time that doubles:
//! so many waiters are awake that their attempts alone keep the line from the owner.
//!
//! # Source
//! To back off after a lost attempt: document 003, Guo's backoff for `virt_spin_lock`. The rest is ours.

use core::sync::atomic::Ordering::Relaxed;

use super::many_locks::Absence;
use super::trials::{AWAY_NS, Kind};
use super::{SleepPlatform, bucket, score, throughput};
use crate::platform::{AtomicWord, Budget, Until};

/// The pauses of a waiter that backs off before its first poll.
const FIRST_PAUSES: u32 = 2;
/// One wait in two to this power reads the clock, where waiters poll often.
const CLOCK_BITS: u32 = 4;
/// One wait in two to this power reads the clock where the others first glance, which ends most of them. AMD EPYC, 2 CPUs,
/// over one in 32: 2 threads with 100 to 300 ns inside and outside 1.01 to 1.03; with one in 128 or 256 about the same.
const GLANCE_BITS: u32 = 6;
/// The longest hand-over that is believed, in nanoseconds.
const MAX_HANDOVER_NS: u32 = 2000;
/// Where so few CPUs acquire locks, hardly a waiter loses a free lock to others, and none backs off for that.
const FEW_CPUS: u32 = 3;
/// The longest time for which a waiter backs off after it has lost the lock to others, in nanoseconds: dozens of waiters
/// take turns in that time. With 2 µs simulated machines did 1 % less.
const LOST_NS: u32 = 16_000;

/// How one wait polls.
#[derive(Debug)]
pub struct Pace {
    kind: Kind,
    interval_ns: u32,
    /// The pauses before the next poll of a waiter that backs off.
    pauses: u32,
    /// Whether the next attempt to acquire the lock is timed.
    sampled: bool,
    /// How often the waiter has found the lock free, and others were faster.
    lost: u32,
}

impl Pace {
    /// The pace of a wait that begins now, for the lock at `on`.
    #[inline]
    pub fn of<P: SleepPlatform>(p: &P, on: usize) -> Self {
        Self::among(p, on, Kind::Mutex, || score::one_in(p, CLOCK_BITS))
    }

    /// The same before the waiter has polled, or `None` if it may poll a few times without one: where all waiters
    /// watch, but for those that learn.
    #[inline]
    pub fn unless_glancing<P: SleepPlatform>(p: &P, on: usize) -> Option<Self> {
        let watch = || bucket::of(p, on).trials.interval_ns(Kind::Mutex) == 0;
        if p.throughput().is_none() || !watch() {
            return Some(Self::of(p, on));
        }
        score::one_in(p, GLANCE_BITS).then(|| Self::among(p, on, Kind::Mutex, || true))
    }

    /// Whether waiters for the mutex at `on` [keep away](Self::keeps_away).
    #[inline]
    pub fn is_to_keep_away<P: SleepPlatform>(p: &P, on: usize) -> bool {
        p.throughput().is_some() && bucket::of(p, on).trials.interval_ns(Kind::Mutex) >= AWAY_NS
    }

    /// The same for the reader-writer lock at `on`.
    #[inline]
    pub fn of_rwlock<P: SleepPlatform>(p: &P, on: usize) -> Self {
        Self::among(p, on, Kind::Rwlock, || score::one_in(p, CLOCK_BITS))
    }

    #[inline]
    fn among<P: SleepPlatform>(
        p: &P,
        on: usize,
        kind: Kind,
        samples: impl FnOnce() -> bool,
    ) -> Self {
        let trials = &bucket::of(p, on).trials;
        let sampled = p.throughput().is_some() && samples();
        let interval_ns = trials.interval_ns(kind);
        let mut pace = Self { kind, interval_ns, pauses: FIRST_PAUSES, sampled, lost: 0 };
        if sampled || pace.interval_ns >= AWAY_NS {
            pace.turn(p, on);
        }
        pace
    }

    /// Goes on at the interval of the present epoch.
    fn turn<P: SleepPlatform>(&mut self, p: &P, on: usize) {
        let learned = bucket::of(p, on);
        if let Some(throughput) = p.throughput() {
            let epoch = throughput.epoch(p.now_ns());
            learned.trials.turn(throughput, epoch, self.kind, learned.handover_ns.load(Relaxed));
        }
        self.interval_ns = learned.trials.interval_ns(self.kind);
    }

    /// How long the waiter lets pass between two polls, in nanoseconds; 0 if it watches.
    #[inline]
    #[must_use]
    pub fn interval_ns(&self) -> u32 {
        self.interval_ns
    }

    /// Whether the waiter watches.
    #[inline]
    #[must_use]
    pub fn watches(&self) -> bool {
        self.interval_ns == 0
    }

    /// Whether the waiter keeps away from the lock for most of the time.
    #[inline]
    #[must_use]
    pub fn keeps_away(&self) -> bool {
        self.interval_ns >= AWAY_NS
    }

    /// Lets so many pauses pass, or fewer where the waiter watches and `until` is met; returns the word. The `owner` is
    /// on this CPU, where that is known.
    #[inline]
    pub fn poll<P>(
        &mut self,
        p: &P,
        (on, owner): (usize, Option<u32>),
        word: &P::Word,
        until: Until,
        pauses: u32,
    ) -> u32
    where
        P: SleepPlatform,
    {
        if self.watches() {
            return p.wait_until(word, until, Budget::Polls(pauses), Relaxed);
        }
        if self.interval_ns < AWAY_NS {
            return self.back_off(p, word, until, pauses);
        }
        let absence = Absence::from(p, on, owner);
        p.relax(pauses);
        if absence.learn(p, on) {
            bucket::of(p, on).trials.watch_again(self.kind);
        }
        // A wait may last longer than an epoch.
        self.turn(p, on);
        word.load(Relaxed)
    }

    /// Lets one interval pass; returns the word.
    pub fn interval<P>(
        &mut self,
        p: &P,
        (on, owner): (usize, Option<u32>),
        word: &P::Word,
        until: Until,
    ) -> u32
    where
        P: SleepPlatform,
    {
        let pauses = self.interval_ns.checked_div(p.pause_ns()).unwrap_or(1).max(1);
        self.poll(p, (on, owner), word, until, pauses)
    }

    /// The same as [`Self::poll`], with intervals that double.
    fn back_off<P>(&mut self, p: &P, word: &P::Word, until: Until, pauses: u32) -> u32
    where
        P: SleepPlatform,
    {
        let longest = self.interval_ns.checked_div(p.pause_ns()).unwrap_or(1).max(FIRST_PAUSES);
        let mut left = pauses;
        loop {
            p.relax(self.pauses);
            let now = word.load(Relaxed);
            left = left.saturating_sub(self.pauses);
            if until.met_by(now) || left == 0 {
                return now;
            }
            self.pauses = (2 * self.pauses).min(longest);
        }
    }

    /// The waiter has found the lock free, and others were faster: if that was not the first time, it backs off. Returns for
    /// how many pauses.
    #[cold]
    pub fn lost<P: SleepPlatform>(&mut self, p: &P) -> u32 {
        let pauses = pauses_when_lost(self.lost, throughput::cpus(p), p.pause_ns());
        if pauses != 0 {
            p.relax(pauses);
        }
        self.lost = self.lost.saturating_add(1);
        pauses
    }

    /// Acquires the lock by `take`. The first attempts of some waits note how long that took, without the clock's own
    /// time: the time of a hand-over. The median is kept: in some hand-overs the waiter was preempted. Reading the
    /// clock takes time in which an owner that is soon back acquires the lock again, so later attempts are not timed.
    #[inline]
    pub fn take<P: SleepPlatform>(
        &mut self,
        p: &P,
        on: usize,
        take: impl FnOnce() -> bool,
    ) -> bool {
        if !core::mem::take(&mut self.sampled) {
            return take();
        }
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

/// For how many pauses a waiter backs off that has lost the lock to others, and so many times before.
#[inline]
fn pauses_when_lost(before: u32, cpus: u32, pause_ns: u32) -> u32 {
    let longest = LOST_NS.checked_div(pause_ns).unwrap_or(0);
    if before == 0 || cpus <= FEW_CPUS { 0 } else { longest.min(2 << before.min(LOST_NS.ilog2())) }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;
    use crate::platform::Platform;
    use crate::scripted::Scripted;
    use crate::sleepers::trials::{back_off, keep_away_from_mutex};

    #[test]
    fn of_a_wait_the_first_attempt_alone_is_timed() {
        use core::cell::Cell;

        let timed = Cell::new(0);
        let p = Scripted::yielding(1, 1);
        let mut pace = Pace::among(&p, 0, Kind::Mutex, || true);
        let count = || p.at_reading(0, |_| timed.set(timed.get() + 1));
        (0..3).for_each(|_| count());
        assert!(!pace.take(&p, 0, || false));
        assert_eq!(timed.get(), 3, "before and after, and what a reading takes");
        count();
        assert!(pace.take(&p, 0, || true));
        assert_eq!(timed.get(), 3, "a later attempt");
        p.now_ns();
    }

    #[test]
    fn where_waiters_watch_most_glance_and_the_others_learn() {
        let p = Scripted::yielding(1, 1);
        let set_up = || (0..3200).filter_map(|_| Pace::unless_glancing(&p, 0));
        let learning = set_up().inspect(|pace| assert!(pace.sampled)).count();
        assert!((50..200).contains(&learning), "{learning} of 3200");
        back_off(&p, 0);
        assert_eq!(set_up().count(), 3200, "where they back off none glances");
        let uncounted = Scripted::new(1);
        assert!(Pace::unless_glancing(&uncounted, 0).is_some(), "nothing to learn from");
    }

    #[test]
    fn a_waiter_that_loses_the_lock_again_and_again_backs_off_for_longer() {
        let pauses = |before| pauses_when_lost(before, FEW_CPUS + 1, 10);
        assert_eq!([0, 1, 2, 3, 9, 10, u32::MAX].map(pauses), [0, 4, 8, 16, 1024, 1600, 1600]);
        assert_eq!(pauses_when_lost(5, FEW_CPUS, 10), 0, "there are few others");
        assert_eq!(pauses_when_lost(5, 100, 0), 0, "pauses take no time");
    }

    #[test]
    fn of_many_locks_none_is_kept_away_from_for_long() {
        let (p, word) = (Scripted::yielding(1, 1), AtomicU32::new(1));
        let intervals = |acquired: usize| {
            // The first wait of an epoch chooses.
            let [_, mut pace] = [0, 1].map(|_| {
                keep_away_from_mutex(&p, 0);
                Pace::of(&p, 0)
            });
            assert!(pace.keeps_away());
            p.at_pause(0, move |p| p.throughput().unwrap().count(3, acquired));
            pace.interval(&p, (0, Some(3)), &word, Until::clear(1));
            pace.interval_ns()
        };
        crate::sleepers::let_it_be_one_of_many(&p, 0);
        assert_eq!(intervals(4), 0, "the owner has gone to another");
        (0..10).for_each(|_| _ = intervals(0));
        assert!(intervals(0) >= AWAY_NS, "it has come back");
        assert!(intervals(4) >= AWAY_NS, "once is chance");
    }
}
