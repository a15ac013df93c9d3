//! Culled: one or two waiters awake and competing, the rest asleep.
//!
//! When threads outnumber CPUs, every waiter that is awake takes CPU time from the owner, and
//! every hand-over to one that sleeps costs a wake-up. So one waiter is awake: the pending one,
//! which competes with newcomers for the word. The rest queue and sleep, and a release wakes the
//! head of the queue only when nobody is awake to have the lock next, or when it is time to
//! rotate.
//!
//! # Source
//! Stealing as in Linux (see [`super::Stealing`]); culling after Dave Dice, "Malthusian Locks",
//! EuroSys 2017.
//!
//! # Invariants
//! * **U1** While SLEEPER is set and the lock is free, *pending* is set: its owner is awake and
//!   will take the lock, and release it. It gives up only while the lock is held.
//! * **U2** Nobody is forgotten: every `rotate_turns`-th release of a CPU past a sleeping head
//!   wakes it. An unlucky awake waiter, pending or head, sets NO_STEAL: from then on only these
//!   two may take the lock (the heir).

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::Admission;
use super::stealing::steal;
use crate::events::{self, Event};
use crate::node::NodeId;
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::waiting::Waiting;
use crate::word::{LOCKED, NO_STEAL, PENDING};

/// One awake waiter beside the owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Culled;

impl Admission for Culled {
    const OCCUPIED: u32 = LOCKED;
    const STEALS: bool = true;
    const ALWAYS_DEFERS: bool = true;
    const HEAD_CLEARS: u32 = NO_STEAL;

    fn newcomer<P: Platform, W: Waiting>(p: &P, word: &P::Word, seen: u32) -> bool {
        let mut seen = seen;
        let mut looks = p.tuning().cull_looks;
        loop {
            match steal(p, word, seen) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
            if seen & LOCKED != 0 && seen & (PENDING | NO_STEAL) == 0 {
                // Relaxed: to be awake orders nothing, taking the lock does (`CulledTake`).
                match word.compare_exchange(seen, seen | PENDING, Relaxed) {
                    Ok(_) => return compete(p, word),
                    Err(now) => {
                        seen = now;
                        continue;
                    }
                }
            }
            if looks == 0 {
                return false;
            }
            looks -= 1;
            p.relax(1);
            seen = word.load(Relaxed);
        }
    }

    #[inline]
    fn patience<P: Platform>(p: &P) -> u32 {
        p.tuning().patience_looks
    }

    #[inline]
    fn leaves_asleep<P: Platform>(p: &P, seen: u32) -> bool {
        if seen & PENDING == 0 {
            return false;
        }
        // U2.
        let Some(first) = p.cpu().and_then(|cpu| NodeId::new(cpu, 0)) else { return false };
        let turns = &p.node(first).turns;
        let count = turns.load(Relaxed) + 1;
        let rotate = count >= p.tuning().rotate_turns;
        turns.store(if rotate { 0 } else { count }, Relaxed);
        !rotate
    }
}

/// Competes as the one awake waiter, until it has the lock, or gives up and is to queue.
fn compete<P: Platform>(p: &P, word: &P::Word) -> bool {
    let free = Until::clear(LOCKED);
    let mut looks = p.tuning().awake_looks;
    let mut patience = p.tuning().patience_looks;
    let mut raised = 0;
    loop {
        let chunk = if patience == 0 { looks } else { patience.min(looks) };
        let seen = p.wait_until(word, free, Budget::Looks(chunk), Relaxed);
        if free.met_by(seen) {
            // ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
            let order = p.ordering(Site::CulledTake, Acquire);
            if word.compare_exchange(seen, seen & !(PENDING | raised) | LOCKED, order).is_ok() {
                events::count(p, Event::PendingLockCount);
                return true;
            }
            continue;
        }
        looks = looks.saturating_sub(chunk);
        patience = patience.saturating_sub(chunk);
        if looks == 0 {
            // U1: only while the lock is held.
            if word.compare_exchange(seen, seen & !(PENDING | raised), Relaxed).is_ok() {
                events::count(p, Event::PendingFailCount);
                return false;
            }
            looks = 1;
        } else if patience == 0 && seen & NO_STEAL == 0 {
            word.fetch_or(NO_STEAL, Relaxed);
            raised = NO_STEAL;
        }
    }
}
