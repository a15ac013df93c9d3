//! Compact NUMA-aware order (CNA): waiters near the owner first, within bounds.
//!
//! # Problem
//! A lock that goes from one NUMA node to another takes its line, and the lines that it protects, across the
//! interconnect. First come, first served sends it there with most hand-overs.
//!
//! # Source
//! CNA v15 (document 002): Alex Kogan, "Add NUMA-awareness to qspinlock", v15; Dice and Kogan, "Compact
//! NUMA-aware Locks", EuroSys 2019. Beyond it: *distance* instead of sameness, below.
//!
//! # States
//! ```text
//!  main queue      me ──► near ──► near ──► far ──► … ──► tail
//!  secondary        └──► far ──► far            (from `me.second_head` to `me.second_tail`)
//!
//!  a far waiter with one behind it     ──arrange──► end of the secondary queue
//!  threshold passed                    ──flush────► secondary, then main
//!  main queue empty behind me          ──tail_after► secondary becomes main
//! ```
//! Both queues live in the nodes alone. The head of the main queue owns the secondary one, and passes it on with
//! the headship.
//!
//! # Distance
//! A waiter is near if no other can be nearer to the head (`Platform::distance` 0). Where none is near, because
//! the main queue has run empty, the nearest among the first of the secondary queue come first, and only
//! waiters before them stay. With one level of distance that is CNA exactly.
//!
//! # Invariants
//! * **NUMA-1** Only a node behind which another is linked is moved: the tail stays the tail, and the newcomer
//!   that will link behind it finds it where it was (SLOWPATH-2).
//! * **NUMA-2** The secondary queue is owned by the head of the main queue, from its turn until it hands over, by
//!   a release that the next head acquires (`QueueHandOver`, `QueueTurn`).
//! * **NUMA-3** The waiters of the secondary queue, and behind them those of the main one, stand in the order in
//!   which they came: the waiter that is moved was the first of the main queue and becomes the last of the
//!   secondary one, and a flush puts that in front again. A flush is due `numa_threshold_ns` after a waiter was
//!   moved to a secondary queue that was empty. Every head checks once, when it becomes the head; a head that
//!   finds it due hands over to the longest waiting of all. The bound is below.
//! * **NUMA-4** An urgent waiter is never moved, so no waiter of the queue that came later is served before it;
//!   thieves and a pending waiter may be, where the admission lets them.
//!
//! Where waiters halt ([`Halt`](crate::waiting::Halt)):
//!
//! * **NUMA-5** A head changes the queue only while no owner follows its links to kick ahead. An owner does that
//!   from a head that is in the hash (SLEEPER is set), or that it is about to enter there (CLAIMED). So a head
//!   that was given its turn while it was halted arranges once it is awake and its entry is gone.
//! * **NUMA-6** Moving a waiter, or flushing, changes only links: a halted waiter stays halted, and is kicked
//!   when the headship is handed to it (HALT-1), from whichever queue it comes. No wake-up is lost.
//! * **NUMA-7** A kick ahead follows the links of the main queue, so it goes to the next successors; no waiter of
//!   the secondary queue is chosen. (A head that is kicked at the same time may still move a waiter that has been
//!   chosen before; that one then wakes in vain.)
//!
//! # The bound
//! By NUMA-3 a waiter is passed by later ones only while it is in the secondary queue. It is moved there only
//! when no waiter that came before it is left of the place that is preferred then; and a flush prefers the place
//! of the longest waiting of all, be it the waiter itself. So each place but its own is preferred past it once at
//! most. From being moved to the flush at most as many heads pass it as have their turn within
//! `numa_threshold_ns`, and the one that then finds the flush due. With P places and H heads within the
//! threshold, a waiter is passed, apart from urgent ones, by at most (P - 1) (H + 1) that came later: no waiter
//! waits longer than (P - 1) flushes and for those that came before it. With an admission that lets newcomers
//! steal, that counts heads, not thieves.
//!
//! # Limits
//! The clock is 32 bits of nanoseconds. Where heads come less often than every 4 s, a flush may be found due some
//! heads later than it was. On a platform without a clock no queue is flushed.
//!
//! When the main queue has run empty, the new owner reads the first [`NEAREST_OF`] of the secondary one for the
//! nearest (`rest`), while others wait for the lock. The series reads none; reading all of a long queue costs a
//! transfer each under the lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{Arranged, Order};
use crate::counting;
use crate::events::{Event, Events};
use crate::node::{Node, NodeId};
use crate::platform::{AtomicWord, Platform};
use crate::site::Site;
use crate::word;

/// Waiters near the owner first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Numa;

/// In `place`: this waiter is urgent (NUMA-4).
const URGENT: u32 = 1 << 31;
/// In `second_since`: the secondary queue should be flushed. (A clock that happens to show this value flushes
/// early.)
const FLUSH: u32 = u32::MAX;

/// How many of the secondary queue are searched for the nearest, when the main queue has run empty: with so many
/// the nearest of a machine's levels is among them more often than not.
const NEAREST_OF: u32 = 4;

impl Order for Numa {
    const ARRANGES: bool = true;

    #[inline]
    fn begin<P: Platform>(p: &P, me: NodeId) {
        let node = p.node(me);
        let urgent = if p.is_urgent() { URGENT } else { 0 };
        let place = p.place() & !URGENT;
        node.place.begin(place | urgent);
        node.near_to.begin(place);
        node.second_head.begin(0);
        node.second_tail.begin(0);
        node.second_since.begin(0);
    }

    fn arranges_as_head<P: Platform>(p: &P, me: NodeId) -> bool {
        let node = p.node(me);
        if node.second_head.load(Relaxed) != 0 {
            // NUMA-3.
            let waits = now(p).wrapping_sub(node.second_since.load(Relaxed));
            if waits >= p.tuning().numa_threshold_ns {
                node.second_since.store(FLUSH, Relaxed);
                return false;
            }
        } else if skips(p, node) {
            counting::count(p, Event::CnaShuffleSkip);
            return false;
        }
        true
    }

    #[inline]
    fn arrange<P: Platform>(p: &P, me: NodeId) -> Arranged {
        arrange_within(p, me, 0)
    }

    #[inline]
    fn tail_after<P: Platform>(p: &P, me: NodeId) -> u32 {
        node_in(&p.node(me).second_tail).map_or(0, word::tail_of)
    }

    fn rest<P: Platform>(p: &P, me: NodeId) -> Option<NodeId> {
        let node = p.node(me);
        let first = node_in(&node.second_head)?;
        // The secondary queue is the main one now.
        node.next.store(first.number(), Relaxed);
        node.second_head.store(0, Relaxed);
        node.second_tail.store(0, Relaxed);
        if node.second_since.load(Relaxed) == FLUSH {
            counting::count(p, Event::CnaFlush);
        } else {
            let nearest = nearest(p, node, first);
            while arrange_within(p, me, nearest) == Arranged::Moved {}
        }
        let next = node_in(&node.next)?;
        hand_on(p, node, next, false);
        Some(next)
    }

    fn successor<P: Platform>(p: &P, me: NodeId, next: NodeId) -> NodeId {
        let node = p.node(me);
        let last = node_in(&node.second_tail);
        let first = node_in(&node.second_head);
        let (Some(first), Some(last)) = (first, last) else {
            hand_on(p, node, next, false);
            return next;
        };
        if node.second_since.load(Relaxed) != FLUSH {
            hand_on(p, node, next, true);
            return next;
        }
        // NUMA-3: the longest waiting first, then the main queue. NUMA-6: none is kicked, none is forgotten.
        counting::count(p, Event::CnaFlush);
        p.node(last).next.store(next.number(), Relaxed);
        node.second_head.store(0, Relaxed);
        hand_on(p, node, first, false);
        first
    }
}

/// Passes the secondary queue on to `next`; and the place to be near to, if that is kept.
fn hand_on<P: Platform>(p: &P, node: &Node<P::Word>, next: NodeId, keeps_place: bool) {
    let to = p.node(next);
    if P::Events::COUNTS {
        count_hand_over(p, node, to);
    }
    let head = node.second_head.load(Relaxed);
    if head == 0 {
        return;
    }
    // NUMA-2: published by the hand-over.
    to.second_head.store(head, Relaxed);
    to.second_tail.store(node.second_tail.load(Relaxed), Relaxed);
    to.second_since.store(node.second_since.load(Relaxed), Relaxed);
    if keeps_place {
        to.near_to.store(node.near_to.load(Relaxed), Relaxed);
    }
}

fn count_hand_over<P: Platform>(p: &P, from: &Node<P::Word>, to: &Node<P::Word>) {
    let there = to.place.observe();
    if there & URGENT != 0 {
        counting::count(p, Event::CnaPrioritised);
    }
    let here = from.place.observe() & !URGENT;
    let local = p.distance(here, there & !URGENT) == 0;
    counting::count(p, if local { Event::CnaLocalHandoff } else { Event::CnaRemoteHandoff });
}

/// Moves the waiter behind the head to the secondary queue if it is farther than `most`.
fn arrange_within<P: Platform>(p: &P, me: NodeId, most: u32) -> Arranged {
    let node = p.node(me);
    // ORDERING: Acquire pairs with the Release of `QueueLink`.
    let order = p.ordering(Site::NumaNext, Acquire);
    let Some(next) = NodeId::from_number(node.next.load(order)) else {
        return Arranged::Waits;
    };
    let far = p.node(next);
    let place = far.place.load(Relaxed);
    if place & URGENT != 0 || p.distance(node.near_to.load(Relaxed), place) <= most {
        return Arranged::Settled;
    }
    // NUMA-1.
    let after = far.next.load(order);
    if after == 0 {
        return Arranged::Waits;
    }
    node.next.store(after, Relaxed);
    far.next.store(0, Relaxed);
    let number = next.number();
    match node_in(&node.second_tail) {
        Some(last) => p.node(last).next.store(number, Relaxed),
        None => {
            node.second_head.store(number, Relaxed);
            // Kept where some of a secondary queue stay behind (`rest`).
            if node.second_since.load(Relaxed) == 0 {
                node.second_since.store(now(p), Relaxed);
            }
        }
    }
    node.second_tail.store(number, Relaxed);
    counting::count(p, Event::CnaSplice);
    Arranged::Moved
}

/// The node that a word of a node names.
#[inline]
fn node_in<W: AtomicWord>(word: &W) -> Option<NodeId> {
    NodeId::from_number(word.load(Relaxed))
}

/// The distance of the nearest of the first [`NEAREST_OF`] in the queue that begins with `first`. An urgent one
/// counts as near.
fn nearest<P: Platform>(p: &P, node: &Node<P::Word>, first: NodeId) -> u32 {
    let near_to = node.near_to.load(Relaxed);
    let mut nearest = u32::MAX;
    let mut next = Some(first);
    for _ in 0..NEAREST_OF {
        let Some(waiter) = next else { break };
        let place = p.node(waiter).place.load(Relaxed);
        let urgent = place & URGENT != 0;
        nearest = nearest.min(if urgent { 0 } else { p.distance(near_to, place) });
        // ORDERING: as in `arrange_within`: a newcomer may have linked behind the last of them by now.
        let order = p.ordering(Site::NumaNext, Acquire);
        next = NodeId::from_number(p.node(waiter).next.load(order));
    }
    nearest
}

/// Nanoseconds, the low bits; never 0.
#[inline]
fn now<P: Platform>(p: &P) -> u32 {
    p.now_ns() as u32 | 1
}

/// Shuffle reduction: while the secondary queue is empty, most heads do not arrange. Whether this one does is
/// drawn from its node's random generator.
fn skips<P: Platform>(p: &P, node: &Node<P::Word>) -> bool {
    let bits = p.tuning().numa_skip_bits;
    if bits == 0 {
        return false;
    }
    node.throw(bits) != 0
}

#[cfg(test)]
mod tests;
