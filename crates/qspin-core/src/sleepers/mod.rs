//! Sleepers: who sleeps for a lock that has no room for a queue, found by the lock's address.
//!
//! # Problem
//! A lock of one word, whose release is a plain store, can hold no queue: the store would wipe it out.
//! And whoever has released a lock may not look at it any more, since the next owner may free it. So
//! what a release must know of those who sleep stands in static memory: a table of *buckets*, to which
//! the lock's address is hashed. Each has a *hint*, which says whether anybody may sleep there, and a
//! queue of sleepers.
//!
//! # Source
//! A queue by address: `futex` (Franke, Russell, Kirkwood 2002), and WebKit's parking lot (Pizlo 2016).
//! The store without a barrier: the asymmetric Dekker of Dice, Huang and Yang (2001), with the system
//! call `membarrier`.
//!
//! # States of a sleeper
//! ```text
//!            enqueue                 take                      wake
//!   (idle) ───────────► QUEUED ───────────────► TAKEN ────────────────► WOKEN ──► (idle)
//!              ▲           │ cancel: the deadline, or the last look
//!              └───────────┘
//! ```
//! # States of a hint
//! ```text
//!              enqueue: a new epoch            the barrier has passed
//!   QUIET ─────────────────────────► (neither) ──────────────────────► SETTLED
//!     ▲                                  │                                │
//!     └──── nobody sleeps, for a while ──┴────────────────────────────────┘
//! ```
//! A hint begins as *neither*, so that without a heavy barrier ([`SleepPlatform::asymmetric`]) no
//! release is ever a plain store.
//!
//! # Invariants
//! * **SLEEP-1** Who wants to sleep (1) joins the queue, (2) takes QUIET away, (3) passes a barrier, (4) looks
//!   at the lock a last time. A release (a) sees QUIET, (b) stores, (c) passes the light barrier, (d) looks
//!   for QUIET again and, where it is gone, for sleepers; or (a') sees no QUIET, (b') releases by a
//!   read-modify-write, (c') passes a full fence, (d') looks for sleepers. So of (4) and (d) at least one
//!   sees the other: nobody sleeps at a free lock that nobody looks after.
//! * **SLEEP-2** The barrier (3) is the heavy one, which orders all threads as if each had passed a full fence
//!   in the middle of it, until the hint is SETTLED: then every release that may still have seen QUIET has
//!   either stored before the barrier, or will look again after it. From there on a full fence will do.
//!   Only who has passed the barrier of this epoch settles the hint.
//! * **SLEEP-3** QUIET returns only while the bucket is locked and its queue empty.
//! * **SLEEP-4** Queue, epoch and the states QUEUED and TAKEN are changed under the bucket's lock. A thread that
//!   has taken a sleeper sets WOKEN, and then kicks it: until then its record stays.
//! * **SLEEP-5** Every wake-up may be spurious: the waiter looks anew.
//! * **SLEEP-6** Nobody who releases waits for a bucket without bound: its owner may have been interrupted by a
//!   signal handler that waits for this very release. It leaves a *rescan* behind, and the owner, when it
//!   unlocks, wakes everybody there (SLEEP-5).
//! * **SLEEP-7** A queue is in the order of priorities, as that of a futex: one of a real-time policy is before
//!   all of lower priority, and those of the same priority are in the order in which they came.
//!
//! # Limits
//! A context without a node does not sleep: it dozes and looks again. A sleeper whose deadline has come
//! waits for the bucket. A signal handler that waits for a lock while the code that it interrupts has a bucket
//! locked keeps that bucket's sleepers from being woken (SLEEP-6): if the owner of that lock is one of them, for ever.

mod bucket;
mod budget;
mod cost;
mod pace;
mod record;
mod requeue;
mod score;

pub use bucket::{SleepBucket, back_off};
pub use budget::SpinBudget;
pub use pace::Pace;
pub use record::Sleeper;
pub use requeue::requeue;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::counting;
use crate::events::Event;
use crate::kick::{halt, kick};
use crate::nesting::with_node;
use crate::node::{LEVELS, NodeId};
use crate::platform::{AtomicAddress, AtomicWord, CpuId, Platform, Until};
use crate::site::Site;

use bucket::Held;

/// What sleeping asks of a platform beyond what spinning and halting do.
pub trait SleepPlatform: Platform {
    /// The hints, one a bucket; a power of two.
    fn hints(&self) -> &[Self::Word];

    /// The buckets, as many as hints.
    fn buckets(&self) -> &[SleepBucket<Self::Word>];

    /// The record of the sleeper that waits with this node.
    fn sleeper(&self, id: NodeId) -> &Sleeper<Self::Word, Self::Address>;

    /// A number, not 0, that no other thread has at the same time; a signal handler has that of what it
    /// interrupts.
    fn token(&self) -> u32;

    /// Whether there is a heavy barrier. It may come and go; a heavy barrier that was promised when a
    /// hint became quiet is kept.
    fn asymmetric(&self) -> bool;

    /// The light side of the asymmetric fence: keeps the compiler from reordering, and nothing else.
    /// `order` is SeqCst; a checker may weaken it.
    fn light_barrier(&self, order: core::sync::atomic::Ordering);

    /// The heavy side: every thread passes a full fence between its call and its return.
    fn heavy_barrier(&self, order: core::sync::atomic::Ordering);

    /// Halts as [`Platform::halt`], until this time of [`Platform::now_ns`] at the latest.
    fn halt_until(&self, me: NodeId, deadline_ns: u64);

    /// Waits for a moment for `word`, of somebody who is about to be done. Returns whether it is worth
    /// while to go on after `rounds` of it.
    fn wait_briefly(&self, word: &Self::Word, until: Until, rounds: u32) -> bool;

    /// Sleeps for a short time: where there is no place in a queue.
    fn doze(&self);

    /// The priority of this context among those who sleep (SLEEP-7); 0 for all that have none. Asked for once a
    /// sleep.
    #[inline]
    fn priority(&self) -> u32 {
        0
    }

    /// Where it is kept how long a thread takes to wake, in nanoseconds ([`SpinBudget`]); `None` where that is not
    /// to be measured.
    #[inline]
    fn wake_ns(&self) -> Option<&Self::Word> {
        None
    }

    /// Which process this is, in a line of forks: marks in a lock that waiters have left do not count in a
    /// child, which has no such waiters.
    #[inline]
    fn generation(&self) -> u32 {
        0
    }
}

/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// Nobody sleeps in the bucket: releases may be plain stores.
const QUIET: u32 = 1;
/// The hint of a bucket in which nobody sleeps, for a platform that has a heavy barrier from the beginning on.
pub const QUIET_HINT: u32 = QUIET;
/// The barrier of this epoch has passed (SLEEP-2).
const SETTLED: u32 = 2;
/// The first of the bits that number the epochs.
const EPOCH: u32 = 4;

/// Sleeps in the queue.
const QUEUED: u32 = 1;
/// Taken from the queue, not yet woken.
const TAKEN: u32 = 2;
/// Woken.
const WOKEN: u32 = 0;

/// The bucket for what sleeps `on` an address. Fibonacci hashing.
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

/// SLEEP-1 (c), (d): after such a store. Returns whether it is still quiet; if not, sleepers must be looked for.
/// Touches static memory alone.
#[inline]
#[must_use]
pub fn stored<P: SleepPlatform>(p: &P, on: usize) -> bool {
    // ORDERING: pairs with the heavy barrier of `enqueue`.
    p.light_barrier(p.ordering(Site::SleepLight, SeqCst));
    is_quiet(p, on)
}

/// SLEEP-1 (c'), (d'): whether anybody may sleep in the bucket, after a release by a read-modify-write. One who
/// sleeps on another address of the same bucket counts, too.
#[inline]
#[must_use]
pub fn anybody<P: SleepPlatform>(p: &P, on: usize) -> bool {
    // ORDERING: pairs with the barrier of `enqueue`, or with the fence in its stead.
    p.fence(p.ordering(Site::SleepReleaseFence, SeqCst));
    bucket::of(p, on).count.load(Relaxed) != 0
}

/// The same as a guess, before a release.
#[inline]
#[must_use]
pub fn perhaps_anybody<P: SleepPlatform>(p: &P, on: usize) -> bool {
    bucket::of(p, on).count.load(Relaxed) != 0
}

/// Each sleeper lets a waiter wait for this part of `mutex_heir_us` longer before it starves: for about a turn.
const TURNS_OF_HEIR: u64 = 10;

/// When a waiter for what is at `on` starves, in nanoseconds: later where many sleep, which have their turns one after the
/// other. If those were heirs that wait for no longer than all do, the lock would go from one to the next in order,
/// whether they run or not.
#[must_use]
pub fn starves_after_ns<P: SleepPlatform>(p: &P, on: usize) -> u64 {
    let others = u64::from(bucket::of(p, on).count.load(Relaxed));
    u64::from(p.tuning().mutex_heir_us) * 1000 * (TURNS_OF_HEIR + others) / TURNS_OF_HEIR
}

/// A release has found nobody. After so many of them in a row the bucket is quiet again.
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

/// Whether those who have passed the sleepers on `on` had short turns of late, as [`note_turns`] was told, and a hand-over
/// is short as well: a guess, which other locks of the bucket share. Where a hand-over takes long, too many CPUs poll.
#[inline]
pub fn turns_are_short<P: SleepPlatform>(p: &P, on: usize) -> bool {
    let bucket = bucket::of(p, on);
    bucket.short.load(Relaxed) != 0 && bucket.handover_ns.load(Relaxed) <= p.tuning().mutex_short_ns
}

/// Notes whether somebody who has passed the sleepers on `on` had short turns.
pub fn note_turns<P: SleepPlatform>(p: &P, on: usize, short: bool) {
    let word = &bucket::of(p, on).short;
    if (word.load(Relaxed) != 0) != short {
        word.store(short.into(), Relaxed);
    }
}

/// Runs `sleep` with a node of this context, or returns `None` where it has none: then
/// [`SleepPlatform::doze`], and look again.
#[inline]
pub fn with_sleeper<P: SleepPlatform, R>(p: &P, sleep: impl FnOnce(NodeId) -> R) -> Option<R> {
    with_node(p, sleep)
}

/// Where among those of its priority a sleeper joins the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Before all others: it has been woken, and that in vain.
    First,
    /// Behind all others.
    Last,
}

/// SLEEP-1 (1) to (3): joins those who sleep on the address `on`. The caller then looks a last time
/// whether it must sleep, and calls [`await_wake`], or [`cancel`]. Returns false where it cannot join just
/// now: then [`SleepPlatform::doze`], and look again.
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
    // SLEEP-2: fails if another has settled it, or the epoch is over. ORDERING: Release pairs with the Acquire
    // of `SleepSettled`.
    let order = p.ordering(Site::SleepSettle, Release);
    let _ = hint.compare_exchange(now, now | SETTLED, order);
    true
}

/// Sleeps until woken, or until `deadline` ([`NEVER`], or a time of [`Platform::now_ns`]); returns whether
/// it was woken. Either way `me` is in no queue any more.
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

/// Leaves the queue without having slept, or slept long enough. Returns false if somebody has taken this
/// sleeper out meanwhile: the wake-up was meant for it, and it must do with it what it is for.
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
            // It was moved to another bucket.
            Some(_) => {}
            None => p.doze(),
        }
    }
    // SLEEP-4: the kick is on its way. ORDERING: as in `await_wake`.
    while record.state.load(p.ordering(Site::SleepWoken, Acquire)) != WOKEN {
        halt(p, me);
    }
    false
}

/// What to do with a sleeper that [`take`] has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It is taken out.
    Take,
    /// It stays.
    Leave,
    /// It stays, and so do all behind it.
    Stop,
}

/// Sleepers that were taken out of a queue, in their order. They must be woken.
#[derive(Debug)]
#[must_use = "whoever is taken out must be woken"]
pub struct Taken {
    first: Option<NodeId>,
    last: Option<NodeId>,
    count: u32,
}

impl Taken {
    /// Nobody.
    pub const NOBODY: Self = Self { first: None, last: None, count: 0 };

    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Wakes them.
    pub fn wake<P: SleepPlatform>(self, p: &P) {
        let mut next = self.first;
        while let Some(id) = next {
            let record = p.sleeper(id);
            // SLEEP-4: the record may have its next life after the store.
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

/// Takes out those who sleep on `on` and whom `choose` chooses by their tags, in their order (SLEEP-7).
/// `None` if the bucket was not to be had (SLEEP-6): then release, and [`wake_later`].
pub fn take<P: SleepPlatform>(
    p: &P,
    on: usize,
    mut choose: impl FnMut(u32) -> Choice,
) -> Option<Taken> {
    let bucket = Held::lock(p, on)?;
    bucket.idle.store(0, Relaxed);
    let mut taken = Taken::NOBODY;
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

/// Wakes up to `most` of those who sleep on `on`, or in doubt all of them. Returns how many, as far as it
/// knows.
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

/// The thread that has the bucket of `on` locked is to wake everybody there (SLEEP-6).
#[cold]
pub fn wake_later<P: SleepPlatform>(p: &P, on: usize) {
    // A read-modify-write: a store might come before the one that takes an earlier mark away.
    // ORDERING: Release pairs with the Acquire of `rescan`: who is woken for it sees the release.
    bucket::of(p, on).rescan.fetch_or(1, p.ordering(Site::SleepRescanMark, Release));
    // ORDERING: pairs with the fence of `unlock`: it sees the mark, or the lock is free here.
    p.fence(p.ordering(Site::SleepRescanFence, SeqCst));
    // Unlocking does it.
    drop(Held::try_lock(p, on));
}

/// For a platform, in the child of `fork`: nobody sleeps here but `own`, if it forked in a signal handler
/// that interrupted its sleep, and that is woken. The child has one thread.
pub fn forget<P: SleepPlatform>(p: &P, own: Option<CpuId>) {
    let token = p.token();
    for (bucket, hint) in p.buckets().iter().zip(p.hints()) {
        if bucket.is_locked_by(token) {
            // What the handler interrupted will wake those who are left, when it goes on.
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

/// For a platform that has got a heavy barrier: every bucket in which nobody sleeps is quiet. Who does it
/// need not be known to the platform yet: `token` is any that nobody else has.
pub fn settle_all<P: SleepPlatform>(p: &P, token: u32) {
    for (bucket, hint) in p.buckets().iter().zip(p.hints()) {
        if let Some(bucket) = Held::of(p, bucket, token)
            && bucket.count.load(Relaxed) == 0
        {
            hint.store(hint.load(Relaxed) & !SETTLED | QUIET, Relaxed);
        }
    }
}
