//! The interface of every lock in the register: a module with its typed and its raw forms.

/// The modules of all locks, for `qspin_core::for_each_lock!`.
macro_rules! modules {
    (()
        sleeping { $($a:tt)* }
        spinning { $($b:tt)* }
        shared_sleeping { $($c:tt)* }
        shared_spinning { $($d:tt)* }
    ) => {
        crate::typed::mutexes! { $($a)* $($b)* }
        crate::typed::rwlocks! { $($c)* $($d)* }
    };
}
pub(crate) use modules;

/// A module for each exclusive lock.
macro_rules! mutexes {
    ($($id:ident: $module:ident = $lock:path, $about:expr;)*) => {
        $(crate::typed::typed_mutex! { #[doc = $about] $module: $lock })*
        const _: () = {
            $(assert!(size_of::<$module::RawLock>() == qspin_core::locks::Id::$id.lock().bytes());)*
        };
    };
}
pub(crate) use mutexes;

/// A module for each reader-writer lock.
macro_rules! rwlocks {
    ($($id:ident: $module:ident = $lock:path, $about:expr;)*) => {
        $(crate::typed::typed_rwlock! { #[doc = $about] $module: $lock })*
        const _: () = {
            $(assert!(size_of::<$module::RawRwLock>() == qspin_core::locks::Id::$id.lock().bytes());)*
        };
    };
}
pub(crate) use rwlocks;

/// A module for an exclusive lock.
macro_rules! typed_mutex {
    ($(#[$doc:meta])* $module:ident: $lock:path) => {
        $(#[$doc])*
        pub mod $module {
            use core::sync::atomic::AtomicU32;

            use crate::events::{Counted, NoEvents};
            use crate::platform::Threads;
            use crate::platform::holder::Hinted;

            use $lock as Lock;

            /// The lock itself, a [`lock_api::RawMutex`].
            pub type RawLock = qspin_core::raw::Raw<Lock<AtomicU32>, Threads<NoEvents>>;
            /// A value behind the lock.
            pub type Mutex<T> = lock_api::Mutex<RawLock, T>;
            /// Proof that the lock is held; releases it when dropped.
            pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawLock, T>;
            /// A guard to a part of the value.
            pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawLock, T>;
            /// Proof that the lock is held; keeps the lock alive.
            #[cfg(feature = "arc_lock")]
            pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<RawLock, T>;

            /// As [`RawLock`], counting its events in `E`: [`Counted`], or a group that
            /// [`counter_group!`](crate::counter_group) has made.
            pub type RawLockWith<E> = qspin_core::raw::Raw<Lock<AtomicU32>, Threads<E>>;
            /// As [`Mutex`], counting its events in `E`.
            pub type MutexWith<E, T> = lock_api::Mutex<RawLockWith<E>, T>;
            /// As [`RawLock`], counting its events in [`crate::events`].
            pub type CountedRawLock = RawLockWith<Counted>;
            /// As [`Mutex`], counting its events in [`crate::events`].
            pub type CountedMutex<T> = MutexWith<Counted, T>;

            /// As [`RawLock`]; its holder asks not to be preempted. See
            /// [`crate::platform::holder`].
            pub type HintedRawLock = qspin_core::raw::Raw<Lock<AtomicU32>, Threads<NoEvents, Hinted>>;
            /// As [`Mutex`]; its holder asks not to be preempted.
            pub type HintedMutex<T> = lock_api::Mutex<HintedRawLock, T>;
        }
    };
}
pub(crate) use typed_mutex;

/// A module for a reader-writer lock.
macro_rules! typed_rwlock {
    ($(#[$doc:meta])* $module:ident: $lock:path) => {
        $(#[$doc])*
        pub mod $module {
            use core::sync::atomic::AtomicU32;

            use crate::events::{Counted, NoEvents};
            use crate::platform::Threads;
            use crate::platform::holder::Hinted;
            use $lock as Lock;

            /// The lock itself, a [`lock_api::RawRwLock`].
            pub type RawRwLock = qspin_core::raw::Raw<Lock<AtomicU32>, Threads<NoEvents>>;
            /// A value behind the lock.
            pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
            /// Proof that the lock is held for reading.
            pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
            /// Proof that the lock is held for writing.
            pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
            /// A guard to a part of the value, for reading.
            pub type MappedRwLockReadGuard<'a, T> =
                lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
            /// A guard to a part of the value, for writing.
            pub type MappedRwLockWriteGuard<'a, T> =
                lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
            /// Proof that the lock is held for reading, by a reader that may become the writer, where the lock
            /// supports that.
            pub type RwLockUpgradableReadGuard<'a, T> =
                lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
            /// Proof that the lock is held for reading; keeps the lock alive.
            #[cfg(feature = "arc_lock")]
            pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<RawRwLock, T>;
            /// Proof that the lock is held for writing; keeps the lock alive.
            #[cfg(feature = "arc_lock")]
            pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<RawRwLock, T>;
            /// Proof that the lock is held for reading, by a reader that may become the writer; keeps the lock
            /// alive.
            #[cfg(feature = "arc_lock")]
            pub type ArcRwLockUpgradableReadGuard<T> =
                lock_api::ArcRwLockUpgradableReadGuard<RawRwLock, T>;

            /// As [`RawRwLock`], counting its events in `E`: [`Counted`], or a group that
            /// [`counter_group!`](crate::counter_group) has made.
            pub type RawRwLockWith<E> = qspin_core::raw::Raw<Lock<AtomicU32>, Threads<E>>;
            /// As [`RwLock`], counting its events in `E`.
            pub type RwLockWith<E, T> = lock_api::RwLock<RawRwLockWith<E>, T>;
            /// As [`RawRwLock`], counting its events in [`crate::events`].
            pub type CountedRawRwLock = RawRwLockWith<Counted>;
            /// As [`RwLock`], counting its events in [`crate::events`].
            pub type CountedRwLock<T> = RwLockWith<Counted, T>;

            /// As [`RawRwLock`]; its holders ask not to be preempted. See
            /// [`crate::platform::holder`].
            pub type HintedRawRwLock =
                qspin_core::raw::Raw<Lock<AtomicU32>, Threads<NoEvents, Hinted>>;
            /// As [`RwLock`]; its holders ask not to be preempted.
            pub type HintedRwLock<T> = lock_api::RwLock<HintedRawRwLock, T>;
        }
    };
}
pub(crate) use typed_rwlock;
