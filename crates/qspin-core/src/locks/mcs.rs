//! The MCS lock, with the interface of every other lock: the owner keeps no node.
//!
//! # Problem
//! The classic MCS lock is fair and spins locally, but its owner must carry a queue node from acquisition to
//! release; a lock that is released by a guard, in any order, has none to carry.
//!
//! # Source
//! Mellor-Crummey and Scott, TOCS 1991; the variant without a node for the owner is K42's (Auslander, Edelsohn,
//! Krieger, Rosenburg, Wisniewski), in Scott, "Shared-Memory Synchronization", 2013, section 4.3. The lock itself
//! is the owner's node: it holds the successor's link.
//!
//! # States
//! ```text
//!  tail = 0           free
//!  tail = HELD        held, no waiters
//!  tail = a node      held, that node is the last waiter; the first one is linked behind
//!                     `successor`, the others behind their predecessors
//! ```
//!
//! # Invariants
//! * **MCS-1** One context holds the lock; it becomes the owner by a swap or compare-exchange from 0, or by the
//!   hand-over of the last one.
//! * **MCS-2** A new owner that queued leaves the queue before it returns: it moves the link to its successor
//!   into the lock, or replaces itself as the tail by `HELD`. So no other context refers to its node any more
//!   (NODE-2).
//! * **MCS-3** `successor` is 0 whenever the lock is free, and when `HELD` becomes the tail.
//!
//! # Limits
//! Eight bytes. Collapses when threads outnumber CPUs. A context without a node competes by test-and-set, and
//! acquires the lock only when the queue is empty.
//!
//! A *release* may have to wait for its successor to link. If that successor is interrupted in between, the
//! release waits for the interrupt, and with it for every lock that the interrupt waits for: a thread that holds
//! such a lock must release it before it releases this one. The other locks of the family release in any order.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawLock};
use crate::nesting::with_node;
use crate::node::{NodeId, TURN};
use crate::platform::{AtomicWord, Budget, ConstWord, Platform, Until};
use crate::site::Site;

const FREE: u32 = 0;
/// The tail while the owner is alone; smaller than every node's number.
const HELD: u32 = 1;

const _: () = assert!(HELD < NodeId::FIRST);

/// An MCS lock. See the [module](self) documentation.
#[derive(Debug)]
#[repr(C)]
pub struct McsLock<W> {
    tail: W,
    successor: W,
}

impl<W: AtomicWord> McsLock<W> {
    #[inline]
    fn take<P: Platform<Word = W>>(&self, p: &P) -> bool {
        // ORDERING: Acquire pairs with the Release of `McsRelease`.
        let order = p.ordering(Site::McsTry, Acquire);
        self.tail.compare_exchange(FREE, HELD, order).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow<P: Platform<Word = W>>(&self, p: &P) {
        if with_node(p, |me| self.queue(p, me)).is_none() {
            loop {
                p.wait_until(&self.tail, Until::is(FREE), Budget::Unbounded, Relaxed);
                if self.take(p) {
                    return;
                }
            }
        }
    }

    #[inline]
    fn queue<P: Platform<Word = W>>(&self, p: &P, me: NodeId) {
        let node = p.node(me);
        let mine = me.number();
        node.begin();

        // ORDERING: Release publishes this node's life to its successor. Acquire pairs with it,
        // with `McsRelease` if the lock was free, and with `McsLeave` if it was held (MCS-3).
        let prev = self.tail.swap(mine, p.ordering(Site::McsTail, AcqRel));
        if prev != FREE {
            let link = match NodeId::from_number(prev) {
                Some(prev) if prev.number() != HELD => &p.node(prev).next,
                _ => &self.successor,
            };
            // ORDERING: Release pairs with the Acquire of `McsNext` or `McsSuccessor`.
            link.store(mine, p.ordering(Site::McsLink, Release));
            // ORDERING: Acquire pairs with the Release of `McsHandOver`.
            let order = p.ordering(Site::McsTurn, Acquire);
            p.wait_until(&node.locked, Until::is(TURN), Budget::Unbounded, order);
        }

        // MCS-2: this context holds the lock and leaves the queue.
        // ORDERING: Acquire pairs with the Release of `McsLink`.
        let order = p.ordering(Site::McsNext, Acquire);
        let mut next = node.next.load(order);
        if next == 0 {
            // MCS-3, before the tail says so. Relaxed: only the owner reads it, or the thread that finds `HELD`
            // below stores over it.
            self.successor.store(0, Relaxed);
            // ORDERING: Release pairs with the Acquire of `McsTail`: the store above happens before the link of
            // the waiter that finds `HELD`.
            let leave = p.ordering(Site::McsLeave, Release);
            if self.tail.compare_exchange(mine, HELD, leave).is_ok() {
                return;
            }
            next = p.wait_until(&node.next, Until::is_not(0), Budget::Unbounded, order);
        }
        self.successor.store(next, Relaxed);
    }
}

// SAFETY: MCS-1 gives exclusion; `McsHandOver` and `McsRelease` release what `McsTurn`, `McsTry`
// and `McsTail` acquire.
unsafe impl<P: Platform> RawLock<P> for McsLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { tail: P::Word::new(FREE), successor: P::Word::new(0) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        if !self.take(p) {
            self.acquire_slow(p);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        self.tail.load(Relaxed) == FREE && self.take(p)
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        // ORDERING: Acquire pairs with the Release of `McsLink`: the successor's node has begun
        // its life.
        let order = p.ordering(Site::McsSuccessor, Acquire);
        let mut next = self.successor.load(order);
        if next == 0 {
            // ORDERING: Release pairs with the Acquire of `McsTry`, or of `McsTail` if it finds
            // the lock free.
            let free = p.ordering(Site::McsRelease, Release);
            if self.tail.compare_exchange(HELD, FREE, free).is_ok() {
                return;
            }
            next = p.wait_until(&self.successor, Until::is_not(0), Budget::Unbounded, order);
        }
        if let Some(next) = NodeId::from_number(next) {
            // ORDERING: Release pairs with the Acquire of `McsTurn`.
            p.node(next).locked.store(TURN, p.ordering(Site::McsHandOver, Release));
        }
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.tail.load(Relaxed) != FREE
    }
}

impl<W: ConstWord> ConstLock for McsLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { tail: W::ZERO, successor: W::ZERO };
    type Guard = lock_api::GuardSend;
}
