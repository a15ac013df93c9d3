//! What a word is to a lock: the atomics that a platform brings, as traits.
//!
//! Separate from [`crate::platform`], since nodes, buckets and sleepers are made of words, and a platform of
//! them.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::processor;

/// A 32-bit atomic, as a platform has it.
///
/// A compare-exchange that fails orders nothing (the source of many a bug; see Deacon's remark in the review of
/// the paravirt series). Code that needs an ordering there writes a fence.
pub trait AtomicWord: Sized {
    /// A word with this value, not shared yet.
    fn new(value: u32) -> Self;
    /// Atomic load.
    fn load(&self, order: Ordering) -> u32;
    /// Atomic store.
    fn store(&self, value: u32, order: Ordering);
    /// Atomic exchange; returns the previous value.
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Replaces `current` by `new`; `success` orders a success, nothing orders a failure.
    ///
    /// # Errors
    /// The value found, where it was not `current`. Never fails spuriously.
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering) -> Result<u32, u32>;
    /// Wrapping addition; returns the previous value.
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    /// Bitwise or; returns the previous value.
    fn fetch_or(&self, value: u32, order: Ordering) -> u32;
    /// Bitwise and; returns the previous value.
    fn fetch_and(&self, value: u32, order: Ordering) -> u32;

    /// Reads a word of another CPU's node that may be in its next life already: a hint, not a fact. Relaxed, and
    /// exempt from what [`AtomicWord::begin`] claims.
    #[inline]
    fn peek(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    /// Reads a word for a counter's sake alone. Relaxed. Nothing that a lock does may depend on it: where time is
    /// simulated it takes none, moves no line and is no event, so that counting changes nothing of what is
    /// counted.
    #[inline]
    fn observe(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    /// Stores a value over one that this CPU has written by a read-modify-write, and that other CPUs have since
    /// changed only by read-modify-writes: such a store comes after all of them.
    ///
    /// Natively a store. A model checker in which two stores may come in either order, even here, makes it an
    /// exchange.
    #[inline]
    fn overwrite(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }

    /// Waits until the word may no longer be `seen`: a pause, or what else the processor has for a thread that
    /// waits for a line. It may return at any time, and orders nothing.
    #[inline]
    fn await_change(&self, seen: u32) {
        let _ = seen;
        processor::pause();
    }

    /// Begins a new life of a word that no other CPU may access at this moment.
    ///
    /// Natively a relaxed store. It states more than a store: every access of the word's last
    /// life happens before this one, and every access of the next life happens after. A model
    /// checker verifies exactly that, which is how a missing release on the way from a node's
    /// initialisation to its first foreign access is found.
    #[inline]
    fn begin(&self, value: u32) {
        self.store(value, Ordering::Relaxed);
    }
}

/// An atomic that holds the address of a lock, or 0.
pub trait AtomicAddress: Sized {
    /// An address word, not shared yet.
    fn new(address: usize) -> Self;
    /// Atomic load.
    fn load(&self, order: Ordering) -> usize;
    /// Atomic store.
    fn store(&self, address: usize, order: Ordering);
    /// Replaces `current` by `new`; `success` orders a success, nothing orders a failure.
    ///
    /// # Errors
    /// The address found, where it was not `current`. Never fails spuriously.
    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
    ) -> Result<usize, usize>;
}

impl AtomicAddress for AtomicUsize {
    #[inline]
    fn new(address: usize) -> Self {
        AtomicUsize::new(address)
    }
    #[inline]
    fn load(&self, order: Ordering) -> usize {
        self.load(order)
    }
    #[inline]
    fn store(&self, address: usize, order: Ordering) {
        self.store(address, order);
    }
    #[inline]
    fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
    ) -> Result<usize, usize> {
        self.compare_exchange(current, new, success, Ordering::Relaxed)
    }
}

/// A word that can stand in a `static`: natively, where constructors are `const`.
///
/// Kept apart from [`AtomicWord`], because a model checker's words are made at run time.
pub trait ConstWord: AtomicWord {
    /// A word that holds zero.
    // The constant is a template: every use makes a new word, and none is ever shared.
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self;
}

impl AtomicWord for AtomicU32 {
    #[inline]
    fn new(value: u32) -> Self {
        AtomicU32::new(value)
    }
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }
    #[inline]
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }
    #[inline]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }
    #[inline]
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering) -> Result<u32, u32> {
        // Acquire is used where a lock is acquired, and only there.
        #[cfg(target_arch = "powerpc64")]
        if matches!(success, Ordering::Acquire) {
            return processor::take(self, current, new);
        }
        self.compare_exchange(current, new, success, Ordering::Relaxed)
    }
    #[inline]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_add(value, order)
    }
    #[inline]
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_or(value, order)
    }
    #[inline]
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_and(value, order)
    }
    #[inline]
    fn await_change(&self, seen: u32) {
        processor::await_change(self, seen);
    }
}

impl ConstWord for AtomicU32 {
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self = AtomicU32::new(0);
}
