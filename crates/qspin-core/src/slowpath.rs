//! The one slow path of the queued lock, generic over the three axes.
//!
//! ```text
//! newcomer ──► Admission::newcomer ──► acquired
//!                     │ no
//!                     ▼
//!          a node? ── no ──► compete without one
//!                     │ yes
//!                     ▼
//!    make my node the tail ── no predecessor ──┐
//!                     │ link behind prev       │
//!                     ▼                        ▼
//!           Waiting::await_turn ──────────► I am the head
//!                                                 │ Waiting::await_owner
//!                                                 ▼
//!                    acquire the lock, and clear the tail if it is mine (WORD-5)
//!                                                 │ there is a waiter behind me
//!                                                 ▼
//!                              Order::successor, Waiting::hand_over
//! ```
//!
//! Invariants beside those of the word (WORD-1–WORD-5) and the nodes (NODE-1–NODE-3):
//!
//! * **SLOWPATH-1** The head is the only queued waiter that may acquire the lock. There is at most one, since the
//!   head leaves only after it has acquired the lock, in the step that hands the headship over.
//! * **SLOWPATH-2** Only the waiter that replaces a tail by its own node links behind that tail's node, exactly
//!   once.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::admission::Admission;
use crate::counting;
use crate::events::Event;
use crate::nesting::with_node;
use crate::node::NodeId;
use crate::order::Order;
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::waiting::{Headship, Waiting};
use crate::word::{self, LOCKED, SLEEPER, TAIL_MASK};

/// Acquires the lock after the fast path found `seen` in `word`.
#[cold]
#[inline(never)]
pub(crate) fn acquire<P, H, O, A>(p: &P, word: &P::Word, seen: u32)
where
    P: Platform,
    H: Waiting,
    O: Order,
    A: Admission,
{
    counting::count(p, Event::LockSlowpath);
    if A::newcomer(p, word, seen, H::pending_budget::<P>) {
        return;
    }
    if with_node(p, |me| queue::<P, H, O, A>(p, word, me)).is_none() {
        without_node::<P, A>(p, word);
    }
}

#[inline]
fn queue<P, H, O, A>(p: &P, word: &P::Word, me: NodeId)
where
    P: Platform,
    H: Waiting,
    O: Order,
    A: Admission,
{
    let node = p.node(me);
    node.begin();
    O::begin(p, me);

    if let Some(prev) = become_tail(p, word, me) {
        // SLOWPATH-2: no other waiter links behind `prev`.
        // ORDERING: Release pairs with the Acquire of `QueueNext`: the waiter that follows the link finds this
        // node's life begun.
        p.node(prev).next.store(me.number(), p.ordering(Site::QueueLink, Release));
        H::await_turn(p, me, prev);
    }

    // SLOWPATH-1: this is the head. Newcomers still change the tail under it, and one without a node may acquire
    // the lock. A compare-exchange that fails means just that, so poll again.
    let mut headship = Headship::default();
    let last = loop {
        let seen = H::await_owner::<P, O, A>(p, word, me, &mut headship);
        let last = seen & TAIL_MASK == word::tail_of(me);
        let tail = if last { O::tail_after(p, me) } else { seen & TAIL_MASK };
        // ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
        let order = p.ordering(Site::QueueHeadTake, Acquire);
        let taken = seen & !(TAIL_MASK | SLEEPER | A::HEAD_CLEARS) | tail | LOCKED;
        if word.compare_exchange(seen, taken, order).is_ok() {
            H::taken(p, word, seen);
            break last;
        }
    };

    let next = if last {
        O::rest(p, me)
    } else {
        // Another waiter made itself the tail behind this node and will link, if it has not yet.
        // ORDERING: Acquire pairs with the Release of `QueueLink`.
        let order = p.ordering(Site::QueueNext, Acquire);
        let next = p.wait_until(&node.next, Until::is_not(0), Budget::Unbounded, order);
        NodeId::from_number(next).map(|next| O::successor(p, me, next))
    };
    if let Some(next) = next {
        H::hand_over::<P, A>(p, word, next);
    }
}

/// Makes `me` the tail; returns the tail before it.
#[inline]
fn become_tail<P: Platform>(p: &P, word: &P::Word, me: NodeId) -> Option<NodeId> {
    let mut seen = word.load(Relaxed);
    loop {
        // ORDERING: Release publishes this node's life to the successor that reads this tail;
        // Acquire pairs with it: the predecessor's life has begun before this CPU links to it.
        let order = p.ordering(Site::QueueTail, AcqRel);
        match word.compare_exchange(seen, seen & !TAIL_MASK | word::tail_of(me), order) {
            Ok(_) => return word::tail(seen),
            Err(now) => seen = now,
        }
    }
}

/// Competes without a place in the queue: exclusive, but as unfair as any test-and-set.
#[cold]
fn without_node<P: Platform, A: Admission>(p: &P, word: &P::Word) {
    loop {
        let seen = p.wait_until(word, Until::clear(A::OCCUPIED), Budget::Unbounded, Relaxed);
        // WORD-4. ORDERING: Acquire pairs with the owner's Release (`QueueRelease`).
        let order = p.ordering(Site::QueueNoNodeTake, Acquire);
        if word.compare_exchange(seen, seen | LOCKED, order).is_ok() {
            return;
        }
    }
}
