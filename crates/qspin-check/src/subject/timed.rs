//! Locks whose waiters give up at a deadline, and one that is opened once.

use std::mem;
use std::sync::atomic::Ordering::Relaxed;

use qspin_core::condvar::Condition;
use qspin_core::lock::{
    RawLock, RawSharedLock, RawTimedLock, RawTimedSharedLock, RawUpgradableLock,
};
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::locks::rwlock::DefaultRwLock;
use qspin_core::once::OnceWord;
use qspin_core::platform::{AtomicWord, Platform};
use qspin_core::sleepers::{NEVER, SleepPlatform};

use crate::contend::Contend;
use crate::scenario::Mode;
use crate::trace;

/// A lock that excludes, and knows deadlines.
pub struct Timed<L>(L);

impl<P: Platform, L: RawTimedLock<P> + Send + Sync + 'static> Contend<P> for Timed<L> {
    fn new() -> Self {
        Self(L::new())
    }
    fn enter(&self, p: &P, _: Mode) {
        self.0.acquire(p);
    }
    fn enter_until(&self, p: &P, _: Mode, deadline: u64) -> bool {
        self.0.acquire_until(p, deadline)
    }
    fn try_enter(&self, p: &P, _: Mode) -> bool {
        self.0.try_acquire(p)
    }
    unsafe fn leave(&self, p: &P, _: Mode) {
        // SAFETY: the caller has acquired it.
        unsafe { self.0.release(p) };
    }
    fn is_locked(&self, p: &P) -> bool {
        self.0.is_locked(p)
    }
}

/// The default reader-writer lock with deadlines; where it `UPGRADES`, a writer reads upgradably before.
pub struct TimedRw<W, const UPGRADES: bool>(DefaultRwLock<W>);

impl<P: SleepPlatform, const UPGRADES: bool> Contend<P> for TimedRw<P::Word, UPGRADES>
where
    P::Word: Send + Sync + 'static,
{
    fn new() -> Self {
        Self(RawSharedLock::<P>::new())
    }
    fn enter(&self, p: &P, mode: Mode) {
        // Without a deadline the context does not give up.
        self.enter_until(p, mode, NEVER);
    }
    fn enter_until(&self, p: &P, mode: Mode, deadline: u64) -> bool {
        match mode {
            Mode::Read => self.0.acquire_shared_until(p, deadline),
            Mode::Upgradable => self.0.acquire_upgradable_until(p, deadline),
            Mode::Write if !UPGRADES => self.0.acquire_exclusive_until(p, deadline),
            Mode::Write => {
                if !self.0.acquire_upgradable_until(p, deadline) {
                    return false;
                }
                // SAFETY: it reads upgradably.
                let upgraded = unsafe { self.0.upgrade_until(p, deadline) };
                if !upgraded {
                    // SAFETY: it reads upgradably still.
                    unsafe { self.0.release_upgradable(p) };
                }
                upgraded
            }
        }
    }
    fn try_enter(&self, p: &P, mode: Mode) -> bool {
        match mode {
            Mode::Write => self.0.try_acquire_exclusive(p),
            Mode::Read => self.0.try_acquire_shared(p),
            Mode::Upgradable => self.0.try_acquire_upgradable(p),
        }
    }
    unsafe fn leave(&self, p: &P, mode: Mode) {
        match mode {
            // SAFETY: the caller has acquired it for writing.
            Mode::Write => unsafe { self.0.release_exclusive(p) },
            // SAFETY: the caller has acquired it for reading.
            Mode::Read => unsafe { self.0.release_shared(p) },
            // SAFETY: the caller reads upgradably.
            Mode::Upgradable => unsafe { self.0.release_upgradable(p) },
        }
    }
    unsafe fn downgrade(&self, p: &P, from: Mode, to: Mode) {
        // SAFETY: the caller holds it in the mode `from`.
        unsafe {
            match (from, to) {
                (Mode::Write, Mode::Read) => self.0.downgrade(p),
                (Mode::Write, Mode::Upgradable) => self.0.downgrade_to_upgradable(p),
                (Mode::Upgradable, Mode::Read) => self.0.downgrade_upgradable(p),
                _ => unreachable!("not a weaker mode"),
            }
        }
    }
    unsafe fn upgrade(&self, p: &P, deadline: Option<u64>) -> bool {
        match deadline {
            // SAFETY: the caller reads upgradably.
            Some(deadline) => unsafe { self.0.upgrade_until(p, deadline) },
            // SAFETY: the same.
            None => unsafe { self.0.try_upgrade(p) },
        }
    }
    fn is_locked(&self, p: &P) -> bool {
        RawSharedLock::<P>::is_locked(&self.0, p)
    }
}

/// A latch: its one writer closes it, and opens it once and for all; readers wait until then. It is opened under
/// the mutex, and all are notified after that, once: no later release wakes a waiter that is lost there.
pub struct Latch<W, A> {
    mutex: DefaultLock<W>,
    condition: Condition<W, A>,
    open: W,
}

// SAFETY: there is one writer, before all readers.
unsafe impl<P: SleepPlatform> RawSharedLock<P> for Latch<P::Word, P::Address> {
    fn new() -> Self {
        Self { mutex: RawLock::<P>::new(), condition: Condition::new(), open: P::Word::new(0) }
    }

    fn acquire_shared(&self, p: &P) {
        self.mutex.acquire(p);
        while self.open.load(Relaxed) == 0 {
            // SAFETY: acquired above, or by the last wait.
            trace::wait_ended(unsafe { self.condition.wait_until(p, &self.mutex, NEVER) });
        }
        // SAFETY: acquired above, or by the last wait.
        unsafe { self.mutex.release(p) };
    }

    fn try_acquire_shared(&self, p: &P) -> bool {
        let free = self.mutex.try_acquire(p);
        let open = free && self.open.load(Relaxed) != 0;
        if free {
            // SAFETY: acquired above.
            unsafe { self.mutex.release(p) };
        }
        open
    }

    unsafe fn release_shared(&self, _: &P) {}

    fn acquire_exclusive(&self, _: &P) {}

    fn try_acquire_exclusive(&self, _: &P) -> bool {
        false
    }

    unsafe fn release_exclusive(&self, p: &P) {
        self.mutex.acquire(p);
        self.open.store(1, Relaxed);
        // SAFETY: acquired above.
        unsafe { self.mutex.release(p) };
        trace::notified(self.condition.notify_all(p));
    }

    fn is_locked(&self, _: &P) -> bool {
        self.open.load(Relaxed) == 0
    }

    fn is_locked_exclusive(&self, p: &P) -> bool {
        RawSharedLock::<P>::is_locked(self, p)
    }
}

/// The same, with deadlines.
pub struct TimedLatch<W, A>(Latch<W, A>);

impl<P: SleepPlatform> Contend<P> for TimedLatch<P::Word, P::Address>
where
    P::Word: Send + Sync + 'static,
    P::Address: Send + Sync + 'static,
{
    fn new() -> Self {
        Self(RawSharedLock::<P>::new())
    }
    fn enter(&self, p: &P, mode: Mode) {
        if mode == Mode::Read {
            self.0.acquire_shared(p);
        }
    }
    fn enter_until(&self, p: &P, _: Mode, deadline: u64) -> bool {
        let Latch { mutex, condition, open } = &self.0;
        if !mutex.acquire_until(p, deadline) {
            return false;
        }
        let mut notified = true;
        while open.load(Relaxed) == 0 && notified {
            // SAFETY: acquired above, or by the last wait.
            notified = unsafe { condition.wait_until(p, mutex, deadline) };
            trace::wait_ended(notified);
        }
        let is_open = open.load(Relaxed) != 0;
        // SAFETY: acquired above, or by the last wait.
        unsafe { mutex.release(p) };
        is_open
    }
    fn try_enter(&self, p: &P, _: Mode) -> bool {
        self.0.try_acquire_shared(p)
    }
    unsafe fn leave(&self, p: &P, mode: Mode) {
        if mode == Mode::Write {
            // SAFETY: the caller is the one that has closed it.
            unsafe { self.0.release_exclusive(p) };
        }
    }
    fn is_locked(&self, p: &P) -> bool {
        RawSharedLock::<P>::is_locked(&self.0, p)
    }
}

/// What is done once: its one writer has begun it before the readers come, which wait until it is done.
pub struct Done<W>(OnceWord<W>);

// SAFETY: there is one writer, before all readers, which see what it has done.
unsafe impl<P: SleepPlatform> RawSharedLock<P> for Done<P::Word> {
    fn new() -> Self {
        Self(OnceWord::new())
    }

    fn acquire_shared(&self, p: &P) {
        // It was begun already, and does not fail.
        assert!(self.0.begin(p).is_none(), "begun twice");
    }

    fn try_acquire_shared(&self, p: &P) -> bool {
        self.0.is_done(p)
    }

    unsafe fn release_shared(&self, _: &P) {}

    fn acquire_exclusive(&self, p: &P) {
        mem::forget(self.0.begin(p));
    }

    fn try_acquire_exclusive(&self, _: &P) -> bool {
        false
    }

    unsafe fn release_exclusive(&self, p: &P) {
        // SAFETY: begun by the acquisition, which has forgotten it.
        unsafe { self.0.go_on(p) }.done();
    }

    fn is_locked(&self, p: &P) -> bool {
        self.0.is_running(p)
    }

    fn is_locked_exclusive(&self, p: &P) -> bool {
        self.0.is_running(p)
    }
}
