//! Who may compete for the lock at all?

mod queued;

pub use queued::Queued;

use crate::platform::Platform;
use crate::waiting::Waiting;

/// Decides whether a newcomer may have the lock without queueing, and what keeps the head of
/// the queue from taking it.
pub trait Admission {
    /// Bits of the word which, any of them set, mean that nobody but their owner may take the
    /// lock.
    const OCCUPIED: u32;

    /// A newcomer found `seen` in the word. Returns whether it has the lock now; else it queues.
    fn newcomer<P: Platform, W: Waiting>(p: &P, word: &P::Word, seen: u32) -> bool;
}
