//! Paravirt waiting: spin a little, then halt until kicked.
//!
//! # Problem
//! A waiter whose virtual CPU spins takes time from the CPU that it waits for; a waiter that is
//! preempted when its turn comes stops everybody behind it.
//!
//! # Source
//! Linux, `kernel/locking/qspinlock_paravirt.h`, and document 000: Waiman Long, "locking/
//! qspinlock: Enhance pvqspinlock performance", v2, with its review. Will Deacon's remark there
//! on the failed compare-exchange is `HaltSlow`; `HaltRehalt` is a second place like it.
//!
//! # States of a node
//! ```text
//!            spun long enough             predecessor hands over, kick deferred
//!  RUNNING ───────────────────► HALTED ────────────────────────────────────────► HASHED
//!     ▲                           │                                                │
//!     ├──── woken, or kicked ◄────┘                                                │
//!     └──────────────── kicked by the owner's release, as the head ◄───────────────┘
//! ```
//!
//! # Invariants
//! * **V1** A waiter sets HALTED, then looks at `locked`; the predecessor sets `locked`, then
//!   looks at the state; a full fence lies between the two on both sides. So the waiter sees
//!   its turn, or the predecessor sees it halted (and kicks it, or defers the kick).
//! * **V2** SLEEPER is set only while the lock is held, after the head's entry is in the hash.
//!   So the owner that then releases finds both, or leaves both to the next owner.
//! * **V3** A head halts only while SLEEPER is set; whoever clears SLEEPER kicks it after that,
//!   unless it is the head itself. Kicks are sticky (C4), so none is lost.
//! * **V4** Nobody looks at the lock after the step that releases it.
//! * **V5** The state of a node is changed by its owner and by the predecessor that hands over to
//!   it; the latter holds the lock then, so the owner cannot leave before it is done (N2).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::{Waiting, hash};
use crate::admission::Admission;
use crate::events::{self, Event};
use crate::node::{HALTED, HASHED, Node, NodeId, RUNNING, TURN};
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::tuning::{Adaptive, Defer, KICK_AHEAD_MOST};
use crate::word::{LOCKED, NO_STEAL, SLEEPER};

/// Spins, then halts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Halt;

impl Waiting for Halt {
    #[inline]
    fn pending_budget<P: Platform>(p: &P) -> Option<Budget> {
        let tuning = p.tuning();
        tuning.pending.then_some(Budget::Looks(tuning.pending_wait_looks))
    }

    fn await_turn<P: Platform>(p: &P, me: NodeId, prev: NodeId) {
        let node = p.node(me);
        while !watch(p, me, prev) {
            // A compare-exchange, not a store: HASHED means that the turn has come already.
            if node.state.compare_exchange(RUNNING, HALTED, Relaxed).is_ok() {
                // V1. ORDERING: pairs with the fence of `hand_over`.
                p.fence(p.ordering(Site::HaltWaiterFence, SeqCst));
                if node.locked.load(Relaxed) != TURN {
                    events::count(p, Event::WaitNodeCount);
                    p.halt(me);
                }
                if node.state.compare_exchange(HALTED, RUNNING, Relaxed).is_err() {
                    // HASHED by the predecessor (or RUNNING by a kick ahead): it has handed over.
                    // A failed compare-exchange orders nothing, so without this a stale "not yet
                    // my turn" would halt again, over HASHED.
                    // ORDERING: Acquire pairs with the Release of `HaltDefer`.
                    p.fence(p.ordering(Site::HaltRehalt, Acquire));
                }
            }
            // ORDERING: Acquire pairs with the Release of `hand_over`.
            if node.locked.load(p.ordering(Site::QueueTurn, Acquire)) == TURN {
                return;
            }
            events::count(p, Event::SpuriousWakeup);
        }
    }

    fn await_owner<P: Platform, A: Admission>(p: &P, word: &P::Word, me: NodeId) -> u32 {
        let tuning = p.tuning();
        let node = p.node(me);
        recall(p, node);
        let mut raised = false;
        let mut again = false;
        loop {
            let mut looks = tuning.head_looks;
            let mut patience = A::patience(p);
            while looks > 0 {
                let chunk = if raised { looks } else { patience.min(looks) };
                let until = Until::clear(A::OCCUPIED);
                let seen = p.wait_until(word, until, Budget::Looks(chunk), Relaxed);
                if until.met_by(seen) {
                    return seen;
                }
                looks -= chunk;
                patience -= chunk.min(patience);
                if A::STEALS && !raised && patience == 0 && looks > 0 {
                    word.fetch_or(NO_STEAL, Relaxed);
                    raised = true;
                }
            }
            if let Some(seen) = sleep(p, word, me, A::OCCUPIED, &mut raised) {
                return seen;
            }
            if again {
                events::count(p, Event::PvWaitAgain);
            }
            again = true;
        }
    }

    #[inline]
    fn taken<P: Platform>(p: &P, word: &P::Word, seen: u32) {
        if seen & SLEEPER != 0 {
            // Taken while awake for no reason: the entry is still there, and now mine (H1).
            hash::remove(p, word);
        }
    }

    fn hand_over<P: Platform, A: Admission>(p: &P, word: &P::Word, next: NodeId) {
        let node = p.node(next);
        // ORDERING: Release pairs with the Acquire of `await_turn`.
        node.locked.store(TURN, p.ordering(Site::QueueHandOver, Release));
        // V1. ORDERING: pairs with the fence of `await_turn`.
        p.fence(p.ordering(Site::HaltHandOverFence, SeqCst));
        if defers::<P, A>(p, node) {
            // ORDERING: Release pairs with the Acquire of `HaltRehalt`.
            let order = p.ordering(Site::HaltDefer, Release);
            if node.state.compare_exchange(HALTED, HASHED, order).is_err() {
                return;
            }
            if hash::insert(p, word, next) {
                // V2: this CPU holds the lock. Relaxed: it is the one to release it, or hands
                // it on by a release of its own.
                word.fetch_or(SLEEPER, Relaxed);
                return;
            }
        } else if node.state.swap(RUNNING, Relaxed) != HALTED {
            return;
        }
        events::count(p, Event::LockKickCount);
        kick(p, next);
    }

    #[inline]
    fn release<P: Platform, A: Admission>(p: &P, word: &P::Word) {
        // ORDERING: Release pairs with the Acquire of whoever takes the lock next.
        let order = p.ordering(Site::QueueRelease, Release);
        if let Err(seen) = word.compare_exchange(LOCKED, 0, order) {
            release_slow::<P, A>(p, word, seen);
        }
    }
}

#[cold]
#[inline(never)]
fn release_slow<P: Platform, A: Admission>(p: &P, word: &P::Word, seen: u32) {
    let mut seen = seen;
    // ORDERING: as in `release`.
    let order = p.ordering(Site::QueueRelease, Release);
    loop {
        if seen & SLEEPER != 0 && !A::leaves_asleep(p, seen) {
            break;
        }
        match word.compare_exchange(seen, seen & !LOCKED, order) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
    // SLEEPER was seen by a load or a failed compare-exchange, which order nothing (Deacon).
    // ORDERING: Acquire pairs with the Release of `HaltSleeper`: the entry is there (H3).
    p.fence(p.ordering(Site::HaltSlow, Acquire));
    let head = hash::remove(p, word);
    let mut ahead = [None; KICK_AHEAD_MOST];
    if let Some(head) = head {
        collect(p, head, &mut ahead);
    }
    while let Err(now) = word.compare_exchange(seen, seen & !(LOCKED | SLEEPER), order) {
        seen = now;
    }
    // V4: from here on the lock may be freed. Nodes are static, and a kick may come late.
    if let Some(head) = head {
        // Patch 1 of the series: kick whatever the state.
        if !p.tuning().kick_unconditionally {
            // The state of a head that halts is stored before SLEEPER, read after the release.
            // ORDERING: pairs with the fence of `sleep`.
            p.fence(p.ordering(Site::HaltKickFence, SeqCst));
            if p.node(head).state.peek() == RUNNING {
                return;
            }
        }
        events::count(p, Event::UnlockKickCount);
        kick(p, head);
    }
    for node in ahead.into_iter().flatten() {
        events::count(p, Event::KickAheadCount);
        kick(p, node);
    }
}

/// Whether the kick of the new head is left to the release.
fn defers<P: Platform, A: Admission>(p: &P, next: &Node<P::Word>) -> bool {
    let tuning = p.tuning();
    match tuning.defer {
        _ if A::ALWAYS_DEFERS => true,
        Defer::Never => false,
        Defer::Always => true,
        Defer::Conditions => {
            tuning.kick_ahead == 0
                || NodeId::from_number(next.next.load(Acquire) as u16)
                    .is_some_and(|second| p.node(second).state.load(Relaxed) == HALTED)
        }
    }
}

/// Marks halted waiters behind `head` as running; the caller kicks them after the release.
fn collect<P: Platform>(p: &P, head: NodeId, ahead: &mut [Option<NodeId>; KICK_AHEAD_MOST]) {
    let mut node = head;
    for place in ahead.iter_mut().take(p.tuning().kick_ahead as usize) {
        // ORDERING: Acquire pairs with the Release of `QueueLink`. The queue stands still: its
        // head waits for the lock that this CPU holds.
        let next = p.node(node).next.load(p.ordering(Site::HaltAheadNext, Acquire));
        let Some(next) = NodeId::from_number(next as u16) else { return };
        let state = &p.node(next).state;
        if state.compare_exchange(HALTED, RUNNING, Relaxed).is_err() {
            return;
        }
        *place = Some(next);
        node = next;
    }
}

/// Halts as the head, unless the lock is free by then: returns the word seen in that case.
fn sleep<P: Platform>(
    p: &P,
    word: &P::Word,
    me: NodeId,
    occupied: u32,
    raised: &mut bool,
) -> Option<u32> {
    let node = p.node(me);
    let mut inserted = false;
    // Before the look at the word below: a release that kicks only whom it sees halted looks
    // the other way round.
    node.state.swap(HASHED, Relaxed);
    if !p.tuning().kick_unconditionally {
        // ORDERING: pairs with the fence of `release_slow`.
        p.fence(p.ordering(Site::HaltSleepFence, SeqCst));
    }
    let mut seen = word.load(Relaxed);
    loop {
        if seen & occupied == 0 || (seen & LOCKED == 0 && seen & SLEEPER == 0) {
            if inserted {
                // SLEEPER was not set for this entry, so it is not the owner's but mine.
                hash::remove(p, word);
            }
            node.state.swap(RUNNING, Relaxed);
            return (seen & occupied == 0).then_some(seen);
        }
        if seen & SLEEPER != 0 {
            break;
        }
        if !inserted {
            if !hash::insert(p, word, me) {
                return None;
            }
            inserted = true;
        }
        // V2. ORDERING: Release pairs with the Acquire of `HaltSlow`.
        let order = p.ordering(Site::HaltSleeper, Release);
        let mark = if *raised { seen & !NO_STEAL } else { seen };
        match word.compare_exchange(seen, mark | SLEEPER, order) {
            Ok(_) => {
                *raised = false;
                break;
            }
            Err(now) => seen = now,
        }
    }
    remember(p, node, p.tuning().history_increment);
    events::count(p, Event::WaitHeadCount);
    p.halt(me);
    node.state.swap(RUNNING, Relaxed);
    None
}

/// Kicks `node`, timed where statistics want it.
fn kick<P: Platform>(p: &P, node: NodeId) {
    p.kick(node);
}

/// Watches for the turn of `me`, for as long as that is worth it.
fn watch<P: Platform>(p: &P, me: NodeId, prev: NodeId) -> bool {
    let tuning = p.tuning();
    let node = p.node(me);
    let neighbour = p.node(prev);
    let heeds = match tuning.adaptive {
        Adaptive::Off => tuning.heed_preempted,
        Adaptive::History => node.history.load(Relaxed) > tuning.history_threshold,
        Adaptive::Neighbour => true,
    };
    // Another CPU's node, perhaps in its next life by now: a hint.
    let hopeless = || {
        heeds
            && neighbour.locked.peek() != TURN
            && (neighbour.state.peek() == HALTED
                || tuning.heed_preempted && p.is_preempted(prev.cpu()))
    };
    let short = tuning.queue_looks / tuning.short_divisor.max(1);
    let mut early = hopeless();
    let mut looks = if early { short } else { tuning.queue_looks };
    // ORDERING: Acquire pairs with the Release of `hand_over`.
    let order = p.ordering(Site::QueueTurn, Acquire);
    while looks > 0 {
        let chunk = if heeds { looks.min(tuning.check_looks.max(1)) } else { looks };
        let turn = Until::is(TURN);
        if turn.met_by(p.wait_until(&node.locked, turn, Budget::Looks(chunk), order)) {
            return true;
        }
        looks -= chunk;
        let now = hopeless();
        if now != early {
            early = now;
            if !early {
                looks = tuning.queue_looks;
            } else if tuning.kick_ahead > 0 {
                break;
            } else {
                looks = looks.min(short);
            }
        }
    }
    if early {
        events::count(p, Event::WaitEarlyCount);
    }
    remember(p, node, if early { 1 } else { tuning.history_increment });
    false
}

/// One more halt in this context's history.
fn remember<P: Platform>(p: &P, node: &Node<P::Word>, increment: u32) {
    let history = node.history.load(Relaxed);
    if history < p.tuning().history_most {
        node.history.store(history + increment, Relaxed);
    }
}

/// One more slow path.
fn recall<P: Platform>(p: &P, node: &Node<P::Word>) {
    let history = node.history.load(Relaxed);
    if history > p.tuning().history_least {
        node.history.store(history - 1, Relaxed);
    }
}
