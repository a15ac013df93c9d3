//! Queued spinlocks for programs: threads as CPUs.
//!
//! Linux's family of spinlocks with the interface of [`lock_api`]. Each lock has a module with a `Mutex<T>` and
//! the raw lock under it.
//!
#![doc = include_str!("locks.md")]
//!
//! [`Mutex`] is the default, for loads that are not known beforehand. For a load that is known: [`native`] with
//! at most as many threads as CPUs, [`paravirt`] with more threads than CPUs, [`cna`] on a machine whose cores
//! are far apart.
//!
//! ```
//! use qspin::Mutex;
//!
//! static COUNT: Mutex<u64> = Mutex::new(0);
//!
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| *COUNT.lock() += 1);
//!     }
//! });
//! assert_eq!(*COUNT.lock(), 2);
//! ```
//!
//! # What holds for every lock
//!
//! * A lock is `const`-constructible. It does not allocate, panic or poison: a guard that is dropped by a panic
//!   releases the lock, and the data is as the panic left it.
//! * Acquiring has acquire ordering, releasing has release ordering. `is_locked` is a relaxed load that orders
//!   nothing. [`full_barrier_after_lock`] makes an acquisition a full barrier.
//! * A signal handler must not acquire a lock that the interrupted code holds or is acquiring: it would
//!   deadlock. Block the signal around such a lock. All other locks may be used. Handlers nest up to four deep
//!   with full fairness, deeper without it, never without exclusion.
//! * Any number of threads: the first 65 535 that are alive at once queue, further ones compete.
//! * After `fork` the child may lock at once. A lock that another thread of the parent held stays locked, as
//!   with `pthread_mutex_t`. A lock that another thread *waited* for keeps that waiter: the child must make the
//!   lock anew before it acquires it. Other locks are not harmed.
//! * A spinlock is for short critical sections. A thread that ends, or is killed, while it waits in a queue
//!   blocks every waiter behind it.

//!
//! # What may go to another thread
//! A mutex may be shared between threads if its value is `Send`, a reader-writer lock if its value is `Send`
//! and `Sync`. The guard of a mutex may be sent to another thread if the value is `Send` (but for
//! [`simple`]'s); for the guard of a reader-writer lock `Send` and `Sync` suffice. A guard may be shared if the
//! value is `Send` and `Sync`:
//!
//! ```
//! use qspin::{Condvar, MappedMutexGuard, Mutex, MutexGuard, Once, RwLock, RwLockReadGuard, RwLockWriteGuard};
//! use std::cell::Cell;
//!
//! fn sent<T: Send>() {}
//! fn shared<T: Sync>() {}
//! shared::<Mutex<Cell<u8>>>();
//! sent::<Mutex<Cell<u8>>>();
//! shared::<RwLock<u8>>();
//! sent::<MutexGuard<u8>>();
//! shared::<MutexGuard<u8>>();
//! sent::<MappedMutexGuard<u8>>();
//! sent::<RwLockReadGuard<u8>>();
//! shared::<RwLockWriteGuard<u8>>();
//! shared::<Condvar>();
//! shared::<Once>();
//! ```
//!
//! The compiler refuses the rest:
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<qspin::Mutex<std::rc::Rc<u8>>>(); // another thread could clone the Rc
//! ```
//!
//! ```compile_fail,E0277
//! fn sent<T: Send>() {}
//! sent::<qspin::Mutex<std::rc::Rc<u8>>>();
//! ```
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<qspin::RwLock<std::rc::Rc<u8>>>();
//! ```
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<qspin::MutexGuard<std::cell::Cell<u8>>>(); // two threads would access the cell
//! ```
//!
//! ```compile_fail,E0277
//! fn sent<T: Send>() {}
//! sent::<qspin::RwLockWriteGuard<std::rc::Rc<u8>>>();
//! ```
//!
//! ```compile_fail,E0597
//! let guard = { let lock = qspin::Mutex::new(0); lock.lock() }; // the guard would outlive the lock
//! drop(guard);
//! ```
//!
//! The word of [`simple`] names the owning thread, so its guard must stay on that thread. Guards of the other
//! locks may be sent:
//!
//! ```
//! let lock = qspin::native::Mutex::new(0);
//! let guard = lock.lock();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || drop(guard));
//! });
//! assert!(!lock.is_locked());
//! ```
//!
//! ```compile_fail,E0277
//! let lock = qspin::simple::Mutex::new(0);
//! let guard = lock.lock();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || drop(guard));
//! });
//! ```

#![warn(missing_docs)]

pub mod condvar;
pub mod events;
mod excerpt;
#[doc(hidden)]
pub mod locks_file;
pub mod once;
pub mod platform;
#[cfg(feature = "profile")]
pub mod profile;
pub mod select;
pub mod tuning;
mod typed;

qspin_core::for_each_lock!(typed::modules);

pub use condvar::Condvar;
pub use lock_api::WaitTimeoutResult;
#[cfg(feature = "arc_lock")]
pub use mutex::ArcMutexGuard;
#[doc = include_str!("mutex.md")]
pub use mutex::Mutex;
pub use mutex::{MappedMutexGuard, MutexGuard, RawMutex};
pub use once::{Once, OnceState};
#[doc(hidden)]
pub use platform::system::inside;
#[doc = include_str!("rwlock.md")]
pub use rwlock::RwLock;
#[cfg(feature = "arc_lock")]
pub use rwlock::{ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};

/// Makes the preceding acquisition a full barrier: the kernel's `smp_mb__after_spinlock`.
///
/// An acquisition orders only what comes after it. Call this right after locking if stores from *before* the
/// acquisition must be visible before loads inside the critical section.
#[inline]
pub fn full_barrier_after_lock() {
    qspin_core::lock::full_barrier_after_acquire(&platform::Threads::<events::NoEvents>::NEW);
}
