//! Where this thread runs at this moment.

use super::rseq::{self, Area};
use super::syscall::syscall;

/// Whether the system says so.
pub(crate) const IS_KNOWN: bool = true;

/// The node on which this thread runs, according to the kernel.
pub(crate) fn node() -> u32 {
    rseq::node().unwrap_or_else(|| {
        let mut node = 0_u32;
        // SAFETY: a valid place, and none for the CPU. If the call is refused, all threads are on one node.
        unsafe { syscall(libc::SYS_getcpu, [0, &raw mut node as u64, 0]) };
        node
    })
}

/// The CPU on which this thread runs.
#[inline]
pub(crate) fn cpu() -> usize {
    // SAFETY: this thread's own area, if it has one.
    match unsafe { rseq::mine().as_ref() }.and_then(Area::cpu) {
        Some(cpu) => cpu as usize,
        // SAFETY: a call without arguments. Negative if the kernel does not tell; the cast makes that a CPU
        // past the end.
        None => unsafe { libc::sched_getcpu() as usize },
    }
}

pub(crate) use rseq::cpu as runs_on;
