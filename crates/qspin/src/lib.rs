//! Queued spinlocks for programs: threads as CPUs.
//!
//! Linux's family of spinlocks, with the interface of [`lock_api`]: a module a lock, each with
//! a `Mutex<T>` and the raw lock under it.
//!
//! | module | the lock | bytes | fair | waits |
//! |---|---|---|---|---|
//! | [`mutex`] | **the default mutex**, [`Mutex`] | 4 | nobody is forgotten | looks, yields, then sleeps |
//! | [`native`] | queued spinlock | 4 | first come, first served | spins on its own cache line |
//! | [`mcs`] | MCS lock | 8 | first come, first served | spins on its own cache line |
//! | [`paravirt`] | queued spinlock, culled | 4 | nobody is forgotten | spins, then halts |
//! | [`paravirt_stealing`] | queued spinlock that newcomers steal | 4 | past a sleeping head | spins, then halts |
//! | [`cna`] | NUMA-aware queued spinlock | 4 | near waiters first, within bounds | spins on its own cache line |
//! | [`cna_paravirt`] | the same, culled | 4 | nobody is forgotten | spins, then halts |
//! | [`paravirt_queued`] | queued spinlock | 4 | first come, first served | spins, then halts |
//! | [`paravirt_ticket`] | ticket lock | 4 | first come, first served | spins on the lock, then halts |
//! | [`ticket`] | ticket lock | 4 | first come, first served | spins on the lock |
//! | [`backoff`] | test-and-set, exponential backoff | 4 | no | pauses, spins on the lock |
//! | [`tas`] | test-and-set | 4 | no | spins on the lock |
//! | [`yielding`] | test-and-set that yields the CPU | 4 | no | spins, then yields |
//! | [`simple`] | test-and-set with its owner in the word | 4 | no | spins, then yields |
//! | [`select`] | one of them, chosen when the program starts | 4 | as chosen | as chosen |
//! | [`rwlock`] | **the default reader-writer lock**, [`RwLock`] | 8 | nobody is forgotten | looks, yields, then sleeps |
//! | [`queued_rw`] | reader-writer lock | 8 | readers and writers alike | spins |
//!
//! [`Mutex`] is for loads that nobody knows beforehand. The others are for those who do: with at most as many
//! threads as CPUs [`native`], with more [`paravirt`], on a machine whose cores are far apart [`cna`].
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
//! * It is `const`-constructible, does not allocate, does not panic, does not poison: a guard
//!   that is dropped by a panic releases the lock, and the data is as the panic left it.
//! * Acquisition has acquire ordering, release has release ordering; `is_locked` is a relaxed
//!   load that orders nothing. [`full_barrier_after_lock`] makes an acquisition a full barrier.
//! * A signal handler may lock a lock that the code it interrupts neither holds nor is just
//!   acquiring: it would wait for what it interrupts. Block the signal around such a lock.
//!   Handlers nest up to four deep with full fairness, deeper without it, never without exclusion.
//! * Any number of threads: the first 16 383 that are alive at once queue, others compete.
//! * After `fork` the child may lock at once. A lock that another thread of the parent held
//!   stays locked, as with `pthread_mutex_t`; and one that another thread *waited* for stays
//!   waited for: the child must make it anew before it locks it. Other locks are not harmed.
//! * A spinlock is for short critical sections. A thread that ends, or is killed, while it
//!   waits in a queue stops everybody behind it.

//!
//! # What may go to another thread
//! A lock may be shared if its value may be sent; a reader-writer lock, if its value may be shared, too. A
//! guard may be sent if the value may (but for [`simple`]'s), and be shared if the value may be shared:
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
//! What must not is refused by the compiler:
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<qspin::Mutex<std::rc::Rc<u8>>>(); // another thread could take a clone out
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
//! shared::<qspin::MutexGuard<std::cell::Cell<u8>>>(); // two threads would be at the cell
//! ```
//!
//! ```compile_fail,E0277
//! fn sent<T: Send>() {}
//! sent::<qspin::RwLockWriteGuard<std::rc::Rc<u8>>>();
//! ```
//!
//! ```compile_fail,E0597
//! let guard = { let lock = qspin::Mutex::new(0); lock.lock() }; // it would outlive the lock
//! drop(guard);
//! ```

#![warn(missing_docs)]

pub mod condvar;
pub mod events;
mod excerpt;
#[macro_use]
mod typed;
pub mod once;
pub mod platform;
pub mod select;
pub mod tuning;

typed_mutex! {
    /// The default mutex, [`crate::Mutex`]: for loads that nobody knows beforehand.
    ///
    /// Its release is a plain store; waiters look for some microseconds, yield, and sleep. See
    /// [`qspin_core::mutex`]. With times:
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// let lock = qspin::Mutex::new(0);
    /// let guard = lock.lock();
    /// assert!(lock.try_lock_for(Duration::ZERO).is_none());
    /// assert!(lock.try_lock_until(Instant::now() + Duration::from_millis(1)).is_none());
    /// drop(guard);
    /// assert_eq!(*lock.try_lock_for(Duration::MAX).unwrap(), 0);
    /// ```
    mutex: qspin_core::mutex::DefaultLock
}

typed_rwlock! {
    /// The default reader-writer lock, [`crate::RwLock`].
    ///
    /// Readers share it; a writer closes it to further ones, so neither starves. See
    /// [`qspin_core::rwlock_default`]. A thread that reads already and reads again may wait for a writer that
    /// waits for it: do not.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use qspin::RwLock;
    /// use qspin::rwlock::{RwLockUpgradableReadGuard, RwLockWriteGuard};
    ///
    /// static NAMES: RwLock<Vec<String>> = RwLock::new(Vec::new());
    ///
    /// NAMES.write().push("one".to_owned());
    /// let (one, other) = (NAMES.read(), NAMES.read());
    /// assert_eq!(one.len() + other.len(), 2);
    /// assert!(NAMES.try_write_for(Duration::from_millis(1)).is_none());
    /// drop((one, other));
    ///
    /// // One may read with the right to write later, beside other readers.
    /// let looks = NAMES.upgradable_read();
    /// assert!(NAMES.try_read().is_some() && NAMES.try_upgradable_read().is_none());
    /// let mut writes = RwLockUpgradableReadGuard::upgrade(looks);
    /// writes.push("two".to_owned());
    /// assert_eq!(RwLockWriteGuard::downgrade(writes).len(), 2);
    /// ```
    ///
    /// What is not to be shared is not shared by readers:
    ///
    /// ```compile_fail,E0277
    /// fn shared<T: Sync>(_: T) {}
    /// shared(qspin::RwLock::new(std::cell::Cell::new(0)));
    /// ```
    rwlock: qspin_core::rwlock_default::DefaultRwLock
}

pub use condvar::Condvar;
pub use lock_api::WaitTimeoutResult;
#[cfg(feature = "arc_lock")]
pub use mutex::ArcMutexGuard;
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, RawLock as RawMutex};
pub use once::Once;
#[cfg(feature = "arc_lock")]
pub use rwlock::{ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};

typed_mutex! {
    /// The queued spinlock of Linux: fair, four bytes, each waiter on a cache line of its own.
    ///
    /// The best of the spinlocks while every thread runs; collapses when threads outnumber
    /// CPUs. See [`qspin_core::queued`].
    native: qspin_core::queued::NativeLock
}

typed_mutex! {
    /// The paravirt queued spinlock with culling: waiters halt, one or two of them stay awake.
    ///
    /// For programs whose threads may outnumber their CPUs. See [`qspin_core::waiting::Halt`] and
    /// [`qspin_core::admission::Culled`].
    paravirt: qspin_core::queued::ParavirtLock
}

typed_mutex! {
    /// The paravirt queued spinlock that newcomers may steal: Linux's of today.
    /// See [`qspin_core::admission::Stealing`].
    paravirt_stealing: qspin_core::queued::ParavirtStealingLock
}

typed_mutex! {
    /// The paravirt queued spinlock, strictly first come, first served: document 000.
    /// See [`qspin_core::waiting::Halt`].
    paravirt_queued: qspin_core::queued::ParavirtQueuedLock
}

typed_mutex! {
    /// The compact NUMA-aware lock: waiters near the holder first, within bounds.
    ///
    /// For machines whose cores are far apart, while every thread runs.
    /// See [`qspin_core::order::Numa`] and [`platform::topology`].
    cna: qspin_core::queued::CnaLock
}

typed_mutex! {
    /// The compact NUMA-aware lock whose waiters halt, one or two of them awake.
    ///
    /// For machines whose cores are far apart, with threads that do not always run.
    cna_paravirt: qspin_core::queued::CnaParavirtLock
}

typed_mutex! {
    /// Test-and-set with bounded binary exponential backoff. See [`qspin_core::backoff`].
    backoff: qspin_core::backoff::BackoffLock
}

typed_mutex! {
    /// Plain test-and-set, with one pause after a miss. See [`qspin_core::backoff`].
    tas: qspin_core::backoff::TasLock
}

typed_mutex! {
    /// Test-and-set that yields the CPU after a bounded spin. See [`qspin_core::yielding`].
    yielding: qspin_core::yielding::YieldLock
}

typed_mutex! {
    /// The ticket lock: strictly fair. See [`qspin_core::ticket`].
    ticket: qspin_core::ticket::TicketLock
}

typed_mutex! {
    /// The paravirt ticket lock: strictly fair, and its waiters halt.
    /// See [`qspin_core::paravirt_ticket`].
    paravirt_ticket: qspin_core::paravirt_ticket::ParavirtTicketLock
}

typed_mutex! {
    /// The MCS lock: strictly fair, eight bytes. See [`qspin_core::mcs`].
    mcs: qspin_core::mcs::McsLock
}

typed_mutex! {
    /// The simple spinlock: the owner in the word. See [`qspin_core::simple`].
    ///
    /// A guard stays with the thread that locked, since the word names that thread:
    ///
    /// ```compile_fail,E0277
    /// let lock = qspin::simple::Mutex::new(0);
    /// let guard = lock.lock();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// ```
    ///
    /// Guards of the other locks may be sent:
    ///
    /// ```
    /// let lock = qspin::native::Mutex::new(0);
    /// let guard = lock.lock();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || drop(guard));
    /// });
    /// assert!(!lock.is_locked());
    /// ```
    simple: qspin_core::simple::SimpleLock
}

typed_rwlock! {
    /// The queued reader-writer lock: readers and writers alike wait their turn.
    /// See [`qspin_core::rwlock`].
    queued_rw: qspin_core::rwlock::QueuedRwLock
}

const _: () = {
    assert!(size_of::<Mutex<()>>() == 4);
    assert!(size_of::<RwLock<()>>() == 8);
    assert!(size_of::<Condvar>() <= 16);
    assert!(size_of::<Once>() == 4);
    assert!(size_of::<native::RawLock>() == 4);
    assert!(size_of::<backoff::RawLock>() == 4);
    assert!(size_of::<tas::RawLock>() == 4);
    assert!(size_of::<yielding::RawLock>() == 4);
    assert!(size_of::<ticket::RawLock>() == 4);
    assert!(size_of::<paravirt_ticket::RawLock>() == 4);
    assert!(size_of::<simple::RawLock>() == 4);
    assert!(size_of::<select::RawLock>() == 4);
    assert!(size_of::<mcs::RawLock>() == 8);
    assert!(size_of::<queued_rw::RawRwLock>() <= 8);
};

/// Makes the acquisition just before it a full barrier: `smp_mb__after_spinlock` of the kernel.
///
/// An acquisition orders what comes after it. Call this right after locking where stores from
/// *before* the acquisition must be visible before loads inside the critical section.
#[inline]
pub fn full_barrier_after_lock() {
    qspin_core::lock::full_barrier_after_acquire(&platform::Threads::<events::NoEvents>::NEW);
}
