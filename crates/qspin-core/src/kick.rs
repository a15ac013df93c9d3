//! Halting a waiter, and kicking a halted one: with the counts and times of document 000.

use core::sync::atomic::Ordering::Relaxed;

use crate::counting;
use crate::events::{Event, Events};
use crate::node::NodeId;
use crate::platform::{AtomicWord, Platform};

/// Halts; the time since the kick is counted, where there are statistics.
pub(crate) fn halt<P: Platform>(p: &P, me: NodeId) {
    if !P::Events::ENABLED {
        return p.halt(me);
    }
    let time = &p.node(me).kick_time;
    time.store(0, Relaxed);
    p.halt(me);
    let kicked = time.load(Relaxed);
    if kicked != 0 {
        counting::count(p, Event::KickTimeCount);
        let latency = (p.now_ns() as u32).wrapping_sub(kicked);
        counting::add(p, Event::WakeLatencies, latency.into());
    }
}

/// Kicks `node` and counts that, and the time that it takes.
pub(crate) fn kick<P: Platform>(p: &P, node: NodeId, event: Event) {
    counting::count(p, event);
    let start = if P::Events::ENABLED { p.now_ns() } else { 0 };
    if start == 0 {
        return p.kick(node);
    }
    // The latencies are below 4 s; 0 would mean "not kicked".
    p.node(node).kick_time.store((start as u32).max(1), Relaxed);
    p.kick(node);
    counting::add(p, Event::KickLatencies, p.now_ns().saturating_sub(start));
}
