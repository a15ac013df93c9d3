//! What reader-writer locks offer beyond [`lock_api::RawRwLock`]: times, and reads that may be upgraded.

use core::time::Duration;

use lock_api::{
    RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use super::Raw;
use crate::lock::{ConstLock, Guard, RawFairSharedLock, RawTimedSharedLock, RawUpgradableLock};
use crate::platform::{StaticPlatform, TimedPlatform, deadline_after};
use crate::sleepers::NEVER;

// SAFETY: as `RawRwLock`; a waiter that gives up has acquired nothing.
unsafe impl<L: RawTimedSharedLock<P> + ConstLock, P: TimedPlatform> RawRwLockTimed for Raw<L, P> {
    type Duration = Duration;
    type Instant = P::Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<L::Guard> {
        let deadline = deadline_after(&P::PLATFORM, timeout);
        let wait = || self.lock.acquire_shared_until(&P::PLATFORM, deadline);
        self.take(true, || self.lock.try_acquire_shared(&P::PLATFORM), wait)
    }

    fn try_lock_shared_until(&self, timeout: P::Instant) -> Option<L::Guard> {
        self.try_lock_shared_for(P::until(timeout))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<L::Guard> {
        let deadline = deadline_after(&P::PLATFORM, timeout);
        let wait = || self.lock.acquire_exclusive_until(&P::PLATFORM, deadline);
        self.take(false, || self.lock.try_acquire_exclusive(&P::PLATFORM), wait)
    }

    fn try_lock_exclusive_until(&self, timeout: P::Instant) -> Option<L::Guard> {
        self.try_lock_exclusive_for(P::until(timeout))
    }
}

// SAFETY: as `RawRwLock`.
unsafe impl<L: RawFairSharedLock<P> + ConstLock, P: StaticPlatform> RawRwLockFair for Raw<L, P> {
    unsafe fn unlock_shared_fair(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock for reading.
        self.leave(|| unsafe { self.lock.release_shared_fair(&P::PLATFORM) });
    }

    unsafe fn unlock_exclusive_fair(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock for writing.
        self.leave(|| unsafe { self.lock.release_exclusive_fair(&P::PLATFORM) });
    }
}

// SAFETY: as above.
unsafe impl<L, P: StaticPlatform> RawRwLockUpgradeFair for Raw<L, P>
where
    L: RawFairSharedLock<P> + RawUpgradableLock<P> + ConstLock,
{
    unsafe fn unlock_upgradable_fair(&self, _: L::Guard) {
        // SAFETY: the caller reads upgradably.
        self.leave(|| unsafe { self.lock.release_upgradable_fair(&P::PLATFORM) });
    }
}

// SAFETY: a writer that becomes a reader lets no other writer in between.
unsafe impl<L: RawUpgradableLock<P> + ConstLock, P: StaticPlatform> RawRwLockDowngrade
    for Raw<L, P>
{
    unsafe fn downgrade(&self, _: L::Guard) -> L::Guard {
        // SAFETY: the caller holds the lock for writing.
        unsafe { self.lock.downgrade(&P::PLATFORM) };
        L::Guard::marker()
    }
}

// SAFETY: `RawUpgradableLock`'s promise.
unsafe impl<L: RawUpgradableLock<P> + ConstLock, P: StaticPlatform> RawRwLockUpgrade for Raw<L, P> {
    type UpgradableGuard = L::Guard;

    fn lock_upgradable(&self) -> L::Guard {
        // Without a deadline the waiter does not give up.
        let wait = || self.lock.acquire_upgradable_until(&P::PLATFORM, NEVER);
        self.take(true, || self.lock.try_acquire_upgradable(&P::PLATFORM), wait);
        L::Guard::marker()
    }

    fn try_lock_upgradable(&self) -> Option<L::Guard> {
        self.taken(true, self.lock.try_acquire_upgradable(&P::PLATFORM))
    }

    unsafe fn unlock_upgradable(&self, _: L::Guard) {
        // SAFETY: the caller reads upgradably.
        self.leave(|| unsafe { self.lock.release_upgradable(&P::PLATFORM) });
    }

    unsafe fn upgrade(&self, _: L::Guard) -> L::Guard {
        // SAFETY: the caller reads upgradably. Without a deadline the upgrade does not give up.
        unsafe { self.lock.upgrade_until(&P::PLATFORM, NEVER) };
        L::Guard::marker()
    }

    unsafe fn try_upgrade(&self, guard: L::Guard) -> Result<L::Guard, L::Guard> {
        // SAFETY: the caller reads upgradably.
        if unsafe { self.lock.try_upgrade(&P::PLATFORM) } {
            Ok(L::Guard::marker())
        } else {
            Err(guard)
        }
    }
}

// SAFETY: as above; no other writer acquires in between.
unsafe impl<L: RawUpgradableLock<P> + ConstLock, P: StaticPlatform> RawRwLockUpgradeDowngrade
    for Raw<L, P>
{
    unsafe fn downgrade_upgradable(&self, _: L::Guard) -> L::Guard {
        // SAFETY: the caller reads upgradably.
        unsafe { self.lock.downgrade_upgradable(&P::PLATFORM) };
        L::Guard::marker()
    }

    unsafe fn downgrade_to_upgradable(&self, _: L::Guard) -> L::Guard {
        // SAFETY: the caller holds the lock for writing.
        unsafe { self.lock.downgrade_to_upgradable(&P::PLATFORM) };
        L::Guard::marker()
    }
}

// SAFETY: as above; a reader that gives up goes on reading upgradably.
unsafe impl<L, P> RawRwLockUpgradeTimed for Raw<L, P>
where
    L: RawUpgradableLock<P> + RawTimedSharedLock<P> + ConstLock,
    P: TimedPlatform,
{
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<L::Guard> {
        let deadline = deadline_after(&P::PLATFORM, timeout);
        let wait = || self.lock.acquire_upgradable_until(&P::PLATFORM, deadline);
        self.take(true, || self.lock.try_acquire_upgradable(&P::PLATFORM), wait)
    }

    fn try_lock_upgradable_until(&self, timeout: P::Instant) -> Option<L::Guard> {
        self.try_lock_upgradable_for(P::until(timeout))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: L::Guard,
        timeout: Duration,
    ) -> Result<L::Guard, L::Guard> {
        let deadline = deadline_after(&P::PLATFORM, timeout);
        // SAFETY: the caller reads upgradably.
        let upgraded = unsafe { self.lock.upgrade_until(&P::PLATFORM, deadline) };
        if upgraded { Ok(L::Guard::marker()) } else { Err(guard) }
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: L::Guard,
        timeout: P::Instant,
    ) -> Result<L::Guard, L::Guard> {
        // SAFETY: the caller reads upgradably.
        unsafe { self.try_upgrade_for(guard, P::until(timeout)) }
    }
}
