//! Condition variables as `lock_api` knows them.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicUsize};
use core::time::Duration;

use super::Raw;
use crate::condvar::Condition;
use crate::locks::mutex::DefaultLock;
use crate::platform::{TimedPlatform, deadline_after};
use crate::sleepers::{NEVER, SleepPlatform};

/// A condition variable for the default mutex on platform `P`: [`lock_api::RawCondvar`].
///
/// A wait may end spuriously; so, by `lock_api`'s rule, its notifications report nothing.
/// [`wake_one`](Self::wake_one) and [`wake_all`](Self::wake_all) do.
#[repr(transparent)]
pub struct RawCondvar<P> {
    condition: Condition<AtomicU32, AtomicUsize>,
    platform: PhantomData<fn() -> P>,
}

impl<P> fmt::Debug for RawCondvar<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCondvar").finish_non_exhaustive()
    }
}

impl<P: SleepPlatform<Word = AtomicU32> + TimedPlatform> RawCondvar<P> {
    /// Wakes the waiter that has waited longest. Returns whether there was one: see
    /// [`Condition::notify_one`].
    #[inline]
    pub fn wake_one(&self) -> bool {
        self.condition.notify_one(&P::PLATFORM)
    }

    /// Wakes all waiters, each when it can acquire the mutex. Returns how many there were: see
    /// [`Condition::notify_all`].
    #[inline]
    pub fn wake_all(&self) -> usize {
        self.condition.notify_all(&P::PLATFORM) as usize
    }

    /// Returns whether it waited until the deadline.
    ///
    /// # Safety
    /// This context holds `mutex`.
    unsafe fn wait(&self, mutex: &Raw<DefaultLock<AtomicU32>, P>, deadline: u64) -> bool {
        // A waiting thread holds nothing.
        P::PLATFORM.holder_exit();
        let observer = P::PLATFORM.observer();
        let what = observer.map_or([0; 2], |observer| observer.releases(mutex.address()));
        // SAFETY: the caller's promise.
        let woken = unsafe { self.condition.wait_until(&P::PLATFORM, &mutex.lock, deadline) };
        if let Some(observer) = observer {
            observer.has_released(mutex.address(), what);
            observer.acquired(mutex.address(), false);
        }
        P::PLATFORM.holder_enter();
        !woken
    }
}

impl<P: SleepPlatform<Word = AtomicU32>> Raw<DefaultLock<AtomicU32>, P>
where
    P: crate::platform::StaticPlatform,
{
    /// The first step of locking. Returns whether it acquired the lock.
    #[inline]
    pub fn lock_at_once(&self) -> bool {
        self.lock.acquire_at_once(&P::PLATFORM)
    }

    /// Locks for a waiter that another condition variable than this crate's has woken, most likely notified by a
    /// thread that still owns the lock: it does not stay awake for long.
    #[inline]
    pub fn lock_notified(&self) -> lock_api::GuardSend {
        self.lock.acquire_notified(&P::PLATFORM);
        Self::held()
    }
}

// SAFETY: `wait` releases the mutex and holds it again when it returns; the guard is a mere marker.
unsafe impl<P: SleepPlatform<Word = AtomicU32> + TimedPlatform> lock_api::RawCondvar
    for RawCondvar<P>
{
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self { condition: Condition::UNUSED, platform: PhantomData };
    type RawMutex = Raw<DefaultLock<AtomicU32>, P>;

    unsafe fn wait(&self, mutex: &Self::RawMutex, _: &mut lock_api::GuardSend) {
        // SAFETY: the caller's promise.
        unsafe { self.wait(mutex, NEVER) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.wake_one();
        false
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.wake_all();
        0
    }
}

// SAFETY: as above.
unsafe impl<P> lock_api::RawCondvarTimed for RawCondvar<P>
where
    P: SleepPlatform<Word = AtomicU32> + TimedPlatform,
{
    fn checked_duration_to_instant(timeout: &Duration) -> Option<P::Instant> {
        P::after(*timeout)
    }

    unsafe fn wait_until(
        &self,
        mutex: &Self::RawMutex,
        _: &mut lock_api::GuardSend,
        timeout: &P::Instant,
    ) -> bool {
        let deadline = deadline_after(&P::PLATFORM, P::until(*timeout));
        // SAFETY: the caller's promise.
        unsafe { self.wait(mutex, deadline) }
    }
}
