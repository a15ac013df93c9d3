//! Sleepers: waiters that sleep for a lock without room for a queue, found by the lock's address.
//!
//! # Problem
//! A lock of one word, whose release is a plain store, can hold no queue: the store would wipe it out. And after
//! the release the releasing thread may not read the lock any more, since the next owner may free it. So what a
//! release must know of the sleepers stands in static memory: a table of *buckets*, to which the lock's address
//! is hashed. Each has a *hint*, which says whether a waiter may sleep there, and a queue of sleepers.
//!
//! # Source
//! A queue by address: `futex` (Franke, Russell, Kirkwood 2002), and WebKit's parking lot (Pizlo 2016). The store
//! without a barrier: the asymmetric Dekker of Dice, Huang and Yang (2001), with the system call `membarrier`.
//!
//! # States of a sleeper
//! ```text
//!            enqueue                 take                      wake
//!   (idle) ───────────► QUEUED ───────────────► TAKEN ────────────────► WOKEN ──► (idle)
//!              ▲           │ cancel: the deadline, or the last poll
//!              └───────────┘
//! ```
//! # States of a hint
//! ```text
//!              enqueue: a new epoch            the barrier has passed
//!   QUIET ─────────────────────────► (neither) ──────────────────────► SETTLED
//!     ▲                                  │                                │
//!     └──── no sleeper for a while ──────┴────────────────────────────────┘
//! ```
//! A hint begins as *neither*, so that without a heavy barrier ([`SleepPlatform::asymmetric`]) no release is ever
//! a plain store.
//!
//! # Invariants
//! * **SLEEP-1** A waiter that is about to sleep (1) joins the queue, (2) clears QUIET, (3) passes a barrier, (4)
//!   polls the lock a last time. A release (a) sees QUIET, (b) stores, (c) passes the light barrier, (d) reads
//!   QUIET again and, where it is gone, looks for sleepers; or (a') sees no QUIET, (b') releases by a
//!   read-modify-write, (c') passes a full fence, (d') looks for sleepers. So of (4) and (d) at least one sees
//!   the other: no waiter sleeps on a free lock without a pending wake-up.
//! * **SLEEP-2** The barrier (3) is the heavy one, which orders all threads as if each had passed a full fence in
//!   the middle of it, until the hint is SETTLED: then every release that may still have seen QUIET has either
//!   stored before the barrier, or will read the hint again after it. From there on a full fence is enough. Only
//!   a thread that has passed the barrier of this epoch settles the hint.
//! * **SLEEP-3** QUIET returns only while the bucket is locked and its queue empty.
//! * **SLEEP-4** Queue, epoch and the states QUEUED and TAKEN are changed under the bucket's lock. A thread that
//!   has taken a sleeper sets WOKEN, and then kicks it: until then the sleeper's record stays.
//! * **SLEEP-5** Every wake-up may be spurious: the waiter polls the lock again.
//! * **SLEEP-6** No release waits for a bucket without bound: the bucket's owner may have been interrupted by a
//!   signal handler that waits for this very release. The release sets *rescan*, and the owner, when it unlocks
//!   the bucket, wakes all its sleepers (SLEEP-5).
//! * **SLEEP-7** A queue is ordered by priority, like that of a futex: a waiter of a real-time policy is before
//!   all of lower priority, and waiters of the same priority are in the order in which they came.
//!
//! # Limits
//! A context without a node does not sleep: it waits for a short time (a timed backoff) and polls again. A
//! sleeper whose deadline has passed waits for the bucket. If a signal handler waits for a lock while the code
//! that it interrupted has a bucket locked, that bucket's sleepers are not woken meanwhile (SLEEP-6): if one of
//! them owns that lock, never.

mod bucket;
mod budget;
mod cost;
mod drain;
mod hogs;
mod many_locks;
mod pace;
mod platform;
mod record;
mod requeue;
mod rests;
mod score;
#[cfg(test)]
mod tests;
mod throughput;
mod trials;
mod turns;
pub mod wakes;
mod yielded;

pub use bucket::{SleepBucket, back_off};
pub use budget::SpinBudget;
pub use drain::{note_readers, readers_leave_quickly};
pub use many_locks::Absence;
#[cfg(test)]
pub(crate) use many_locks::let_it_be_one_of_many;
pub use pace::Pace;
pub use platform::SleepPlatform;
pub use record::Sleeper;
pub use requeue::requeue;
pub use rests::{Found, Rest};
#[cfg(test)]
pub(crate) use rests::{let_rests_be_good, let_rests_be_sure};
#[cfg(test)]
pub(crate) use throughput::let_cpus_be;
pub use throughput::{Throughput, acquired, comes_back_past_sleepers, cpus};
#[cfg(test)]
pub(crate) use trials::{keep_away, keep_away_from_mutex};
pub use turns::{
    hurried_by, note_turns, quantum_ns, starves_after_ns, turns_are_short, turns_between_yields,
};
#[cfg(test)]
pub(crate) use yielded::let_yields_pay;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::counting;
use crate::events::Event;
use crate::kick::{halt, kick};
use crate::nesting::with_node;
use crate::node::{LEVELS, NodeId};
use crate::platform::{AtomicAddress, AtomicWord, CpuId};
use crate::site::Site;

use bucket::Held;

/// How many buckets and hints a platform should have. Addresses that share a bucket may delay each other for some
/// instructions, or for a walk past each other's sleepers, and keep each other's releases from being plain stores. All hints
/// together are 2 KiB.
pub const PLACES: usize = 512;

/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// No waiter sleeps in the bucket: releases may be plain stores.
const QUIET: u32 = 1;
/// The hint of an empty bucket, for a platform that has a heavy barrier from the start.
pub const QUIET_HINT: u32 = QUIET;
/// The barrier of this epoch has passed (SLEEP-2).
const SETTLED: u32 = 2;
/// The first of the bits that number the epochs.
const EPOCH: u32 = 4;

/// The waiter sleeps in the queue.
const QUEUED: u32 = 1;
/// Taken from the queue, not woken yet.
const TAKEN: u32 = 2;
/// Woken.
const WOKEN: u32 = 0;

/// The bucket for sleepers on the address `on`. Fibonacci hashing.
#[inline]
fn place(on: usize, buckets: usize) -> usize {
    ((on as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & buckets.wrapping_sub(1)
}

/// The hint for `on`.
#[inline]
fn hint<P: SleepPlatform>(p: &P, on: usize) -> &P::Word {
    let hints = p.hints();
    &hints[place(on, hints.len())]
}

/// SLEEP-1 (a): whether a release may be a plain store, to be followed by [`stored`].
#[inline]
pub fn is_quiet<P: SleepPlatform>(p: &P, on: usize) -> bool {
    hint(p, on).load(Relaxed) & QUIET != 0
}

/// SLEEP-1 (c), (d): after such a store. Returns whether the hint is still quiet; if not, the caller must look
/// for sleepers. Touches only static memory.
#[inline]
#[must_use]
pub fn stored<P: SleepPlatform>(p: &P, on: usize) -> bool {
    // ORDERING: pairs with the heavy barrier of `enqueue`.
    p.light_barrier(p.ordering(Site::SleepLight, SeqCst));
    is_quiet(p, on)
}

/// SLEEP-1 (c'), (d'): whether a waiter may sleep in the bucket, after a release by a read-modify-write. A waiter
/// that sleeps on another address of the same bucket counts too.
#[inline]
#[must_use]
pub fn anybody<P: SleepPlatform>(p: &P, on: usize) -> bool {
    // ORDERING: pairs with the barrier of `enqueue`, or with the fence that replaces it.
    p.fence(p.ordering(Site::SleepReleaseFence, SeqCst));
    bucket::of(p, on).count.load(Relaxed) != 0
}

/// The same as a guess, before a release.
#[inline]
#[must_use]
pub fn perhaps_anybody<P: SleepPlatform>(p: &P, on: usize) -> bool {
    number(p, on) != 0
}

/// How many sleep in the bucket of the lock at `on`: a guess.
#[inline]
#[must_use]
pub fn number<P: SleepPlatform>(p: &P, on: usize) -> u32 {
    bucket::of(p, on).count.load(Relaxed)
}

/// A release has found no sleeper. After `sleep_idle` of them in a row the bucket is quiet again.
#[inline]
pub fn found_nobody<P: SleepPlatform>(p: &P, on: usize) {
    if !p.asymmetric() {
        return;
    }
    let bucket = bucket::of(p, on);
    let idle = bucket.idle.load(Relaxed).saturating_add(1);
    bucket.idle.store(idle, Relaxed);
    if idle >= p.tuning().sleep_idle {
        settle_down(p, on);
    }
}

#[cold]
fn settle_down<P: SleepPlatform>(p: &P, on: usize) {
    let Some(bucket) = Held::lock(p, on) else { return };
    bucket.idle.store(0, Relaxed);
    // SLEEP-3.
    if bucket.count.load(Relaxed) == 0 {
        let hint = hint(p, on);
        hint.store(hint.load(Relaxed) & !SETTLED | QUIET, Relaxed);
    }
}

/// Runs `sleep` with a node of this context, or returns `None` where it has none: then [`SleepPlatform::timed_backoff`],
/// and poll again.
#[inline]
pub fn with_sleeper<P: SleepPlatform, R>(p: &P, sleep: impl FnOnce(NodeId) -> R) -> Option<R> {
    with_node(p, sleep)
}

/// Where a sleeper joins the queue, among those of its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Before all others: for a waiter that was woken in vain.
    First,
    /// Behind all others.
    Last,
}

/// SLEEP-1 (1) to (3): joins the sleepers on the address `on`. The caller then polls a last time whether it must
/// sleep, and calls [`await_wake`], or [`cancel`]. Returns false where it cannot join now: then
/// [`SleepPlatform::timed_backoff`], and poll again.
#[must_use]
pub fn enqueue<P: SleepPlatform>(p: &P, me: NodeId, on: usize, tag: u32, end: End) -> bool {
    let record = p.sleeper(me);
    let hint = hint(p, on);
    let priority = p.priority();
    let mut now;
    {
        let Some(bucket) = Held::lock(p, on) else { return false };
        record.on.store(on, Relaxed);
        record.tag.store(tag, Relaxed);
        record.priority.store(priority, Relaxed);
        record.state.store(QUEUED, Relaxed);
        bucket.insert(me, end);
        // ORDERING: Acquire pairs with the Release of `SleepSettle`: the barrier has passed (SLEEP-2).
        now = hint.load(p.ordering(Site::SleepSettled, Acquire));
        if now & QUIET != 0 {
            now = (now & !(QUIET | SETTLED)).wrapping_add(EPOCH);
            hint.store(now, Relaxed);
        }
    }
    counting::count(p, Event::SleepCount);
    if now & SETTLED != 0 {
        // ORDERING: pairs with the fence of `anybody`.
        p.fence(p.ordering(Site::SleepFence, SeqCst));
        return true;
    }
    counting::count(p, Event::SleepBarrier);
    // ORDERING: pairs with the light barrier of `stored`, and with the fence of `anybody`.
    p.heavy_barrier(p.ordering(Site::SleepHeavy, SeqCst));
    // SLEEP-2: fails if another thread has settled it, or the epoch is over.
    // ORDERING: Release pairs with the Acquire of `SleepSettled`.
    let order = p.ordering(Site::SleepSettle, Release);
    let _ = hint.compare_exchange(now, now | SETTLED, order);
    true
}

/// Sleeps until woken, or until `deadline`: [`NEVER`], or a time of
/// [`Platform::now_ns`](crate::platform::Platform::now_ns). Returns whether it was woken. Either way `me` is in no queue
/// any more.
#[must_use]
pub fn await_wake<P: SleepPlatform>(p: &P, me: NodeId, deadline: u64) -> bool {
    let record = p.sleeper(me);
    let mut slept = false;
    loop {
        // ORDERING: Acquire pairs with the Release of `Taken::wake`.
        if record.state.load(p.ordering(Site::SleepWoken, Acquire)) == WOKEN {
            if slept {
                cost::woke(p, record);
            }
            return true;
        }
        slept = true;
        if deadline == NEVER {
            halt(p, me);
        } else if p.now_ns() >= deadline {
            return !cancel(p, me);
        } else {
            p.halt_until(me, deadline);
        }
    }
}

/// The address on which `me`, this context's node, sleeps, or slept last: another one than it joined if it was
/// moved ([`requeue`]).
#[must_use]
pub fn sleeps_on<P: SleepPlatform>(p: &P, me: NodeId) -> usize {
    // Written by this context, and by others under the lock of a bucket that it has locked since.
    p.sleeper(me).on.load(Relaxed)
}

/// Leaves the queue, without having slept or after the deadline. Returns false if another thread has taken this
/// sleeper out meanwhile: the wake-up was meant for it, and the caller must act on it.
#[must_use]
pub fn cancel<P: SleepPlatform>(p: &P, me: NodeId) -> bool {
    let record = p.sleeper(me);
    loop {
        let on = record.on.load(Relaxed);
        match Held::lock(p, on) {
            Some(bucket) if record.on.load(Relaxed) == on => {
                if record.state.load(Relaxed) != QUEUED {
                    break;
                }
                bucket.remove(me);
                record.state.store(WOKEN, Relaxed);
                return true;
            }
            // The sleeper was moved to another bucket.
            Some(_) => {}
            None => p.timed_backoff(),
        }
    }
    // SLEEP-4: the kick is on its way.
    // ORDERING: as in `await_wake`.
    while record.state.load(p.ordering(Site::SleepWoken, Acquire)) != WOKEN {
        halt(p, me);
    }
    false
}

/// What to do with a sleeper that [`take`] visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It is taken out.
    Take,
    /// It stays.
    Leave,
    /// It stays, and so do all behind it.
    Stop,
}

/// Sleepers that were taken out of a queue, in their order. The caller must wake them.
#[derive(Debug)]
#[must_use = "a waiter that is taken out must be woken"]
pub struct Taken {
    first: Option<NodeId>,
    last: Option<NodeId>,
    count: u32,
}

impl Taken {
    /// No sleepers.
    pub const NONE: Self = Self { first: None, last: None, count: 0 };

    /// The number of sleepers.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Wakes them.
    pub fn wake<P: SleepPlatform>(self, p: &P) {
        let mut next = self.first;
        while let Some(id) = next {
            let record = p.sleeper(id);
            // SLEEP-4: after the store the record may be in use again.
            next = NodeId::from_number(record.next.load(Relaxed));
            cost::kicks(p, record);
            // ORDERING: Release pairs with the Acquire of `await_wake`.
            record.state.store(WOKEN, p.ordering(Site::SleepWake, Release));
            kick(p, id, Event::SleepKick);
        }
    }

    fn add<P: SleepPlatform>(&mut self, p: &P, id: NodeId) {
        let record = p.sleeper(id);
        record.next.store(0, Relaxed);
        record.state.store(TAKEN, Relaxed);
        if let Some(last) = self.last {
            p.sleeper(last).next.store(id.number(), Relaxed);
        }
        self.first = self.first.or(Some(id));
        self.last = Some(id);
        self.count += 1;
    }
}

/// Takes out the sleepers on `on` that `choose` chooses by their tags, in their order (SLEEP-7). `None` if the
/// bucket could not be locked (SLEEP-6): then release, and [`wake_later`].
pub fn take<P: SleepPlatform>(
    p: &P,
    on: usize,
    mut choose: impl FnMut(u32) -> Choice,
) -> Option<Taken> {
    let bucket = Held::lock(p, on)?;
    bucket.idle.store(0, Relaxed);
    let mut taken = Taken::NONE;
    bucket.each(|bucket, before, id| {
        let record = p.sleeper(id);
        if record.on.load(Relaxed) != on {
            return (Choice::Leave, false);
        }
        let choice = choose(record.tag.load(Relaxed));
        if choice == Choice::Take {
            bucket.unlink(before, id);
            taken.add(p, id);
        }
        (choice, choice == Choice::Take)
    });
    Some(taken)
}

/// Wakes up to `most` sleepers on `on`, or in doubt all of them. Returns how many, as far as it knows.
pub fn wake<P: SleepPlatform>(p: &P, on: usize, most: u32) -> u32 {
    let mut left = most;
    let taken = take(p, on, |_| {
        if left == 0 {
            return Choice::Stop;
        }
        left -= 1;
        Choice::Take
    });
    match taken {
        Some(taken) => {
            let count = taken.count();
            taken.wake(p);
            count
        }
        None => {
            wake_later(p, on);
            0
        }
    }
}

/// Asks the owner of the bucket of `on` to wake all its sleepers (SLEEP-6).
#[cold]
pub fn wake_later<P: SleepPlatform>(p: &P, on: usize) {
    // A read-modify-write: a plain store could be ordered before the swap that clears an earlier request.
    // ORDERING: Release pairs with the Acquire of `rescan`: a waiter that is woken for it sees the release.
    bucket::of(p, on).rescan.fetch_or(1, p.ordering(Site::SleepRescanMark, Release));
    // ORDERING: pairs with the fence in the `drop` of `Held`: the owner sees the request, or the bucket is
    // unlocked here.
    p.fence(p.ordering(Site::SleepRescanFence, SeqCst));
    // Dropping the bucket's lock serves the request.
    drop(Held::try_lock(p, on));
}

/// For a platform, in the child of `fork`: no waiter sleeps here but `own`, if it forked in a signal handler that
/// interrupted its sleep, and that one is woken. The child has one thread.
pub fn forget<P: SleepPlatform>(p: &P, own: Option<CpuId>) {
    let token = p.token();
    for (bucket, hint) in p.buckets().iter().zip(p.hints()) {
        if bucket.is_locked_by(token) {
            // The code that the handler interrupted will wake the remaining sleepers when it resumes.
            bucket.rescan.store(1, Relaxed);
            continue;
        }
        bucket.forget();
        let now = hint.load(Relaxed) & !(QUIET | SETTLED);
        hint.store(now | if p.asymmetric() { QUIET } else { 0 }, Relaxed);
    }
    let own = (0..LEVELS).filter_map(|level| NodeId::new(own?, level));
    for id in own {
        let record = p.sleeper(id);
        let on = record.on.load(Relaxed);
        if record.state.load(Relaxed) != WOKEN && !bucket::of(p, on).is_locked_by(token) {
            record.state.store(WOKEN, Relaxed);
            p.kick(id);
        }
    }
}

/// For a platform that has obtained a heavy barrier: every bucket without sleepers becomes quiet. The calling
/// thread need not be known to the platform yet: `token` is any number that no other thread has.
pub fn settle_all<P: SleepPlatform>(p: &P, token: u32) {
    for (bucket, hint) in p.buckets().iter().zip(p.hints()) {
        if let Some(bucket) = Held::of(p, bucket, token)
            && bucket.count.load(Relaxed) == 0
        {
            hint.store(hint.load(Relaxed) & !SETTLED | QUIET, Relaxed);
        }
    }
}
