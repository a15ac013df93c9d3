//! Paravirt waiting: spin a little, then halt until kicked.
//!
//! # Problem
//! A waiter whose virtual CPU spins takes time from the CPU that it waits for; a waiter that is preempted when
//! its turn comes stalls all waiters behind it.
//!
//! # Source
//! Linux, `kernel/locking/qspinlock_paravirt.h`, and document 000: Waiman Long, "locking/qspinlock: Enhance
//! pvqspinlock performance", v2, with its review. Will Deacon's remark there on the failed compare-exchange is
//! `HaltSlow`; `await_turn` has a second place like it.
//!
//! # States of a node
//! ```text
//!            spun long enough              predecessor hands over, and defers the kick
//!  RUNNING ───────────────────► HALTED ──────────────────────► CLAIMED ──────────► HASHED
//!    │ ▲                          │                                     in the hash  │ ▲
//!    │ ├── woken; kicked ahead; ◄─┘                                                  │ │
//!    │ │   handed over and kicked                                                    │ │
//!    │ └─────────────────────────── woken, as the head ◄─────────────────────────────┘ │
//!    └───────────────────────────── halts as the head ────────────────────────────────►┘
//! ```
//!
//! # Invariants
//! * **HALT-1** A waiter sets HALTED, then reads `locked`; the predecessor sets `locked`, then reads the state; a
//!   full fence lies between the two on both sides. So the waiter sees its turn, or the predecessor sees it
//!   halted (and kicks it, or defers the kick).
//! * **HALT-2** SLEEPER is set only while the lock is held, after the head's entry is in the hash. So the owner
//!   that then releases finds both, or leaves both to the next owner.
//! * **HALT-3** A head halts only after it has seen SLEEPER set, for its own entry; the thread that clears
//!   SLEEPER kicks it after that, unless it is the head itself. Kicks are sticky (PLATFORM-4), so none is lost.
//! * **HALT-4** The releasing thread does not touch the lock after the step that releases it.
//! * **HALT-5** The state of a node is changed by its owner, by the predecessor that hands over to it, and by an
//!   owner of the lock that kicks ahead. The latter two hold the lock then, so that the node's owner cannot leave
//!   the queue before they are done (NODE-2).
//! * **HALT-6** While a state is CLAIMED, the predecessor is entering the node in the hash, and no other CPU
//!   enters it or changes the state. If its owner wakes and becomes the head meanwhile, it halts once more: the
//!   predecessor, or a later owner, will kick it.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::{Headship, Waiting, hash};
use crate::admission::Admission;
use crate::counting;
use crate::events::Event;
use crate::kick::{halt, kick};
use crate::node::{CLAIMED, HALTED, HASHED, Node, NodeId, RUNNING, TURN};
use crate::order::{Arranged, Order};
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::tuning::{Adaptive, Defer, KICK_AHEAD_MAX};
use crate::word::{LOCKED, NO_STEAL, SLEEPER};

/// Spins, then halts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Halt;

impl Waiting for Halt {
    #[inline]
    fn pending_budget<P: Platform>(p: &P) -> Option<Budget> {
        let tuning = p.tuning();
        tuning.pending.then_some(Budget::Polls(tuning.pending_wait_polls))
    }

    fn await_turn<P: Platform>(p: &P, me: NodeId, prev: NodeId) {
        let node = p.node(me);
        while !watch(p, me, prev) {
            // A compare-exchange, not a store: CLAIMED means that the turn has come already. That is the second
            // place like Deacon's: the failure below orders nothing, so the next read may be a stale "not yet my
            // turn", and a store would halt over HASHED.
            if node.state.compare_exchange(RUNNING, HALTED, Relaxed).is_ok() {
                // HALT-1. ORDERING: pairs with the fence of `hand_over`.
                p.fence(p.ordering(Site::HaltWaiterFence, SeqCst));
                if node.locked.load(Relaxed) != TURN {
                    counting::count(p, Event::WaitNodeCount);
                    halt(p, me);
                }
                // Fails if the predecessor has handed over, or an owner has kicked ahead.
                let _ = node.state.compare_exchange(HALTED, RUNNING, Relaxed);
            }
            // ORDERING: Acquire pairs with the Release of `hand_over`.
            if node.locked.load(p.ordering(Site::QueueTurn, Acquire)) == TURN {
                return;
            }
            counting::count(p, Event::SpuriousWakeup);
        }
    }

    fn await_owner<P: Platform, O: Order, A: Admission>(
        p: &P,
        word: &P::Word,
        me: NodeId,
        headship: &mut Headship,
    ) -> u32 {
        if headship.begins::<P, O>(p, me) {
            headship.spin_budget = A::spin_budget(p);
            forget(p, p.node(me));
        } else {
            // The head saw the lock free, and lost the race for it.
            headship.spin_budget = headship.spin_budget.saturating_sub(1);
        }
        let free = Until::clear(A::OCCUPIED);
        loop {
            let mut polls = p.tuning().head_polls;
            while polls > 0 {
                let mut chunk = polls;
                if A::STEALS {
                    if headship.spin_budget > 0 {
                        chunk = headship.spin_budget.min(polls);
                    } else if word.load(Relaxed) & NO_STEAL == 0 {
                        word.fetch_or(NO_STEAL, Relaxed);
                        headship.raised = true;
                    }
                }
                if O::ARRANGES && headship.arranges && may_arrange(p, word, me) {
                    headship.arranges = O::arrange(p, me) != Arranged::Settled;
                    if headship.arranges {
                        chunk = 1;
                    }
                }
                let seen = p.wait_until(word, free, Budget::Polls(chunk), Relaxed);
                if free.met_by(seen) {
                    return seen;
                }
                polls -= chunk;
                headship.spin_budget = headship.spin_budget.saturating_sub(chunk);
            }
            match sleep(p, word, me, free, headship) {
                Some(seen) => return seen,
                None => headship.spin_budget = A::spin_budget(p),
            }
        }
    }

    #[inline]
    fn taken<P: Platform>(p: &P, word: &P::Word, seen: u32) {
        if seen & SLEEPER != 0 {
            // A spurious wake-up: the entry is still there, and belongs to the owner now (HASH-1).
            hash::remove(p, word);
        }
    }

    fn hand_over<P: Platform, A: Admission>(p: &P, word: &P::Word, next: NodeId) {
        let node = p.node(next);
        // ORDERING: Release pairs with the Acquire of `await_turn`.
        node.locked.store(TURN, p.ordering(Site::QueueHandOver, Release));
        // HALT-1. ORDERING: pairs with the fence of `await_turn`.
        p.fence(p.ordering(Site::HaltHandOverFence, SeqCst));
        if node.state.load(Relaxed) == RUNNING {
            return;
        }
        // A compare-exchange, not a swap: the waiter may be the head by now, and halted as such.
        let deferred = defers::<P, A>(p, node);
        let state = if deferred { CLAIMED } else { RUNNING };
        if node.state.compare_exchange(HALTED, state, Relaxed).is_err() {
            return;
        }
        if deferred {
            let inserted = hash::insert(p, word, next).is_some();
            if inserted {
                // HALT-2. Relaxed: this CPU owns the lock. Its release finds the entry, or publishes it to the
                // next owner.
                word.fetch_or(SLEEPER, Relaxed);
            }
            // HALT-6. ORDERING: Release pairs with the Acquire of `HaltClaimed`.
            node.state.store(HASHED, p.ordering(Site::HaltHashed, Release));
            if inserted {
                return;
            }
        }
        kick(p, next, Event::LockKickCount);
    }

    #[inline]
    fn release<P: Platform, A: Admission>(p: &P, word: &P::Word) {
        // ORDERING: Release pairs with the Acquire of the next acquisition.
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
    let mut turn = None;
    // ORDERING: as in `release`.
    let order = p.ordering(Site::QueueRelease, Release);
    while seen & SLEEPER == 0
        || A::may_leave_asleep(seen) && *turn.get_or_insert_with(|| A::leaves_asleep(p))
    {
        match word.compare_exchange(seen, seen & !LOCKED, order) {
            Ok(_) => return A::released(p, seen, false),
            Err(now) => seen = now,
        }
    }
    // SLEEPER was seen by a compare-exchange that failed, which orders nothing (Deacon).
    // ORDERING: Acquire pairs with the Release of `HaltSleeper`: the entry is there (HASH-3).
    p.fence(p.ordering(Site::HaltSlow, Acquire));
    let head = hash::remove(p, word);
    let mut ahead = [None; KICK_AHEAD_MAX];
    if let Some(head) = head {
        collect(p, head, &mut ahead);
    }
    while let Err(now) = word.compare_exchange(seen, seen & !(LOCKED | SLEEPER), order) {
        seen = now;
    }
    // HALT-4: from here on the lock may be freed. Nodes stay, and a kick may come late (PLATFORM-4).
    if let Some(head) = head
        && is_to_be_kicked(p, head)
    {
        kick(p, head, Event::UnlockKickCount);
    }
    for node in ahead.into_iter().flatten() {
        kick(p, node, Event::KickAheadCount);
    }
    A::released(p, seen, true);
}

/// Patch 1 of the series: kick whatever the state. Before it: kick only a head that the release sees halted.
#[inline]
fn is_to_be_kicked<P: Platform>(p: &P, head: NodeId) -> bool {
    if p.tuning().kick_unconditionally {
        return true;
    }
    // A head that halts stores its state, then reads SLEEPER; here SLEEPER is cleared, then the state is read.
    // ORDERING: pairs with the fence of `sleep`.
    p.fence(p.ordering(Site::HaltKickFence, SeqCst));
    p.node(head).state.peek() != RUNNING
}

/// Whether the kick of the new head is left to the release.
#[inline]
fn defers<P: Platform, A: Admission>(p: &P, next: &Node<P::Word>) -> bool {
    let tuning = p.tuning();
    match tuning.defer {
        _ if A::ALWAYS_DEFERS => true,
        Defer::Never => false,
        Defer::Always => true,
        Defer::Conditions => {
            tuning.kick_ahead == 0 || {
                // ORDERING: Acquire pairs with the Release of `QueueLink`.
                let second = next.next.load(p.ordering(Site::HaltAheadNext, Acquire));
                NodeId::from_number(second)
                    .is_some_and(|second| p.node(second).state.load(Relaxed) == HALTED)
            }
        }
    }
}

/// Sets halted waiters behind `head` to running; the caller kicks them after the release. The links do not change
/// meanwhile, and lead to the next successors (NUMA-5, NUMA-7 of the order).
fn collect<P: Platform>(p: &P, head: NodeId, ahead: &mut [Option<NodeId>; KICK_AHEAD_MAX]) {
    let mut node = head;
    for place in ahead.iter_mut().take(p.tuning().kick_ahead as usize) {
        // HALT-5: the head waits for the lock that this CPU holds, so the waiters behind it stay, too.
        // ORDERING: Acquire pairs with the Release of `QueueLink`.
        let next = p.node(node).next.load(p.ordering(Site::HaltAheadNext, Acquire));
        let Some(next) = NodeId::from_number(next) else { return };
        if p.node(next).state.compare_exchange(HALTED, RUNNING, Relaxed).is_err() {
            return;
        }
        *place = Some(next);
        node = next;
    }
}

/// Whether the head may change the queue (NUMA-5 of the order): the owner of the lock follows the links to kick
/// ahead, but only while the head is in the hash, or is being entered (HALT-6).
fn may_arrange<P: Platform>(p: &P, word: &P::Word, me: NodeId) -> bool {
    // ORDERING: Acquire pairs with the Release of `HaltHashed`.
    let state = p.node(me).state.load(p.ordering(Site::HaltClaimed, Acquire));
    state != CLAIMED && word.load(Relaxed) & SLEEPER == 0
}

/// Halts as the head; or returns the word, if the lock is free by now.
#[cold]
fn sleep<P: Platform>(
    p: &P,
    word: &P::Word,
    me: NodeId,
    free: Until,
    headship: &mut Headship,
) -> Option<u32> {
    let node = p.node(me);
    // HALT-6. ORDERING: Acquire pairs with the Release of `HaltHashed`: a thread that sees the state
    // HASHED, and then no SLEEPER, knows that the entry has been there and is gone.
    if node.state.load(p.ordering(Site::HaltClaimed, Acquire)) == CLAIMED {
        count_halt(p, node, headship);
        halt(p, me);
        return None;
    }
    node.state.swap(HASHED, Relaxed);
    // Before the word is read: a release that kicks only a head that it sees halted goes the other way round.
    // ORDERING: pairs with the fence of `is_to_be_kicked`.
    p.fence(p.ordering(Site::HaltSleepFence, SeqCst));
    let mut inserted = None;
    let mut seen = word.load(Relaxed);
    while seen & SLEEPER == 0 {
        if seen & LOCKED != 0 && inserted.is_none() {
            inserted = hash::insert(p, word, me);
        }
        if seen & LOCKED == 0 || inserted.is_none() {
            if let Some(entry) = inserted {
                // SLEEPER was not set for this entry, so the entry still belongs to this CPU (HASH-1).
                hash::free(p, entry);
            }
            node.state.swap(RUNNING, Relaxed);
            return free.met_by(seen).then_some(seen);
        }
        // HALT-2. A head that sleeps does not forbid stealing.
        // ORDERING: Release pairs with the Acquire of `HaltSlow`.
        let order = p.ordering(Site::HaltSleeper, Release);
        let rest = if headship.raised { seen & !NO_STEAL } else { seen };
        match word.compare_exchange(seen, rest | SLEEPER, order) {
            Ok(_) => {
                headship.raised = false;
                break;
            }
            Err(now) => seen = now,
        }
    }
    count_halt(p, node, headship);
    halt(p, me);
    node.state.swap(RUNNING, Relaxed);
    None
}

/// The head is about to halt.
fn count_halt<P: Platform>(p: &P, node: &Node<P::Word>, headship: &mut Headship) {
    remember(p, node, p.tuning().history_increment);
    counting::count(p, Event::WaitHeadCount);
    if headship.halted {
        counting::count(p, Event::PvWaitAgain);
    }
    headship.halted = true;
}

/// Watches for the turn of `me` for as long as that is worthwhile; returns whether it has come.
fn watch<P: Platform>(p: &P, me: NodeId, prev: NodeId) -> bool {
    let tuning = p.tuning();
    let node = p.node(me);
    // The node of another CPU, which may be in its next life by now: hints only.
    let neighbour = p.node(prev);
    let halted = || neighbour.locked.peek() != TURN && neighbour.state.peek() == HALTED;
    let preempted = || tuning.heed_preempted && p.is_preempted(prev.cpu());
    // As Linux asks: a head that is halted counts, too; and until 2019, whether it was preempted.
    let stopped = || {
        tuning.adaptive == Adaptive::Periodic && (neighbour.state.peek() != RUNNING || preempted())
    };
    // The threshold to begin with, and whether to read the neighbour's state again in between.
    let by_history = tuning.adaptive == Adaptive::History
        && node.history.load(Relaxed) > tuning.history_threshold;
    let short = (tuning.queue_polls / tuning.short_divisor.max(1)).max(1);
    let mut early = by_history && halted() || preempted();
    let mut polls = match tuning.adaptive {
        Adaptive::Neighbour if halted() => {
            early = true;
            1
        }
        _ if early => short,
        _ => tuning.queue_polls,
    };
    // ORDERING: Acquire pairs with the Release of `hand_over`.
    let order = p.ordering(Site::QueueTurn, Acquire);
    let turn = Until::is(TURN);
    let looks_back = by_history || tuning.adaptive == Adaptive::Periodic;
    while polls > 0 {
        if stopped() {
            // Not without a poll of its own turn: a waiter that was handed the lock meanwhile must see it.
            early = true;
            polls = 1;
        }
        let chunk = if looks_back { polls.min(tuning.check_polls.max(1)) } else { polls };
        if turn.met_by(p.wait_until(&node.locked, turn, Budget::Polls(chunk), order)) {
            return true;
        }
        polls -= chunk;
        if by_history && polls > 0 && halted() != early {
            early = !early;
            if !early {
                polls = tuning.queue_polls;
            } else if tuning.kick_ahead > 0 {
                break;
            } else {
                polls = polls.min(short);
            }
        }
    }
    for _ in 0..tuning.queue_yields {
        p.yield_to(prev.cpu());
        if turn.met_by(node.locked.load(order)) {
            return true;
        }
    }
    if early {
        counting::count(p, Event::WaitEarlyCount);
    }
    remember(p, node, if early { 1 } else { tuning.history_increment });
    false
}

/// One more halt in this context's history.
fn remember<P: Platform>(p: &P, node: &Node<P::Word>, increment: u32) {
    let history = node.history.load(Relaxed);
    if history < p.tuning().history_max {
        node.history.store(history.saturating_add(increment), Relaxed);
    }
}

/// One more slow path in this context's history.
fn forget<P: Platform>(p: &P, node: &Node<P::Word>) {
    let history = node.history.load(Relaxed);
    if history > p.tuning().history_min {
        node.history.store(history - 1, Relaxed);
    }
}
