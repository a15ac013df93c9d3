//! Halting waiters, right but for one flaw, in the real slow path.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use qspin_core::admission::Admission;
use qspin_core::node::{HALTED, NodeId, RUNNING, TURN};
use qspin_core::order::Order;
use qspin_core::platform::{AtomicWord, Budget, CpuId, Platform, Until};
use qspin_core::waiting::{Halt, Headship, Waiting};
use qspin_core::word::{self, LOCKED, SLEEPER};

use super::axes::as_in;

/// A waiter stores that it is halted over whatever the predecessor has made of its state, and does
/// not acquire what a failed compare-exchange has shown it: a stale "not yet my turn" is believed,
/// and the entry that the predecessor has made is made once more.
#[derive(Debug)]
pub struct StaleRehalt;

impl Waiting for StaleRehalt {
    as_in!(Halt: pending_budget await_owner taken hand_over release);

    fn await_turn<P: Platform>(p: &P, me: NodeId, _: NodeId) {
        let node = p.node(me);
        let has_come = |order| node.locked.load(order) == TURN;
        // ORDERING: Acquire pairs with the Release of the hand-over.
        while !has_come(Acquire) {
            node.state.swap(HALTED, Relaxed);
            // ORDERING: pairs with the fence of the hand-over: it sees HALTED, or this waiter its turn.
            p.fence(SeqCst);
            if !has_come(Relaxed) {
                p.halt(me);
            }
            let _ = node.state.compare_exchange(HALTED, RUNNING, Relaxed);
        }
    }
}

/// None: the lock is right, and the checkers must say so.
pub const NO_FLAW: u8 = 0;
/// The word says that the head sleeps before it is known which waiter that is.
pub const MARKS_FIRST: u8 = 1;
/// The kick comes before the step that releases the lock.
pub const KICKS_EARLY: u8 = 2;
/// Whom to kick is asked after the release, and of the word: another may have its place there.
pub const ASKS_LATE: u8 = 3;
/// A waiter that is kicked has its turn: a kick that comes late finds the node in its next life.
pub const TRUSTS_KICK: u8 = 4;
/// A waiter in the queue looks at its turn, and then says that it is halted.
pub const LOOKS_FIRST: u8 = 5;
/// An owner looks at the state of the next waiter, and then hands over.
pub const HANDS_OVER_LAST: u8 = 6;

/// Halting without hash and without tunables; `FLAW` says what is wrong.
#[derive(Debug)]
pub struct SmallHalt<const FLAW: u8>;

/// Where it stands which waiter sleeps as the head of a lock: one of four words of the first node that the
/// real waiting uses for other things. Four locks at most.
fn place<'a, P: Platform>(p: &'a P, word: &P::Word) -> Option<&'a P::Word> {
    let node = p.node(NodeId::new(CpuId::new(0)?, 0)?);
    let places = [&node.history, &node.kick_time, &node.turns, &node.since];
    Some(places[p.address(word) % places.len()])
}

fn publish<P: Platform>(p: &P, word: &P::Word, me: NodeId) {
    if let Some(place) = place(p, word) {
        // A read-modify-write: the store of a head that has left the queue need not happen before
        // that of the next one, and would then be as good as it.
        place.swap(me.number(), Relaxed);
    }
}

fn sleeper<P: Platform>(p: &P, word: &P::Word) -> Option<NodeId> {
    NodeId::from_number(place(p, word)?.load(Relaxed))
}

fn kick<P: Platform>(p: &P, node: Option<NodeId>) {
    if let Some(node) = node {
        p.kick(node);
    }
}

impl<const FLAW: u8> Waiting for SmallHalt<FLAW> {
    fn pending_budget<P: Platform>(_: &P) -> Option<Budget> {
        None
    }

    fn await_turn<P: Platform>(p: &P, me: NodeId, _: NodeId) {
        let node = p.node(me);
        let has_come = |order| node.locked.load(order) == TURN;
        // ORDERING: Acquire pairs with the Release of `hand_over`.
        while !has_come(Acquire) {
            if FLAW == LOOKS_FIRST && has_come(Relaxed) {
                return;
            }
            node.state.swap(HALTED, Relaxed);
            // ORDERING: pairs with the fence of `hand_over`, as above.
            p.fence(SeqCst);
            if FLAW == LOOKS_FIRST || !has_come(Relaxed) {
                p.halt(me);
                if FLAW == TRUSTS_KICK {
                    return;
                }
            }
            node.state.swap(RUNNING, Relaxed);
        }
    }

    fn await_owner<P: Platform, O: Order, A: Admission>(
        p: &P,
        word: &P::Word,
        me: NodeId,
        _: &mut Headship,
    ) -> u32 {
        let free = Until::clear(A::OCCUPIED);
        loop {
            let mut seen = p.wait_until(word, free, Budget::Polls(1), Relaxed);
            if free.met_by(seen) {
                return seen;
            }
            while seen & LOCKED != 0 && seen & SLEEPER == 0 {
                if FLAW != MARKS_FIRST {
                    publish(p, word, me);
                }
                // ORDERING: Release pairs with the Acquire fence of `release`, which reads what `publish` wrote.
                match word.compare_exchange(seen, seen | SLEEPER, Release) {
                    Ok(_) => seen |= SLEEPER,
                    Err(now) => seen = now,
                }
            }
            if FLAW == MARKS_FIRST {
                publish(p, word, me);
            }
            if seen & SLEEPER != 0 {
                p.halt(me);
            }
        }
    }

    fn hand_over<P: Platform, A: Admission>(p: &P, _: &P::Word, next: NodeId) {
        let node = p.node(next);
        let halted = || node.state.load(Relaxed) == HALTED;
        let was_halted = FLAW == HANDS_OVER_LAST && halted();
        // ORDERING: Release pairs with the Acquire of `await_turn`.
        node.locked.store(TURN, Release);
        // ORDERING: pairs with the fence of `await_turn`.
        p.fence(SeqCst);
        if was_halted || FLAW != HANDS_OVER_LAST && halted() {
            p.kick(next);
        }
    }

    fn release<P: Platform, A: Admission>(p: &P, word: &P::Word) {
        let mut seen = LOCKED;
        loop {
            let mut head = None;
            if seen & SLEEPER != 0 {
                // ORDERING: pairs with the Release of `await_owner`, which set SLEEPER.
                p.fence(Acquire);
                head = sleeper(p, word);
                if FLAW == KICKS_EARLY {
                    kick(p, head.take());
                }
            }
            // ORDERING: Release pairs with the Acquire of the next owner.
            match word.compare_exchange(seen, seen & !(LOCKED | SLEEPER), Release) {
                Err(now) => seen = now,
                Ok(_) => {
                    if FLAW == ASKS_LATE && seen & SLEEPER != 0 {
                        head = word::tail(word.load(Relaxed));
                    }
                    return kick(p, head);
                }
            }
        }
    }
}
