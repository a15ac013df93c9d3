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
//! * **V1** Who waits joins the sleepers while it holds the mutex. So who changes the condition under the
//!   mutex, and notifies, finds everybody who has seen the condition as it was before.
//! * **V2** `notify_all` (1) takes the first out of the queue, (2) moves the others to the mutex, and then (3)
//!   wakes the first. That one acquires the mutex and releases it, both after (2): its release finds those
//!   who were moved, or another that is awake for the mutex and whose release will (M3 of [`crate::mutex`]).
//! * **V3** Who was woken may have been so by a release of the mutex, which has marked somebody as awake for
//!   it (M2): it acquires by [`DefaultLock::acquire_woken`], which takes the mark back.
//! * **V4** The mutex is known by its address, and only while everybody waits with the same: with more than
//!   one ([`MANY`]) nobody is moved, and all are woken.
//! * **V5** Nothing of the mutex is touched by who notifies: it may be gone. The address is a number.
//!
//! # Limits
//! A wait may end for no reason, as the standard library's may: use `wait_while`, or look again. Where
//! nobody waits a notification is a load of static memory, or, if somebody sleeps in the same bucket, a look at
//! its queue.

use core::sync::atomic::Ordering::Relaxed;

use crate::lock::RawLock;
use crate::mutex::{self, DefaultLock};
use crate::node::NodeId;
use crate::platform::AtomicAddress;
use crate::sleepers::{self, Choice, End, NEVER, SleepPlatform};

/// No mutex is known.
const NONE: usize = 0;
/// Those who wait do so with more than one mutex. No lock is at this address.
const MANY: usize = 1;

/// The tag of those who sleep for a condition.
const TAG: u32 = 0;

/// A condition variable. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct Condition<A> {
    /// The address of the mutex with which the last waits were (V4).
    mutex: A,
}

impl Condition<core::sync::atomic::AtomicUsize> {
    /// For which nobody waits.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const UNUSED: Self = Self { mutex: core::sync::atomic::AtomicUsize::new(NONE) };
}

impl<A: AtomicAddress> Condition<A> {
    /// For which nobody waits.
    #[must_use]
    pub fn new() -> Self {
        Self { mutex: A::new(NONE) }
    }

    /// Where its waiters sleep: an address that no lock has.
    #[inline]
    fn on(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// Releases the lock, waits to be notified or for `deadline`, and acquires the lock again. Returns false
    /// if it waited until the deadline.
    ///
    /// # Safety
    /// This context holds `lock` by an acquisition that has not been released.
    pub unsafe fn wait_until<P: SleepPlatform>(
        &self,
        p: &P,
        lock: &DefaultLock<P::Word>,
        deadline: u64,
    ) -> bool {
        // SAFETY: the caller's promise.
        let waited = sleepers::with_sleeper(p, |me| unsafe { self.sleep(p, me, lock, deadline) });
        match waited {
            Some(Some(woken)) => woken,
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

    /// `None` if it could not join the sleepers; then the lock is still held.
    ///
    /// # Safety
    /// As [`wait_until`](Self::wait_until).
    unsafe fn sleep<P: SleepPlatform>(
        &self,
        p: &P,
        me: NodeId,
        lock: &DefaultLock<P::Word>,
        deadline: u64,
    ) -> Option<bool> {
        self.know(p, lock.address(p));
        // V1.
        if !sleepers::enqueue(p, me, self.on(), TAG, End::Last) {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { lock.release(p) };
        let woken = sleepers::await_wake(p, me, deadline);
        if woken {
            // V3.
            lock.acquire_woken(p);
        } else {
            lock.acquire(p);
        }
        Some(woken)
    }

    /// Somebody is about to wait with the mutex at `address` (V4).
    fn know<P: SleepPlatform>(&self, p: &P, address: usize) {
        let known = self.mutex.load(Relaxed);
        if known == address {
            return;
        }
        // Those who wait with one mutex come here one after the other; with another, they race, and
        // whoever fails finds another's address.
        let next = if known == NONE || !self.anybody(p) { address } else { MANY };
        if self.mutex.compare_exchange(known, next, Relaxed).is_err() {
            self.mutex.store(MANY, Relaxed);
        }
    }

    /// Whether somebody waits.
    fn anybody<P: SleepPlatform>(&self, p: &P) -> bool {
        let mut found = false;
        let taken = sleepers::take(p, self.on(), |_| {
            found = true;
            Choice::Stop
        });
        found || taken.is_none()
    }

    /// Wakes the one that waits longest. Returns whether there was one, as far as it knows.
    #[inline]
    pub fn notify_one<P: SleepPlatform>(&self, p: &P) -> bool {
        // V1.
        sleepers::perhaps_anybody(p, self.on()) && sleepers::wake(p, self.on(), 1) > 0
    }

    /// Wakes all that wait: one at once, the others when they can have the mutex. Returns how many there
    /// were, as far as it knows.
    #[inline]
    pub fn notify_all<P: SleepPlatform>(&self, p: &P) -> u32 {
        if sleepers::perhaps_anybody(p, self.on()) { self.notify_all_slow(p) } else { 0 }
    }

    #[cold]
    fn notify_all_slow<P: SleepPlatform>(&self, p: &P) -> u32 {
        let (on, mutex) = (self.on(), self.mutex.load(Relaxed));
        if mutex == MANY || mutex == NONE {
            return sleepers::wake(p, on, u32::MAX);
        }
        // V2 (1).
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
        let moved = sleepers::requeue(p, on, mutex, mutex::TAG, u32::MAX);
        let count = taken.count() + moved.unwrap_or_else(|| sleepers::wake(p, on, u32::MAX));
        // (3).
        taken.wake(p);
        count
    }
}

impl<A: AtomicAddress> Default for Condition<A> {
    fn default() -> Self {
        Self::new()
    }
}
