//! The queued spinlock: four bytes, fair, and each waiter spins on a line of its own.
//!
//! # Problem
//! A test-and-set lock starves threads and sends every waiter to the same cache line; a ticket
//! lock is fair but still sends them there; an MCS lock spins locally but is larger than a
//! word. The queued spinlock keeps the tail of an MCS queue in the word itself.
//!
//! # Source
//! Linux, `kernel/locking/qspinlock.c` (Peter Zijlstra, Waiman Long), brought to powerpc by
//! Nicholas Piggin's series (document 004); Mellor-Crummey and Scott, "Algorithms for scalable
//! synchronization on shared-memory multiprocessors", TOCS 1991.
//!
//! # States
//! [`crate::word`] has the diagram and its invariants, [`crate::node`] those of the nodes.
//!
//! # Limits
//! Strict first come, first served collapses when threads outnumber CPUs: the next in line is
//! then usually not running. A CPU queues at four nesting levels at once; deeper ones, and
//! contexts without a number, compete without a node: exclusive, but not fair.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::admission::{Admission, Culled, Queued, Stealing};
use crate::lock::{ConstLock, RawLock};
use crate::order::{Fifo, Numa, Order};
use crate::platform::{AtomicWord, ConstWord, Platform};
use crate::site::Site;
use crate::slowpath;
use crate::waiting::{Halt, Spin, Waiting};
use crate::word::LOCKED;

/// A queued spinlock over the three axes. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct QueuedLock<W, H = Spin, O = Fifo, A = Queued> {
    word: W,
    axes: PhantomData<(H, O, A)>,
}

/// The native queued spinlock: `Spin × Fifo × Queued`.
pub type NativeLock<W> = QueuedLock<W, Spin, Fifo, Queued>;

/// The paravirt queued spinlock with culling: `Halt × Fifo × Culled`.
pub type ParavirtLock<W> = QueuedLock<W, Halt, Fifo, Culled>;

/// The paravirt queued spinlock with stealing: `Halt × Fifo × Stealing`.
pub type ParavirtStealingLock<W> = QueuedLock<W, Halt, Fifo, Stealing>;

/// The strict paravirt queued spinlock: `Halt × Fifo × Queued`.
pub type ParavirtQueuedLock<W> = QueuedLock<W, Halt, Fifo, Queued>;

/// The compact NUMA-aware lock: `Spin × Numa × Queued`.
pub type CnaLock<W> = QueuedLock<W, Spin, Numa, Queued>;

/// The compact NUMA-aware lock whose waiters halt: `Halt × Numa × Culled`.
pub type CnaParavirtLock<W> = QueuedLock<W, Halt, Numa, Culled>;

impl<W: AtomicWord, H, O, A> QueuedLock<W, H, O, A> {
    /// Makes the lock free, whatever it was. For a child of `fork` with one thread, where neither the owner nor the
    /// waiters are.
    pub(crate) fn forget(&self) {
        self.word.store(0, Relaxed);
    }
}

// SAFETY: word invariants WORD-1 and WORD-4 give exclusion; the orderings named at `QueueTry`,
// `QueuePendingTake`, `QueueHeadTake` and `QueueNoNodeTake` pair with `QueueRelease`.
unsafe impl<P, H, O, A> RawLock<P> for QueuedLock<P::Word, H, O, A>
where
    P: Platform,
    H: Waiting,
    O: Order,
    A: Admission,
{
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(0), axes: PhantomData }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        // ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
        let order = p.ordering(Site::QueueTry, Acquire);
        if let Err(seen) = self.word.compare_exchange(0, LOCKED, order) {
            slowpath::acquire::<P, H, O, A>(p, &self.word, seen);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        // Load first: a failing compare-exchange would still take the line away from the owner.
        self.word.load(Relaxed) == 0
            && self.word.compare_exchange(0, LOCKED, p.ordering(Site::QueueTry, Acquire)).is_ok()
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        H::release::<P, A>(p, &self.word);
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }
}

impl<W: ConstWord, H, O, A> ConstLock for QueuedLock<W, H, O, A> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO, axes: PhantomData };
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests;
