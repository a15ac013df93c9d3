//! Halting a thread: a futex on a word of its node.
//!
//! The word holds a kick that stays until it is consumed (contract PLATFORM-4 of the platform): a
//! kick that comes before the halt makes the halt return at once.
//!
//! ```text
//!           halt                        kick
//!  NONE ───────────► HALTED ─────────────────────────► KICKED   (and a futex wake)
//!    ▲                  │ a signal                        │
//!    └──────────────────┴───────── consumed by halt ◄─────┘ ◄── kick ── NONE
//! ```
//!
//! # Invariants
//! * **FUTEX-1** The word lies in a table that lives as long as the program. A process-private futex
//!   on it is always valid, however late a wake comes.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::syscall::syscall;

const NONE: u32 = 0;
const KICKED: u32 = 1;
const HALTED: u32 = 2;

/// Sleeps until the word is kicked. May return early, after a signal.
#[cold]
pub(crate) fn halt(word: &'static AtomicU32) {
    if word.compare_exchange(NONE, HALTED, Relaxed, Relaxed).is_ok() {
        // The kernel compares the word with HALTED and sleeps in one step. Each of its errors
        // (the word has changed, a signal) is an early return.
        futex(word, libc::FUTEX_WAIT, HALTED);
    }
    // ORDERING: Acquire pairs with the Release of `kick`, which it consumes.
    word.swap(NONE, Acquire);
}

/// As `halt`, but at the latest until this time of the monotonic clock, in nanoseconds.
#[cold]
pub(crate) fn halt_until(word: &'static AtomicU32, deadline_ns: u64) {
    if word.compare_exchange(NONE, HALTED, Relaxed, Relaxed).is_ok() {
        // An absolute time, so that an interrupted wait does not last longer. And not of the wall clock, which
        // may be set.
        let deadline = libc::timespec {
            tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
        };
        let operation = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as u64;
        let any = libc::FUTEX_BITSET_MATCH_ANY as u32;
        let place = &raw const deadline as u64;
        let arguments = [word.as_ptr() as u64, operation, HALTED.into(), place, 0, any.into()];
        // SAFETY: FUTEX-1; the kernel reads the word and the deadline, which is a valid place.
        unsafe { syscall(libc::SYS_futex, arguments) };
    }
    // ORDERING: as in `halt`.
    word.swap(NONE, Acquire);
}

/// Wakes the thread that halts on the word, or keeps the next halt from sleeping.
#[inline]
pub(crate) fn kick(word: &'static AtomicU32) {
    // ORDERING: Release pairs with the Acquire of `halt`.
    if word.swap(KICKED, Release) == HALTED {
        futex(word, libc::FUTEX_WAKE, 1);
    }
}

/// The system call.
#[cold]
fn futex(word: &'static AtomicU32, operation: i32, value: u32) {
    let operation = (operation | libc::FUTEX_PRIVATE_FLAG) as u64;
    let arguments = [word.as_ptr() as u64, operation, value.into(), 0, 0];
    // SAFETY: FUTEX-1. The kernel reads the word, which is an atomic, and writes nothing; without a
    // timeout the fourth argument is null.
    unsafe { syscall(libc::SYS_futex, arguments) };
}
