//! Locks that readers share, for workloads that know of one kind of owner.
//!
//! # Model
//! Every workload runs with every lock. A lock that readers share excludes by its writers' side ([`Writing`]), and a
//! workload that has readers finds their side beside it ([`Sharing`]). A lock that excludes has none: its readers
//! exclude each other.

use qspin_core::lock::{RawLock, RawSharedLock};

use crate::platform::SimPlatform;

/// The writers' side of `L`, as a lock that excludes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Writing<L>(L);

/// The readers' side of a lock.
pub(crate) struct Sharing<L> {
    pub(crate) acquire: fn(&L, &SimPlatform),
    /// The caller holds the lock for reading.
    pub(crate) release: unsafe fn(&L, &SimPlatform),
}

impl<L: RawSharedLock<SimPlatform>> Writing<L> {
    /// The readers' side.
    pub(crate) const SHARING: Sharing<Self> =
        Sharing { acquire: Self::acquire_shared, release: Self::release_shared };

    fn acquire_shared(&self, p: &SimPlatform) {
        self.0.acquire_shared(p);
    }

    /// # Safety
    /// As [`RawSharedLock::release_shared`].
    unsafe fn release_shared(&self, p: &SimPlatform) {
        // SAFETY: the caller's.
        unsafe { self.0.release_shared(p) };
    }
}

// SAFETY: the writers of a shared lock exclude each other (`RawSharedLock`).
unsafe impl<L: RawSharedLock<SimPlatform>> RawLock<SimPlatform> for Writing<L> {
    fn new() -> Self {
        Self(L::new())
    }
    fn acquire(&self, p: &SimPlatform) {
        self.0.acquire_exclusive(p);
    }
    fn try_acquire(&self, p: &SimPlatform) -> bool {
        self.0.try_acquire_exclusive(p)
    }
    unsafe fn release(&self, p: &SimPlatform) {
        // SAFETY: the caller's.
        unsafe { self.0.release_exclusive(p) };
    }
    fn is_locked(&self, p: &SimPlatform) -> bool {
        self.0.is_locked(p)
    }
}
