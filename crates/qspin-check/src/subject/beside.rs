//! What sleeps beside the default mutex, as locks: then the same scenarios say whether a wake-up is lost.
//!
//! * The default reader-writer lock is one. Its gate may be a lock that orders no more than it promises.
//! * A condition makes a *monitor*: an acquisition waits under a mutex until there is no owner, a release says so
//!   and notifies. It may have two mutexes, of which each waiter uses one.
//! * A once that always fails is done by one after the other.
//! * The mutex itself, each of whose releases is a fair one, or each of whose waiters was notified elsewhere before.

use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::condvar::Condition;
use qspin_core::lock::{RawFairLock, RawLock, RawTimedLock};
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::once::OnceWord;
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};
use qspin_core::sleepers::{NEVER, SleepPlatform};

use crate::contend::Contend;
use crate::scenario::Mode;
use crate::trace;

/// Whom a monitor tells.
pub const ONE: bool = false;
/// The same.
pub const ALL: bool = true;

/// A lock made of a mutex and a condition; `WHOM` is told at each release.
pub struct Monitor<W, A, const WHOM: bool> {
    mutex: DefaultLock<W>,
    condition: Condition<W, A>,
    held: W,
}

impl<W: AtomicWord, A, const WHOM: bool> Monitor<W, A, WHOM> {
    fn take(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`; an attempt has no mutex.
        self.held.compare_exchange(0, 1, Acquire).is_ok()
    }
}

// SAFETY: `held` is set by one that has seen it clear, in one step, and cleared by that one.
unsafe impl<P: SleepPlatform, const WHOM: bool> RawLock<P> for Monitor<P::Word, P::Address, WHOM> {
    fn new() -> Self {
        Self { mutex: RawLock::<P>::new(), condition: Condition::new(), held: P::Word::new(0) }
    }

    fn acquire(&self, p: &P) {
        self.mutex.acquire(p);
        while !self.take() {
            // SAFETY: acquired above, or by the last wait.
            trace::wait_ended(unsafe { self.condition.wait_until(p, &self.mutex, NEVER) });
        }
        // SAFETY: acquired above, or by the last wait.
        unsafe { self.mutex.release(p) };
    }

    fn try_acquire(&self, _: &P) -> bool {
        // Without the mutex, whose release may wait for a moment; it makes no wait longer.
        self.take()
    }

    unsafe fn release(&self, p: &P) {
        self.mutex.acquire(p);
        // ORDERING: Release pairs with the Acquire of `take`.
        self.held.store(0, Release);
        if WHOM == ALL {
            trace::notified(self.condition.notify_all(p));
        } else {
            trace::notified(self.condition.notify_one(p).into());
        }
        // SAFETY: acquired above.
        unsafe { self.mutex.release(p) };
    }

    fn is_locked(&self, _: &P) -> bool {
        self.held.load(Relaxed) != 0
    }
}

impl<P: SleepPlatform, const WHOM: bool> RawTimedLock<P> for Monitor<P::Word, P::Address, WHOM> {
    fn acquire_until(&self, p: &P, deadline: u64) -> bool {
        if !self.mutex.acquire_until(p, deadline) {
            return false;
        }
        let mut taken = self.take();
        let mut notified = true;
        // One that was notified looks again; one that was not has kept no waiter from being woken.
        while !taken && notified {
            // SAFETY: acquired above, or by the last wait.
            notified = unsafe { self.condition.wait_until(p, &self.mutex, deadline) };
            trace::wait_ended(notified);
            taken = notified && self.take();
        }
        // SAFETY: acquired above, or by the last wait.
        unsafe { self.mutex.release(p) };
        taken
    }
}

/// The same with one condition and two mutexes. What a release changes it changes under both.
pub struct TwoMutexes<W, A> {
    mutexes: [DefaultLock<W>; 2],
    condition: Condition<W, A>,
    held: W,
}

// SAFETY: as the monitor's.
unsafe impl<P: SleepPlatform> RawLock<P> for TwoMutexes<P::Word, P::Address> {
    fn new() -> Self {
        let mutexes = [RawLock::<P>::new(), RawLock::<P>::new()];
        Self { mutexes, condition: Condition::new(), held: P::Word::new(0) }
    }

    fn acquire(&self, p: &P) {
        let mutex = &self.mutexes[p.token() as usize % 2];
        mutex.acquire(p);
        while !self.try_acquire(p) {
            // SAFETY: acquired above, or by the last wait.
            trace::wait_ended(unsafe { self.condition.wait_until(p, mutex, NEVER) });
        }
        // SAFETY: acquired above, or by the last wait.
        unsafe { mutex.release(p) };
    }

    fn try_acquire(&self, _: &P) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`.
        self.held.compare_exchange(0, 1, Acquire).is_ok()
    }

    unsafe fn release(&self, p: &P) {
        let [first, second] = &self.mutexes;
        first.acquire(p);
        second.acquire(p);
        // ORDERING: Release pairs with the Acquire of `try_acquire`.
        self.held.store(0, Release);
        // SAFETY: acquired above.
        unsafe { second.release(p) };
        // SAFETY: the same.
        unsafe { first.release(p) };
        trace::notified(self.condition.notify_all(p));
    }

    fn is_locked(&self, _: &P) -> bool {
        self.held.load(Relaxed) != 0
    }
}

/// A once that is never done.
pub struct Undone<W>(OnceWord<W>);

// SAFETY: one begins at a time, and what it did happens before what the next does.
unsafe impl<P: SleepPlatform> RawLock<P> for Undone<P::Word> {
    fn new() -> Self {
        Self(OnceWord::new())
    }

    fn acquire(&self, p: &P) {
        // It is never done, so it begins.
        mem::forget(self.0.begin(p));
    }

    fn try_acquire(&self, p: &P) -> bool {
        let running = self.0.try_begin(p);
        let begun = running.is_some();
        mem::forget(running);
        begun
    }

    unsafe fn release(&self, p: &P) {
        // SAFETY: begun by the acquisition, which has forgotten it.
        drop(unsafe { self.0.go_on(p) });
    }

    fn is_locked(&self, p: &P) -> bool {
        self.0.is_running(p)
    }
}

/// A lock that is always released fairly.
pub struct Fair<L>(L);

impl<P: Platform, L: RawFairLock<P> + Send + Sync + 'static> Contend<P> for Fair<L> {
    fn new() -> Self {
        Self(L::new())
    }
    fn enter(&self, p: &P, _: Mode) {
        self.0.acquire(p);
    }
    fn try_enter(&self, p: &P, _: Mode) -> bool {
        self.0.try_acquire(p)
    }
    unsafe fn leave(&self, p: &P, _: Mode) {
        // SAFETY: the caller has acquired it.
        unsafe { self.0.release_fair(p) };
    }
    fn is_locked(&self, p: &P) -> bool {
        self.0.is_locked(p)
    }
}

/// The default mutex, whose waiters were all notified elsewhere before.
pub struct Notified<W>(DefaultLock<W>);

impl<P: SleepPlatform> Contend<P> for Notified<P::Word>
where
    P::Word: Send + Sync + 'static,
{
    fn new() -> Self {
        Self(RawLock::<P>::new())
    }
    fn enter(&self, p: &P, _: Mode) {
        self.0.acquire_notified(p);
    }
    fn try_enter(&self, p: &P, _: Mode) -> bool {
        self.0.try_acquire(p)
    }
    unsafe fn leave(&self, p: &P, _: Mode) {
        // SAFETY: the caller has acquired it.
        unsafe { self.0.release(p) };
    }
    fn is_locked(&self, p: &P) -> bool {
        RawLock::<P>::is_locked(&self.0, p)
    }
}

/// A gate without any fence. The default mutex has one in its release, for the sake of its sleepers, which also
/// orders what the one with the gate has read of the word before: on threads it is a compiler's fence, and does
/// not.
pub struct PlainGate<W>(W);

// SAFETY: set by one that has seen it clear, in one step, and cleared by that one.
unsafe impl<P: Platform> RawLock<P> for PlainGate<P::Word> {
    fn new() -> Self {
        Self(P::Word::new(0))
    }

    fn acquire(&self, p: &P) {
        while !RawLock::<P>::try_acquire(self, p) {
            p.wait_until(&self.0, Until::is(0), Budget::Unbounded, Relaxed);
        }
    }

    fn try_acquire(&self, _: &P) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`.
        self.0.compare_exchange(0, 1, Acquire).is_ok()
    }

    unsafe fn release(&self, _: &P) {
        // ORDERING: Release pairs with the Acquire of `try_acquire`.
        self.0.swap(0, Release);
    }

    fn is_locked(&self, _: &P) -> bool {
        self.0.load(Relaxed) != 0
    }
}

impl<P: Platform> RawTimedLock<P> for PlainGate<P::Word> {
    fn acquire_until(&self, p: &P, _: u64) -> bool {
        self.acquire(p);
        true
    }
}
