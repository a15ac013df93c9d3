//! A condition variable for [`Mutex`](crate::Mutex).

use core::fmt;
use core::time::Duration;

use lock_api::{GuardSend, WaitTimeoutResult};

use crate::MutexGuard;
use crate::events::NoEvents;
use crate::mutex::{RawMutex, RawMutexWith};
use crate::platform::system::clock::Instant;
use crate::platform::{StaticEvents, Threads};

/// A raw condition variable for a raw mutex.
macro_rules! raw_condvar {
    ($(#[$doc:meta])* $name:ident [$($events:ident)?] $platform:ty, $mutex:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name$(<$events>)?(qspin_core::raw::RawCondvar<$platform>);

        impl$(<$events: StaticEvents>)? $name$(<$events>)? {
            /// As [`Condvar::notify_one`].
            #[inline]
            pub fn wake_one(&self) -> bool {
                self.0.wake_one()
            }

            /// As [`Condvar::notify_all`].
            #[inline]
            pub fn wake_all(&self) -> usize {
                self.0.wake_all()
            }
        }

        impl$(<$events>)? fmt::Debug for $name$(<$events>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }

        // SAFETY: every operation is that of `qspin_core::raw::RawCondvar`, with the mutex in its newtype.
        unsafe impl$(<$events: StaticEvents>)? lock_api::RawCondvar for $name$(<$events>)? {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = Self(lock_api::RawCondvar::INIT);
            type RawMutex = $mutex;

            unsafe fn wait(&self, mutex: &$mutex, guard: &mut GuardSend) {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawCondvar::wait(&self.0, &mutex.0, guard) };
            }

            #[inline]
            fn notify_one(&self) -> bool {
                lock_api::RawCondvar::notify_one(&self.0)
            }

            #[inline]
            fn notify_all(&self) -> usize {
                lock_api::RawCondvar::notify_all(&self.0)
            }
        }

        // SAFETY: as above.
        unsafe impl$(<$events: StaticEvents>)? lock_api::RawCondvarTimed for $name$(<$events>)? {
            fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
                <qspin_core::raw::RawCondvar<$platform> as lock_api::RawCondvarTimed>::checked_duration_to_instant(
                    timeout,
                )
            }

            unsafe fn wait_until(&self, mutex: &$mutex, guard: &mut GuardSend, timeout: &Instant) -> bool {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawCondvarTimed::wait_until(&self.0, &mutex.0, guard, timeout) }
            }
        }
    };
}

raw_condvar! {
    /// The raw condition variable, a [`lock_api::RawCondvar`]. See [`qspin_core::condvar`].
    ///
    /// A wait may end spuriously; so, by `lock_api`'s rule, that trait's notifications report nothing.
    /// [`wake_one`](Self::wake_one) and [`wake_all`](Self::wake_all) do.
    RawCondvar [] Threads<NoEvents>, RawMutex
}
raw_condvar! {
    /// As [`RawCondvar`], for a mutex that counts its events in `E`: [`RawMutexWith`].
    RawCondvarWith [E] Threads<E>, RawMutexWith<E>
}

/// A condition variable for [`Mutex`](crate::Mutex): sixteen bytes, `const`.
///
/// [`notify_all`](Self::notify_all) wakes one waiter and moves the others to the mutex, which wakes each when it
/// can acquire. A wake-up may be spurious: use `wait_while`, or check the condition again. A wait releases the
/// mutex, and holds it again when it returns, for whatever reason. It may be with another mutex than the last.
///
/// ```
/// use std::time::Duration;
///
/// use qspin::{Condvar, Mutex};
///
/// static READY: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *READY.0.lock() = true;
///         READY.1.notify_all();
///     });
///     let mut ready = READY.0.lock();
///     READY.1.wait_while(&mut ready, |ready| !*ready);
///     assert!(*ready);
///     // No thread notifies any more: the wait times out, or its wake-up is spurious.
///     READY.1.wait_for(&mut ready, Duration::from_millis(1));
/// });
/// ```
///
/// It works with no other kind of mutex:
///
/// ```compile_fail,E0308
/// let mutex = qspin::paravirt::Mutex::new(());
/// let condition = qspin::Condvar::new();
/// condition.wait(&mut mutex.lock());
/// ```
pub struct Condvar {
    inner: lock_api::Condvar<RawCondvar>,
}

impl Condvar {
    /// A condition variable without waiters.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { inner: lock_api::Condvar::new() }
    }

    /// Wakes the waiter that has waited longest, if there is one. A notification is not kept for later waiters.
    ///
    /// Returns whether it has woken one. Each waiter is reported at most once, and its wait does not end as timed
    /// out. `false` does not prove that there was no waiter: where the table of sleepers is in use by a thread
    /// that does not run, or by the code that a signal handler has interrupted, the notification is left to that
    /// thread, which wakes in doubt all waiters, and none is reported.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.inner.raw().wake_one()
    }

    /// Wakes all waiters: one at once, each of the others when it can acquire the mutex. Returns how many, in the
    /// sense of [`notify_one`](Self::notify_one).
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.inner.raw().wake_all()
    }

    /// Waits for a notification. May end spuriously.
    #[inline]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.inner.wait(guard);
    }

    /// Waits while `condition` is true.
    #[inline]
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) {
        self.inner.wait_while(guard, condition);
    }

    /// Waits for a notification, at most for `timeout`. May end spuriously. The result says whether it waited for
    /// that long and was not notified.
    #[inline]
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.inner.wait_for(guard, timeout)
    }

    /// As [`wait_for`](Self::wait_for), until `deadline`.
    #[inline]
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.inner.wait_until(guard, deadline)
    }

    /// Waits while `condition` is true, at most for `timeout`. The result says whether it is true still.
    #[inline]
    pub fn wait_while_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.inner.wait_while_for(guard, condition, timeout)
    }

    /// As [`wait_while_for`](Self::wait_while_for), until `deadline`.
    #[inline]
    pub fn wait_while_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.inner.wait_while_until(guard, condition, deadline)
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
