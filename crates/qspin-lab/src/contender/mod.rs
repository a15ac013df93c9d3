//! What is measured: every lock behind one small trait, so that all run through the same loop.
//!
//! The trait is static on purpose: each lock gets a measuring loop of its own, compiled for it,
//! and no call through a table stands between the loop and the lock.

pub mod baseline;
#[cfg(feature = "peers-c")]
pub mod c_peers;
pub mod catalog;
pub mod pthread;
pub mod rust_peers;

use lock_api::{RawMutex, RawRwLock};

/// A lock that excludes.
pub trait Contender: Send + Sync + Sized + 'static {
    /// Whether a signal handler may acquire such a lock, whatever the code that it interrupts does
    /// with *other* locks of the kind. Most locks that sleep promise nothing of the sort.
    const IN_HANDLERS: bool = false;

    /// Whether [`try_lock`](Contender::try_lock) can succeed.
    const TRIES: bool = false;

    /// What the holder keeps between lock and unlock.
    type Held<'a>;

    /// An unlocked lock, which may be moved until it is [settled](Contender::settle).
    fn new() -> Self;

    /// Prepares the lock at its final address; called once, before the first acquisition.
    fn settle(&mut self) {}

    /// Acquires the lock.
    fn lock(&self) -> Self::Held<'_>;

    /// Acquires the lock if that needs no waiting. A lock without such an operation never does.
    fn try_lock(&self) -> Option<Self::Held<'_>> {
        None
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// `held` is what this lock's last `lock` or `try_lock` in this thread returned.
    unsafe fn unlock<'a>(&'a self, held: Self::Held<'a>);
}

/// A reader-writer lock: readers share it, a writer excludes all others.
pub trait RwContender: Sync + Sized + 'static {
    /// What a reader keeps between lock and unlock.
    type Reading<'a>;
    /// What a writer keeps between lock and unlock.
    type Writing<'a>;

    /// An unlocked lock, which may be moved until it is first used.
    fn new() -> Self;

    /// Acquires the lock for reading.
    fn read(&self) -> Self::Reading<'_>;

    /// Releases the lock after reading.
    ///
    /// # Safety
    ///
    /// `held` is what this lock's last `read` in this thread returned.
    unsafe fn read_unlock<'a>(&'a self, held: Self::Reading<'a>);

    /// Acquires the lock for writing.
    fn write(&self) -> Self::Writing<'_>;

    /// Releases the lock after writing.
    ///
    /// # Safety
    ///
    /// `held` is what this lock's last `write` in this thread returned.
    unsafe fn write_unlock<'a>(&'a self, held: Self::Writing<'a>);
}

/// Any lock with the interface of `lock_api` 0.5, which is what ours have; only ours are measured
/// through it, and ours may be locked by a signal handler.
pub struct Raw<R>(R);

impl<R: RawMutex + Send + Sync + 'static> Contender for Raw<R> {
    const IN_HANDLERS: bool = true;
    const TRIES: bool = true;
    type Held<'a> = R::Guard;

    fn new() -> Self {
        Self(R::INIT)
    }

    #[inline(always)]
    fn lock(&self) -> Self::Held<'_> {
        self.0.lock()
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<Self::Held<'_>> {
        self.0.try_lock()
    }

    #[inline(always)]
    unsafe fn unlock<'a>(&'a self, held: Self::Held<'a>) {
        // SAFETY: the caller holds the lock by `held`, as this method demands.
        unsafe { self.0.unlock(held) }
    }
}

/// Any reader-writer lock with the interface of `lock_api` 0.5.
pub struct RawRw<R>(R);

impl<R: RawRwLock + Sync + 'static> RwContender for RawRw<R> {
    type Reading<'a> = R::SharedGuard;
    type Writing<'a> = R::ExclusiveGuard;

    fn new() -> Self {
        Self(R::INIT)
    }

    #[inline(always)]
    fn read(&self) -> Self::Reading<'_> {
        self.0.lock_shared()
    }

    #[inline(always)]
    unsafe fn read_unlock<'a>(&'a self, held: Self::Reading<'a>) {
        // SAFETY: the caller reads by `held`, as this method demands.
        unsafe { self.0.unlock_shared(held) }
    }

    #[inline(always)]
    fn write(&self) -> Self::Writing<'_> {
        self.0.lock_exclusive()
    }

    #[inline(always)]
    unsafe fn write_unlock<'a>(&'a self, held: Self::Writing<'a>) {
        // SAFETY: the caller writes by `held`, as this method demands.
        unsafe { self.0.unlock_exclusive(held) }
    }
}
