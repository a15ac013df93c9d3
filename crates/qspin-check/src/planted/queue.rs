//! A small MCS lock for contexts with a node, right but for one flaw.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use qspin_core::lock::RawLock;
use qspin_core::node::{Node, NodeId, TURN};
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};

/// None: the lock is right, and the checkers must say so.
pub const NO_FLAW: u8 = 0;
/// The holder that sees no successor yet does not wait for it to link: the hand-over is lost.
pub const SKIPS_LINK: u8 = 1;
/// An interrupt queues with the node of the level that it interrupts.
pub const REUSES_NODE: u8 = 2;
/// A waiter links its node without a release, and its own tail is not acquired by the one that
/// follows the link: the hand-over may come before the node's initialisation.
pub const RELAXED_LINK: u8 = 4;
/// A level that was used is not given back.
pub const LEAKS_LEVEL: u8 = 3;

/// An MCS lock whose holder keeps its node while it holds the lock; `FLAW` says what is wrong.
pub struct SmallQueue<W, const FLAW: u8> {
    tail: W,
    /// The holder's node: only the holder touches it.
    holder: W,
}

impl<W: AtomicWord, const FLAW: u8> SmallQueue<W, FLAW> {
    fn home<P: Platform<Word = W>>(p: &P) -> Option<(NodeId, &Node<W>)> {
        let first = NodeId::new(p.cpu()?, 0)?;
        Some((first, p.node(first)))
    }

    /// Begins a node of this CPU's next level.
    fn enter_level<P: Platform<Word = W>>(p: &P) -> Option<(u32, &Node<W>)> {
        let (first, home) = Self::home(p)?;
        let level = home.nesting.load(Relaxed);
        home.nesting.store(level + 1, Relaxed);
        let me = NodeId::new(first.cpu(), if FLAW == REUSES_NODE { 0 } else { level })?;
        let node = p.node(me);
        node.begin();
        Some((me.number(), node))
    }

    fn leave_level<P: Platform<Word = W>>(p: &P) {
        if let Some((_, home)) = Self::home(p) {
            home.nesting.store(home.nesting.load(Relaxed) - 1, Relaxed);
        }
    }
}

// SAFETY: not even promised: that is what the checkers are to find out.
unsafe impl<P: Platform, const FLAW: u8> RawLock<P> for SmallQueue<P::Word, FLAW> {
    fn new() -> Self {
        Self { tail: P::Word::new(0), holder: P::Word::new(0) }
    }

    fn acquire(&self, p: &P) {
        let Some((me, node)) = Self::enter_level(p) else { return };
        // ORDERING: Release hands the node on as `begin` has left it; Acquire pairs with the Release of the
        // swap or of the release that wrote the tail.
        let prev = self.tail.swap(me, AcqRel);
        if let Some(prev) = NodeId::from_number(prev) {
            // ORDERING: Release pairs with the Acquire of `release`, which then writes to the linked node.
            let link = if FLAW == RELAXED_LINK { Relaxed } else { Release };
            p.node(prev).next.store(me, link);
            // ORDERING: Acquire pairs with the Release of the hand-over in `release`.
            p.wait_until(&node.locked, Until::is(TURN), Budget::Unbounded, Acquire);
        }
        self.holder.store(me, Relaxed);
    }

    fn try_acquire(&self, p: &P) -> bool {
        let Some((me, _)) = Self::enter_level(p) else { return false };
        // ORDERING: as in `acquire`.
        let free = self.tail.compare_exchange(0, me, AcqRel).is_ok();
        if free {
            self.holder.store(me, Relaxed);
        } else {
            Self::leave_level(p);
        }
        free
    }

    unsafe fn release(&self, p: &P) {
        let me = self.holder.load(Relaxed);
        let Some(id) = NodeId::from_number(me) else { return };
        // ORDERING: Acquire pairs with the Release of the link in `acquire`.
        let mut next = p.node(id).next.load(Acquire);
        // ORDERING: Release pairs with the Acquire of the next swap of the tail.
        if next == 0 && self.tail.compare_exchange(me, 0, Release).is_err() {
            if FLAW == SKIPS_LINK {
                next = p.node(id).next.load(Acquire);
            } else {
                let linked = Until::is_not(0);
                next = p.wait_until(&p.node(id).next, linked, Budget::Unbounded, Acquire);
            }
        }
        if let Some(next) = NodeId::from_number(next) {
            // ORDERING: Release pairs with the Acquire of the waiter in `acquire`.
            p.node(next).locked.store(TURN, Release);
        }
        if FLAW != LEAKS_LEVEL {
            Self::leave_level(p);
        }
    }

    fn is_locked(&self, _: &P) -> bool {
        self.tail.load(Relaxed) != 0
    }
}
