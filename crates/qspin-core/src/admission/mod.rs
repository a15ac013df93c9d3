//! Who may compete for the lock at all?

mod culled;
mod queued;
mod stealing;

pub use culled::Culled;
pub use queued::Queued;
pub use stealing::Stealing;

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{AtomicWord, Budget, Platform};
use crate::word::LOCKED;

/// Decides whether a newcomer may have the lock without queueing, and what keeps the head of
/// the queue from taking it.
pub trait Admission {
    /// Bits of the word which, any of them set, mean that nobody but their owner may take the
    /// lock.
    const OCCUPIED: u32;

    /// Whether newcomers may take a free lock past the queue, and so a mark can forbid it.
    const STEALS: bool = false;

    /// Whether the owner that hands the head over always leaves its kick to the release.
    const ALWAYS_DEFERS: bool = false;

    /// A newcomer found `seen` in the word. Returns whether it has the lock now; else it queues. `pending_budget` says how
    /// long a pending waiter may watch the word; `None` if there is to be none.
    fn newcomer<P: Platform>(
        p: &P,
        word: &P::Word,
        seen: u32,
        pending_budget: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool;

    /// Looks of a newcomer at a reader-writer lock in which it does not get in, before it queues beside it.
    #[inline]
    fn looks<P: Platform>(p: &P) -> u32 {
        let _ = p;
        0
    }

    /// The marks that the head clears when it takes the lock.
    const HEAD_CLEARS: u32 = 0;

    /// Looks of an awake head at a taken lock before it forbids stealing, where that is possible.
    #[inline]
    fn patience<P: Platform>(p: &P) -> u32 {
        let _ = p;
        0
    }

    /// Whether a release may leave a halted head asleep in a word that is `seen` before it: somebody
    /// else who is awake will have the lock next, and release it again.
    #[inline]
    fn may_leave_asleep(seen: u32) -> bool {
        let _ = seen;
        false
    }

    /// Whether it does. Asked once a release, and only where it may.
    #[inline]
    fn leaves_asleep<P: Platform>(p: &P) -> bool {
        let _ = p;
        false
    }

    /// After a release that found `seen`, more than LOCKED, in the word, and has `kicked` the head or
    /// not. The lock may be gone by now.
    #[inline]
    fn released<P: Platform>(p: &P, seen: u32, kicked: bool) {
        let _ = (p, seen, kicked);
    }
}

/// The lock has an owner and nobody in line. It may be free in a moment, and to line up costs two
/// more read-modify-writes; each look takes the line from the owner, so the looks grow rarer.
/// Nobody is overtaken: the lock is taken from 0 only.
#[inline]
fn await_lone_owner<P: Platform>(p: &P, word: &P::Word) -> u32 {
    let tuning = p.tuning();
    let mut pauses = tuning.owner_pauses;
    let mut seen = LOCKED;
    for _ in 0..tuning.owner_looks {
        p.relax(pauses);
        pauses = pauses.saturating_mul(2);
        seen = word.load(Relaxed);
        if seen != LOCKED {
            break;
        }
    }
    seen
}
