//! A heavy barrier: every thread of the process passes a full fence, and the caller alone pays.
//!
//! # Problem
//! A release that is a plain store saves a fence, half the price of an uncontended lock, provided that the few
//! threads that want to park can pay for it instead. Linux's `membarrier` does just that: it interrupts the
//! CPUs on which threads of this process run.
//!
//! # How
//! The process registers for it when a release first asks whether it may be a plain store: one system call. If
//! the kernel refuses (an old kernel, a filter of system calls), or `QSPIN_MEMBARRIER=off` forbade it when the
//! program was loaded, there is no such barrier, and every release is a read-modify-write.
//!
//! ```text
//!  UNKNOWN ──first question──► ASKING ──refused, or forbidden──► NONE
//!                                 └────► AVAILABLE ──refused later──► LOST
//! ```
//!
//! # Invariants
//! * **BARRIER-1** [`available`] promises a barrier to a thread that has seen it. If the call is refused later,
//!   by a filter installed after the registration, no further thread is promised one; and the barrier becomes a
//!   wait of a millisecond, in which every processor has long written back what it had stored.

use core::ffi::CStr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::fence;

use super::environment::Environment;
use super::syscall::{say_unless_blocked, syscall};

/// No thread has asked yet.
const UNKNOWN: u32 = 0;
/// One thread is asking.
const ASKING: u32 = 1;
/// There is no barrier, and there never was.
const NONE: u32 = 2;
const AVAILABLE: u32 = 3;
/// There was one.
const LOST: u32 = 4;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// A wait that stands in for a barrier (BARRIER-1).
const STAND_IN_NS: i64 = 1_000_000;

/// Whether there is a heavy barrier, and will be one for a thread that relies on it now.
#[inline]
pub(crate) fn available() -> bool {
    STATE.load(Relaxed) == AVAILABLE
}

/// Whether no thread has asked yet.
#[inline]
pub(crate) fn is_unknown() -> bool {
    STATE.load(Relaxed) == UNKNOWN
}

const ALLOWED: u32 = 0;
const FORBIDDEN: u32 = 1;
/// Allowed, because the value is neither on nor off.
const MALFORMED: u32 = 2;

/// What the environment says.
static SAID: AtomicU32 = AtomicU32::new(ALLOWED);

/// Notes the environment's setting when the program is loaded.
pub(crate) fn note(environment: &Environment) {
    let said = match environment.value_of(c"QSPIN_MEMBARRIER").map(CStr::to_bytes) {
        Some(b"off") => FORBIDDEN,
        None | Some(b"on" | b"") => ALLOWED,
        Some(_) => MALFORMED,
    };
    SAID.store(said, Relaxed);
}

/// Registers the process if no thread has asked before. Returns whether that made a barrier available.
/// Async-signal-safe.
#[cold]
pub(crate) fn ask() -> bool {
    if STATE.compare_exchange(UNKNOWN, ASKING, Relaxed, Relaxed).is_err() {
        return false;
    }
    if SAID.load(Relaxed) == MALFORMED {
        say_unless_blocked(b"qspin: QSPIN_MEMBARRIER is neither on nor off: it counts as on\n");
    }
    register();
    available()
}

/// Registers the process; also a child whose parent had waiters.
pub(crate) fn register() {
    let available = SAID.load(Relaxed) != FORBIDDEN && membarrier(REGISTER);
    STATE.store(if available { AVAILABLE } else { NONE }, Relaxed);
}

const REGISTER: i32 = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
const EXPEDITED: i32 = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;

/// Every thread passes a full fence between the call and the return.
#[cold]
pub(crate) fn pass() {
    // Where there never was a barrier no thread relies on one: each side passes its own fence. Nor does any
    // thread rely on it while registration is in progress: a bucket becomes quiet, under its lock, after that.
    // ORDERING: pairs with the fence of the light side, which is one where there is no barrier.
    fence(SeqCst);
    if matches!(STATE.load(Relaxed), UNKNOWN | ASKING | NONE) || membarrier(EXPEDITED) {
        return;
    }
    // BARRIER-1.
    STATE.store(LOST, Relaxed);
    let time = libc::timespec { tv_sec: 0, tv_nsec: STAND_IN_NS };
    // SAFETY: a valid place, and none for the rest of the time.
    unsafe { syscall(libc::SYS_nanosleep, [&raw const time as u64, 0]) };
    // ORDERING: after the time in which the light side's store has left its processor (BARRIER-1).
    fence(SeqCst);
}

fn membarrier(command: i32) -> bool {
    // SAFETY: the call touches no memory.
    unsafe { syscall(libc::SYS_membarrier, [command as u64, 0, 0]) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_allows_and_forbids_it() {
        for (text, said) in [
            (c"QSPIN_MEMBARRIER=off", FORBIDDEN),
            (c"QSPIN_MEMBARRIER=of", MALFORMED),
            (c"QSPIN_MEMBARRIERS=off", ALLOWED),
            (c"QSPIN_MEMBARRIER=", ALLOWED),
            (c"QSPIN_MEMBARRIER=on", ALLOWED),
        ] {
            let texts = [text.as_ptr(), core::ptr::null()];
            // SAFETY: ended by null, and of a text that stays.
            note(&unsafe { Environment::new(texts.as_ptr()) });
            assert_eq!(SAID.load(Relaxed), said, "{text:?}");
        }
    }
}
