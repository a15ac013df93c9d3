//! The entries of the table of halted heads: [`super::hash`] says how it is used.

use core::sync::atomic::Ordering::Relaxed;

use crate::atomic::{AtomicAddress, AtomicWord, ConstWord};

/// One lock whose head is halted.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Entry<W, A> {
    /// Address of the lock; 0 in a free entry.
    pub(super) lock: A,
    /// Number of the waiter's node; above it, in a ticket lock, the low bits of its ticket.
    pub(super) node: W,
}

/// A cache line of entries: most searches touch one.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Bucket<W, A> {
    pub(super) entries: [Entry<W, A>; ENTRIES],
}

pub(super) const ENTRIES: usize = 4;

impl<W, A> Bucket<W, A> {
    /// Entries in a bucket.
    pub const ENTRIES: usize = ENTRIES;
}

impl<W: AtomicWord, A: AtomicAddress> Bucket<W, A> {
    /// An empty bucket.
    #[must_use]
    pub fn new() -> Self {
        Self { entries: core::array::from_fn(|_| Entry { lock: A::new(0), node: W::new(0) }) }
    }

    /// Removes the waiters recorded here. For a platform on which all of them have vanished, as in the child of a
    /// `fork`.
    pub fn forget(&self) {
        for entry in self.entries.iter().filter(|entry| entry.lock.load(Relaxed) != 0) {
            entry.lock.store(0, Relaxed);
        }
    }
}

impl<W: AtomicWord, A: AtomicAddress> Default for Bucket<W, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: ConstWord> Bucket<W, core::sync::atomic::AtomicUsize> {
    /// An empty bucket: the template for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const EMPTY: Self = Self {
        entries: [const { Entry { lock: core::sync::atomic::AtomicUsize::new(0), node: W::ZERO } };
            ENTRIES],
    };
}
