//! A node for a wait: the one of this CPU's next nesting level.
//!
//! [`crate::node`] has the invariants.

use core::sync::atomic::Ordering::Relaxed;

use crate::atomic::AtomicWord;
use crate::counting;
use crate::events::Event;
use crate::node::NodeId;
use crate::platform::Platform;
use crate::processor::compiler_barrier;

/// Runs `queue` with a node of this CPU, or returns `None` where there is none: the CPU has no
/// number, or all its levels are in use.
#[inline]
pub(crate) fn with_node<P: Platform, R>(p: &P, queue: impl FnOnce(NodeId) -> R) -> Option<R> {
    let Some(first) = p.cpu().and_then(|cpu| NodeId::new(cpu, 0)) else {
        counting::count(p, Event::LockNoNode);
        return None;
    };
    let nesting = &p.node(first).nesting;
    let level = nesting.load(Relaxed);
    let Some(id) = NodeId::new(first.cpu(), level) else {
        counting::count(p, Event::LockNoNode);
        return None;
    };
    match level {
        0 => {}
        1 => counting::count(p, Event::LockUseNode2),
        2 => counting::count(p, Event::LockUseNode3),
        _ => counting::count(p, Event::LockUseNode4),
    }
    // NODE-1: an interrupt between the load and the store leaves `nesting` as it found it. The compiler barriers
    // keep every use of the node between the two stores, as an interrupt on this CPU sees them; other CPUs do not
    // read `nesting`.
    nesting.store(level + 1, Relaxed);
    compiler_barrier();
    let result = queue(id);
    compiler_barrier();
    nesting.store(level, Relaxed);
    Some(result)
}
