//! The NUMA-aware order, right but for one flaw, in the real slow path.

use std::sync::atomic::Ordering::Relaxed;

use qspin_core::node::{HALTED, NodeId, RUNNING};
use qspin_core::order::{Arranged, Numa, Order};
use qspin_core::platform::{AtomicWord, Platform};

/// A flush that is due leads to nothing but that the secondary queue is forgotten.
pub const LOSES_SECONDARY: u8 = 1;
/// The last of the main queue clears the tail, although waiters are in the secondary queue.
pub const CLEARS_TAIL: u8 = 2;
/// No flush is ever due.
pub const NEVER_FLUSHES: u8 = 3;
/// A waiter that comes from the secondary queue is taken for one that runs.
pub const FORGETS_HALTED: u8 = 4;
/// An urgent waiter is put aside like others.
pub const MOVES_URGENT: u8 = 5;

/// In the head's `second_since`: a flush is due.
const FLUSH: u32 = u32::MAX;
/// In `place`: the waiter is urgent.
const URGENT: u32 = 1 << 31;

/// [`Numa`] with a flaw; `FLAW` says which.
#[derive(Debug)]
pub struct FlawedNuma<const FLAW: u8>;

impl<const FLAW: u8> Order for FlawedNuma<FLAW> {
    const ARRANGES: bool = true;

    fn begin<P: Platform>(p: &P, me: NodeId) {
        Numa::begin(p, me);
        if FLAW == MOVES_URGENT {
            let place = &p.node(me).place;
            place.store(place.load(Relaxed) & !URGENT, Relaxed);
        }
    }

    fn arranges_as_head<P: Platform>(p: &P, me: NodeId) -> bool {
        let node = p.node(me);
        let since = node.second_since.load(Relaxed);
        let arranges = Numa::arranges_as_head(p, me);
        let due = node.second_since.load(Relaxed) == FLUSH;
        match FLAW {
            LOSES_SECONDARY if due => {
                for word in [&node.second_head, &node.second_tail, &node.second_since] {
                    word.store(0, Relaxed);
                }
                arranges
            }
            NEVER_FLUSHES if due => {
                node.second_since.store(since, Relaxed);
                true
            }
            _ => arranges,
        }
    }

    fn arrange<P: Platform>(p: &P, me: NodeId) -> Arranged {
        Numa::arrange(p, me)
    }

    fn successor<P: Platform>(p: &P, me: NodeId, next: NodeId) -> NodeId {
        let chosen = Numa::successor(p, me, next);
        if chosen != next {
            forget(p, chosen, FLAW);
        }
        chosen
    }

    fn tail_after<P: Platform>(p: &P, me: NodeId) -> u32 {
        if FLAW == CLEARS_TAIL { 0 } else { Numa::tail_after(p, me) }
    }

    fn rest<P: Platform>(p: &P, me: NodeId) -> Option<NodeId> {
        let chosen = Numa::rest(p, me);
        if let Some(chosen) = chosen {
            forget(p, chosen, FLAW);
        }
        chosen
    }
}

fn forget<P: Platform>(p: &P, chosen: NodeId, flaw: u8) {
    if flaw == FORGETS_HALTED {
        let _ = p.node(chosen).state.compare_exchange(HALTED, RUNNING, Relaxed);
    }
}
