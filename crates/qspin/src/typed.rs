//! The interface of every lock in the register: a module with its typed and its raw forms.

mod newtypes;

pub(crate) use newtypes::{
    forward, forward_unsafe, newtype, raw_mutex, raw_mutex_timed, raw_rwlock, raw_rwlock_timed,
};

/// The modules of all locks, for `qspin_core::for_each_lock!`.
macro_rules! modules {
    (()
        sleeping { $($a:tt)* }
        spinning { $($b:tt)* }
        shared_sleeping { $($c:tt)* }
        shared_spinning { $($d:tt)* }
    ) => {
        crate::typed::mutexes! { timed $($a)* }
        crate::typed::mutexes! { plain $($b)* }
        crate::typed::rwlocks! { timed $($c)* }
        crate::typed::rwlocks! { plain $($d)* }
    };
}
pub(crate) use modules;

/// A module for each exclusive lock. Those that are `timed` have timeouts, too.
macro_rules! mutexes {
    ($kind:ident $($id:ident: $module:ident = $lock:path, $about:expr;)*) => {
        $(crate::typed::typed_mutex! { #[doc = $about] $kind $module: $lock })*
        const _: () = {
            $(assert!(size_of::<$module::RawMutex>() == qspin_core::locks::Id::$id.lock().bytes());)*
        };
    };
}
pub(crate) use mutexes;

/// A module for each reader-writer lock. Those that are `timed` have timeouts and upgrades, too.
macro_rules! rwlocks {
    ($kind:ident $($id:ident: $module:ident = $lock:path, $about:expr;)*) => {
        $(crate::typed::typed_rwlock! { #[doc = $about] $kind $module: $lock })*
        const _: () = {
            $(assert!(size_of::<$module::RawRwLock>() == qspin_core::locks::Id::$id.lock().bytes());)*
        };
    };
}
pub(crate) use rwlocks;

/// A module for an exclusive lock.
macro_rules! typed_mutex {
    ($(#[$doc:meta])* $kind:ident $module:ident: $lock:path) => {
        $(#[$doc])*
        pub mod $module {
            use core::sync::atomic::AtomicU32;

            use crate::events::{Counted, NoEvents};
            use crate::platform::Threads;
            use crate::platform::holder::Hinted;

            use $lock as Lock;

            crate::typed::raw_mutex! {
                /// The lock itself, a [`lock_api::RawMutex`].
                RawMutex [] Threads<NoEvents>
            }
            /// A value behind the lock.
            pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
            /// Proof that the lock is held; releases it when dropped.
            pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
            /// A guard to a part of the value.
            pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;
            /// Proof that the lock is held; keeps the lock alive.
            #[cfg(feature = "arc_lock")]
            pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<RawMutex, T>;

            crate::typed::raw_mutex! {
                /// As [`RawMutex`], counting its events in `E`: [`Counted`], or a group that
                /// [`counter_group!`](crate::counter_group) has made.
                RawMutexWith [E] Threads<E>
            }
            /// As [`Mutex`], counting its events in `E`.
            pub type MutexWith<E, T> = lock_api::Mutex<RawMutexWith<E>, T>;
            /// As [`RawMutex`], counting its events in [`crate::events`].
            pub type CountedRawMutex = RawMutexWith<Counted>;
            /// As [`Mutex`], counting its events in [`crate::events`].
            pub type CountedMutex<T> = MutexWith<Counted, T>;

            crate::typed::raw_mutex! {
                /// As [`RawMutex`]; its owner asks not to be preempted. See [`crate::platform::holder`].
                HintedRawMutex [] Threads<NoEvents, Hinted>
            }
            /// As [`Mutex`]; its owner asks not to be preempted.
            pub type HintedMutex<T> = lock_api::Mutex<HintedRawMutex, T>;

            crate::typed::typed_mutex! { @$kind }
        }
    };
    (@plain) => {};
    (@timed) => {
        crate::typed::raw_mutex_timed! { RawMutex [] }
        crate::typed::raw_mutex_timed! { RawMutexWith [E] }
        crate::typed::raw_mutex_timed! { HintedRawMutex [] }
    };
}
pub(crate) use typed_mutex;

/// A module for a reader-writer lock.
macro_rules! typed_rwlock {
    ($(#[$doc:meta])* $kind:ident $module:ident: $lock:path) => {
        $(#[$doc])*
        pub mod $module {
            use core::sync::atomic::AtomicU32;

            use crate::events::{Counted, NoEvents};
            use crate::platform::Threads;
            use crate::platform::holder::Hinted;
            use $lock as Lock;

            crate::typed::raw_rwlock! {
                /// The lock itself, a [`lock_api::RawRwLock`].
                RawRwLock [] Threads<NoEvents>
            }
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

            crate::typed::raw_rwlock! {
                /// As [`RawRwLock`], counting its events in `E`: [`Counted`], or a group that
                /// [`counter_group!`](crate::counter_group) has made.
                RawRwLockWith [E] Threads<E>
            }
            /// As [`RwLock`], counting its events in `E`.
            pub type RwLockWith<E, T> = lock_api::RwLock<RawRwLockWith<E>, T>;
            /// As [`RawRwLock`], counting its events in [`crate::events`].
            pub type CountedRawRwLock = RawRwLockWith<Counted>;
            /// As [`RwLock`], counting its events in [`crate::events`].
            pub type CountedRwLock<T> = RwLockWith<Counted, T>;

            crate::typed::raw_rwlock! {
                /// As [`RawRwLock`]; its owners ask not to be preempted. See [`crate::platform::holder`].
                HintedRawRwLock [] Threads<NoEvents, Hinted>
            }
            /// As [`RwLock`]; its owners ask not to be preempted.
            pub type HintedRwLock<T> = lock_api::RwLock<HintedRawRwLock, T>;

            crate::typed::typed_rwlock! { @$kind }
        }
    };
    (@plain) => {};
    (@timed) => {
        crate::typed::raw_rwlock_timed! { RawRwLock [] }
        crate::typed::raw_rwlock_timed! { RawRwLockWith [E] }
        crate::typed::raw_rwlock_timed! { HintedRawRwLock [] }
    };
}
pub(crate) use typed_rwlock;
