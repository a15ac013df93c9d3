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

use super::{Admission, await_lone_owner};
use super::stealing::steal;
use crate::events::{self, Event};
use crate::node::{Node, NodeId};
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::waiting::Waiting;
use crate::word::{LOCKED, NO_STEAL, PENDING, TAIL_MASK};

/// One awake waiter beside the owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Culled;

impl Admission for Culled {
    const OCCUPIED: u32 = LOCKED;
    const STEALS: bool = true;
    const ALWAYS_DEFERS: bool = true;
    const HEAD_CLEARS: u32 = NO_STEAL;

    fn newcomer<P: Platform, W: Waiting>(p: &P, word: &P::Word, seen: u32) -> bool {
        let first = first_node(p);
        if first.is_some_and(|first| is_tired(p, first)) || !take_or_compete(p, word, seen, first) {
            if let Some(first) = first {
                first.turns.store(0, Relaxed);
            }
            return false;
        }
        true
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
        first_node(p).is_some_and(|first| !another_turn(p, first))
    }
}

/// What this CPU knows about its turns stands in its node of the first level.
#[inline]
fn first_node<P: Platform>(p: &P) -> Option<&Node<P::Word>> {
    p.cpu().and_then(|cpu| NodeId::new(cpu, 0)).map(|id| p.node(id))
}

/// Whether this CPU has had its turns.
#[inline]
fn is_tired<P: Platform>(p: &P, first: &Node<P::Word>) -> bool {
    first.turns.load(Relaxed) >= p.tuning().rotate_turns
}

/// Counts a turn of this CPU past others that wait; returns whether it is tired now.
#[inline]
fn another_turn<P: Platform>(p: &P, first: &Node<P::Word>) -> bool {
    let tuning = p.tuning();
    let turns = first.turns.load(Relaxed);
    let mut now = turns.saturating_add(1);
    if turns % CLOCK_TURNS == 0 {
        // Microseconds, about, and only their low bits: all that is asked is how long ago.
        let clock = (p.now_ns() >> 10) as u32;
        if turns == 0 {
            first.since.store(clock, Relaxed);
        } else if clock.wrapping_sub(first.since.load(Relaxed)) >= tuning.rotate_us {
            now = u32::MAX;
        }
    }
    first.turns.store(now, Relaxed);
    now >= tuning.rotate_turns
}

/// Turns between two looks at the clock, which costs as much as twenty pauses.
const CLOCK_TURNS: u32 = 8;

fn take_or_compete<P: Platform>(
    p: &P,
    word: &P::Word,
    seen: u32,
    first: Option<&Node<P::Word>>,
) -> bool {
    let mut seen = if seen == LOCKED { await_lone_owner(p, word) } else { seen };
    let mut looks = p.tuning().cull_looks;
    loop {
        match steal(p, word, seen) {
            Ok(()) => {
                if let Some(first) = first
                    && seen & TAIL_MASK != 0
                {
                    another_turn(p, first);
                }
                return true;
            }
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
