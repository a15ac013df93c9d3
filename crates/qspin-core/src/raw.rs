//! The locks as `lock_api` knows them, on a platform that is known at compile time.

use core::fmt;
use core::marker::PhantomData;

use crate::lock::{ConstLock, Guard, RawLock, RawSharedLock};
use crate::platform::StaticPlatform;

/// Lock `L` on platform `P`: [`lock_api::RawMutex`] for a lock that excludes,
/// [`lock_api::RawRwLock`] for one that admits readers.
///
/// As big as the lock alone. Here, and only here, the platform learns when a lock is held
/// ([`Platform::holder_enter`](crate::platform::Platform::holder_enter)): after it is acquired,
/// since a waiter is not to be spared from preemption, and until after it is released, since the
/// platform may then take the CPU away.
#[repr(transparent)]
pub struct Raw<L, P> {
    lock: L,
    platform: PhantomData<fn() -> P>,
}

impl<L: ConstLock, P> Raw<L, P> {
    /// A free lock.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { lock: L::UNLOCKED, platform: PhantomData }
    }
}

impl<L: ConstLock, P: StaticPlatform> Raw<L, P> {
    /// The lock was acquired: the platform is told, and the guard made.
    #[inline]
    fn held() -> L::Guard {
        P::PLATFORM.holder_enter();
        L::Guard::marker()
    }

    /// The lock was released; it may be gone by now.
    #[inline]
    fn left() {
        P::PLATFORM.holder_exit();
    }
}

impl<L: ConstLock, P> Default for Raw<L, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L, P> fmt::Debug for Raw<L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word is in motion; a debug print of a lock must not read more into it.
        f.debug_struct("Raw").finish_non_exhaustive()
    }
}

// SAFETY: `RawLock` promises exclusion, acquire on acquisition and release on release. Moving
// or dropping a lock that is held touches nothing: a lock is a plain word or two, and waiters
// borrow it. Nothing here unwinds.
unsafe impl<L: RawLock<P> + ConstLock, P: StaticPlatform> lock_api::RawMutex for Raw<L, P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new();
    type Guard = L::Guard;

    #[inline]
    fn lock(&self) -> L::Guard {
        self.lock.acquire(&P::PLATFORM);
        Self::held()
    }

    #[inline]
    fn try_lock(&self) -> Option<L::Guard> {
        self.lock.try_acquire(&P::PLATFORM).then(Self::held)
    }

    #[inline]
    unsafe fn unlock(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock; the guard is the proof of one acquisition.
        unsafe { self.lock.release(&P::PLATFORM) };
        Self::left();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.lock.is_locked(&P::PLATFORM)
    }
}

// SAFETY: as above, with `RawSharedLock`'s promise.
unsafe impl<L: RawSharedLock<P> + ConstLock, P: StaticPlatform> lock_api::RawRwLock for Raw<L, P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new();
    type SharedGuard = L::Guard;
    type ExclusiveGuard = L::Guard;

    #[inline]
    fn lock_shared(&self) -> L::Guard {
        self.lock.acquire_shared(&P::PLATFORM);
        Self::held()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<L::Guard> {
        self.lock.try_acquire_shared(&P::PLATFORM).then(Self::held)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock for reading.
        unsafe { self.lock.release_shared(&P::PLATFORM) };
        Self::left();
    }

    #[inline]
    fn lock_exclusive(&self) -> L::Guard {
        self.lock.acquire_exclusive(&P::PLATFORM);
        Self::held()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<L::Guard> {
        self.lock.try_acquire_exclusive(&P::PLATFORM).then(Self::held)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock for writing.
        unsafe { self.lock.release_exclusive(&P::PLATFORM) };
        Self::left();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.lock.is_locked(&P::PLATFORM)
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.lock.is_locked_exclusive(&P::PLATFORM)
    }
}
