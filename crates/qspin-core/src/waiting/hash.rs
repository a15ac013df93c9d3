//! Which node is the halted head of this lock? A hash from lock to node.
//!
//! # Problem
//! An owner that finds [`SLEEPER`](crate::word::SLEEPER) in the word must learn whom to kick,
//! and the word has no room for it: its tail names the last waiter, not the first.
//!
//! # Source
//! Linux, `kernel/locking/qspinlock_paravirt.h` (`pv_hash`, `pv_unhash`), document 000.
//!
//! # Invariants
//! * **H1** A lock has at most one entry: its head's. It is inserted by that head, or by the
//!   owner that hands the head over; it belongs to whoever inserted it until SLEEPER is set, and
//!   to the owner of the lock from then on. Only to whom it belongs removes it.
//! * **H2** Occupancy: an entry stands for a node that is the head of a queue, and a node is in
//!   one queue at a time. There are at least as many entries as nodes, so it is never full. A
//!   search may still pass by an entry that is freed behind it while another is taken ahead of
//!   it; then the head spins on, or is kicked at once, as on a platform without a table.
//! * **H3** An owner that has seen SLEEPER finds the entry: it was inserted before the bit was
//!   set, and nobody else removes it (H1). So the search for it ends, too.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::events::{self, Event};
use crate::node::NodeId;
use crate::platform::{AtomicAddress, AtomicWord, ConstWord, Platform};
use crate::site::Site;

/// One lock whose head is halted.
#[derive(Debug)]
#[repr(C)]
struct Entry<W, A> {
    /// Address of the lock; 0 in a free entry.
    lock: A,
    /// Number of the head's node.
    node: W,
}

/// A cache line of entries: most searches touch one.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Bucket<W, A> {
    entries: [Entry<W, A>; ENTRIES],
}

const ENTRIES: usize = 4;

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

/// The entries in the order in which a search for `lock` visits them, each once.
fn search<P: Platform>(p: &P, lock: usize) -> impl Iterator<Item = &Entry<P::Word, P::Address>> {
    let buckets = p.hash();
    let mask = buckets.len().wrapping_sub(1);
    // Fibonacci hashing; the upper half of the product is the well-mixed one.
    let first = ((lock as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    (0..buckets.len()).flat_map(move |step| &buckets[first.wrapping_add(step) & mask].entries)
}

/// Records that `node` is the halted head of the lock at `word`. Returns whether it could (H2).
pub(super) fn insert<P: Platform>(p: &P, word: &P::Word, node: NodeId) -> bool {
    let lock = p.address(word);
    let mut hops = 0;
    for entry in search(p, lock) {
        hops += 1;
        // ORDERING: Acquire pairs with the Release of `remove`: its look at `node` is over.
        let order = p.ordering(Site::HashClaim, Acquire);
        if entry.lock.load(Relaxed) == 0 && entry.lock.compare_exchange(0, lock, order).is_ok() {
            // Published with SLEEPER (`HaltSleeper`), or read by this very CPU.
            entry.node.store(node.number().into(), Relaxed);
            events::count(p, Event::HashCount);
            events::add(p, Event::HashHopsCount, hops);
            return true;
        }
    }
    false
}

/// Removes the entry of the lock at `word`, which this CPU owns, and returns its head.
pub(super) fn remove<P: Platform>(p: &P, word: &P::Word) -> Option<NodeId> {
    let lock = p.address(word);
    // Relaxed: the entry was inserted before SLEEPER was set, and whoever looks has acquired that.
    let entry = search(p, lock).find(|entry| entry.lock.load(Relaxed) == lock)?;
    let node = NodeId::from_number(entry.node.load(Relaxed) as u16);
    // ORDERING: Release pairs with the Acquire of `insert`.
    entry.lock.store(0, p.ordering(Site::HashFree, Release));
    node
}
