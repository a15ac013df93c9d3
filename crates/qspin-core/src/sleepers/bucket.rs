//! One bucket: a lock, and a queue of sleepers.
//!
//! The lock is held for some ten instructions, and names the thread that holds it: a signal handler that
//! interrupts exactly these instructions finds its own thread there, and does not wait.

use core::ops::Deref;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::rests::Rests;
use super::score::{self, Score};
use super::trials::Trials;
use super::{Choice, End, SleepPlatform, Taken, place, throughput};
use crate::node::NodeId;
use crate::platform::{AtomicWord, ConstWord, Until};
use crate::site::Site;

/// The sleepers on the addresses of one hash value.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SleepBucket<W> {
    /// The token of the thread that has the bucket locked; 0 for none.
    lock: W,
    /// The first sleeper of the queue, by the number of its node; 0 for none.
    head: W,
    /// The last one.
    tail: W,
    /// The number of sleepers. Other threads read it without the lock.
    pub(super) count: W,
    /// Releases in a row that have found no sleeper.
    pub(super) idle: W,
    /// The thread that unlocks the bucket next wakes all sleepers (SLEEP-6).
    pub(super) rescan: W,
    /// How long the turns of threads that barge past the sleepers are, in nanoseconds; 0 if that is not known.
    pub(super) turn_ns: W,
    /// How long a hand-over takes, in nanoseconds: see there too.
    pub(super) handover_ns: W,
    /// Whether yields of waiters are long here: see [`super::SpinBudget`].
    pub(super) long_yields: Score<W>,
    /// Whether yields of waiters give the CPU to threads with other work: see there too.
    pub(super) yields_pay: Score<W>,
    /// Whether polls of waiters are in vain here: see there too.
    pub(super) vain_polls: Score<W>,
    /// Whether waiters for readers or a writer that have polled for a moment in vain get in by polling on: see there
    /// too.
    pub(super) polls_pay: Score<W>,
    /// Whether waiters for a mutex rest: see [`super::rests`].
    pub(super) rests: Rests<W>,
    /// How many more sleepers than one a release wakes: see [`super::wakes`].
    pub(super) more_wakes: W,
    /// Whether readers leave quickly once a writer waits for them: see [`super::readers_leave_quickly`].
    pub(super) quick_drain: Score<W>,
    /// How often waiters should poll: see [`super::Pace`].
    pub(super) trials: Apart<Trials<W>>,
}

/// In a cache line of its own: each wait reads it, and it is written once in an epoch.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Apart<T>(T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<W: AtomicWord> SleepBucket<W> {
    /// An empty bucket.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lock: W::new(0),
            head: W::new(0),
            tail: W::new(0),
            count: W::new(0),
            idle: W::new(0),
            rescan: W::new(0),
            turn_ns: W::new(0),
            handover_ns: W::new(0),
            long_yields: Score::new(),
            yields_pay: Score::new(),
            vain_polls: Score::new(),
            polls_pay: Score::new(),
            rests: Rests::new(),
            more_wakes: W::new(0),
            quick_drain: Score::new(),
            trials: Apart(Trials::new()),
        }
    }

    pub(super) fn is_locked_by(&self, token: u32) -> bool {
        self.lock.load(Relaxed) == token
    }

    /// The bucket becomes empty and unlocked.
    pub(super) fn forget(&self) {
        for word in [&self.lock, &self.head, &self.tail, &self.count, &self.idle, &self.rescan] {
            word.store(0, Relaxed);
        }
    }

    /// The word that names the thread which has the bucket locked: for a checker.
    #[must_use]
    pub fn owner(&self) -> &W {
        &self.lock
    }

    /// How many waiters it counts in its queue: for a checker.
    #[must_use]
    pub fn counted(&self) -> u32 {
        self.count.load(Relaxed)
    }
}

impl<W: AtomicWord> Default for SleepBucket<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: ConstWord> SleepBucket<W> {
    /// An empty bucket: the template for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const EMPTY: Self = Self {
        lock: W::ZERO,
        head: W::ZERO,
        tail: W::ZERO,
        count: W::ZERO,
        idle: W::ZERO,
        rescan: W::ZERO,
        turn_ns: W::ZERO,
        handover_ns: W::ZERO,
        long_yields: Score::EMPTY,
        yields_pay: Score::EMPTY,
        vain_polls: Score::EMPTY,
        polls_pay: Score::EMPTY,
        rests: Rests::NONE,
        more_wakes: W::ZERO,
        quick_drain: Score::EMPTY,
        trials: Apart(Trials::NONE),
    };
}

/// The bucket of `on`.
#[inline]
pub(super) fn of<P: SleepPlatform>(p: &P, on: usize) -> &SleepBucket<P::Word> {
    let buckets = p.buckets();
    &buckets[place(on, buckets.len())]
}

/// The most pauses between two attempts to lock a bucket, where few CPUs acquire locks.
const FEW_PAUSES: u32 = 128;
/// Where many do, the longest time, in nanoseconds, for each of them: about as long as an attempt has the cache line.
const ATTEMPT_NS: u32 = 400;
/// Attempts before the waiter yields the CPU between attempts.
const SPINS: u32 = 8;
/// Attempts after which the waiter gives up: the bucket's owner does not run.
const ATTEMPTS: u32 = 64 + SPINS;

/// For a platform: backs off between two attempts to lock a bucket; returns whether another attempt is worth
/// while after so many. Lets a random part of a time that doubles pass: hundreds of threads may want a bucket at
/// once, and its owner needs the cache line that each of them polls.
pub fn back_off<P: SleepPlatform>(p: &P, attempts: u32) -> bool {
    // Where all wait, no acquisition tells how many they are.
    throughput::waits_here(p);
    let most = pause_bits(throughput::cpus(p), p.pause_ns());
    p.relax(1 + score::draw(p, (attempts + 2).min(most)));
    if attempts >= SPINS {
        p.yield_cpu();
    }
    attempts < ATTEMPTS
}

/// The most pauses between two attempts, as a power of 2.
fn pause_bits(cpus: u32, pause_ns: u32) -> u32 {
    let pauses = cpus.saturating_mul(ATTEMPT_NS).checked_div(pause_ns);
    pauses.unwrap_or(0).max(FEW_PAUSES).ilog2()
}

/// A bucket that this thread has locked.
pub(super) struct Held<'a, P: SleepPlatform> {
    p: &'a P,
    bucket: &'a SleepBucket<P::Word>,
}

impl<P: SleepPlatform> Deref for Held<'_, P> {
    type Target = SleepBucket<P::Word>;
    fn deref(&self) -> &Self::Target {
        self.bucket
    }
}

impl<'a, P: SleepPlatform> Held<'a, P> {
    /// Locks the bucket of `on`; `None` if that takes too long, or if this is a signal handler that has
    /// interrupted the bucket's owner (SLEEP-6).
    pub(super) fn lock(p: &'a P, on: usize) -> Option<Self> {
        Self::of(p, of(p, on), p.token())
    }

    /// The same for a given bucket and token.
    pub(super) fn of(p: &'a P, bucket: &'a SleepBucket<P::Word>, token: u32) -> Option<Self> {
        let mut rounds = 0;
        loop {
            // A read-modify-write that fails takes the line from the owner, which has most of what it writes here
            // in that line.
            if (rounds == 0 || bucket.lock.load(Relaxed) == 0)
                && let Some(held) = Self::attempt(p, bucket, token)
            {
                return Some(held);
            }
            if bucket.is_locked_by(token) || !p.wait_briefly(&bucket.lock, Until::is(0), rounds) {
                return None;
            }
            rounds += 1;
        }
    }

    /// Locks the bucket of `on` if it is unlocked.
    pub(super) fn try_lock(p: &'a P, on: usize) -> Option<Self> {
        Self::attempt(p, of(p, on), p.token())
    }

    fn attempt(p: &'a P, bucket: &'a SleepBucket<P::Word>, token: u32) -> Option<Self> {
        // ORDERING: Acquire pairs with the Release of `drop` and of `rescan`.
        let order = p.ordering(Site::SleepBucketLock, Acquire);
        // Created only when the bucket is locked: dropping it unlocks.
        bucket.lock.compare_exchange(0, token, order).is_ok().then(|| Self { p, bucket })
    }

    fn record(&self, id: NodeId) -> &'a super::Sleeper<P::Word, P::Address> {
        self.p.sleeper(id)
    }

    /// Inserts `id` before or behind all others of its priority (SLEEP-7).
    pub(super) fn insert(&self, id: NodeId, end: End) {
        let record = self.record(id);
        let priority = record.priority.load(Relaxed);
        let is_behind = |other: NodeId| {
            let others = self.record(other).priority.load(Relaxed);
            others > priority || others == priority && end == End::Last
        };
        let mut before = NodeId::from_number(self.tail.load(Relaxed));
        if !before.is_none_or(is_behind) {
            // Not at the end: a waiter of a real-time policy, or one that was woken in vain.
            before = None;
            self.each(|_, _, other| {
                if !is_behind(other) {
                    return (Choice::Stop, false);
                }
                before = Some(other);
                (Choice::Leave, false)
            });
        }
        let link = before.map_or(&self.head, |before| &self.record(before).next);
        let next = link.load(Relaxed);
        record.next.store(next, Relaxed);
        record.joined_behind.store(before.map_or(0, |before| before.number()), Relaxed);
        link.store(id.number(), Relaxed);
        if next == 0 {
            self.tail.store(id.number(), Relaxed);
        }
        self.count.store(self.count.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Unlinks `id`, which is behind `before`, from the queue.
    pub(super) fn unlink(&self, before: Option<NodeId>, id: NodeId) {
        let next = self.record(id).next.load(Relaxed);
        match before {
            None => self.head.store(next, Relaxed),
            Some(before) => self.record(before).next.store(next, Relaxed),
        }
        if next == 0 {
            self.tail.store(before.map_or(0, |before| before.number()), Relaxed);
        }
        // So that nothing but the sleeper before it is linked to the next one.
        self.record(id).next.store(0, Relaxed);
        self.count.store(self.count.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// Removes `id` from the queue, wherever it is. A waiter that finds the lock free after it has joined is mostly still
    /// behind the same one: to walk past a hundred others fetches a line of each, while releases want the bucket.
    pub(super) fn remove(&self, id: NodeId) {
        let before = NodeId::from_number(self.record(id).joined_behind.load(Relaxed));
        if let Some(before) = before
            && self.record(before).next.load(Relaxed) == id.number()
        {
            return self.unlink(Some(before), id);
        }
        self.each(|bucket, before, found| {
            if found != id {
                return (Choice::Leave, false);
            }
            bucket.unlink(before, id);
            (Choice::Stop, true)
        });
    }

    /// Walks the queue. `visit` gets the sleeper before the visited one, and returns whether to go on, and
    /// whether it has unlinked the visited one.
    pub(super) fn each(
        &self,
        mut visit: impl FnMut(&Self, Option<NodeId>, NodeId) -> (Choice, bool),
    ) {
        let mut before = None;
        let mut next = self.head.load(Relaxed);
        while let Some(id) = NodeId::from_number(next) {
            // Read before the visit: a sleeper that is taken out is linked to others.
            next = self.record(id).next.load(Relaxed);
            let (choice, unlinked) = visit(self, before, id);
            if choice == Choice::Stop {
                return;
            }
            if !unlinked {
                before = Some(id);
            }
        }
    }
}

impl<P: SleepPlatform> Drop for Held<'_, P> {
    fn drop(&mut self) {
        let (p, bucket) = (self.p, self.bucket);
        // ORDERING: Release pairs with the Acquire of `attempt`.
        bucket.lock.store(0, p.ordering(Site::SleepBucketUnlock, Release));
        // ORDERING: pairs with the fence of `wake_later`.
        p.fence(p.ordering(Site::SleepUnlockFence, SeqCst));
        if bucket.rescan.load(Relaxed) != 0 {
            rescan(p, bucket);
        }
    }
}

/// Wakes all sleepers in the bucket (SLEEP-6).
#[cold]
fn rescan<P: SleepPlatform>(p: &P, bucket: &SleepBucket<P::Word>) {
    while bucket.rescan.load(Relaxed) != 0 {
        let token = p.token();
        // The thread that has the bucket locked now will see the request.
        let Some(held) = Held::attempt(p, bucket, token) else { return };
        // ORDERING: Acquire pairs with the Release of `wake_later`.
        bucket.rescan.swap(0, p.ordering(Site::SleepRescanTake, Acquire));
        let mut taken = Taken::NONE;
        held.each(|held, before, id| {
            held.unlink(before, id);
            taken.add(p, id);
            (Choice::Take, true)
        });
        // Do not drop it: that would come here again.
        core::mem::forget(held);
        // ORDERING: as in `drop`.
        bucket.lock.store(0, p.ordering(Site::SleepBucketUnlock, Release));
        p.fence(p.ordering(Site::SleepUnlockFence, SeqCst));
        taken.wake(p);
    }
}

#[cfg(test)]
mod tests {
    use super::pause_bits;

    #[test]
    fn the_more_cpus_want_a_bucket_the_longer_each_stays_away() {
        for (cpus, pause_ns, bits) in
            [(0, 5, 7), (2, 5, 7), (128, 150, 8), (128, 5, 13), (64, 5, 12), (128, 0, 7)]
        {
            assert_eq!(pause_bits(cpus, pause_ns), bits, "{cpus} CPUs, pauses of {pause_ns} ns");
        }
        assert_eq!(pause_bits(u32::MAX, 1), 31);
    }
}
