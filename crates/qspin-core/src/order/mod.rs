//! The order axis: which waiter of the queue acquires the lock next.

mod fifo;
mod numa;

pub use fifo::Fifo;
pub use numa::Numa;

use crate::node::NodeId;
use crate::platform::Platform;

/// What [`Order::arrange`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arranged {
    /// It has moved a waiter; there may be more to do.
    Moved,
    /// It has to wait for a newcomer to link itself.
    Waits,
    /// The next waiter is the right one.
    Settled,
}

/// Chooses among the waiters of the queue. The defaults are first come, first served.
///
/// The head of the queue calls all of them, except [`Order::begin`], which the waiter itself calls before it
/// queues.
pub trait Order {
    /// Whether a head arranges the queue while it waits for the owner.
    const ARRANGES: bool = false;

    /// A life of `me` begins, before any other context can see it.
    #[inline]
    fn begin<P: Platform>(p: &P, me: NodeId) {
        let _ = (p, me);
    }

    /// `me` has become the head; returns whether it should arrange the queue.
    #[inline]
    fn arranges_as_head<P: Platform>(p: &P, me: NodeId) -> bool {
        let _ = (p, me);
        false
    }

    /// One step of arranging the queue, while another context holds the lock.
    #[inline]
    fn arrange<P: Platform>(p: &P, me: NodeId) -> Arranged {
        let _ = (p, me);
        Arranged::Settled
    }

    /// The waiter to which `me`, the head that has just acquired the lock, hands the headship; `next` is linked
    /// behind it.
    #[inline]
    fn successor<P: Platform>(p: &P, me: NodeId, next: NodeId) -> NodeId {
        let _ = (p, me);
        next
    }

    /// The tail bits that remain when `me`, head and last of the queue, acquires the lock.
    #[inline]
    fn tail_after<P: Platform>(p: &P, me: NodeId) -> u32 {
        let _ = (p, me);
        0
    }

    /// The waiter to which `me` hands the headship when it was the last of the queue and the lock that it
    /// acquired has a tail all the same: the first of those that [`Order::tail_after`] left.
    #[inline]
    fn rest<P: Platform>(p: &P, me: NodeId) -> Option<NodeId> {
        let _ = (p, me);
        None
    }
}
