//! Strict admission: newcomers queue, behind one pending waiter.
//!
//! The pending waiter is the second of three: it waits on the word itself and needs no node. With two CPUs, the
//! most common contention of all, no node is ever touched: one cache line less to fetch on every acquisition.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{Admission, await_lone_owner};
use crate::counting;
use crate::events::Event;
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::word::{LOCKED, LOCKED_MASK, PENDING};

/// The pending bit, then the queue: Linux's native admission.
#[derive(Debug, Clone, Copy, Default)]
pub struct Queued;

impl Admission for Queued {
    const OCCUPIED: u32 = LOCKED_MASK | PENDING;

    #[inline]
    fn newcomer<P: Platform>(
        p: &P,
        word: &P::Word,
        seen: u32,
        pending_budget: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool {
        let Some(budget) = pending_budget(p) else { return false };
        let mut seen = seen;
        if seen == LOCKED {
            seen = await_lone_owner(p, word);
            if seen == 0 {
                // ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
                let order = p.ordering(Site::QueueSecondTry, Acquire);
                match word.compare_exchange(0, LOCKED, order) {
                    Ok(_) => return true,
                    Err(now) => seen = now,
                }
            }
        }
        if seen == PENDING {
            // The pending waiter is just acquiring the lock; a moment later its place is free. Bounded, since it
            // may be descheduled in that moment.
            let polls = Budget::Polls(p.tuning().pending_polls);
            seen = p.wait_until(word, Until::is_not(PENDING), polls, Relaxed);
        }
        if seen & !LOCKED_MASK != 0 {
            return false;
        }
        // Relaxed: the winner acquires the lock by a read-modify-write of its own (below).
        seen = word.fetch_or(PENDING, Relaxed);
        if seen & !LOCKED_MASK != 0 {
            if seen & PENDING == 0 {
                // WORD-3: a queue was there first. Its head waits for this bit to vanish.
                word.fetch_and(!PENDING, Relaxed);
            }
            return false;
        }
        let free = Until::clear(LOCKED_MASK);
        if !free.met_by(seen) && !free.met_by(p.wait_until(word, free, budget, Relaxed)) {
            // The budget is spent: queue like all other waiters.
            word.fetch_and(!PENDING, Relaxed);
            counting::count(p, Event::PendingFailCount);
            return false;
        }
        // WORD-4: this CPU owns pending, so no other may set locked.
        // ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
        word.fetch_add(LOCKED.wrapping_sub(PENDING), p.ordering(Site::QueuePendingTake, Acquire));
        counting::count(p, Event::PendingLockCount);
        true
    }
}
