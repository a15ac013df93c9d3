//! The spin budget: how long a waiter stays awake before it sleeps.
//!
//! # Problem
//! Sleeping and being woken costs [a few to some ten microseconds](super::cost), and the thread that wakes the
//! waiter pays a part of it on the way out of its critical section. Staying awake costs the CPU, which the owner
//! of the lock may be waiting for, or other threads that have work to do.
//!
//! # What it does
//! A waiter polls for as long as [sleeping costs](super::cost), in slices, at the lock's [pace](super::Pace);
//! then it also yields the CPU after each slice; then it sleeps. All of it is time, in pauses whose length
//! the platform knows ([`Platform::pause_ns`](crate::platform::Platform::pause_ns)).
//!
//! A yield may give the CPU to threads that use the lock or the data, which is what it is for. Or it gives the
//! CPU to unrelated threads, which keep it for a whole time slice, while a waiter that sleeps would get the CPU
//! back at once when it is woken. Each bucket learns which of the two it is from how long yields take: where they
//! have used up all the time that a waiter has for them, waiters do not yield, but poll for as long as sleeping
//! costs, and sleep. Where waiters [keep away](super::Pace::keeps_away) one thread is to have the lock for long, and a
//! yield to that one is no evidence. Where [hogs] want the CPUs, no waiter of the process yields.
//!
//! Where threads with other locks have work, to yield costs two switches, and a poll costs all that they would have
//! done. Each bucket learns this from yields during which another lock was acquired on the CPU, as
//! [`Throughput`](super::Throughput) tells, and which took much longer than a switch. There waiters poll for as long
//! as a switch takes, and yield, beside others that are awake as well; they sleep after many yields, or where they
//! would have become the heir.
//!
//! Polling may be in vain as well: the owner has yielded or sleeps in its critical section, was preempted, or the
//! sections are longer than sleeping costs. Where waiters have mostly polled for all of their time, the next ones
//! yield at once.
//!
//! Where the owner comes right back, waiters that are counted as awake neither poll nor yield, but
//! [rest](super::Rest) for some milliseconds before they sleep; the others sleep.
//!
//! Waiters for readers or a writer poll for a moment, and yield and sleep if that was in vain: where sections are
//! short, more threads that are awake only take the line from each other. Where a moment is mostly too little, they
//! yield almost at once; but where polling on brings some of them in, they poll for as long as sleeping costs. One
//! release wakes many readers, one after the other, so sleeping costs them more than the one thread that wakes.
//!
//! Four things shorten the budget:
//! * Other waiters are awake. One is enough to acquire the lock as soon as it is free, and one more for the case
//!   that the first has no CPU: the others do not yield.
//! * The owner has acquired the lock on this very CPU, and cannot run while this thread does: each pause is lost.
//!   The waiter yields at once. Where some yields do not help, the owner waits for something else than the CPU,
//!   or is behind threads that do not use this lock: the waiter sleeps.
//! * A CPU quota of its container limits the CPU time of the process: what a waiter burns is taken from the
//!   owner. The waiter polls for a few microseconds.
//! * The waiter was notified by a thread that most likely owns the lock itself, and that the waiter may have
//!   preempted by waking up. The waiter polls for a moment.
//!
//! # Source
//! Few awake waiters: Dice, "Malthusian Locks". Not to spin for an owner that does not run: `mutex_spin_on_owner`
//! of Linux, and document 001; what a thread can know of that without privileges is said at
//! [`Platform::runs_on`](crate::platform::Platform::runs_on).
//!
//! # Limits
//! Of an owner on another CPU nothing is known: it may have been preempted there. An owner that has moved to
//! another CPU counts as still on the CPU where it acquired the lock. What a yield was good for is [known in
//! part](super::yielded) as well.

use core::sync::atomic::Ordering::Relaxed;

use super::hogs::{self, Advice};
use super::yielded::{SWITCH_NS, Yielded, is_long};
use super::{SleepPlatform, bucket, cost, rests, trials};
use crate::platform::{Budget, Until};

/// A slice of a waiter that watches the lock, in nanoseconds: between two yields.
const SLICE_NS: u32 = 2000;
/// A slice of a waiter whose polls are in vain, in nanoseconds: a few polls, and the CPU goes to other threads.
const VAIN_SLICE_NS: u32 = 300;
/// How long a waiter polls after a yield that has let others run, before it yields again, in nanoseconds.
const LOOK_NS: u32 = 50;
/// Rests of a waiter before it sleeps, each for as long as others yield: with a timer's slack, some milliseconds, after
/// which it is the heir.
const RESTS: u32 = 20;
/// How long a waiter polls where enough others are awake, in nanoseconds.
const CROWD_NS: u32 = 6000;
/// How long a waiter for readers or a writer polls, in nanoseconds, unless polling on pays. AMD EPYC, 2 CPUs, operations a
/// second with this, with as much as sleeping costs in each wait, and as learned. 7 threads, 19 µs inside, 7 µs outside, a
/// write in 7: 34 000, 54 000, 50 000. 20 threads, 48 ns inside, a write in 4: 11.2, 8.6, 10.9 million.
const RWLOCK_SPIN_NS: u32 = 2000;
/// Points added for a waiter that got in by polling on; each other takes one off. So it takes one in five.
const PAY_WEIGHT: i32 = 4;
/// A slice of a waiter for readers or a writer.
const RWLOCK_SLICE_NS: u32 = 500;
/// Yields of such a waiter. Before it watched, with five polls at growing distances, over the best of three locks
/// in 30 cells, geometric mean and worst: 1.04 and 0.75 with 8, 1.02 and 0.82 with 20; with four polls and 8,
/// 1.06 and 0.85. Not measured since.
const RWLOCK_YIELDS: u32 = 8;
/// Yields to an owner that acquired the lock on this CPU. Of `sysbench threads` with 8 threads on 2 CPUs, whose
/// owners yield: 0.10 of the C library's work where the owner's CPU is not known; 0.3 with 0 yields, 0.6 with 1,
/// 0.8 with 4.
const HERE_YIELDS: u32 = 4;
/// The factor by which an heir's budget of yields exceeds that of other waiters: it has waited for long, and
/// would lose its reservation.
const HEIR_FACTOR: u32 = 16;
/// The factor by which the budget of yields of a waiter that keeps away exceeds that of the others: while it sleeps, each
/// release of an owner that comes right back is a read-modify-write, and it is woken soon. AMD EPYC, 2 CPUs, 13 short loads
/// with little outside, with a thread that does not sleep at the end of its quantum: 1.07 in the mean, 0.98 to 1.20.
const AWAY_FACTOR: u32 = 10;
/// How long a notified waiter polls, since the notifying thread most likely owns the lock: about one poll, as it
/// was measured. rocksdb's `fillrandom`, 8 threads on 2 CPUs, over the C library: 1.12 with one poll, 1.04 with
/// four, intervals overlapping; 0.52 with the budget of other waiters.
const NOTIFIED_NS: u32 = 200;
/// How long a waiter polls in a process whose CPU quota is less than the CPUs it may use. 16 threads with 10 µs
/// inside and nothing outside, a quota of half a CPU, over `std`, when budgets were polls: 0.62 with ten and
/// yields, 0.74 with ten, 0.80 to 0.93 with four, which were about 2 µs. Not measured since.
const QUOTA_POLL_NS: u32 = 2000;

/// This part of the time for which a waiter backs off after it has lost a free lock counts as polled. Simulated, 420 loads,
/// over the form before all that was changed for many CPUs: 1.024 +- 0.006 and 0.95 of the CPU time of waiters where none of it counts, 1.026 and
/// 0.89 with a quarter, 1.021 and 0.78 with all; but 67 threads with 52 and 123 ns under 4 locks on 56 CPUs 17.3, 17.3 and
/// 12 million operations a second.
const LOST_PART: u32 = 4;

/// What is left of a waiter's spin budget.
#[derive(Debug)]
pub struct SpinBudget {
    /// Pauses in a slice.
    slice: u32,
    /// Whether the last yield has let others run.
    switched: bool,
    /// Slices before the waiter yields.
    spins: u32,
    /// Slices that each end with a yield.
    yields: u32,
    /// Yields left for an owner that acquired the lock on this CPU.
    here: u32,
    /// The address of the lock, by whose bucket the waiter learns whether to yield.
    on: usize,
    /// Whether the waiter stays awake however long its yields take.
    stays: bool,
    /// Whether the waiter keeps away from the lock, as all of its waiters, so that one thread has it for long.
    away: bool,
    /// Whether the waiter [rests](super::rests) where others yield.
    rests: bool,
    /// Whether the bucket learns from the waiter's polls.
    learns: bool,
    /// Whether the waiter's first yield is a trial whether there are [hogs].
    tries: bool,
    /// The polls were in vain if the waiter still waits when so many slices are left.
    judged: u32,
}

impl SpinBudget {
    fn of<P: SleepPlatform>(p: &P, on: usize, slice_ns: u32, spin_ns: u32, yields: u32) -> Self {
        Self {
            slice: pauses(p, slice_ns),
            switched: false,
            spins: spin_ns.div_ceil(slice_ns),
            yields,
            here: HERE_YIELDS.min(yields),
            on,
            stays: false,
            away: false,
            rests: false,
            learns: false,
            tries: false,
            judged: 0,
        }
    }

    /// The budget of a waiter that has just begun, or was woken by a release, and polls at this
    /// [interval](super::Pace::interval_ns).
    pub fn new<P: SleepPlatform>(p: &P, on: usize, interval_ns: u32) -> Self {
        let slice_ns = interval_ns.max(SLICE_NS);
        // As many yields for a waiter that polls rarely. Where no other thread wants the CPU, that takes ten
        // times as long, but a sleeper would cost the owner, which comes right back, a read-modify-write each
        // time.
        let away = interval_ns >= trials::AWAY_NS;
        let yields = Self::yields(p, SLICE_NS) * if away { AWAY_FACTOR } else { 1 };
        let spin_ns = p.tuning().mutex_spin_ns.min(cost::ns(p));
        if p.has_cpu_quota() {
            let budget = Self::of(p, on, slice_ns, spin_ns.min(QUOTA_POLL_NS), yields);
            return Self { yields: 0, ..budget };
        }
        let tries = match hogs::advice(p) {
            Advice::Yield => false,
            Advice::Try => true,
            Advice::Sleep => return Self::of(p, on, slice_ns, spin_ns, 0),
        };
        Self { away, tries, ..Self::as_learned(p, on, interval_ns, yields) }
    }

    /// The same without hogs and quota.
    fn as_learned<P: SleepPlatform>(p: &P, on: usize, interval_ns: u32, yields: u32) -> Self {
        let slice_ns = interval_ns.max(SLICE_NS);
        let spin_ns = p.tuning().mutex_spin_ns.min(cost::ns(p));
        let learned = bucket::of(p, on);
        // A waiter that polls rarely does not find the lock free by polling alone.
        let learns = interval_ns < SLICE_NS && p.pause_ns() != 0;
        let yields_pay = learned.yields_pay.holds_for(p);
        if !yields_pay && learned.long_yields.holds_for(p) {
            let budget = Self::of(p, on, slice_ns, cost::ns(p), yields);
            return Self { yields: 0, ..budget };
        }
        if learns && learned.vain_polls.holds_for(p) {
            let yields = Self::yields(p, VAIN_SLICE_NS);
            return Self::of(p, on, VAIN_SLICE_NS, 0, yields);
        }
        if yields_pay {
            let slice_ns = interval_ns.max(SWITCH_NS as u32);
            return Self { learns, ..Self::of(p, on, slice_ns, slice_ns, yields) };
        }
        Self { learns, ..Self::of(p, on, slice_ns, spin_ns, yields) }
    }

    /// The same for a waiter that may [rest](super::Rest).
    pub fn with_rests<P: SleepPlatform>(p: &P, on: usize, interval_ns: u32) -> Self {
        let may = p.tuning().mutex_awake_us != 0 && !p.has_cpu_quota() && !Self::yields_pay(p, on);
        if !may || !rests::begin(p, on) || hogs::are_there(p) {
            return Self::new(p, on, interval_ns);
        }
        Self { rests: true, ..Self::of(p, on, SLICE_NS, 0, RESTS) }
    }

    /// The pauses of the slice that a waiter may spend before it needs a budget; `None` where it has learned that
    /// polls are in vain, or burn a quota.
    #[inline]
    #[must_use]
    pub fn first_slice<P: SleepPlatform>(p: &P, on: usize) -> Option<u32> {
        let pauses = SLICE_NS.checked_div(p.pause_ns())?;
        let learned = bucket::of(p, on);
        let polls = !learned.vain_polls.holds() && !learned.rests.are_good() && !p.has_cpu_quota();
        polls.then_some(pauses.max(1))
    }

    /// Such a slice has ended with the lock acquired.
    #[inline]
    pub fn was_enough<P: SleepPlatform>(p: &P, on: usize) {
        bucket::of(p, on).vain_polls.add(-1);
    }

    /// Takes the first slice, in which the lock was not acquired, off the budget.
    #[must_use]
    pub fn after_first_slice(self) -> Self {
        Self { spins: self.spins.saturating_sub(1), ..self }
    }

    /// As many yields as fit into the time to stay awake with them.
    fn yields<P: SleepPlatform>(p: &P, slice_ns: u32) -> u32 {
        (u64::from(p.tuning().mutex_awake_us) * 1000 / u64::from(slice_ns)) as u32
    }

    /// The budget of the heir, past which no newcomer may barge: it will acquire the lock soon.
    pub fn of_heir<P: SleepPlatform>(p: &P, on: usize) -> Self {
        let yields = if hogs::are_there(p) { 0 } else { Self::yields(p, SLICE_NS) * HEIR_FACTOR };
        // A yield may give the CPU away for a whole time slice, during which the reservation is wasted: poll
        // first.
        let spin_ns = p.tuning().mutex_spin_ns.min(cost::ns(p));
        Self { stays: true, ..Self::of(p, on, SLICE_NS, spin_ns, yields.max(1)) }
    }

    /// The budget of a waiter that was notified by a thread that most likely owns the lock.
    pub fn of_notified<P: SleepPlatform>(p: &P, on: usize) -> Self {
        Self::of(p, on, NOTIFIED_NS, p.tuning().mutex_spin_ns.min(NOTIFIED_NS), 0)
    }

    /// The budget of a waiter for readers or a writer, first without the gate and then with it. Where sections are
    /// short it is short: the fewer threads are awake, the sooner each has the line. Where so short a wait was
    /// mostly in vain, and polling on is not, waiters poll for as long as sleeping costs: then the sections are longer.
    /// Where they are not, the owner was preempted.
    pub fn of_rwlock<P: SleepPlatform>(p: &P, on: usize) -> Self {
        let yields = Self::yields(p, RWLOCK_SLICE_NS).min(RWLOCK_YIELDS);
        let spin_ns = p.tuning().mutex_spin_ns.min(cost::ns(p));
        let short = Self::of(p, on, RWLOCK_SLICE_NS, spin_ns.min(RWLOCK_SPIN_NS), yields);
        if p.has_cpu_quota() {
            return Self { yields: 0, ..short };
        }
        let tries = match hogs::advice(p) {
            Advice::Yield => false,
            Advice::Try => true,
            Advice::Sleep => return Self { yields: 0, here: 0, ..short },
        };
        let short = Self { tries, ..short };
        let (learns, learned) = (p.pause_ns() != 0, bucket::of(p, on));
        if learns && learned.vain_polls.holds() && learned.polls_pay.holds_or_is_tried(p) {
            let long = Self::of(p, on, RWLOCK_SLICE_NS, spin_ns, yields);
            return Self { learns, tries, judged: long.spins - short.spins, ..long };
        }
        if learns && learned.vain_polls.holds_for(p) {
            let vain = Self::of(p, on, VAIN_SLICE_NS, spin_ns.min(VAIN_SLICE_NS), short.yields);
            return Self { tries, ..vain };
        }
        Self { learns, ..short }
    }

    /// Whether a waiter of the lock at `on` should yield rather than sleep: the CPU goes to threads with other work.
    #[inline]
    #[must_use]
    pub fn yields_pay<P: SleepPlatform>(p: &P, on: usize) -> bool {
        bucket::of(p, on).yields_pay.holds() && !hogs::are_there(p)
    }

    /// The budget of a waiter that should sleep at once.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            slice: 1,
            switched: false,
            spins: 0,
            yields: 0,
            here: 0,
            on: 0,
            stays: false,
            away: false,
            rests: false,
            learns: false,
            tries: false,
            judged: 0,
        }
    }

    /// Whether the waiter rests between its polls.
    #[inline]
    #[must_use]
    pub fn rests(&self) -> bool {
        self.rests
    }

    /// Takes one rest off the budget, which must not be spent yet.
    pub fn spend_rest(&mut self) {
        self.yields -= 1;
    }

    /// Whether the waiter does not yield yet.
    #[inline]
    #[must_use]
    pub fn only_spins(&self) -> bool {
        self.spins > 0
    }

    /// Whether the waiter should sleep.
    #[inline]
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.spins == 0 && self.yields == 0
    }

    /// Enough other waiters are awake: this one should not yield, and should sleep soon.
    #[inline]
    pub fn beside_others<P: SleepPlatform>(&mut self, p: &P) {
        let slice_ns = self.slice.saturating_mul(p.pause_ns()).max(1);
        self.spins = self.spins.min(CROWD_NS.div_ceil(slice_ns));
        self.yields = 0;
    }

    /// The waiter has backed off for so many pauses, since it had lost a free lock to others.
    pub fn spend_when_lost(&mut self, pauses: u32) {
        let slices = (pauses / LOST_PART).checked_div(self.slice).unwrap_or(0);
        let yields = slices.saturating_sub(self.spins);
        self.spins = self.spins.saturating_sub(slices);
        self.yields = self.yields.saturating_sub(yields);
    }

    /// Spends a slice, in which `poll` lets up to so many pauses pass; `poll` returns whether the waiter still
    /// has to wait. The budget must not be spent yet.
    #[inline]
    pub fn spend<P: SleepPlatform>(&mut self, p: &P, poll: impl FnOnce(u32) -> bool) {
        let yields = self.spins == 0;
        if yields {
            self.yields -= 1;
        } else {
            self.spins -= 1;
        }
        // Where other threads want the CPU, a waiter that has it again only looks whether it can go on.
        let looks = yields && self.switched;
        let waits = poll(if looks { self.slice.min(pauses(p, LOOK_NS)) } else { self.slice });
        if waits && yields {
            self.yield_cpu(p);
        }
        if yields || waits && self.spins != 0 && self.spins != self.judged {
            return;
        }
        let learned = bucket::of(p, self.on);
        if core::mem::take(&mut self.learns) {
            learned.vain_polls.add(if waits { 1 } else { -1 });
        } else if self.judged != 0 {
            self.judged = 0;
            learned.polls_pay.add(if waits { -1 } else { PAY_WEIGHT });
        }
    }

    /// Yields; returns what came of that.
    fn yield_to_others<P: SleepPlatform>(&mut self, p: &P) -> Yielded {
        Yielded::after(p, self.on, core::mem::take(&mut self.tries))
    }

    /// Yields, and takes the time that the yield took off the budget: another thread may have had the CPU for
    /// long.
    fn yield_cpu<P: SleepPlatform>(&mut self, p: &P) {
        if p.pause_ns() == 0 || self.stays {
            return p.yield_cpu();
        }
        let yielded = self.yield_to_others(p);
        self.switched = yielded.switched();
        let took = if yielded.pays { 0 } else { yielded.took_ns };
        let points = yielded.points(is_long(p, took), self.away);
        bucket::of(p, self.on).long_yields.add(points);
        let slice_ns = u64::from(self.slice) * u64::from(p.pause_ns());
        let mut slices = took / slice_ns.max(1);
        if took >= SWITCH_NS {
            slices = slices.max(slice_ns / u64::from(SLICE_NS));
        }
        self.yields -= u64::from(self.yields).min(slices) as u32;
    }

    /// The same for a waiter that watches `word` until `until` is met.
    #[inline]
    pub fn watch<P: SleepPlatform>(&mut self, p: &P, word: &P::Word, until: Until) {
        self.spend(p, |pauses| {
            !until.met_by(p.wait_until(word, until, Budget::Polls(pauses), Relaxed))
        });
    }

    /// The same where this waiter keeps the owner from running.
    pub fn give_way<P: SleepPlatform>(&mut self, p: &P) {
        if self.here == 0 {
            *self = Self::none();
        } else if p.pause_ns() == 0 || self.stays {
            self.here -= 1;
            p.yield_cpu();
        } else if self.yield_to_others(p).pays && self.yields != 0 {
            self.spins = 0;
            self.yields -= 1;
        } else {
            self.here -= 1;
        }
    }
}

/// The pauses in so many nanoseconds; one where their length is not known.
fn pauses<P: SleepPlatform>(p: &P, ns: u32) -> u32 {
    ns.checked_div(p.pause_ns()).unwrap_or(1).max(1)
}
