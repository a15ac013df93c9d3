//! Rests: whether a waiter that sleeps for a moment finds that it has missed nothing.
//!
//! # Problem
//! Where the owner comes right back, the lock is never free for as long as it takes to hand it over. A waiter that polls or
//! yields there has the lock only where it slows the owner down, and takes a CPU. One that sleeps in the queue must be
//! woken, and each release that finds it asleep and no other awake pays for that.
//!
//! # What is learned
//! Now and then a waiter *rests* in place of polling: it stays counted as awake, so that no release wakes another, and
//! sleeps for a short time. Then it looks what became of the lock. Taken, and on the same CPU as before: the owner came
//! back, and nothing was lost. Free, and for longer than it takes to hand it over: the lock was idle for part of that time.
//! While nearly all waiters that rest find it taken, all counted waiters do. Once that is sure, they rest one at a time, the
//! first of the sleepers, for a barging quantum, and the one that rests becomes the heir then: owners change at the price of
//! one rest, one wake-up, and part of a section that the heir polls.
//!
//! # Source
//! Ours. That threads which would only wait should not run: Dave Dice, "Malthusian Locks", EuroSys 2017.
//!
//! # Limits
//! A waiter that rests has the lock only as the heir, or where it wakes on the owner's CPU and the owner yields. If no
//! thread comes back, the lock is idle until the waiter looks again.

use core::sync::atomic::Ordering::Relaxed;

use super::throughput::{Last, Since, Throughput};
use super::{SleepPlatform, bucket, score};
use crate::platform::{AtomicWord, ConstWord};

/// What a waiter finds after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The lock is taken, on the same CPU as before.
    SameOwner,
    /// It is taken by another thread.
    Another,
    /// It is free.
    Free,
}

/// Points taken off for a lock that was found free; one whose owner is back adds one. So waiters rest where they leave the
/// lock idle for one part in so many of the time at most. With 32, six threads with 1.2 µs inside and nothing outside rested
/// now and then only: perhaps since an owner that yields, or wakes another, leaves it idle for some microseconds.
const FREE_WEIGHT: u32 = 16;
/// The most points.
const MAX: u32 = 128;
/// From this many points on waiters rest. Before, one rest that finds the lock free takes off all: while others poll, a
/// lock that needs them is mostly taken as well.
const HOLDS: u32 = 8;
/// From this many points on it is known that nothing is missed: one waiter rests at a time, for a barging quantum, and then
/// becomes the heir.
const SURE: u32 = MAX / 2;
/// Of so many rests in a row so many that find the lock free take off all points: the load has changed. Xeon, 2 CPUs, two
/// threads, from 4.3 µs inside and nothing outside to 549 and 351 ns, back within 10 % after 3 to 13 ms without this.
const LAST: u32 = 8;
const FREE_OF_LAST: u32 = 4;
/// The points of a guess that has just been made: what it found while others polled says less than what it will find.
const CREDIT: u32 = 2 * FREE_WEIGHT;
/// One wait in two to this power may be a trial.
const TRY_BITS: u32 = 4;
/// A rest of a trial is this part of one.
const PART_OF_TRIAL: u32 = 4;
/// The longest rest, in nanoseconds, if `mutex_awake_us` is not longer: for so long a lock is idle if its owner leaves it.
const LONGEST_NS: u32 = 500_000;
/// The lock must be free for so long, in nanoseconds, or for as long as a hand-over takes here.
const HANDOVER_NS: u32 = 100;
/// A waiter that wakes later than this after its rest had to wait for a CPU, perhaps until the owner yielded: what it finds
/// is no sample. Linux's timers have a slack of 50 µs, if the thread has not changed it.
const LATE_NS: u32 = 200_000;

/// Whether waiters of a bucket rest: points, and above them what the last rests found, a bit each, 1 for a free lock or
/// short turns. Both are read and written without any order.
#[derive(Debug)]
pub(super) struct Rests<W>(W);

const POINTS_BITS: u32 = 8;
const POINTS: u32 = (1 << POINTS_BITS) - 1;

impl<W: AtomicWord> Rests<W> {
    pub(super) fn new() -> Self {
        Self(W::new(0))
    }

    fn points(&self) -> u32 {
        self.0.load(Relaxed) & POINTS
    }

    #[inline]
    pub(super) fn are_good(&self) -> bool {
        self.points() >= HOLDS
    }

    /// Whether that is known.
    fn are_sure(&self) -> bool {
        self.points() >= SURE
    }

    fn are_promising(&self) -> bool {
        self.points() != 0
    }

    /// The owner came back while a waiter rested.
    fn miss_nothing(&self) {
        let before = self.points();
        let now = if before + 1 == HOLDS { CREDIT } else { before + 1 };
        self.found(false, now.min(MAX));
    }

    /// A waiter that has rested has found the lock free: it is no longer sure that owners come back, and rests are shorter
    /// until the next one that finds the owner back.
    fn leave_idle(&self) {
        let before = self.points();
        let fewer = before.saturating_sub(FREE_WEIGHT).min(SURE - 1);
        self.found(true, if before < HOLDS { 0 } else { fewer });
    }

    /// What a rest has found, and the points that there are for that.
    fn found(&self, free: bool, points: u32) {
        let before = self.0.load(Relaxed);
        let last = ((before >> POINTS_BITS) << 1 | u32::from(free)) & ((1 << LAST) - 1);
        let has_changed = last.count_ones() >= FREE_OF_LAST;
        let now = if points == 0 || has_changed { 0 } else { last << POINTS_BITS | points };
        if now != before {
            self.0.store(now, Relaxed);
        }
    }
}

impl<W: ConstWord> Rests<W> {
    /// The same for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub(super) const NONE: Self = Self(W::ZERO);
}

/// Whether a waiter that begins now to wait for the lock at `on` rests. Where turns past sleepers are short, it would cost
/// the owner a read-modify-write at each release.
pub(super) fn begin<P: SleepPlatform>(p: &P, on: usize) -> bool {
    let Some(throughput) = p.throughput() else { return false };
    if super::turns_are_short(p, on) {
        return false;
    }
    let rests = &bucket::of(p, on).rests;
    let is_due = || throughput.is_rest_due(throughput.epoch(p.now_ns()), rests.are_promising());
    rests.are_good() || score::one_in(p, TRY_BITS) && is_due()
}

/// How long turns past sleepers are was noted for the lock at `on`. Some turns look long since their thread was preempted.
pub(super) fn note_turns<P: SleepPlatform>(p: &P, on: usize) {
    if super::turns_are_short(p, on) {
        bucket::of(p, on).rests.leave_idle();
    }
}

/// How long a waiter for the lock at `on` rests, in nanoseconds.
fn length_ns<P: SleepPlatform>(p: &P, on: usize) -> u32 {
    let whole = p.tuning().mutex_awake_us.saturating_mul(1000);
    match bucket::of(p, on).rests.points() {
        SURE.. => whole.max(super::quantum_ns(p, on).min(LONGEST_NS)),
        HOLDS.. => whole,
        _ => whole / PART_OF_TRIAL,
    }
}

/// One rest of a waiter.
#[derive(Debug)]
pub struct Rest {
    /// Whether what the waiter finds is a sample.
    is_sample: bool,
    /// The last acquisition on the owner's CPU before it.
    before: Option<Last>,
}

impl Rest {
    /// Whether waiters for the lock at `on` rest, as far as is known.
    #[must_use]
    pub fn is_good<P: SleepPlatform>(p: &P, on: usize) -> bool {
        bucket::of(p, on).rests.are_good()
    }

    /// Whether waiters for the lock at `on` rest one at a time, each until it is the heir.
    #[inline]
    #[must_use]
    pub fn is_sure<P: SleepPlatform>(p: &P, on: usize) -> bool {
        bucket::of(p, on).rests.are_sure()
    }

    /// Rests, while the owner is on this CPU.
    pub fn now<P: SleepPlatform>(p: &P, on: usize, owner: Option<u32>) -> Self {
        let before = p.throughput().zip(owner).map(|(all, cpu)| all.last(cpu));
        let ns = length_ns(p, on);
        let begin = p.now_ns();
        p.rest(ns);
        let slept_ns = p.now_ns().saturating_sub(begin);
        Self { is_sample: slept_ns < u64::from(ns) + u64::from(LATE_NS), before }
    }

    /// Lets as much time pass as a hand-over takes: an owner that comes right back has the lock at `on` again.
    pub fn let_owner_come_back<P: SleepPlatform>(p: &P, on: usize) {
        let ns = bucket::of(p, on).handover_ns.load(Relaxed).max(HANDOVER_NS);
        p.relax(ns.checked_div(p.pause_ns()).unwrap_or(1).max(1));
    }

    /// The waiter has found this of the lock at `on`.
    pub fn learn<P: SleepPlatform>(self, p: &P, on: usize, found: Found) {
        if !self.is_sample {
            if let Some(all) = p.throughput()
                && !Self::is_good(p, on)
            {
                all.rested_in_vain(all.epoch(p.now_ns()));
            }
            return;
        }
        let has_acquired = |all: &Throughput<_>| {
            self.before.is_some_and(|before| all.since(before, on) == Since::This)
        };
        let is_back = found == Found::SameOwner && p.throughput().is_some_and(has_acquired);
        let rests = &bucket::of(p, on).rests;
        match found {
            Found::Free => rests.leave_idle(),
            _ if is_back => rests.miss_nothing(),
            // Others have it in turns, or the owner keeps it: perhaps it was preempted.
            _ => {}
        }
    }
}

/// From now on waiters for the lock at `on` rest one at a time.
#[cfg(test)]
pub(crate) fn let_rests_be_sure<P: SleepPlatform>(p: &P, on: usize) {
    (0..SURE).for_each(|_| bucket::of(p, on).rests.miss_nothing());
}

/// From now on waiters for the lock at `on` rest.
#[cfg(test)]
pub(crate) fn let_rests_be_good<P: SleepPlatform>(p: &P, on: usize) {
    (0..HOLDS).for_each(|_| bucket::of(p, on).rests.miss_nothing());
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;
    use crate::platform::Platform;
    use crate::scripted::Scripted;
    use crate::sleepers::throughput::NEXT_REST;

    const ON: usize = 64;

    /// Of 10 000 waiters that rest, each with one in so many finding the lock free, how many find that rests are good.
    fn good_of(one_in: u32) -> usize {
        let rests = Rests::<AtomicU32>::new();
        let each = (1..=10_000).map(|number: u32| {
            if number.is_multiple_of(one_in) {
                rests.leave_idle()
            } else {
                rests.miss_nothing()
            }
            rests.are_good()
        });
        each.filter(|&good| good).count()
    }

    #[test]
    fn waiters_rest_where_the_lock_is_seldom_idle() {
        assert!(good_of(40) > 9_900);
        assert!(good_of(20) > 9_900);
        assert_eq!(good_of(8), 0);
    }

    #[test]
    fn a_few_rests_that_leave_the_lock_idle_outweigh_many_good_ones() {
        let rests = Rests::<AtomicU32>::new();
        (0..10_000).for_each(|_| rests.miss_nothing());
        let until = (1..100).find(|_| {
            rests.leave_idle();
            !rests.are_good()
        });
        assert_eq!(until, Some(FREE_OF_LAST), "in a row");
        let rests = Rests::<AtomicU32>::new();
        (0..10_000).for_each(|_| rests.miss_nothing());
        let until = (1..100).find(|_| {
            rests.leave_idle();
            (0..2).for_each(|_| rests.miss_nothing());
            !rests.are_good()
        });
        // From `SURE` four of them to less than `HOLDS`; two that find the owner back then earn its credit.
        assert_eq!(until, Some(7), "one of three");
    }

    #[test]
    fn a_load_that_has_changed_is_forgotten() {
        let found = |free: &[bool]| {
            let rests = Rests::<AtomicU32>::new();
            (0..10_000).for_each(|_| rests.miss_nothing());
            for &free in free {
                if free { rests.leave_idle() } else { rests.miss_nothing() }
            }
            rests.are_good()
        };
        assert!(found(&[true, true, true, false, false, false, false, false, true]));
        assert!(!found(&[true, false, true, false, true, false, false, true]));
    }

    #[test]
    fn rests_are_as_long_as_a_quantum_once_it_is_sure_that_nothing_is_missed() {
        let p = Scripted::yielding(1, 1);
        let awake_ns = p.tuning().mutex_awake_us * 1000;
        assert_eq!(length_ns(&p, ON), awake_ns / PART_OF_TRIAL);
        let_rests_be_good(&p, ON);
        assert_eq!((length_ns(&p, ON), Rest::is_sure(&p, ON)), (awake_ns, false));
        let_rests_be_sure(&p, ON);
        assert_eq!(length_ns(&p, ON), LONGEST_NS.min(p.tuning().rotate_us * 1000).max(awake_ns));
        assert!(Rest::is_sure(&p, ON));
        bucket::of(&p, ON).rests.leave_idle();
        assert_eq!((length_ns(&p, ON), Rest::is_sure(&p, ON)), (awake_ns, false));
        (0..MAX / FREE_WEIGHT).for_each(|_| bucket::of(&p, ON).rests.leave_idle());
        assert_eq!(length_ns(&p, ON), awake_ns / PART_OF_TRIAL);
    }

    #[test]
    fn an_owner_is_back_only_if_it_has_acquired_the_lock_again() {
        let p = Scripted::yielding(1, 1);
        let is_good_after = |found, acquires: Option<usize>, ns| {
            p.at_halt(3, move |p| {
                p.pass(ns);
                acquires.into_iter().for_each(|on| p.throughput().unwrap().count(3, on));
            });
            Rest::now(&p, ON, Some(3)).learn(&p, ON, found);
            Rest::is_good(&p, ON)
        };
        let (again, other, late) = (Some(ON), Some(ON + 4), 10_000_000);
        for _ in 0..HOLDS {
            assert!(!is_good_after(Found::SameOwner, None, 0), "it keeps the lock");
            assert!(!is_good_after(Found::SameOwner, other, 0), "it has acquired another");
            assert!(!is_good_after(Found::Another, again, 0));
            assert!(!is_good_after(Found::SameOwner, again, late), "no sample");
        }
        (1..HOLDS).for_each(|_| assert!(!is_good_after(Found::SameOwner, again, 0)));
        assert!(!is_good_after(Found::Free, again, 0), "it begins anew");
        (1..HOLDS).for_each(|_| assert!(!is_good_after(Found::SameOwner, again, 0)));
        assert!(!is_good_after(Found::Free, again, 0));
        (1..HOLDS).for_each(|_| assert!(!is_good_after(Found::SameOwner, again, 0)));
        assert!(is_good_after(Found::SameOwner, again, 0));
        assert!(is_good_after(Found::Another, None, 0));
        assert!(is_good_after(Found::Free, None, late), "no sample");
    }

    #[test]
    fn one_waiter_at_a_time_tries_and_the_next_one_sooner_if_the_owner_was_back() {
        let p = Scripted::yielding(1, 1);
        let trials = || (0..1000).filter(|_| begin(&p, ON)).count();
        let after = |epochs: u32| {
            p.pass(u64::from(epochs) << 17);
            trials()
        };
        assert_eq!(after(1000), 0, "not at the very beginning");
        assert_eq!(after(300), 1);
        assert_eq!(after(200), 0, "too soon");
        assert_eq!(after(100), 1);
        bucket::of(&p, ON).rests.miss_nothing();
        assert_eq!(after(20), 1);
        bucket::of(&p, ON).rests.leave_idle();
        assert_eq!(after(20), 0, "it was not back");
        p.at_halt(3, |p| p.pass(10_000_000));
        Rest::now(&p, ON, Some(3)).learn(&p, ON, Found::Free);
        assert_eq!((after(0), after(NEXT_REST)), (0, 1), "a late one tells nothing");
        let_rests_be_good(&p, ON);
        assert_eq!(trials(), 1000);
        super::super::note_turns(&p, ON, u64::from(p.tuning().mutex_short_ns) - 1);
        assert_eq!(trials(), 0, "short turns");
    }
}
