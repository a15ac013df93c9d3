//! What every lock of the family offers, whatever the platform.

use crate::platform::Platform;

/// A lock that excludes.
///
/// # Safety
///
/// Between a return of [`acquire`](RawLock::acquire) (or a successful
/// [`try_acquire`](RawLock::try_acquire)) and the matching [`release`](RawLock::release), no
/// other context's acquisition returns; and everything before a release happens before
/// everything after the next acquisition.
pub unsafe trait RawLock<P: Platform> {
    /// A free lock.
    fn new() -> Self
    where
        Self: Sized;

    /// Acquires the lock; waits as long as that takes. Acquire ordering.
    fn acquire(&self, p: &P);

    /// Acquires the lock if that takes no waiting. Acquire ordering on success, none on failure.
    fn try_acquire(&self, p: &P) -> bool;

    /// Releases the lock. Release ordering.
    ///
    /// # Safety
    /// This context holds the lock by an acquisition that has not been released.
    unsafe fn release(&self, p: &P);

    /// Whether the lock is held at this moment.
    ///
    /// A relaxed load: it orders nothing. A caller that must have its earlier stores visible before this load
    /// writes a full fence in between (document 004 removes that fence from inside, as arm64 did before).
    fn is_locked(&self, p: &P) -> bool;
}

/// A lock that excludes writers from each other and from readers, and admits many readers.
///
/// # Safety
///
/// As [`RawLock`], where the exclusive side excludes all and the shared side excludes the
/// exclusive one; a reader's release happens before the next writer's acquisition.
pub unsafe trait RawSharedLock<P: Platform> {
    /// A free lock.
    fn new() -> Self
    where
        Self: Sized;

    /// Acquires the lock for reading. Acquire ordering.
    fn acquire_shared(&self, p: &P);

    /// Acquires the lock for reading if that takes no waiting.
    fn try_acquire_shared(&self, p: &P) -> bool;

    /// Ends a reading acquisition. Release ordering.
    ///
    /// # Safety
    /// This context holds the lock for reading.
    unsafe fn release_shared(&self, p: &P);

    /// Acquires the lock for writing. Acquire ordering.
    fn acquire_exclusive(&self, p: &P);

    /// Acquires the lock for writing if that takes no waiting.
    fn try_acquire_exclusive(&self, p: &P) -> bool;

    /// Ends a writing acquisition. Release ordering.
    ///
    /// # Safety
    /// This context holds the lock for writing.
    unsafe fn release_exclusive(&self, p: &P);

    /// Whether the lock is held at this moment. Relaxed, as [`RawLock::is_locked`].
    fn is_locked(&self, p: &P) -> bool;

    /// Whether a writer holds the lock at this moment. Relaxed, as [`RawLock::is_locked`].
    fn is_locked_exclusive(&self, p: &P) -> bool;
}

/// A lock that excludes, and whose waiters may give up.
pub trait RawTimedLock<P: Platform>: RawLock<P> {
    /// Acquires the lock, or gives up when [`Platform::now_ns`] reaches `deadline`. A deadline that has passed
    /// allows one attempt. Returns whether the lock was acquired.
    fn acquire_until(&self, p: &P, deadline: u64) -> bool;

    /// As [`RawLock::release`], by a thread that holds another lock as well, for which this one is only the queue: it does
    /// not yield to the waiters. Release ordering.
    ///
    /// # Safety
    /// As [`RawLock::release`].
    unsafe fn release_inside(&self, p: &P) {
        // SAFETY: the caller holds the lock.
        unsafe { self.release(p) };
    }

    /// How many waiters sleep: a guess, 0 where the lock does not know. Relaxed.
    #[inline]
    fn sleepers(&self, p: &P) -> u32 {
        let _ = p;
        0
    }
}

/// A lock that excludes, and that can be handed off to a waiter.
pub trait RawFairLock<P: Platform>: RawLock<P> {
    /// Releases the lock. If the lock finds a waiter, no newcomer acquires it before. Release ordering.
    ///
    /// # Safety
    /// As [`RawLock::release`].
    unsafe fn release_fair(&self, p: &P);
}

/// A lock that readers share, and whose waiters may give up.
pub trait RawTimedSharedLock<P: Platform>: RawSharedLock<P> {
    /// As [`RawTimedLock::acquire_until`], for reading.
    fn acquire_shared_until(&self, p: &P, deadline: u64) -> bool;

    /// As [`RawTimedLock::acquire_until`], for writing.
    fn acquire_exclusive_until(&self, p: &P, deadline: u64) -> bool;
}

/// A lock that readers share, and that can be handed off to a waiter.
pub trait RawFairSharedLock<P: Platform>: RawSharedLock<P> {
    /// Ends a reading acquisition. If the lock is free then, and knows of a waiter, no newcomer acquires it
    /// before.
    ///
    /// # Safety
    /// As [`RawSharedLock::release_shared`].
    unsafe fn release_shared_fair(&self, p: &P);

    /// The same for a writing acquisition.
    ///
    /// # Safety
    /// As [`RawSharedLock::release_exclusive`].
    unsafe fn release_exclusive_fair(&self, p: &P);

    /// The same for an upgradable acquisition.
    ///
    /// # Safety
    /// As [`RawUpgradableLock::release_upgradable`].
    unsafe fn release_upgradable_fair(&self, p: &P)
    where
        Self: RawUpgradableLock<P>;
}

/// A lock that readers share, and one of them may become the writer.
///
/// # Safety
///
/// As [`RawSharedLock`]. At most one context reads *upgradably*; it shares the lock with other readers. While it
/// becomes the writer, and while a writer becomes a reader, no other writer holds the lock in between.
pub unsafe trait RawUpgradableLock<P: Platform>: RawSharedLock<P> {
    /// Acquires the lock for reading upgradably, as [`RawTimedLock::acquire_until`].
    fn acquire_upgradable_until(&self, p: &P, deadline: u64) -> bool;

    /// Acquires the lock for reading upgradably if that takes no waiting.
    fn try_acquire_upgradable(&self, p: &P) -> bool;

    /// Ends an upgradable acquisition. Release ordering.
    ///
    /// # Safety
    /// This context reads upgradably.
    unsafe fn release_upgradable(&self, p: &P);

    /// Becomes the writer, or gives up at `deadline` and goes on reading upgradably.
    ///
    /// # Safety
    /// This context reads upgradably.
    unsafe fn upgrade_until(&self, p: &P, deadline: u64) -> bool;

    /// Becomes the writer if that takes no waiting.
    ///
    /// # Safety
    /// This context reads upgradably.
    unsafe fn try_upgrade(&self, p: &P) -> bool;

    /// From upgradable to simple reading.
    ///
    /// # Safety
    /// This context reads upgradably.
    unsafe fn downgrade_upgradable(&self, p: &P);

    /// From writing to reading.
    ///
    /// # Safety
    /// This context holds the lock for writing.
    unsafe fn downgrade(&self, p: &P);

    /// From writing to upgradable reading.
    ///
    /// # Safety
    /// This context holds the lock for writing.
    unsafe fn downgrade_to_upgradable(&self, p: &P);
}

/// A lock that can stand in a `static`.
pub trait ConstLock {
    /// A free lock.
    // The constant is a template: every use makes a new lock.
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self;

    /// Whether a guard may be sent to another thread, which then releases the lock:
    /// [`lock_api::GuardSend`], or [`lock_api::GuardNoSend`] where the lock knows its owner.
    type Guard: Guard;
}

/// The two markers of `lock_api`, as one trait that constructs them.
pub trait Guard {
    /// The marker.
    fn marker() -> Self;
}

impl Guard for lock_api::GuardSend {
    #[inline]
    fn marker() -> Self {
        Self::new()
    }
}

impl Guard for lock_api::GuardNoSend {
    #[inline]
    fn marker() -> Self {
        Self::new()
    }
}

/// Makes an acquisition a full barrier: `smp_mb__after_spinlock` of the kernel.
///
/// An acquisition alone orders only what comes after it. Code that needs its stores from before the acquisition
/// visible before its loads inside the critical section (a wake-up that checks a task's state, for instance)
/// calls this right after acquiring.
#[inline]
pub fn full_barrier_after_acquire<P: Platform>(p: &P) {
    // ORDERING: SeqCst pairs with the caller's own full fence between its store and its load on the
    // other side; no access of a lock pairs with it.
    p.fence(core::sync::atomic::Ordering::SeqCst);
}
