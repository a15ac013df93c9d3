//! Culled: one or two waiters awake and competing, the rest asleep.
//!
//! When threads outnumber CPUs, every awake waiter takes CPU time from the owner, and every hand-over to a
//! sleeping waiter costs a wake-up. So one waiter is awake: the pending one, which competes with newcomers for
//! the word. The rest queue and sleep, and a release wakes the head of the queue only when no awake waiter will
//! acquire the lock next, or when it is time to rotate.
//!
//! # Source
//! Stealing as in Linux (see [`super::Stealing`]); culling after Dave Dice, "Malthusian Locks", EuroSys 2017.
//!
//! # Invariants
//! * **CULLED-1** While SLEEPER is set and the lock is free, *pending* is set: its owner is awake and will
//!   acquire the lock, and release it. It gives up only while the lock is held.
//! * **CULLED-2** No waiter is passed over for ever. A CPU that has used up its barging quantum ([`Quantum`]) wakes the
//!   head at its next release, yields from time to time, and queues itself when it is replaced: when it finds one
//!   of the bits [`REPLACED`] at an acquisition, or has to wake a head once more, because the previous one has
//!   acquired the lock, or has fallen asleep again. And a starving awake waiter, pending or head, sets NO_STEAL:
//!   from then on only these two may acquire the lock. They are the heirs: starving waiters that hold a
//!   reservation.
//!
//! # Why the replaced CPU leaves, and no earlier
//! A woken thread does not run yet: it may have been put in line behind another CPU's thread. A CPU that left at
//! once would then be idle, until the scheduler notices. So it goes on, and yields now and then, in case the
//! woken thread is in line for this very CPU.
//!
//! # Limits
//! Not first come, first served. Turns are counted by the CPU, not by the lock: one that uses two contended locks
//! in turn leaves each of them earlier than necessary.
//!
//! A CPU that yields may hold other locks, whose critical sections last that much longer: it yields to any thread
//! that is in line for it. `yield_turns=0` switches it off, for longer waits here. Contexts in which a wait was
//! interrupted never yield.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::stealing::steal;
use super::{Admission, await_lone_owner};
use crate::counting;
use crate::events::Event;
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::quantum::Quantum;
use crate::site::Site;
use crate::word::{LOCKED, NO_STEAL, PENDING, SLEEPER, TAIL_MASK};

/// One awake waiter beside the owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Culled;

impl Admission for Culled {
    const OCCUPIED: u32 = LOCKED;
    const STEALS: bool = true;
    const ALWAYS_DEFERS: bool = true;
    const HEAD_CLEARS: u32 = NO_STEAL;

    fn newcomer<P: Platform>(
        p: &P,
        word: &P::Word,
        seen: u32,
        _: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool {
        let quantum = Quantum::of(p);
        if seen & TAIL_MASK == 0 {
            // The queue is empty.
            quantum.begin_anew();
        }
        let replaced = quantum.is_replaced() || quantum.is_over() && seen & REPLACED != 0;
        let acquired = !replaced && take_or_compete(&quantum, word, seen);
        if !acquired {
            quantum.begin_anew();
        }
        acquired
    }

    #[inline]
    fn polls<P: Platform>(p: &P) -> u32 {
        p.tuning().cull_polls
    }

    #[inline]
    fn spin_budget<P: Platform>(p: &P) -> u32 {
        p.tuning().forbid_polls
    }

    #[inline]
    fn may_leave_asleep(seen: u32) -> bool {
        // CULLED-1.
        seen & PENDING != 0
    }

    #[inline]
    fn leaves_asleep<P: Platform>(p: &P) -> bool {
        // CULLED-2. A CPU without a number has no quantum.
        let quantum = Quantum::of(p);
        quantum.is_counted() && !quantum.count()
    }

    fn released<P: Platform>(p: &P, seen: u32, kicked: bool) {
        let quantum = Quantum::of(p);
        if !quantum.is_over() {
            return;
        }
        if seen & TAIL_MASK == 0 {
            // No waiter is behind this CPU any more.
            quantum.begin_anew();
        } else if quantum.give_way() > 0 && kicked {
            quantum.replace();
        }
    }
}

/// Bits in the word that say that another waiter replaces a CPU whose barging quantum is used up: NO_STEAL, an
/// awake waiter starves; SLEEPER, the head that was woken has acquired the lock, or has given up, and the head
/// sleeps.
const REPLACED: u32 = SLEEPER | NO_STEAL;

/// Takes the lock past the queue; or competes for it as the one awake waiter, if there is none yet.
fn take_or_compete<P: Platform>(quantum: &Quantum<P>, word: &P::Word, seen: u32) -> bool {
    let p = quantum.p;
    let mut seen = if seen == LOCKED { await_lone_owner(p, word) } else { seen };
    let mut polls = p.tuning().cull_polls;
    loop {
        match steal(p, word, seen) {
            Ok(()) => {
                if seen & TAIL_MASK != 0 {
                    quantum.count();
                }
                return true;
            }
            Err(now) => seen = now,
        }
        if seen & LOCKED != 0 && seen & (PENDING | NO_STEAL) == 0 {
            // Relaxed: being awake orders nothing, acquiring the lock does (`CulledTake`).
            match word.compare_exchange(seen, seen | PENDING, Relaxed) {
                Ok(_) => return compete(p, word),
                Err(now) => {
                    seen = now;
                    continue;
                }
            }
        }
        if polls == 0 {
            return false;
        }
        polls -= 1;
        p.relax(1);
        seen = word.load(Relaxed);
    }
}

/// Competes as the one awake waiter, until it acquires the lock, or gives up and should queue.
fn compete<P: Platform>(p: &P, word: &P::Word) -> bool {
    let free = Until::clear(LOCKED);
    let mut polls = p.tuning().awake_polls;
    let mut spin_budget = p.tuning().forbid_polls;
    let mut raised = 0;
    loop {
        let chunk = if spin_budget == 0 { polls } else { spin_budget.min(polls) };
        let seen = p.wait_until(word, free, Budget::Polls(chunk), Relaxed);
        if free.met_by(seen) {
            // ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
            let order = p.ordering(Site::CulledTake, Acquire);
            if word.compare_exchange(seen, seen & !(PENDING | raised) | LOCKED, order).is_ok() {
                counting::count(p, Event::PendingLockCount);
                return true;
            }
        }
        // A lost race counts as a poll: this waiter is as unlucky as one that saw the lock taken.
        let lost = free.met_by(seen);
        let spent = if lost { 1 } else { chunk };
        polls = polls.saturating_sub(spent);
        spin_budget = spin_budget.saturating_sub(spent);
        // CULLED-1: only while the lock is held.
        if polls == 0
            && !lost
            && word.compare_exchange(seen, seen & !(PENDING | raised), Relaxed).is_ok()
        {
            counting::count(p, Event::PendingFailCount);
            return false;
        }
        polls = polls.max(1);
        if spin_budget == 0 && seen & NO_STEAL == 0 {
            word.fetch_or(NO_STEAL, Relaxed);
            raised = NO_STEAL;
        }
    }
}

#[cfg(test)]
mod tests;
