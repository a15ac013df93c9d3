//! Who of the queue gets the lock next?

mod fifo;

pub use fifo::Fifo;

use crate::node::NodeId;
use crate::platform::Platform;

/// Chooses among the waiters of the queue. The defaults are first come, first served.
pub trait Order {
    /// The waiter to which `me`, the head that has just taken the lock, hands its place;
    /// `next` is linked behind it.
    #[inline]
    fn successor<P: Platform>(p: &P, me: NodeId, next: NodeId) -> NodeId {
        let _ = (p, me);
        next
    }

    /// The tail bits that remain when `me`, head and last of the queue, takes the lock.
    #[inline]
    fn tail_after<P: Platform>(p: &P, me: NodeId) -> u32 {
        let _ = (p, me);
        0
    }
}
