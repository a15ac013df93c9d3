//! A condition variable for the default mutex: waiters sleep beside it, found by its address.
//!
//! # Problem
//! If all waiters of a condition are woken at once, all but one of them find the mutex taken: a thundering herd,
//! whose threads then sleep again, each at the cost of a switch there and back.
//!
//! # Source
//! Wait morphing: waiters that are notified together are moved to the mutex's queue, and each is woken when it
//! can acquire the lock (Linux' `FUTEX_CMP_REQUEUE`; WebKit's parking lot).
//!
//! # States
//! ```text
//!   wait: joins ──► sleeps on the condition ──notify_one──────────► awake ──► acquires the mutex
//!                            │                                        ▲
//!                            └─notify_all, except the first─► sleeps on the mutex
//! ```
//!
//! # Invariants
//! * **CONDVAR-1** A waiter joins the sleepers while it holds the mutex. So a thread that changes the condition
//!   under the mutex, and notifies, finds every waiter that has seen the condition as it was before.
//! * **CONDVAR-2** `notify_all` (1) takes the first waiter out of the queue, (2) moves the others to the mutex,
//!   and then (3) wakes the first. That one acquires the mutex and releases it, both after (2): its release finds
//!   the waiters that were moved, or another thread that is awake for the mutex and whose release will find them (MUTEX-3
//!   of [`crate::locks::mutex`]).
//! * **CONDVAR-3** A waiter may have been woken by a release of the mutex, which has then counted it as awake
//!   (MUTEX-2): it acquires by [`DefaultLock::acquire_woken`], which takes the count back.
//! * **CONDVAR-4** The mutex is known by its address, and only as long as every wait was with the same mutex:
//!   once there was another (`MANY`) no waiter is moved, and all are woken.
//! * **CONDVAR-5** The notifying thread does not touch the mutex, which may no longer exist. The address is a
//!   number.
//! * **CONDVAR-6** Each waiter that a notification counts returns as notified, and no notification counts it again:
//!   it was taken out of the queue, or moved to the mutex, under the bucket's lock, and there it is found neither
//!   by its deadline nor by another notification. One that was moved, and whose deadline passes while it sleeps
//!   for the mutex, has been notified.
//!
//! # Limits
//! A wait may end spuriously, as the standard library's may: use `wait_while`, or check the condition again. A
//! notification does not count waiters that could not join the sleepers, nor any where it cannot lock the bucket: it
//! leaves them to the bucket's owner (SLEEP-6 of [`crate::sleepers`]).

#[cfg(test)]
mod tests;

use core::sync::atomic::Ordering::Relaxed;

use crate::lock::RawLock;
use crate::locks::mutex::{self, DefaultLock};
use crate::node::NodeId;
use crate::platform::{AtomicAddress, AtomicWord, ConstWord};
use crate::sleepers::{self, Choice, End, NEVER, SleepPlatform};

/// No mutex is known.
const NONE: usize = 0;
/// There were waits with more than one mutex. No lock is at this address.
const MANY: usize = 1;

/// The tag of the sleepers of a condition.
const TAG: u32 = 0;

/// How a wait has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// The waiter was woken.
    Woken,
    /// The deadline passed while the waiter slept for the mutex, to which a notification had moved it.
    Moved,
    /// The deadline passed.
    Deadline,
}

/// A condition variable. See the [module](self) documentation.
#[derive(Debug)]
#[repr(C)]
pub struct Condition<W, A> {
    /// The address of the mutex of the last waits (CONDVAR-4).
    mutex: A,
    /// The number of waiters. They sleep on the address of this field.
    waiters: W,
}

impl<W: ConstWord> Condition<W, core::sync::atomic::AtomicUsize> {
    /// A condition without waiters.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const UNUSED: Self =
        Self { mutex: core::sync::atomic::AtomicUsize::new(NONE), waiters: W::ZERO };
}

impl<W: AtomicWord, A: AtomicAddress> Condition<W, A> {
    /// A condition without waiters.
    #[must_use]
    pub fn new() -> Self {
        Self { mutex: A::new(NONE), waiters: W::new(0) }
    }

    /// Releases the lock, waits for a notification or for `deadline`, and acquires the lock again. Returns false
    /// if it waited until the deadline.
    ///
    /// # Safety
    /// This context holds `lock` by an acquisition that has not been released.
    pub unsafe fn wait_until<P: SleepPlatform<Word = W>>(
        &self,
        p: &P,
        lock: &DefaultLock<W>,
        deadline: u64,
    ) -> bool {
        // CONDVAR-4.
        self.know(lock.address(p));
        // SAFETY: the caller's promise.
        let waited = sleepers::with_sleeper(p, |me| unsafe { self.sleep(p, me, lock, deadline) });
        // Not with the node: waiting for the lock takes one of its own.
        match waited {
            Some(Some(Ended::Woken)) => {
                // CONDVAR-3.
                lock.acquire_woken(p);
                true
            }
            Some(Some(ended)) => {
                lock.acquire(p);
                ended == Ended::Moved
            }
            // The waiter cannot sleep: the wait ends spuriously, after a moment for other threads.
            Some(None) | None => {
                // SAFETY: the caller's promise.
                unsafe { lock.release(p) };
                p.timed_backoff();
                lock.acquire(p);
                deadline == NEVER || p.now_ns() < deadline
            }
        }
    }

    /// Releases the lock and sleeps; returns how that ended. `None` if the waiter could not join the sleepers; then
    /// the lock is still held.
    ///
    /// # Safety
    /// As [`wait_until`](Self::wait_until).
    unsafe fn sleep<P: SleepPlatform<Word = W>>(
        &self,
        p: &P,
        me: NodeId,
        lock: &DefaultLock<W>,
        deadline: u64,
    ) -> Option<Ended> {
        let on = p.address(&self.waiters);
        // CONDVAR-1.
        if !sleepers::enqueue(p, me, on, TAG, End::Last) {
            return None;
        }
        self.waiters.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { lock.release(p) };
        let woken = sleepers::await_wake(p, me, deadline);
        self.waiters.fetch_add(1_u32.wrapping_neg(), Relaxed);
        Some(if woken {
            Ended::Woken
        } else if sleepers::sleeps_on(p, me) == on {
            Ended::Deadline
        } else {
            Ended::Moved
        })
    }

    /// Notes that a wait with the mutex at `address` is about to begin (CONDVAR-4).
    fn know(&self, address: usize) {
        let known = self.mutex.load(Relaxed);
        if known == address {
            return;
        }
        // Waiters with one mutex come here one after the other. Once there was another mutex, there are many for
        // good: the mutexes of the remaining waiters are not known.
        let next = if known == NONE { address } else { MANY };
        if self.mutex.compare_exchange(known, next, Relaxed).is_err() {
            self.mutex.store(MANY, Relaxed);
        }
    }

    /// Wakes the first waiter. Returns whether there was one (CONDVAR-6).
    #[inline]
    pub fn notify_one<P: SleepPlatform<Word = W>>(&self, p: &P) -> bool {
        // CONDVAR-1.
        self.waiters.load(Relaxed) != 0 && sleepers::wake(p, p.address(&self.waiters), 1) > 0
    }

    /// Wakes all waiters: one at once, the others when they can acquire the mutex. Returns how many there were
    /// (CONDVAR-6).
    #[inline]
    pub fn notify_all<P: SleepPlatform<Word = W>>(&self, p: &P) -> u32 {
        if self.waiters.load(Relaxed) != 0 { self.notify_all_slow(p) } else { 0 }
    }

    #[cold]
    fn notify_all_slow<P: SleepPlatform<Word = W>>(&self, p: &P) -> u32 {
        let (on, mutex) = (p.address(&self.waiters), self.mutex.load(Relaxed));
        if mutex == MANY || mutex == NONE {
            return sleepers::wake(p, on, u32::MAX);
        }
        // CONDVAR-2 (1).
        let mut first = true;
        let taken = sleepers::take(p, on, |_| {
            if core::mem::take(&mut first) { Choice::Take } else { Choice::Stop }
        });
        let Some(taken) = taken else {
            sleepers::wake_later(p, on);
            return 0;
        };
        if taken.is_empty() {
            return 0;
        }
        // (2).
        let moved = sleepers::requeue(p, on, mutex, mutex::TAG, u32::MAX, || {
            // CONDVAR-4: another mutex would have been noted before a waiter with it joined.
            self.mutex.load(Relaxed) == mutex
        });
        let count = taken.count() + moved.unwrap_or_else(|| sleepers::wake(p, on, u32::MAX));
        // (3).
        taken.wake(p);
        count
    }
}

impl<W: AtomicWord, A: AtomicAddress> Default for Condition<W, A> {
    fn default() -> Self {
        Self::new()
    }
}
