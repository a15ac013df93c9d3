//! A word, as GenMC computes it.

use core::sync::atomic::{AtomicU32, Ordering};

use qspin_core::platform::{AtomicWord, ConstWord};

use crate::subject::LIVES;

/// An atomic of 32 bits. GenMC adds in more than these, so that a subtraction must not be the addition of its complement.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Word(pub(crate) AtomicU32);

impl AtomicWord for Word {
    #[inline(always)]
    fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }
    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }
    #[inline(always)]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }
    #[inline(always)]
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering) -> Result<u32, u32> {
        self.0.compare_exchange(current, new, success, Ordering::Relaxed)
    }
    #[inline(always)]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        if value.cast_signed() < 0 {
            self.0.fetch_sub(value.wrapping_neg(), order)
        } else {
            self.0.fetch_add(value, order)
        }
    }
    /// Not atomic, so that an access that is not ordered with it is a race: NODE-2.
    #[inline(always)]
    fn begin(&self, value: u32) {
        if LIVES {
            // SAFETY: a race here is what is to be found.
            unsafe { self.0.as_ptr().write_volatile(value) };
        } else {
            self.0.store(value, Ordering::Relaxed);
        }
    }
    #[inline(always)]
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_or(value, order)
    }
    #[inline(always)]
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_and(value, order)
    }
}

impl ConstWord for Word {
    const ZERO: Self = Self(AtomicU32::new(0));
}
