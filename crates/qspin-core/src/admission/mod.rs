//! The admission axis: which contexts may compete for the lock.

mod culled;
mod queued;
mod stealing;

pub use culled::Culled;
pub use queued::Queued;
pub use stealing::Stealing;

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{AtomicWord, Budget, Platform};
use crate::word::LOCKED;

/// Decides whether a newcomer may acquire the lock without queueing, and what keeps the head of the queue from
/// acquiring it.
pub trait Admission {
    /// Bits of the word: while any of them is set, only its owner may acquire the lock.
    const OCCUPIED: u32;

    /// Whether newcomers may steal a free lock past the queue, so that a bit can forbid it.
    const STEALS: bool = false;

    /// Whether the owner that hands the headship over always leaves the kick to the release.
    const ALWAYS_DEFERS: bool = false;

    /// A newcomer found `seen` in the word. Returns whether it has acquired the lock; otherwise it queues.
    /// `pending_budget` says how long a pending waiter may watch the word; `None` if there is to be none.
    fn newcomer<P: Platform>(
        p: &P,
        word: &P::Word,
        seen: u32,
        pending_budget: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool;

    /// Polls of a newcomer that a reader-writer lock does not admit, before it queues beside the lock.
    #[inline]
    fn polls<P: Platform>(p: &P) -> u32 {
        let _ = p;
        0
    }

    /// The bits that the head clears when it acquires the lock.
    const HEAD_CLEARS: u32 = 0;

    /// Polls of a taken lock by an awake head before it forbids stealing, where that is possible.
    #[inline]
    fn spin_budget<P: Platform>(p: &P) -> u32 {
        let _ = p;
        0
    }

    /// Whether a release may leave a halted head asleep in a word that is `seen` before it, because another awake
    /// waiter will acquire the lock next, and release it again.
    #[inline]
    fn may_leave_asleep(seen: u32) -> bool {
        let _ = seen;
        false
    }

    /// Whether it does. Called once for each release, and only where it may.
    #[inline]
    fn leaves_asleep<P: Platform>(p: &P) -> bool {
        let _ = p;
        false
    }

    /// After a release that found `seen`, more than LOCKED, in the word. `kicked` says whether it kicked the
    /// head. The lock may no longer exist.
    #[inline]
    fn released<P: Platform>(p: &P, seen: u32, kicked: bool) {
        let _ = (p, seen, kicked);
    }
}

/// The lock has an owner and no waiters. It may be free in a moment, and lining up costs two more
/// read-modify-writes. Each poll takes the line from the owner, so the polls back off. No waiter is overtaken:
/// the lock is acquired only from 0.
#[inline]
fn await_lone_owner<P: Platform>(p: &P, word: &P::Word) -> u32 {
    let tuning = p.tuning();
    let mut pauses = tuning.owner_pauses;
    let mut seen = LOCKED;
    for _ in 0..tuning.owner_polls {
        p.relax(pauses);
        pauses = pauses.saturating_mul(2);
        seen = word.load(Relaxed);
        if seen != LOCKED {
            break;
        }
    }
    seen
}
