//! A heavy barrier: every thread of the process passes a full fence, at the cost of one.
//!
//! # Problem
//! A release that is a plain store saves a fence, half the price of an uncontended lock, if those few
//! that want to sleep can pay for it. Linux's `membarrier` does just that: it interrupts the CPUs on which
//! threads of this process run.
//!
//! # How
//! The process registers when it is loaded. If that is refused (an old kernel, a filter of system calls),
//! or `QSPIN_MEMBARRIER=off` forbids it, there is no such barrier, and every release is a read-modify-write.
//!
//! # Invariants
//! * **B1** [`available`] promises a barrier to whoever has seen it. If the call is refused later, by a
//!   filter that came after the registration, nobody is promised one any more; and the barrier is a wait of
//!   a millisecond, in which every processor has long written down what it had stored.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::fence;
use core::sync::atomic::{AtomicBool, AtomicU32};

use super::syscall::{say_unless_blocked, syscall};

/// There is none, and has never been.
const NONE: u32 = 0;
const AVAILABLE: u32 = 1;
/// There was one.
const LOST: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(NONE);

/// A wait that stands in for a barrier (B1).
const STAND_IN_NS: i64 = 1_000_000;

/// Whether there is a heavy barrier, and will be one for whoever relies on it now.
#[inline]
pub(super) fn available() -> bool {
    STATE.load(Relaxed) == AVAILABLE
}

/// Whether the environment forbids it.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Registers the process when it starts.
pub(super) fn register() {
    FORBIDDEN.store(!allowed(), Relaxed);
    register_again();
}

/// Registers a child. The environment is not asked again: another thread of the parent may have been about to
/// change it.
pub(super) fn register_again() {
    let available = !FORBIDDEN.load(Relaxed) && membarrier(REGISTER);
    STATE.store(if available { AVAILABLE } else { NONE }, Relaxed);
}

const REGISTER: i32 = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
const EXPEDITED: i32 = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;

/// Every thread passes a full fence between the call and the return.
#[cold]
pub(super) fn pass() {
    // Where there was never a barrier nobody relies on one: each side passes its own fence.
    fence(SeqCst);
    if STATE.load(Relaxed) == NONE || membarrier(EXPEDITED) {
        return;
    }
    // B1.
    STATE.store(LOST, Relaxed);
    let time = libc::timespec { tv_sec: 0, tv_nsec: STAND_IN_NS };
    // SAFETY: a valid place, and none for the rest of the time.
    unsafe { syscall(libc::SYS_nanosleep, [&raw const time as u64, 0]) };
    fence(SeqCst);
}

fn membarrier(command: i32) -> bool {
    // SAFETY: the call touches no memory.
    unsafe { syscall(libc::SYS_membarrier, [command as u64, 0, 0]) == 0 }
}

/// What the environment says.
fn allowed() -> bool {
    // SAFETY: a name that ends in a zero. Nobody changes the environment while the program is loaded.
    let value = unsafe { libc::getenv(c"QSPIN_MEMBARRIER".as_ptr()) };
    if value.is_null() {
        return true;
    }
    // SAFETY: what `getenv` returns ends in a zero.
    match unsafe { core::ffi::CStr::from_ptr(value) }.to_bytes() {
        b"off" => false,
        b"on" | b"" => true,
        _ => {
            say_unless_blocked(b"qspin: QSPIN_MEMBARRIER is neither on nor off: it counts as on\n");
            true
        }
    }
}
