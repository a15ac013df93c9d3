//! The raw locks as types of their own, so that a compiler's message says `qspin::native::RawMutex`, and not which
//! queue, order, admission and platform that is. Each forwards to [`qspin_core::raw::Raw`], and is as big.

/// The type, which is free when it is made, and says nothing of its state.
macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident [$($events:ident)?] $platform:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name$(<$events>)?(pub(crate) qspin_core::raw::Raw<Lock<AtomicU32>, $platform>);

        impl$(<$events>)? $name$(<$events>)? {
            /// A free lock.
            #[inline]
            #[must_use]
            pub const fn new() -> Self {
                Self(qspin_core::raw::Raw::new())
            }
        }

        impl$(<$events>)? Default for $name$(<$events>)? {
            fn default() -> Self {
                Self::new()
            }
        }

        impl$(<$events>)? core::fmt::Debug for $name$(<$events>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                // The word changes all the time; a debug print of a lock must not read more into it.
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use newtype;

/// An exclusive lock: `Name [] platform` or `NameWith [E] platform`, of the lock that is `Lock` where it stands.
macro_rules! raw_mutex {
    ($(#[$doc:meta])* $name:ident [$($events:ident)?] $platform:ty) => {
        crate::typed::newtype! { $(#[$doc])* $name [$($events)?] $platform }

        // SAFETY: every operation is that of `Raw`, which keeps the promise.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawMutex for $name$(<$events>)? {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = Self::new();
            type Guard =
                <qspin_core::raw::Raw<Lock<AtomicU32>, $platform> as lock_api::RawMutex>::Guard;

            #[inline]
            fn lock(&self) -> Self::Guard {
                lock_api::RawMutex::lock(&self.0)
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard> {
                lock_api::RawMutex::try_lock(&self.0)
            }

            #[inline]
            unsafe fn unlock(&self, guard: Self::Guard) {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawMutex::unlock(&self.0, guard) };
            }

            #[inline]
            fn is_locked(&self) -> bool {
                lock_api::RawMutex::is_locked(&self.0)
            }
        }
    };
}
pub(crate) use raw_mutex;

/// What a mutex whose waiters sleep offers besides: timeouts, and a release that hands the lock over.
macro_rules! raw_mutex_timed {
    ($name:ident [$($events:ident)?]) => {
        // SAFETY: as `RawMutex`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawMutexTimed for $name$(<$events>)? {
            type Duration = core::time::Duration;
            type Instant = crate::platform::system::clock::Instant;

            #[inline]
            fn try_lock_for(&self, timeout: Self::Duration) -> Option<Self::Guard> {
                lock_api::RawMutexTimed::try_lock_for(&self.0, timeout)
            }

            #[inline]
            fn try_lock_until(&self, timeout: Self::Instant) -> Option<Self::Guard> {
                lock_api::RawMutexTimed::try_lock_until(&self.0, timeout)
            }
        }

        // SAFETY: as `RawMutex`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawMutexFair for $name$(<$events>)? {
            #[inline]
            unsafe fn unlock_fair(&self, guard: Self::Guard) {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawMutexFair::unlock_fair(&self.0, guard) };
            }
        }
    };
}
pub(crate) use raw_mutex_timed;

/// As [`raw_mutex`], of a lock that readers share.
macro_rules! raw_rwlock {
    ($(#[$doc:meta])* $name:ident [$($events:ident)?] $platform:ty) => {
        crate::typed::newtype! { $(#[$doc])* $name [$($events)?] $platform }

        // SAFETY: every operation is that of `Raw`, which keeps the promise.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLock for $name$(<$events>)? {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = Self::new();
            type SharedGuard =
                <qspin_core::raw::Raw<Lock<AtomicU32>, $platform> as lock_api::RawRwLock>::SharedGuard;
            type ExclusiveGuard =
                <qspin_core::raw::Raw<Lock<AtomicU32>, $platform> as lock_api::RawRwLock>::ExclusiveGuard;

            #[inline]
            fn lock_shared(&self) -> Self::SharedGuard {
                lock_api::RawRwLock::lock_shared(&self.0)
            }

            #[inline]
            fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
                lock_api::RawRwLock::try_lock_shared(&self.0)
            }

            #[inline]
            unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawRwLock::unlock_shared(&self.0, guard) };
            }

            #[inline]
            fn lock_exclusive(&self) -> Self::ExclusiveGuard {
                lock_api::RawRwLock::lock_exclusive(&self.0)
            }

            #[inline]
            fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
                lock_api::RawRwLock::try_lock_exclusive(&self.0)
            }

            #[inline]
            unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawRwLock::unlock_exclusive(&self.0, guard) };
            }

            #[inline]
            fn is_locked(&self) -> bool {
                lock_api::RawRwLock::is_locked(&self.0)
            }

            #[inline]
            fn is_locked_exclusive(&self) -> bool {
                lock_api::RawRwLock::is_locked_exclusive(&self.0)
            }
        }
    };
}
pub(crate) use raw_rwlock;

/// Forwards functions that are `unsafe` by the caller's promise, each to that of the same name.
macro_rules! forward_unsafe {
    ($trait:ident: $($function:ident($guard:ty) $(-> $result:ty)?;)*) => {
        $(
            #[inline]
            unsafe fn $function(&self, guard: $guard) $(-> $result)? {
                // SAFETY: the caller's promise.
                unsafe { lock_api::$trait::$function(&self.0, guard) }
            }
        )*
    };
}
pub(crate) use forward_unsafe;

/// Forwards functions that are safe, each to that of the same name.
macro_rules! forward {
    ($trait:ident: $($function:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {
        $(
            #[inline]
            fn $function(&self $(, $argument: $type)?) -> $result {
                lock_api::$trait::$function(&self.0 $(, $argument)?)
            }
        )*
    };
}
pub(crate) use forward;

/// What a reader-writer lock whose waiters sleep offers besides: timeouts, releases that hand the lock over, and
/// readers that may become the writer.
macro_rules! raw_rwlock_timed {
    ($name:ident [$($events:ident)?]) => {
        // SAFETY: as `RawRwLock`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLockTimed for $name$(<$events>)? {
            type Duration = core::time::Duration;
            type Instant = crate::platform::system::clock::Instant;
            crate::typed::forward! { RawRwLockTimed:
                try_lock_shared_for(timeout: Self::Duration) -> Option<Self::SharedGuard>;
                try_lock_shared_until(timeout: Self::Instant) -> Option<Self::SharedGuard>;
                try_lock_exclusive_for(timeout: Self::Duration) -> Option<Self::ExclusiveGuard>;
                try_lock_exclusive_until(timeout: Self::Instant) -> Option<Self::ExclusiveGuard>;
            }
        }

        // SAFETY: as `RawRwLock`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLockFair for $name$(<$events>)? {
            crate::typed::forward_unsafe! { RawRwLockFair:
                unlock_shared_fair(Self::SharedGuard);
                unlock_exclusive_fair(Self::ExclusiveGuard);
            }
        }

        // SAFETY: as `RawRwLock`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLockDowngrade for $name$(<$events>)? {
            crate::typed::forward_unsafe! { RawRwLockDowngrade:
                downgrade(Self::ExclusiveGuard) -> Self::SharedGuard;
            }
        }

        // SAFETY: as `RawRwLock`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLockUpgrade for $name$(<$events>)? {
            type UpgradableGuard = Self::SharedGuard;
            crate::typed::forward! { RawRwLockUpgrade:
                lock_upgradable() -> Self::UpgradableGuard;
                try_lock_upgradable() -> Option<Self::UpgradableGuard>;
            }
            crate::typed::forward_unsafe! { RawRwLockUpgrade:
                unlock_upgradable(Self::UpgradableGuard);
                upgrade(Self::UpgradableGuard) -> Self::ExclusiveGuard;
                try_upgrade(Self::UpgradableGuard) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard>;
            }
        }

        // SAFETY: as `RawRwLock`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLockUpgradeFair for $name$(<$events>)? {
            crate::typed::forward_unsafe! { RawRwLockUpgradeFair:
                unlock_upgradable_fair(Self::UpgradableGuard);
            }
        }

        // SAFETY: as `RawRwLock`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLockUpgradeDowngrade for $name$(<$events>)? {
            crate::typed::forward_unsafe! { RawRwLockUpgradeDowngrade:
                downgrade_upgradable(Self::UpgradableGuard) -> Self::SharedGuard;
                downgrade_to_upgradable(Self::ExclusiveGuard) -> Self::UpgradableGuard;
            }
        }

        // SAFETY: as `RawRwLock`.
        unsafe impl$(<$events: crate::platform::StaticEvents>)? lock_api::RawRwLockUpgradeTimed for $name$(<$events>)? {
            crate::typed::forward! { RawRwLockUpgradeTimed:
                try_lock_upgradable_for(timeout: Self::Duration) -> Option<Self::UpgradableGuard>;
                try_lock_upgradable_until(timeout: Self::Instant) -> Option<Self::UpgradableGuard>;
            }

            #[inline]
            unsafe fn try_upgrade_for(
                &self,
                guard: Self::UpgradableGuard,
                timeout: Self::Duration,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawRwLockUpgradeTimed::try_upgrade_for(&self.0, guard, timeout) }
            }

            #[inline]
            unsafe fn try_upgrade_until(
                &self,
                guard: Self::UpgradableGuard,
                timeout: Self::Instant,
            ) -> Result<Self::ExclusiveGuard, Self::UpgradableGuard> {
                // SAFETY: the caller's promise.
                unsafe { lock_api::RawRwLockUpgradeTimed::try_upgrade_until(&self.0, guard, timeout) }
            }
        }
    };
}
pub(crate) use raw_rwlock_timed;
