//! The waiting axis: how a waiter waits.

pub(crate) mod bucket;
mod halt;
pub(crate) mod hash;
mod spin;

pub use bucket::Bucket;
pub use halt::Halt;
pub use spin::Spin;

use crate::admission::Admission;
use crate::node::NodeId;
use crate::order::Order;
use crate::platform::{Budget, Platform};

/// What the head of a queue remembers while it waits for the lock, over all the times that another context
/// acquires it first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headship {
    /// The head has waited for the owner before.
    waited: bool,
    /// Polls of a taken lock, or lost races, that are left before the head forbids stealing.
    spin_budget: u32,
    /// The head has forbidden stealing, and not taken that back.
    raised: bool,
    /// The head has halted.
    halted: bool,
    /// The head arranges the queue.
    arranges: bool,
}

impl Headship {
    /// Whether this is the first wait; if so, decides whether this head arranges the queue.
    fn begins<P: Platform, O: Order>(&mut self, p: &P, me: NodeId) -> bool {
        let begins = !self.waited;
        if begins {
            self.waited = true;
            self.arranges = O::ARRANGES && O::arranges_as_head(p, me);
        }
        begins
    }
}

/// How a waiter waits, and what the thread that ends the wait does about it.
pub trait Waiting {
    /// How long a pending waiter watches the word before it queues; `None` if no newcomer waits as pending.
    fn pending_budget<P: Platform>(p: &P) -> Option<Budget>;

    /// Waits in the queue behind `prev`, until the head of the queue is handed to `me`.
    fn await_turn<P: Platform>(p: &P, me: NodeId, prev: NodeId);

    /// Waits as the head, until no bit of `A::OCCUPIED` is set in `word`; returns the word seen. Orders nothing:
    /// the step that acquires the lock does. Called again, with the same `headship`, when another context was
    /// faster. Meanwhile the head arranges the queue.
    fn await_owner<P: Platform, O: Order, A: Admission>(
        p: &P,
        word: &P::Word,
        me: NodeId,
        headship: &mut Headship,
    ) -> u32;

    /// After the head has acquired the lock, in a step that replaced `seen`.
    #[inline]
    fn taken<P: Platform>(p: &P, word: &P::Word, seen: u32) {
        let _ = (p, word, seen);
    }

    /// Hands the headship of the queue to `next`. The caller holds the lock.
    fn hand_over<P: Platform, A: Admission>(p: &P, word: &P::Word, next: NodeId);

    /// Releases the lock, which the caller holds. The releasing thread does not touch the word afterwards: the
    /// next owner may free it.
    fn release<P: Platform, A: Admission>(p: &P, word: &P::Word);
}
