//! A condition variable for [`Mutex`](crate::Mutex).

use crate::events::NoEvents;
use crate::platform::Threads;

/// The condition itself, a [`lock_api::RawCondvar`]. See [`qspin_core::condvar`].
pub type RawCondvar = RawCondvarWith<NoEvents>;
/// As [`RawCondvar`], for a mutex that counts its events in `E`: [`RawLockWith`](crate::mutex::RawLockWith).
pub type RawCondvarWith<E> = qspin_core::raw::RawCondvar<Threads<E>>;

/// A condition variable for [`Mutex`](crate::Mutex): sixteen bytes, `const`.
///
/// [`notify_all`](lock_api::Condvar::notify_all) wakes one, and moves the others to the mutex, where each is
/// woken when it can have it. A wait may end for no reason: use `wait_while`, or look again. That is also why,
/// by the rule of `lock_api`, notifications do not say whom they have reached.
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
///     // Nobody notifies any more: the time is over, or the wait ends for no reason.
///     READY.1.wait_for(&mut ready, Duration::from_millis(1));
/// });
/// ```
///
/// It is for no other mutex:
///
/// ```compile_fail,E0308
/// let mutex = qspin::paravirt::Mutex::new(());
/// let condition = qspin::Condvar::new();
/// condition.wait(&mut mutex.lock());
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;
