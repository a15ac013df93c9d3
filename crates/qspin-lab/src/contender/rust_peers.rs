//! What a Rust program would use instead: the standard library's locks and well-known crates'.
//!
//! Each is used as its users use it: through its own mutex and guard, around nothing (the data
//! that the locks protect lie in lines of their own, the same for all).

use std::sync::PoisonError;

use super::{Contender, RwContender};

/// A contender out of a mutex whose guard releases it when dropped.
macro_rules! guarded_mutex {
    ($(#[$doc:meta])* $name:ident, $mutex:ty, $($guard:ident)::+,
     |$lock:ident| $locked:expr, $tried:expr) => {
        $(#[$doc])*
        pub struct $name($mutex);

        impl Contender for $name {
            const TRIES: bool = true;
            type Held<'a> = $($guard)::+<'a, ()>;

            fn new() -> Self {
                Self(<$mutex>::new(()))
            }

            #[inline(always)]
            fn lock(&self) -> Self::Held<'_> {
                let $lock = &self.0;
                $locked
            }

            #[inline(always)]
            fn try_lock(&self) -> Option<Self::Held<'_>> {
                let $lock = &self.0;
                $tried
            }

            #[inline(always)]
            unsafe fn unlock<'a>(&'a self, held: Self::Held<'a>) {
                drop(held);
            }
        }
    };
}

guarded_mutex!(
    /// `std::sync::Mutex`: a futex behind 100 spins.
    Std,
    std::sync::Mutex<()>,
    std::sync::MutexGuard,
    |lock| lock.lock().unwrap_or_else(PoisonError::into_inner),
    lock.try_lock().ok()
);

guarded_mutex!(
    /// `parking_lot::Mutex`: one byte, waiters sleep in a table beside it.
    ParkingLot,
    parking_lot::Mutex<()>,
    parking_lot::MutexGuard,
    |lock| lock.lock(),
    lock.try_lock()
);

guarded_mutex!(
    /// `parking_lot::Mutex` of 0.12: every half millisecond, about, a release hands the lock to a waiter.
    ParkingLot012,
    parking_lot_0_12::Mutex<()>,
    parking_lot_0_12::MutexGuard,
    |lock| lock.lock(),
    lock.try_lock()
);

guarded_mutex!(
    /// The crate `spin`: test-and-test-and-set.
    Spin,
    spin::mutex::SpinMutex<()>,
    spin::mutex::SpinMutexGuard,
    |lock| lock.lock(),
    lock.try_lock()
);

guarded_mutex!(
    /// The crate `spinning_top`: test-and-test-and-set.
    SpinningTop,
    spinning_top::Spinlock<()>,
    spinning_top::guard::SpinlockGuard,
    |lock| lock.lock(),
    lock.try_lock()
);

guarded_mutex!(
    /// The crate `mcslock`, its barging lock: newcomers compete with the head of an MCS queue.
    McsLock,
    mcslock::barging::spins::Mutex<()>,
    mcslock::barging::spins::MutexGuard,
    |lock| lock.lock(),
    lock.try_lock()
);

guarded_mutex!(
    /// The crate `usync`: a word whose queue lies on the waiters' stacks.
    Usync,
    usync::Mutex<()>,
    usync::MutexGuard,
    |lock| lock.lock(),
    lock.try_lock()
);

/// `std::sync::RwLock`.
pub struct StdRw(std::sync::RwLock<()>);

impl RwContender for StdRw {
    type Reading<'a> = std::sync::RwLockReadGuard<'a, ()>;
    type Writing<'a> = std::sync::RwLockWriteGuard<'a, ()>;

    fn new() -> Self {
        Self(std::sync::RwLock::new(()))
    }

    #[inline(always)]
    fn read(&self) -> Self::Reading<'_> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    unsafe fn read_unlock<'a>(&'a self, held: Self::Reading<'a>) {
        drop(held);
    }

    #[inline(always)]
    fn write(&self) -> Self::Writing<'_> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    unsafe fn write_unlock<'a>(&'a self, held: Self::Writing<'a>) {
        drop(held);
    }
}

/// A contender out of a reader-writer lock whose guards release it when dropped.
macro_rules! guarded_rwlock {
    ($(#[$doc:meta])* $name:ident, $krate:ident) => {
        $(#[$doc])*
        pub struct $name($krate::RwLock<()>);

        impl RwContender for $name {
            type Reading<'a> = $krate::RwLockReadGuard<'a, ()>;
            type Writing<'a> = $krate::RwLockWriteGuard<'a, ()>;

            fn new() -> Self {
                Self($krate::RwLock::new(()))
            }

            #[inline(always)]
            fn read(&self) -> Self::Reading<'_> {
                self.0.read()
            }

            #[inline(always)]
            unsafe fn read_unlock<'a>(&'a self, held: Self::Reading<'a>) {
                drop(held);
            }

            #[inline(always)]
            fn write(&self) -> Self::Writing<'_> {
                self.0.write()
            }

            #[inline(always)]
            unsafe fn write_unlock<'a>(&'a self, held: Self::Writing<'a>) {
                drop(held);
            }
        }
    };
}

guarded_rwlock!(
    /// `parking_lot::RwLock`.
    ParkingLotRw,
    parking_lot
);

guarded_rwlock!(
    /// `parking_lot::RwLock` of 0.12.
    ParkingLot012Rw,
    parking_lot_0_12
);
