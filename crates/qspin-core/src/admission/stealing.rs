//! Stealing: a running thread may take a free lock, while the head of the queue allows it.
//!
//! A waiter in the queue may not be running when the lock is released; a newcomer is. Letting the newcomer barge
//! keeps the lock busy. The head, once awake, forbids it.
//!
//! # Source
//! Linux, `pv_hybrid_queued_unfair_trylock` (Waiman Long, 4.5), but with a separate no-steal bit: there it is the
//! pending bit, so that an admission cannot have both.
//!
//! # Invariants
//! * **STEALING-1** The lock is acquired past the queue only from a word without NO_STEAL. An awake head sets it,
//!   so the head then waits for one owner at most. It clears it when it acquires the lock, or in the step that
//!   records it as asleep. (A head that woke spuriously, and finds itself recorded already, leaves it set until
//!   it is kicked.)

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::Admission;
use crate::counting;
use crate::events::Event;
use crate::platform::{AtomicWord, Budget, Platform};
use crate::site::Site;
use crate::word::{LOCKED, NO_STEAL, TAIL_MASK};

/// Newcomers may steal, until an awake head forbids it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stealing;

/// Takes a free lock past the queue, unless that is forbidden.
#[inline]
pub(super) fn steal<P: Platform>(p: &P, word: &P::Word, seen: u32) -> Result<(), u32> {
    if seen & (LOCKED | NO_STEAL) != 0 {
        return Err(seen);
    }
    // ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
    let order = p.ordering(Site::StealTake, Acquire);
    word.compare_exchange(seen, seen | LOCKED, order)?;
    if seen & TAIL_MASK != 0 {
        counting::count(p, Event::PvLockStealing);
    }
    Ok(())
}

impl Admission for Stealing {
    const OCCUPIED: u32 = LOCKED;
    const STEALS: bool = true;
    const HEAD_CLEARS: u32 = NO_STEAL;

    fn newcomer<P: Platform>(
        p: &P,
        word: &P::Word,
        seen: u32,
        _: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool {
        let mut seen = seen;
        for _ in 0..p.tuning().steal_polls {
            if steal(p, word, seen).is_ok() {
                return true;
            }
            if seen & NO_STEAL != 0 {
                return false;
            }
            p.relax(1);
            seen = word.load(Relaxed);
        }
        false
    }

    #[inline]
    fn polls<P: Platform>(p: &P) -> u32 {
        p.tuning().steal_polls
    }
}
