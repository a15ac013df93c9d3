//! A condition variable for [`Mutex`](crate::Mutex).

use crate::events::NoEvents;
use crate::platform::Threads;

/// The raw condition variable, a [`lock_api::RawCondvar`]. See [`qspin_core::condvar`].
pub type RawCondvar = RawCondvarWith<NoEvents>;
/// As [`RawCondvar`], for a mutex that counts its events in `E`: [`RawLockWith`](crate::mutex::RawLockWith).
pub type RawCondvarWith<E> = qspin_core::raw::RawCondvar<Threads<E>>;

/// A condition variable for [`Mutex`](crate::Mutex): sixteen bytes, `const`.
///
/// [`notify_all`](lock_api::Condvar::notify_all) wakes one waiter and moves the others to the mutex, which
/// wakes each when it can acquire. A wake-up may be spurious: use `wait_while`, or check the condition again.
/// For the same reason, by the rule of `lock_api`, a notification does not report which waiters it has reached.
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
/// It works with no other mutex:
///
/// ```compile_fail,E0308
/// let mutex = qspin::paravirt::Mutex::new(());
/// let condition = qspin::Condvar::new();
/// condition.wait(&mut mutex.lock());
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;
