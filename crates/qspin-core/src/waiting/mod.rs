//! How does a waiter wait?

mod spin;

pub use spin::Spin;

use core::sync::atomic::Ordering::{Acquire, Release};

use crate::node::{Node, NodeId, TURN};
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::word::LOCKED;

/// How a waiter waits, and what whoever ends the wait does about it.
///
/// The defaults are the native answers: watch the word, and store what it waits for.
pub trait Waiting {
    /// Waits in the queue behind `prev`, until the head of the queue is handed to `node`.
    #[inline]
    fn await_turn<P: Platform>(p: &P, node: &Node<P::Word>, prev: NodeId) {
        let _ = prev;
        // ORDERING: Acquire pairs with the Release of `hand_over`: the predecessor's last access
        // to this node happens before the node's next life (N2).
        let order = p.ordering(Site::QueueTurn, Acquire);
        p.wait_until(&node.locked, Until::is(TURN), Budget::Unbounded, order);
    }

    /// Waits as the head, or as the pending waiter, until no bit of `occupied` is set in `word`;
    /// returns the word seen. Orders nothing: the step that takes the lock does.
    #[inline]
    fn await_owner<P: Platform>(p: &P, word: &P::Word, occupied: u32) -> u32 {
        p.wait_until(word, Until::clear(occupied), Budget::Unbounded, RELAXED)
    }

    /// Hands the head of the queue to `next`.
    #[inline]
    fn hand_over<P: Platform>(p: &P, next: NodeId) {
        // ORDERING: Release pairs with the Acquire of `await_turn`.
        p.node(next).locked.store(TURN, p.ordering(Site::QueueHandOver, Release));
    }

    /// Releases the lock, which the caller holds.
    #[inline]
    fn release<P: Platform>(p: &P, word: &P::Word) {
        // A subtraction, not a store of the byte: accesses of two sizes are undefined, and on some
        // processors a byte store cannot be forwarded to the next compare-exchange
        // (docs/native.md has the prices).
        // ORDERING: Release pairs with the Acquire of whoever takes the lock next (`QueueTry`,
        // `QueuePendingTake`, `QueueHeadTake`, `QueueNoNodeTake`); steps of others in between
        // are read-modify-writes, which continue its release sequence.
        word.fetch_add(LOCKED.wrapping_neg(), p.ordering(Site::QueueRelease, Release));
    }
}

const RELAXED: core::sync::atomic::Ordering = core::sync::atomic::Ordering::Relaxed;
