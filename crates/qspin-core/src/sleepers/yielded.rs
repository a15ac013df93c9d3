//! What a yield of a waiter tells of the threads that have had its CPU meanwhile.
//!
//! # Problem
//! A yield is good where it gives the CPU to the owner, or to threads that have work to do; it is bad where unrelated
//! threads keep the CPU for a whole time slice. The system call does not say which threads ran.
//!
//! # What is learned
//! How long it took, and which lock was acquired on the CPU meanwhile, as [`Throughput`](super::Throughput) tells. Each
//! bucket keeps two guesses: that yields are long, and that they pay, since other threads work in that time; the process
//! keeps one, that there are [hogs].
//!
//! # Limits
//! Of the work of other threads only acquisitions of default mutexes and reader-writer locks are seen, and of these the
//! last one: a yield during which a thread has acquired another lock and then this one counts as in vain.

use super::hogs;
use super::score::Score;
use super::throughput::Since;
use super::{SleepPlatform, bucket};
use crate::platform::AtomicWord;

/// Points added for a yield that was too long; each other yield takes one off.
const LONG_WEIGHT: i32 = 2;
/// A yield takes less than this if no other thread wants the CPU, in nanoseconds: to another thread and back are
/// two switches.
pub(super) const SWITCH_NS: u64 = 1500;
/// A yield that has let other threads work pays if it took this, in nanoseconds: many times what the two switches
/// cost. Where owners yield in short sections, an owner is back only after each waiter that is awake had the CPU.
/// `sysbench threads`, 16 threads and 4 locks on two CPUs of a Xeon, over the same without yields that pay: 0.75
/// without this bound, 1.16 with it.
const WORK_NS: u64 = 8 * SWITCH_NS;
/// Points added for a yield that has let another thread work; one that has not takes one off. With many waiters
/// most yields go to other waiters.
const YIELDS_PAY_WEIGHT: i32 = 8;

/// What came of a yield.
#[derive(Debug)]
pub(super) struct Yielded {
    pub(super) took_ns: u64,
    /// Whether it let threads with other work run, or most do.
    pub(super) pays: bool,
    /// Whether the lock itself was acquired on the CPU meanwhile.
    to_owners: bool,
}

impl Yielded {
    /// Yields, as a waiter of the lock at `on`, perhaps as a trial whether there are [hogs], and learns from it whether
    /// yields pay.
    pub(super) fn after<P: SleepPlatform>(p: &P, on: usize, tries: bool) -> Self {
        let begin = p.now_ns();
        let seen = p.throughput().zip(p.runs_on()).map(|(all, cpu)| (all, all.last(cpu)));
        p.yield_cpu();
        // A clock may go back.
        let took_ns = p.now_ns().saturating_sub(begin);
        let Some((all, last)) = seen else { return Self::in_vain(took_ns) };
        let is_long = is_long(p, took_ns);
        if tries {
            hogs::tried(all);
        }
        if is_long && hogs::learn(all, begin.saturating_add(took_ns), took_ns, last) {
            return Self::in_vain(took_ns);
        }
        let pay = &bucket::of(p, on).yields_pay;
        let since = all.since(last, on);
        let pays = pays(pay, &since, took_ns, is_long);
        Self { took_ns, pays, to_owners: since == Since::This }
    }

    /// One that was good for nothing that is known.
    const fn in_vain(took_ns: u64) -> Self {
        Self { took_ns, pays: false, to_owners: false }
    }

    /// Whether another thread had the CPU.
    pub(super) const fn switched(&self) -> bool {
        self.took_ns >= SWITCH_NS
    }

    /// The points that it adds to the guess that yields are long. Where waiters keep `away`, one thread is to have the
    /// lock for long.
    pub(super) const fn points(&self, is_long: bool, away: bool) -> i32 {
        if is_long && !(away && self.to_owners) { LONG_WEIGHT } else { -1 }
    }
}

/// Whether a yield that took so long has used up all the time that a waiter has for yields.
pub(super) fn is_long<P: SleepPlatform>(p: &P, took_ns: u64) -> bool {
    took_ns >= u64::from(p.tuning().mutex_awake_us) * 1000
}

/// Learns from a yield whether yields pay; returns whether this one did, or most do.
fn pays<W: AtomicWord>(pay: &Score<W>, since: &Since, took_ns: u64, is_long: bool) -> bool {
    match since {
        Since::Another if took_ns >= WORK_NS => {
            pay.add(YIELDS_PAY_WEIGHT);
            return true;
        }
        // To other waiters, or to the owner.
        Since::Nothing if took_ns >= SWITCH_NS && !is_long => {}
        _ => pay.add(-1),
    }
    pay.holds()
}

/// From now on waiters of the lock at `on` know that yields pay, until they learn.
#[cfg(test)]
pub(crate) fn let_yields_pay<P: SleepPlatform>(p: &P, on: usize) {
    bucket::of(p, on).yields_pay.add(YIELDS_PAY_WEIGHT);
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_long_yield_to_the_owner_is_no_evidence_where_waiters_keep_away() {
        let (in_vain, to_owners) =
            (Yielded::in_vain(1), Yielded { to_owners: true, ..Yielded::in_vain(1) });
        for (yielded, is_long, away, points) in [
            (&to_owners, true, true, -1),
            (&to_owners, true, false, LONG_WEIGHT),
            (&in_vain, true, true, LONG_WEIGHT),
            (&in_vain, true, false, LONG_WEIGHT),
            (&in_vain, false, true, -1),
            (&to_owners, false, false, -1),
        ] {
            assert_eq!(yielded.points(is_long, away), points, "{yielded:?} {is_long} {away}");
        }
    }

    #[test]
    fn yields_pay_while_other_threads_work_on_this_cpu() {
        let pay = Score::<AtomicU32>::new();
        assert!(
            !pays(&pay, &Since::Another, WORK_NS - 1, false),
            "too little work for two switches"
        );
        assert!(!pays(&pay, &Since::This, WORK_NS, false), "all wait for the same lock");
        assert!(!pays(&pay, &Since::Nothing, WORK_NS, false), "nothing is known");
        assert!(pays(&pay, &Since::Another, WORK_NS, false));
        for _ in 0..100 {
            assert!(
                pays(&pay, &Since::Nothing, WORK_NS, false),
                "nothing to learn: another waiter ran"
            );
        }
        let in_vain = [
            (Since::Nothing, SWITCH_NS - 1, false),
            (Since::Nothing, WORK_NS, true),
            (Since::This, WORK_NS, false),
        ];
        for (since, took_ns, is_long) in in_vain {
            assert!(
                pays(&pay, &Since::Another, 100 * WORK_NS, true),
                "however long the others work"
            );
            let more = (0..100).take_while(|_| pays(&pay, &since, took_ns, is_long)).count();
            assert!((1..8).contains(&more), "{more} yields in vain after one that paid: {since:?}");
        }
    }
}
