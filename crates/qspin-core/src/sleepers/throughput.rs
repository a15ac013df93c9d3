//! Throughput: how many acquisitions the process does in a time, as a waiter can know it.
//!
//! # Problem
//! A waiter that changes how it waits cannot tell by its own wait whether that was better: it acquires the lock
//! either way, and the price is paid by other threads. What tells is how much all of them do.
//!
//! # How it is counted
//! Each CPU has a counter in a cache line of its own. An acquisition adds one to that of its CPU, with a load and
//! a store: if the thread is preempted in between, some are lost, which a mean does not notice. Time is divided
//! into *epochs*. The first waiter that reads the clock in a new one adds all counters up, so that the rate of
//! the last one is known.
//!
//! Beside its count a CPU's counter has a few bits of the address of the lock that was acquired last, for a waiter
//! that wants to know whether threads with other work have run on its CPU.
//!
//! # Limits
//! The rate is that of all default mutexes and reader-writer locks of the process. With many CPUs, adding up fetches a
//! line of each, once in an epoch.

use core::sync::atomic::Ordering::Relaxed;

use super::hogs::Hogs;
use super::{SleepPlatform, is_quiet};
use crate::platform::{AtomicWord, ConstWord};

/// An epoch lasts two to the power of this, in nanoseconds: 131 µs.
pub(super) const EPOCH_BITS: u32 = 17;
/// Epochs between two trials of resting, 33 ms: a trial in vain leaves a lock idle for up to 100 µs.
const RESTS_APART: u32 = 256;
/// The same after one that has found the owner back, or has told nothing, 1 ms.
pub(super) const NEXT_REST: u32 = 8;
/// Rates have so many binary places.
const PLACES: u32 = 8;
/// A rate is this part of the mean of the last ones.
const MEAN: u32 = 16;
/// With fewer acquisitions in the mean in a time, nothing is known of it.
const ENOUGH: u64 = 8;
/// CPUs with a counter of their own; more of them share.
const CPUS: usize = 128;

/// Which lock a CPU has acquired last stands beside its count, in so many bits.
const TAG_BITS: u32 = 8;
const TAGS: u32 = (1 << TAG_BITS) - 1;
/// The counter of a CPU on which threads have only waited.
const NO_ACQUISITION: u32 = 1;

/// The lock at `on`, in few bits: of 256 other locks about one has the same.
#[inline]
fn tag(on: usize) -> u32 {
    (on >> 2 ^ on >> 8) as u32 & TAGS
}

/// Counts an acquisition of the lock at `on` by a thread on this CPU, where that is known.
#[inline]
pub fn acquired<P: SleepPlatform>(p: &P, on: usize, cpu: Option<u32>) {
    if let (Some(cpu), Some(throughput)) = (cpu, p.throughput()) {
        throughput.count(cpu, on);
    }
}

/// Whether a thread comes right back to the lock at `on` while others may sleep there, as far as is known: it was the last one
/// that was acquired on this CPU.
#[inline]
#[must_use]
pub fn comes_back_past_sleepers<P: SleepPlatform>(p: &P, on: usize) -> bool {
    let was_last = |throughput: &Throughput<P::Word>| {
        let count = p.runs_on().map(|cpu| throughput.last(cpu).count);
        count.is_some_and(|count| count & TAGS == tag(on))
    };
    // Mostly no waiter sleeps, so that is asked first.
    p.throughput().is_some_and(|throughput| !is_quiet(p, on) && was_last(throughput))
}

/// A thread on this CPU has to wait for long before it can even sleep: the CPU is one of [`cpus`] also if no thread ever
/// acquires a lock there.
pub(super) fn waits_here<P: SleepPlatform>(p: &P) {
    if let Some((cpu, throughput)) = p.runs_on().zip(p.throughput()) {
        throughput.note(cpu);
    }
}

/// On how many CPUs the process has acquired a lock, or waited for a bucket of sleepers, as far as is known; 0 if nothing is.
#[inline]
#[must_use]
pub fn cpus<P: SleepPlatform>(p: &P) -> u32 {
    p.throughput().map_or(0, |throughput| throughput.cpus.load(Relaxed))
}

/// For a test: the process has acquired locks on so many CPUs.
#[cfg(test)]
pub(crate) fn let_cpus_be<P: SleepPlatform>(p: &P, cpus: u32) {
    p.throughput().expect("the platform counts acquisitions").cpus.store(cpus, Relaxed);
}

/// The number of an epoch.
pub(super) type Epoch = u32;

/// How many acquisitions one CPU has done, above a tag of the lock that it has acquired last; and when the last yield there
/// ended from which waiters have learned of [hogs](super::hogs).
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count<W> {
    acquired: W,
    yielded_until: W,
}

/// The last acquisition on a CPU, as far as was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    cpu: u32,
    count: u32,
}

impl Last {
    /// Its CPU.
    pub(super) fn cpu(self) -> u32 {
        self.cpu
    }

    /// A number that the next acquisitions on that CPU do not have.
    pub(super) fn count(self) -> u32 {
        self.count
    }
}

/// What was acquired on a CPU in a time, for a waiter of one lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// No lock.
    Nothing,
    /// That lock, last.
    This,
    /// Another lock, last.
    Another,
}

/// The counters of all CPUs, and the rate of the last epoch.
#[derive(Debug)]
pub struct Throughput<W> {
    counts: [Count<W>; CPUS],
    /// The present epoch; when, and at which sum of the counters it was first seen.
    epoch: W,
    since_ns: W,
    since_count: W,
    /// The epoch before it that was seen, and its rate.
    last: W,
    rate: W,
    /// The mean rate of the last epochs, and how many CPUs there were up to the last one: see [`cpus`].
    mean: W,
    cpus: W,
    /// The epoch of the last trial of resting: see [`super::rests`].
    last_rest: W,
    hogs: Hogs<W>,
}

impl<W: AtomicWord> Throughput<W> {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counts: core::array::from_fn(|_| Count {
                acquired: W::new(0),
                yielded_until: W::new(0),
            }),
            epoch: W::new(0),
            since_ns: W::new(0),
            since_count: W::new(0),
            last: W::new(0),
            rate: W::new(0),
            mean: W::new(0),
            cpus: W::new(0),
            last_rest: W::new(0),
            hogs: Hogs::new(),
        }
    }

    /// Counts an acquisition of the lock at `on` on this CPU.
    #[inline]
    pub fn count(&self, cpu: u32, on: usize) {
        let count = &self.counts[cpu as usize % CPUS].acquired;
        let next = count.load(Relaxed).wrapping_add(1 << TAG_BITS);
        count.store(next & !TAGS | tag(on), Relaxed);
    }

    /// From the next epoch on this CPU is counted, without an acquisition.
    fn note(&self, cpu: u32) {
        let count = &self.counts[cpu as usize % CPUS].acquired;
        if count.load(Relaxed) == 0 {
            count.store(NO_ACQUISITION, Relaxed);
        }
    }

    /// The last acquisition on this CPU.
    #[inline]
    pub(super) fn last(&self, cpu: u32) -> Last {
        Last { cpu, count: self.counts[cpu as usize % CPUS].acquired.load(Relaxed) }
    }

    /// When the last yield ended on that CPU from which waiters have learned of hogs.
    pub(super) fn yielded_until(&self, last: Last) -> &W {
        &self.counts[last.cpu as usize % CPUS].yielded_until
    }

    /// What was acquired on that CPU since.
    #[inline]
    pub(super) fn since(&self, last: Last, on: usize) -> Since {
        let now = self.last(last.cpu).count;
        if now == last.count {
            Since::Nothing
        } else if now & TAGS == tag(on) {
            Since::This
        } else {
            Since::Another
        }
    }

    /// How many acquisitions were done on that CPU since.
    fn number_since(&self, last: Last) -> u32 {
        self.last(last.cpu).count.wrapping_sub(last.count) >> TAG_BITS
    }

    /// For how long threads that use the locks have had that CPU since, as far as can be told: each acquisition counts
    /// for as long as it takes in the mean of all CPUs. `None` if nothing is known of that, or there are hardly any in
    /// such a time.
    pub(super) fn used_since(&self, last: Last, took_ns: u64) -> Option<u64> {
        let (mean, cpus) = (self.mean.load(Relaxed), self.cpus.load(Relaxed));
        let all = u64::from(cpus) << (EPOCH_BITS + PLACES);
        let an_acquisition = all.checked_div(u64::from(mean))?;
        let is_known = took_ns >= an_acquisition.saturating_mul(ENOUGH);
        is_known.then(|| an_acquisition * u64::from(self.number_since(last)))
    }

    /// What is known of hogs.
    #[inline]
    pub(super) fn hogs(&self) -> &Hogs<W> {
        &self.hogs
    }

    /// The epoch at this time; closes the one before it.
    pub(super) fn epoch(&self, now_ns: u64) -> Epoch {
        let epoch = (now_ns >> EPOCH_BITS) as Epoch;
        let last = self.epoch.load(Relaxed);
        if last == epoch || self.epoch.compare_exchange(last, epoch, Relaxed).is_err() {
            return epoch;
        }
        let add = |(sum, cpus): (u32, u32), count: &Count<W>| {
            let count = count.acquired.load(Relaxed);
            (sum.wrapping_add(count & !TAGS), cpus + u32::from(count != 0))
        };
        let (count, cpus) = self.counts.iter().fold((0, 0), add);
        let took = (now_ns as u32).wrapping_sub(self.since_ns.load(Relaxed));
        let did = count.wrapping_sub(self.since_count.load(Relaxed)) >> TAG_BITS;
        let rate = rate(did, took);
        self.rate.store(rate, Relaxed);
        if rate != 0 {
            let before = self.mean.load(Relaxed);
            self.mean.store(before - before / MEAN + rate / MEAN, Relaxed);
        }
        self.cpus.store(cpus, Relaxed);
        self.last.store(last, Relaxed);
        self.since_ns.store(now_ns as u32, Relaxed);
        self.since_count.store(count, Relaxed);
        epoch
    }

    /// Whether a waiter that begins to wait in this epoch rests for a trial; then others do not for a while, which is
    /// shorter where the last trials `are_promising`. Nor does the very first one, when most threads have not begun.
    pub(super) fn is_rest_due(&self, epoch: Epoch, are_promising: bool) -> bool {
        let last = self.last_rest.load(Relaxed);
        let apart = if are_promising { NEXT_REST } else { RESTS_APART };
        let is_due = last == 0 || epoch.wrapping_sub(last) >= apart;
        is_due && self.last_rest.compare_exchange(last, epoch, Relaxed).is_ok() && last != 0
    }

    /// A trial of resting that has ended in this epoch has told nothing: the next one is due soon.
    pub(super) fn rested_in_vain(&self, epoch: Epoch) {
        let last = epoch.wrapping_sub(RESTS_APART - NEXT_REST);
        self.last_rest.store(last.max(1), Relaxed);
    }

    /// The rate of `epoch`, if that was the last one.
    pub(super) fn rate_of(&self, epoch: Epoch) -> Option<u32> {
        let rate = self.rate.load(Relaxed);
        (rate != 0 && self.last.load(Relaxed) == epoch).then_some(rate)
    }
}

impl<W: AtomicWord> Default for Throughput<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: ConstWord> Throughput<W> {
    /// The same for static memory.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const ZERO: Self = Self {
        counts: [const { Count { acquired: W::ZERO, yielded_until: W::ZERO } }; CPUS],
        epoch: W::ZERO,
        since_ns: W::ZERO,
        since_count: W::ZERO,
        last: W::ZERO,
        rate: W::ZERO,
        mean: W::ZERO,
        cpus: W::ZERO,
        last_rest: W::ZERO,
        hogs: Hogs::NONE,
    };
}

/// As many acquisitions in an epoch, as a rate.
pub(super) const fn in_an_epoch(acquisitions: u32) -> u32 {
    acquisitions << PLACES
}

/// The rate of one acquisition in so many nanoseconds.
pub(super) fn rate_of_one_in(ns: u32) -> u32 {
    in_an_epoch(1 << EPOCH_BITS).checked_div(ns).unwrap_or(u32::MAX)
}

/// Acquisitions an epoch, and not 0; 0 where the time is not about one epoch: no waiter has read the clock for long.
fn rate(did: u32, took_ns: u32) -> u32 {
    if !(1 << (EPOCH_BITS - 1)..1 << (EPOCH_BITS + 2)).contains(&took_ns) {
        return 0;
    }
    let rate = (u64::from(did) << (EPOCH_BITS + PLACES)) / u64::from(took_ns);
    u32::try_from(rate).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    const EPOCH_NS: u64 = 1 << EPOCH_BITS;

    #[test]
    fn an_epoch_has_the_rate_of_all_cpus() {
        let throughput = Throughput::<AtomicU32>::new();
        let first = throughput.epoch(10 * EPOCH_NS);
        (0..30).for_each(|_| throughput.count(0, 0));
        (0..20).for_each(|_| throughput.count(1, 0));
        assert_eq!(throughput.epoch(10 * EPOCH_NS + 5), first, "the same epoch");
        assert_eq!(throughput.rate_of(first), None, "which is not over");
        throughput.epoch(11 * EPOCH_NS);
        assert_eq!(throughput.rate_of(first), Some(in_an_epoch(50)));
        assert_eq!(throughput.rate_of(first + 1), None);
    }

    #[test]
    fn of_two_epochs_in_one_the_mean_counts_and_of_more_nothing() {
        assert_eq!(rate(50, EPOCH_NS as u32 * 2), in_an_epoch(25));
        assert_eq!(rate(50, EPOCH_NS as u32 * 4), 0);
        assert_eq!(rate(50, EPOCH_NS as u32 / 4), 0);
        assert_eq!(rate(u32::MAX, EPOCH_NS as u32), u32::MAX);
        assert_eq!(rate(0, EPOCH_NS as u32), 1);
    }

    #[test]
    fn cpus_on_which_threads_only_wait_are_counted_without_acquisitions() {
        let throughput = Throughput::<AtomicU32>::new();
        (0..3).for_each(|cpu| throughput.count(cpu, 0));
        (2..60).for_each(|cpu| throughput.note(cpu));
        let first = throughput.epoch(10 * EPOCH_NS);
        assert_eq!(throughput.cpus.load(Relaxed), 60, "also after a time that tells no rate");
        throughput.count(40, 0);
        throughput.epoch(11 * EPOCH_NS);
        assert_eq!(throughput.rate_of(first), Some(in_an_epoch(1)));
    }

    #[test]
    fn acquisitions_tell_how_long_a_cpu_was_used() {
        let throughput = Throughput::<AtomicU32>::new();
        let before = throughput.last(0);
        assert_eq!(throughput.used_since(before, EPOCH_NS), None, "nothing is known");
        for epoch in 10..110 {
            throughput.epoch(epoch * EPOCH_NS);
            (0..30).for_each(|_| throughput.count(0, 0));
            (0..70).for_each(|_| throughput.count(1, 0));
        }
        // Of two CPUs each is used by 50 acquisitions an epoch.
        let before = throughput.last(0);
        assert_eq!(throughput.used_since(before, EPOCH_NS / 7), None, "too few to tell");
        assert_eq!(throughput.used_since(before, EPOCH_NS), Some(0));
        (0..25).for_each(|_| throughput.count(0, 0));
        (0..25).for_each(|_| throughput.count(1, 0));
        let used_ns = throughput.used_since(before, EPOCH_NS).unwrap();
        assert!((EPOCH_NS / 2..EPOCH_NS / 2 + EPOCH_NS / 50).contains(&used_ns), "{used_ns}");
    }

    #[test]
    fn the_lock_that_a_cpu_has_acquired_last_is_known() {
        let (this, other) = (0x1000, 0x2010);
        let throughput = Throughput::<AtomicU32>::new();
        let before = throughput.last(0);
        throughput.count(1, other);
        assert_eq!(throughput.since(before, this), Since::Nothing, "on another CPU");
        throughput.count(0, other);
        assert_eq!(throughput.since(before, this), Since::Another);
        throughput.count(0, this);
        assert_eq!(throughput.since(before, this), Since::This);
        let before = throughput.last(0);
        assert_eq!(throughput.since(before, this), Since::Nothing);
        throughput.count(0, this);
        assert_eq!(throughput.since(before, this), Since::This, "once more");
    }

    #[test]
    fn cpus_beyond_the_table_share_a_counter() {
        let throughput = Throughput::<AtomicU32>::new();
        throughput.count(1, 0);
        throughput.count(1 + CPUS as u32, 0);
        assert_eq!(throughput.last(1).count >> TAG_BITS, 2);
    }
}
