//! Trials: which interval between two polls lets the process do most, tried and measured.
//!
//! # What is learned
//! Which interval between two polls lets the process do most; for a reader-writer lock, whether its waiters keep
//! away. In an [epoch](super::Throughput) all waiters of the lock poll at one interval, and at its end the rate of
//! acquisitions is noted for that interval. In one epoch of 16 another one is tried; in one of 48 if it has been much
//! worse. Where a trial costs more than its epoch, each that was in vain doubles the time to the next. When the rate
//! becomes quite another one, the load has changed, and all are tried again. What was learned stands in the lock's
//! bucket; locks that share a bucket share it. It is a guess: whatever it says, a waiter is correct.
//!
//! # Source
//! Ours. HotSpot, .NET and glibc learn for each lock how long to spin from whether spinning has acquired the
//! lock. That does not tell an owner that stays away from one that [comes right back](super::pace): with both it acquires
//! the lock.
//!
//! # Limits
//! A lock with few acquisitions in an epoch has rates that are chance: there waiters watch, unless hand-overs take long.

use core::sync::atomic::Ordering::Relaxed;

use super::many_locks::ManyLocks;
use super::throughput::{Epoch, Throughput, in_an_epoch, rate_of_one_in};
#[cfg(test)]
use super::{SleepPlatform, bucket};
use crate::platform::{AtomicWord, ConstWord};

/// The intervals between two polls of a waiter for a mutex, in nanoseconds; at 0 the waiter watches: it polls after each
/// pause. One that is below [`AWAY_NS`] is the longest of a wait whose intervals double. The last is that of a waiter that
/// is awake only so that it need not be woken.
const MUTEX_NS: [u32; 4] = [0, 400, 2000, 20_000];
/// The same of a waiter for readers or a writer: with the second one it keeps away, and one thread at a time runs.
const RWLOCK_NS: [u32; 2] = [0, 5000];
/// The most intervals of a lock.
const MOST: usize = MUTEX_NS.len();
/// How often trials in vain double the time to the next one. A trial of keeping away from a reader-writer lock puts most
/// threads to sleep, and may leave a CPU idle until the scheduler's next tick, for some milliseconds.
const RWLOCK_PATIENCE: u32 = 5;

/// What waits are for: a lock of this kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Mutex,
    Rwlock,
}

/// Epochs between two trials.
const SOON: u32 = 16;
/// Epochs between two trials where the next one is likely to cost much.
const LATE: u32 = 48;
/// After so many epochs in a row with half of the rate or less, or twice of it or more, the load has changed.
const ODD: u32 = 3;
/// Rates are about the same if they differ by less than this part.
const ALIKE: u32 = 16;
/// The same where waiters keep away.
const ALIKE_AWAY: u32 = 8;
/// So many acquisitions in an epoch have a rate that is more than chance.
const ENOUGH: u32 = in_an_epoch(64);
/// The same where an acquisition takes no longer than so many hand-overs: there polls make large differences. Simulated, 16
/// threads with 115 ns inside and 836 ns outside, while a line takes 284 to 601 ns: 0.54 million operations a second in
/// place of 0.30.
const FEW: u32 = in_an_epoch(16);
const HANDOVERS: u32 = 8;
/// From this interval on waiters keep away from the lock for most of the time. Each wait reads the clock at the beginning
/// and after each poll, which takes a small part of that.
pub(super) const AWAY_NS: u32 = 1000;

/// What the waiters of a bucket have learned of its locks.
///
/// Several waiters may write at once; one that is lost is one epoch less to learn from. The words are read and
/// written without any order.
#[derive(Debug)]
pub(super) struct Trials<W> {
    /// The epoch that was seen last.
    epoch: W,
    /// The place of its interval among those of the lock.
    at: W,
    /// The rate with each interval; 0 if it was never tried.
    rates: [W; MOST],
    /// Epochs since the last trial.
    since: W,
    /// Which of the others is tried next.
    next: W,
    /// Epochs in a row whose rate was quite another than before.
    odd: W,
    /// The place of the best interval, and trials in a row that have not found a better one.
    best: W,
    lost: W,
    /// Whether the locks are of many: see [`super::many_locks`].
    pub(super) many: ManyLocks<W>,
}

impl<W: AtomicWord> Trials<W> {
    pub(super) fn new() -> Self {
        Self {
            epoch: W::new(0),
            at: W::new(0),
            rates: core::array::from_fn(|_| W::new(0)),
            since: W::new(0),
            next: W::new(0),
            odd: W::new(0),
            best: W::new(0),
            lost: W::new(0),
            many: ManyLocks::new(),
        }
    }

    /// The interval of the present epoch.
    #[inline]
    pub(super) fn interval_ns(&self, kind: Kind) -> u32 {
        let at = self.at.load(Relaxed) as usize;
        match kind {
            Kind::Mutex => MUTEX_NS[at % MUTEX_NS.len()],
            Kind::Rwlock => RWLOCK_NS[at % RWLOCK_NS.len()],
        }
    }

    /// At the first wait of an epoch: learns from the last one, and chooses the interval of this one, for a lock whose
    /// hand-overs take so long.
    pub(super) fn turn(
        &self,
        throughput: &Throughput<W>,
        epoch: Epoch,
        kind: Kind,
        handover_ns: u32,
    ) {
        let last = self.epoch.load(Relaxed);
        if last == epoch || self.epoch.compare_exchange(last, epoch, Relaxed).is_err() {
            return;
        }
        let rate = (throughput.rate_of(last), enough(handover_ns));
        match kind {
            Kind::Mutex => self.choose(rate, 0, &MUTEX_NS),
            Kind::Rwlock => self.choose(rate, RWLOCK_PATIENCE, &RWLOCK_NS),
        }
    }

    /// The same with the rate of the last epoch, if it is known, and the one from which on it says something, for one of
    /// these intervals.
    fn choose<const N: usize>(
        &self,
        (rate, enough): (Option<u32>, u32),
        patience: u32,
        intervals: &[u32; N],
    ) {
        if let Some(rate) = rate {
            self.learn(rate, &self.rates[self.at.load(Relaxed) as usize % N]);
        }
        let rates: [u32; N] = core::array::from_fn(|at| self.rates[at].load(Relaxed));
        let best = best(rates, intervals);
        let next = self.next.load(Relaxed);
        let in_turn = (best + 1 + next as usize % (N - 1)) % N;
        // With the best one unknown, all are: nothing was measured yet.
        let other = rates.iter().position(|&rate| rate == 0).unwrap_or(in_turn);
        let since = self.since.load(Relaxed).saturating_add(1);
        if self.best.load(Relaxed) != best as u32 {
            self.best.store(best as u32, Relaxed);
            self.lost.store(0, Relaxed);
        }
        let lost = self.lost.load(Relaxed);
        let is_due = since >= until_next(rates[best], rates[other]) << lost;
        let (at, since) = if rates[0] < enough {
            (0, 1)
        } else if is_due {
            self.next.store(next.wrapping_add(1), Relaxed);
            self.lost.store(patience.min(lost + 1), Relaxed);
            (other, 0)
        } else {
            (best, since)
        };
        self.at.store(at as u32, Relaxed);
        self.since.store(since, Relaxed);
    }

    /// Waiters do not keep away any more, and are late to try it again: the rate of this epoch says nothing.
    pub(super) fn watch_again(&self, kind: Kind) {
        if self.interval_ns(kind) >= AWAY_NS {
            let at = self.at.load(Relaxed) as usize;
            self.rates[at].store((self.rates[0].load(Relaxed) / 2).max(1), Relaxed);
            self.at.store(0, Relaxed);
        }
    }

    /// Notes the rate of an epoch with the interval of which this is `known`. In some epochs the owner was preempted,
    /// with any interval, so a higher rate counts for more than a lower one. Some epochs in a row with quite another
    /// rate are another load, of which nothing is known; a trial says nothing about that.
    fn learn(&self, rate: u32, known: &W) {
        let before = known.load(Relaxed);
        let is_trial = self.since.load(Relaxed) == 0;
        let is_odd = before != 0 && !is_trial && (rate / 2 > before || rate < before / 2);
        let odd = if is_odd { self.odd.load(Relaxed) + 1 } else { 0 };
        self.odd.store(odd % ODD, Relaxed);
        if odd >= ODD {
            self.rates.iter().for_each(|rate| rate.store(0, Relaxed));
            known.store(rate, Relaxed);
            self.lost.store(0, Relaxed);
        } else if !is_odd {
            let now = match before {
                0 => rate,
                // What is known of it is of another load.
                _ if is_trial && rate / 2 > before => rate,
                _ if rate > before => before + (rate - before).div_ceil(2),
                _ => before - (before - rate) / 8,
            };
            known.store(now, Relaxed);
        }
    }
}

impl<W: ConstWord> Trials<W> {
    /// The same for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub(super) const NONE: Self = Self {
        epoch: W::ZERO,
        at: W::ZERO,
        rates: [const { W::ZERO }; MOST],
        since: W::ZERO,
        next: W::ZERO,
        odd: W::ZERO,
        best: W::ZERO,
        lost: W::ZERO,
        many: ManyLocks::NONE,
    };
}

/// The rate from which on it is more than chance.
fn enough(handover_ns: u32) -> u32 {
    rate_of_one_in(HANDOVERS * handover_ns).clamp(FEW, ENOUGH)
}

/// The place of the best rate. Of rates that are about the same the first one, with which waiters see the lock
/// come free soonest; but if they keep away with that one, the last one, with which they take it from its owner
/// least.
fn best<const N: usize>(rates: [u32; N], intervals: &[u32; N]) -> usize {
    let beats = |rate: u32, other: u32| rate > other.saturating_add(other / ALIKE);
    let first = (1..N).fold(0, |best, at| if beats(rates[at], rates[best]) { at } else { best });
    let is_as_good = |at: usize| rates[at] >= rates[first] - rates[first] / ALIKE_AWAY;
    let keeps_away = intervals[first] >= AWAY_NS;
    (first..N).rfind(|&at| keeps_away && is_as_good(at)).unwrap_or(first)
}

/// Epochs from the last trial to that of another interval, by its rate; one that was never tried is due at once.
fn until_next(best: u32, other: u32) -> u32 {
    match other {
        0 => 1,
        _ if other < best - best / 4 => LATE,
        _ => SOON,
    }
}

/// From now on the waiters of the mutex at `on` keep away, until they learn.
#[cfg(test)]
pub(crate) fn keep_away_from_mutex<P: SleepPlatform>(p: &P, on: usize) {
    let place = MUTEX_NS.iter().position(|&ns| ns >= AWAY_NS);
    bucket::of(p, on).trials.at.store(place.unwrap() as u32, Relaxed);
}

/// From now on the waiters of the reader-writer lock at `on` keep away.
#[cfg(test)]
pub(crate) fn keep_away<P: SleepPlatform>(p: &P, on: usize) {
    bucket::of(p, on).trials.at.store(1, Relaxed);
}

/// From now on the waiters of the mutex at `on` back off.
#[cfg(test)]
pub(super) fn back_off<P: SleepPlatform>(p: &P, on: usize) {
    bucket::of(p, on).trials.at.store(1, Relaxed);
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    const EPOCH_NS: u64 = 1 << 17;

    /// Goes through so many epochs, in which so many acquisitions are done with each interval; returns how often each
    /// interval was used.
    fn epochs<const N: usize>(
        of: (&Trials<AtomicU32>, &Throughput<AtomicU32>),
        epochs: (u64, u64),
        kind: Kind,
        rates: [u32; N],
    ) -> [u32; N] {
        epochs_with_handovers(of, epochs, (kind, 100), rates)
    }

    /// The same where a hand-over takes so long.
    fn epochs_with_handovers<const N: usize>(
        (trials, throughput): (&Trials<AtomicU32>, &Throughput<AtomicU32>),
        (from, number): (u64, u64),
        (kind, handover_ns): (Kind, u32),
        rates: [u32; N],
    ) -> [u32; N] {
        let mut used = [0; N];
        for epoch in from..from + number {
            trials.turn(throughput, throughput.epoch(epoch * EPOCH_NS), kind, handover_ns);
            let at = trials.at.load(Relaxed) as usize;
            used[at] += 1;
            (0..rates[at]).for_each(|_| throughput.count(0, 0));
        }
        used
    }

    /// 200 epochs of a mutex of which nothing is known.
    fn of_mutex(rates: [u32; MOST]) -> [u32; MOST] {
        epochs((&Trials::new(), &Throughput::new()), (1, 200), Kind::Mutex, rates)
    }

    #[test]
    fn the_interval_with_the_highest_rate_is_used_and_the_others_are_tried() {
        for best in 0..MOST {
            let used = of_mutex(core::array::from_fn(|at| if at == best { 2000 } else { 1000 }));
            assert!(used[best] > 170, "{best}: {used:?}");
            assert!(used.iter().all(|&times| times > 0), "{used:?}");
        }
    }

    #[test]
    fn waiters_watch_where_rates_are_alike_or_chance() {
        let used = of_mutex([1000, 1010, 990, 1005]);
        assert!(used[0] > 170, "{used:?}");
        assert_eq!(of_mutex([10, 20, 30, 40]), [200, 0, 0, 0]);
    }

    #[test]
    fn fewer_acquisitions_tell_something_where_hand_overs_take_long() {
        let used = |handover_ns, rates| {
            let of = (&Trials::new(), &Throughput::new());
            epochs_with_handovers(of, (1, 200), (Kind::Mutex, handover_ns), rates)
        };
        // 131 µs are 40 times 8 hand-overs of 409 ns.
        let used_at_40 = |handover_ns| used(handover_ns, [40, 80, 40, 40]);
        assert_eq!(used_at_40(390), [200, 0, 0, 0]);
        assert!(used_at_40(420)[1] > 150, "{:?}", used_at_40(420));
        assert_eq!(used(u32::MAX / HANDOVERS, [15, 80, 15, 15]), [200, 0, 0, 0]);
    }

    #[test]
    fn waiters_that_keep_away_do_so_for_long_where_rates_are_alike() {
        let used = of_mutex([500, 1000, 2000, 1900]);
        assert!(used[3] > 170, "{used:?}");
        let used = of_mutex([500, 1000, 2000, 1600]);
        assert!(used[2] > 170, "{used:?}");
        let used = of_mutex([500, 1000, 900, 950]);
        assert!(used[1] > 150, "they do not keep away: {used:?}");
    }

    #[test]
    fn a_change_of_the_load_is_noticed() {
        let of = (&Trials::new(), &Throughput::new());
        epochs(of, (1, 200), Kind::Mutex, [2000, 1000, 1000, 1000]);
        let used = epochs(of, (201, 200), Kind::Mutex, [400, 400, 400, 4000]);
        assert!(used[3] > 180, "{used:?}");
        let used = epochs(of, (401, 200), Kind::Mutex, [2000, 1000, 1000, 400]);
        assert!(used[0] > 180, "{used:?}");
        let used = epochs(of, (601, 200), Kind::Mutex, [80, 100, 160, 90]);
        assert!(used[2] > 180, "{used:?}");
    }

    #[test]
    fn trials_in_vain_become_rare_until_the_load_changes() {
        let of = (&Trials::new(), &Throughput::new());
        let used = epochs(of, (1, 3000), Kind::Rwlock, [2000, 1000]);
        assert!((3..10).contains(&used[1]), "{used:?}");
        let used = epochs(of, (3001, 200), Kind::Rwlock, [500, 1000]);
        assert!(used[1] > 180, "{used:?}");
    }

    #[test]
    fn a_trial_is_believed_whatever_the_last_one_was() {
        let of = (&Trials::new(), &Throughput::new());
        // Most threads have not begun yet.
        epochs(of, (1, 4), Kind::Rwlock, [1000, 1]);
        let used = epochs(of, (5, 1000), Kind::Rwlock, [1000, 1500]);
        assert!(used[1] > 700, "{used:?}");
    }
}
