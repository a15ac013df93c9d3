//! The system below the threads: Linux with the GNU C library, on x86-64, ARM, powerpc and RISC-V.
//!
//! [`portable`](../portable/index.html) is the other one, with the same items.

pub(crate) mod barrier;
pub(crate) mod clock;
pub(crate) mod cpus;
#[cfg(feature = "ebpf")]
pub mod ebpf;
pub(crate) mod environment;
pub(crate) mod errno;
mod futex;
pub(crate) mod generation;
pub(crate) mod holder;
#[doc(hidden)]
pub mod inside;
pub(crate) mod listen;
pub(crate) mod load;
pub(crate) mod location;
pub(crate) mod memory;
pub(crate) mod page;
pub(crate) mod processor;
pub(crate) mod publish;
mod rseq;
pub mod run_status;
mod signals;
pub(crate) mod syscall;
pub(crate) mod threads;
pub(crate) mod tunables;
pub mod urgency;

use qspin_core::node::NodeId;

pub(crate) use self::run_status::Slot;
pub(crate) use self::syscall::say_unless_blocked;
use self::syscall::syscall;
use super::nodes::node;

/// What programs may use of this system.
pub(crate) mod public {
    #[cfg(feature = "ebpf")]
    pub use super::ebpf;
    pub use super::{run_status, urgency};
}

/// Halts this thread, which waits with its node `me`, until that node is kicked. May return early.
#[inline]
pub(crate) fn halt(me: NodeId) {
    inside::sleeps();
    futex::halt(&node(me).kick);
}

/// As [`halt`], but at the latest until this time of [`clock::now_ns`].
pub(crate) fn halt_until(me: NodeId, deadline_ns: u64) {
    inside::sleeps();
    futex::halt_until(&node(me).kick, deadline_ns);
}

/// Ends the halt of that node, or its next one.
#[inline]
pub(crate) fn kick(id: NodeId) {
    futex::kick(&node(id).kick);
}

/// Sleeps for so long, below a second.
pub(crate) fn sleep_ns(nanoseconds: u32) {
    inside::sleeps();
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds.into() };
    // SAFETY: a valid place, and none for the rest of the time.
    unsafe { syscall(libc::SYS_nanosleep, [&raw const time as u64, 0]) };
}

/// Gives the CPU to any thread that can use it.
#[inline]
pub(crate) fn yield_cpu() {
    // SAFETY: a system call without arguments that touches no memory of ours.
    unsafe { libc::sched_yield() };
}

/// A number below 2^31 that no other thread has meanwhile, for one that has no [`CpuId`](crate::platform::cpu).
pub(crate) fn stranger() -> u32 {
    // SAFETY: asks for a number.
    unsafe { syscall::<0>(libc::SYS_gettid, []) as u32 }
}
