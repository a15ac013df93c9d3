//! Hogs: threads of this process or of others that want the CPUs, and acquire none of these locks.
//!
//! # Problem
//! A waiter that yields to a hog gets its CPU back after a whole time slice, some milliseconds later; one that sleeps
//! gets it back about when it is woken. And the scheduler shares the CPUs among those that want them: what waiters give
//! away, the hogs take, and Linux takes from a thread that yields what is left of its slice as well ("sched/fair:
//! Forfeit vruntime on yield", 79104becf42b). How long a yield takes does not tell: where threads outnumber CPUs, a
//! yield to threads that use the locks may be as long.
//!
//! # What is learned
//! During a long yield the CPU's [counter](super::Throughput) tells for about how long threads that use the locks have
//! had the CPU. Where most long yields were to other threads for the most part, waiters do not yield. From time to time
//! one does, to see whether that still holds. Of yields that overlap on one CPU one counts; those on several CPUs are
//! evidence of their own.
//!
//! # Limits
//! With few acquisitions in the time of a yield nothing is learned. Threads that use the locks, but have long sections
//! where others have short ones, look like hogs. The means are those of the process.

use core::sync::atomic::Ordering::Relaxed;

use super::score::Score;
use super::throughput::Last;
use super::{SleepPlatform, Throughput};
use crate::platform::{AtomicWord, ConstWord};

/// Points added for a long yield to hogs; a long yield to other threads takes one off, and so does a trial.
const WEIGHT: i32 = 2;
/// Between two trials, in milliseconds. A trial may cost a time slice.
const TRIAL_MS: u32 = 32;
/// If threads that use the locks had the CPU for less than this part of the time, hogs had it. On two CPUs of a Xeon two
/// thirds of the long yields were such in three loads with hogs, and one in some hundred in two without.
const PART: u64 = 4;
/// A yield to a hog takes at least this, in nanoseconds: most took 2 to 8 ms on that machine. Of waiters many may have
/// the CPU in turn, each for a few microseconds: 24 threads under 64 locks whose owners yield in short sections, without a hog, had long
/// yields of up to 1 ms in which they hardly did anything.
const SLICE_NS: u64 = 1_500_000;

/// Whether there are hogs.
#[derive(Debug, Default)]
pub(super) struct Hogs<W> {
    points: Score<W>,
    /// When a waiter tries the contrary.
    trial_ms: W,
}

impl<W: AtomicWord> Hogs<W> {
    pub(super) fn new() -> Self {
        Self { points: Score::new(), trial_ms: W::new(0) }
    }

    /// A long yield has ended now, during which threads that use the locks had the CPU for so long. The last one on this
    /// CPU that was counted has ended at `last_until`, in near-microseconds: yields at the same time tell the same. Returns
    /// whether it was a yield to hogs.
    fn learn(&self, last_until: &W, now_ns: u64, took_ns: u64, used_ns: u64) -> bool {
        let to_hogs = took_ns >= SLICE_NS && used_ns < took_ns / PART;
        let (now, until) = (microseconds(now_ns), last_until.load(Relaxed));
        let is_new = now.wrapping_sub(until) >= microseconds(took_ns);
        if is_new && last_until.compare_exchange(until, now, Relaxed).is_ok() {
            self.points.add(if to_hogs { WEIGHT } else { -1 });
            if to_hogs {
                self.trial_ms.store(milliseconds(now_ns).wrapping_add(TRIAL_MS), Relaxed);
            }
        }
        to_hogs
    }

    /// Whether it is for this waiter to try whether there still are hogs.
    fn is_to_try(&self, now_ns: u64) -> bool {
        let (now, at) = (milliseconds(now_ns), self.trial_ms.load(Relaxed));
        // Clocks of CPUs may differ.
        let is_due = at.wrapping_sub(now).wrapping_sub(1) >= 2 * TRIAL_MS;
        is_due && self.trial_ms.compare_exchange(at, now.wrapping_add(TRIAL_MS), Relaxed).is_ok()
    }
}

impl<W: ConstWord> Hogs<W> {
    /// The same for static memory.
    #[allow(clippy::declare_interior_mutable_const)]
    pub(super) const NONE: Self = Self { points: Score::EMPTY, trial_ms: W::ZERO };
}

/// About so many microseconds.
const fn microseconds(ns: u64) -> u32 {
    (ns >> 10) as u32
}

/// About so many milliseconds.
const fn milliseconds(ns: u64) -> u32 {
    (ns >> 20) as u32
}

/// What a waiter should do that would yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// There are no hogs, as far as is known.
    Yield,
    /// There are, but yield, to see whether there still are, and [tell](tried).
    Try,
    /// There are: sleep.
    Sleep,
}

/// Whether hogs want the CPUs.
#[inline]
pub(super) fn are_there<P: SleepPlatform>(p: &P) -> bool {
    p.throughput().is_some_and(|throughput| throughput.hogs().points.holds())
}

/// What a waiter should do whose wait begins now.
#[inline]
pub(super) fn advice<P: SleepPlatform>(p: &P) -> Advice {
    match p.throughput().map(Throughput::hogs) {
        Some(hogs) if hogs.points.holds() => {
            if hogs.is_to_try(p.now_ns()) {
                Advice::Try
            } else {
                Advice::Sleep
            }
        }
        _ => Advice::Yield,
    }
}

/// A waiter has yielded as a trial. Unless that was a yield to hogs, there are none, as far as it can tell.
pub(super) fn tried<W: AtomicWord>(throughput: &Throughput<W>) {
    throughput.hogs().points.add(-1);
}

/// Learns from a long yield that has ended now; returns whether it was to hogs. The CPU's `last` acquisition is that
/// before the yield.
pub(super) fn learn<W: AtomicWord>(
    throughput: &Throughput<W>,
    now_ns: u64,
    took_ns: u64,
    last: Last,
) -> bool {
    let used_ns = throughput.used_since(last, took_ns);
    let until = throughput.yielded_until(last);
    used_ns.is_some_and(|used_ns| throughput.hogs().learn(until, now_ns, took_ns, used_ns))
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;
    use crate::platform::Platform;
    use crate::scripted::Scripted;
    use crate::sleepers::SpinBudget;
    use crate::sleepers::throughput::EPOCH_BITS;

    const MS: u64 = 1 << 20;

    #[test]
    fn hogs_are_there_after_yields_in_which_other_threads_had_the_cpu() {
        let hogs = Hogs::<AtomicU32>::new();
        let until = AtomicU32::new(0);
        let mut now = 0;
        let mut after = |ns, took_ns, used_ns| {
            now += ns;
            let to_hogs = hogs.learn(&until, now, took_ns, used_ns);
            (to_hogs, hogs.points.holds())
        };
        assert_eq!(after(4 * MS, MS, 0), (false, false), "less than a slice");
        assert_eq!(after(4 * MS, 4 * MS, MS), (false, false));
        assert_eq!(after(4 * MS, 4 * MS, MS - 1), (true, false), "after one");
        assert_eq!(after(3 * MS, 4 * MS, 0), (true, false), "at the same time");
        assert_eq!(after(4 * MS, 4 * MS, 0), (true, true));
        assert_eq!(after(MS, MS, MS), (false, false), "they have left");
    }

    #[test]
    fn yields_at_the_same_time_on_several_cpus_are_counted_each() {
        let found = |cpus: [u32; 2]| {
            let all = &Throughput::<AtomicU32>::new();
            for epoch in 10..110 {
                all.epoch(epoch << EPOCH_BITS);
                cpus.into_iter().for_each(|cpu| (0..50).for_each(|_| all.count(cpu, 0)));
            }
            cpus.into_iter().for_each(|cpu| assert!(learn(all, 8 * MS, 4 * MS, all.last(cpu))));
            all.hogs().points.holds()
        };
        assert!(!found([3, 3]), "those of one CPU tell the same");
        assert!(found([3, 4]));
    }

    #[test]
    fn one_waiter_at_a_time_tries_whether_there_still_are_hogs() {
        for start in [4 * MS, 50 * MS, (u64::from(u32::MAX) - 8) * MS] {
            let hogs = Hogs::<AtomicU32>::new();
            assert!(hogs.learn(&AtomicU32::new(0), start, 2 * MS, 0));
            let tries = |ms| (0..3).filter(|_| hogs.is_to_try(start + ms * MS)).count();
            let all: usize = (0..320).map(tries).sum();
            assert_eq!(all, 9, "one in 32 ms");
            assert!((320..352).map(tries).any(|tries| tries == 1), "not three");
        }
    }

    #[test]
    fn where_hogs_are_a_waiter_yields_only_as_a_trial() {
        const ON: usize = 64;
        const YIELDS: u32 = 6;
        let p = Scripted::yielding(1, YIELDS);
        let yields = |mut budget: SpinBudget| {
            while !budget.is_spent() {
                budget.spend(&p, |_| true);
            }
            p.yields()
        };
        let mutex = || yields(SpinBudget::new(&p, ON, 0));
        let rwlock = || yields(SpinBudget::of_rwlock(&p, ON));
        let heir = || yields(SpinBudget::of_heir(&p, ON));
        assert_eq!(mutex(), YIELDS);
        assert!(rwlock() > 0);
        assert!(heir() > 1);
        let hogs = p.throughput().unwrap().hogs();
        for _ in 0..4 {
            p.pass(2 * MS);
            assert!(hogs.learn(&AtomicU32::new(0), p.now_ns(), 2 * MS, 0));
        }
        assert_eq!((mutex(), rwlock(), heir()), (0, 0, 1));
        p.pass(u64::from(2 * TRIAL_MS) * MS);
        assert_eq!((mutex(), mutex()), (YIELDS, 0), "one tries");
        p.pass(u64::from(2 * TRIAL_MS) * MS);
        assert!(rwlock() > 0, "one tries");
        assert_eq!((rwlock(), mutex()), (0, 0));
    }
}
