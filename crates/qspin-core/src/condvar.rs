//! A condition variable for the default mutex: those who wait sleep beside it, found by its address.
//!
//! # Problem
//! Who is told "all of you" wakes up with all others, and all but one of them meet a mutex that is taken:
//! a thundering herd, whose members then sleep again, each at the cost of a switch there and back.
//!
//! # Source
//! Waiting morphing: those who are notified together are moved to the mutex's queue, and each is woken when
//! it can have the lock (Linux' `FUTEX_CMP_REQUEUE`; WebKit's parking lot).
//!
//! # States
//! ```text
//!   wait: joins ──► sleeps on the condition ──notify_one──────────► awake ──► has the mutex again
//!                            │                                        ▲
//!                            └─notify_all, but for the first──► sleeps on the mutex
//! ```
//!
//! # Invariants
//! * **CONDVAR-1** Who waits joins the sleepers while it holds the mutex. So who changes the condition under the
//!   mutex, and notifies, finds everybody who has seen the condition as it was before.
//! * **CONDVAR-2** `notify_all` (1) takes the first out of the queue, (2) moves the others to the mutex, and then
//!   (3) wakes the first. That one acquires the mutex and releases it, both after (2): its release finds those
//!   that were moved, or another that is awake for the mutex and whose release will (MUTEX-3 of
//!   [`crate::locks::mutex`]).
//! * **CONDVAR-3** Who was woken may have been so by a release of the mutex, which has marked somebody as awake for
//!   it (MUTEX-2): it acquires by [`DefaultLock::acquire_woken`], which takes the mark back.
//! * **CONDVAR-4** The mutex is known by its address, and only as long as everybody has waited with the same: once
//!   there was another (`MANY`) nobody is moved, and all are woken.
//! * **CONDVAR-5** Nothing of the mutex is touched by who notifies: it may be gone. The address is a number.
//!
//! # Limits
//! A wait may end for no reason, as the standard library's may: use `wait_while`, or look again.

use core::sync::atomic::Ordering::Relaxed;

use crate::lock::RawLock;
use crate::locks::mutex::{self, DefaultLock};
use crate::node::NodeId;
use crate::platform::{AtomicAddress, AtomicWord, ConstWord};
use crate::sleepers::{self, Choice, End, NEVER, SleepPlatform};

/// No mutex is known.
const NONE: usize = 0;
/// Those who wait do so with more than one mutex. No lock is at this address.
const MANY: usize = 1;

/// The tag of those who sleep for a condition.
const TAG: u32 = 0;

/// A condition variable. See the [module](self) documentation.
#[derive(Debug)]
#[repr(C)]
pub struct Condition<W, A> {
    /// The address of the mutex with which the last waits were (CONDVAR-4).
    mutex: A,
    /// How many wait. They sleep on its address.
    waiters: W,
}

impl<W: ConstWord> Condition<W, core::sync::atomic::AtomicUsize> {
    /// For which nobody waits.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const UNUSED: Self =
        Self { mutex: core::sync::atomic::AtomicUsize::new(NONE), waiters: W::ZERO };
}

impl<W: AtomicWord, A: AtomicAddress> Condition<W, A> {
    /// For which nobody waits.
    #[must_use]
    pub fn new() -> Self {
        Self { mutex: A::new(NONE), waiters: W::new(0) }
    }

    /// Releases the lock, waits to be notified or for `deadline`, and acquires the lock again. Returns false
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
        match waited {
            Some(Some(woken)) => {
                // Not with the node: to wait for the lock takes one of its own.
                if woken {
                    // CONDVAR-3.
                    lock.acquire_woken(p);
                } else {
                    lock.acquire(p);
                }
                woken
            }
            // It cannot sleep: the wait ends for no reason, not without a moment for others.
            Some(None) | None => {
                // SAFETY: the caller's promise.
                unsafe { lock.release(p) };
                p.doze();
                lock.acquire(p);
                deadline == NEVER || p.now_ns() < deadline
            }
        }
    }

    /// Releases the lock and sleeps; whether it was woken. `None` if it could not join the sleepers; then
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
    ) -> Option<bool> {
        // CONDVAR-1.
        if !sleepers::enqueue(p, me, p.address(&self.waiters), TAG, End::Last) {
            return None;
        }
        self.waiters.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { lock.release(p) };
        let woken = sleepers::await_wake(p, me, deadline);
        self.waiters.fetch_add(1_u32.wrapping_neg(), Relaxed);
        Some(woken)
    }

    /// Somebody is about to wait with the mutex at `address` (CONDVAR-4).
    fn know(&self, address: usize) {
        let known = self.mutex.load(Relaxed);
        if known == address {
            return;
        }
        // Those who wait with one mutex come here one after the other. Once there was another, there are
        // many for good: who still waits is not known.
        let next = if known == NONE { address } else { MANY };
        if self.mutex.compare_exchange(known, next, Relaxed).is_err() {
            self.mutex.store(MANY, Relaxed);
        }
    }

    /// Wakes the one that waits longest. Returns whether there was one, as far as it knows.
    #[inline]
    pub fn notify_one<P: SleepPlatform<Word = W>>(&self, p: &P) -> bool {
        // CONDVAR-1.
        self.waiters.load(Relaxed) != 0 && sleepers::wake(p, p.address(&self.waiters), 1) > 0
    }

    /// Wakes all that wait: one at once, the others when they can have the mutex. Returns how many there
    /// were, as far as it knows.
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
            // CONDVAR-4: another mutex would have been made known before who waits with it joined.
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
