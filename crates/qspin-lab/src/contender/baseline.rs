//! The two ends of the scale: no lock at all, and the cheapest pair of instructions that locks.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Contender, RwContender};

/// No lock: what the measuring loop itself costs. One thread only, since it excludes no other.
pub struct Empty;

impl Contender for Empty {
    const IN_HANDLERS: bool = true;
    const TRIES: bool = true;
    type Held<'a> = ();

    fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn lock(&self) {}

    #[inline(always)]
    fn try_lock(&self) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): ()) {}
}

impl RwContender for Empty {
    type Reading<'a> = ();
    type Writing<'a> = ();

    fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn read(&self) {}

    #[inline(always)]
    unsafe fn read_unlock(&self, (): ()) {}

    #[inline(always)]
    fn write(&self) {}

    #[inline(always)]
    unsafe fn write_unlock(&self, (): ()) {}
}

/// A 32-bit compare-exchange and a 32-bit store: no lock can do with less.
pub struct Floor(AtomicU32);

impl Contender for Floor {
    const IN_HANDLERS: bool = true;
    const TRIES: bool = true;
    type Held<'a> = ();

    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline(always)]
    fn lock(&self) {
        // ORDERING: Acquire pairs with the Release of `unlock`.
        while self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            hint::spin_loop();
        }
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<()> {
        // ORDERING: as in `lock`.
        self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok().map(drop)
    }

    #[inline(always)]
    unsafe fn unlock(&self, (): ()) {
        // ORDERING: Release pairs with the Acquire of `lock`.
        self.0.store(0, Ordering::Release);
    }
}
