//! Halting a thread: a futex on a word of its node.
//!
//! The word is a kick that stays until it is consumed (contract C4 of the platform): a kick that
//! comes before the halt makes it return at once.
//!
//! ```text
//!           halt                        kick
//!  NONE ───────────► HALTED ─────────────────────────► KICKED   (and a futex wake)
//!    ▲                  │ woken, interrupted              │
//!    └──────────────────┴───────── consumed by halt ◄─────┘ ◄── kick ── NONE
//! ```

use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const NONE: u32 = 0;
const KICKED: u32 = 1;
const HALTED: u32 = 2;

/// Sleeps until the word is kicked. May return early: a signal handler ran.
#[cold]
pub(super) fn halt(word: &AtomicU32) {
    if word.compare_exchange(NONE, HALTED, Relaxed, Relaxed).is_ok() {
        // SAFETY: the word lives as long as the program. The kernel compares it with HALTED and
        // sleeps in one step; every error (the word has changed, a signal) is an early return.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                HALTED,
                ptr::null::<libc::timespec>(),
            );
        }
    }
    // ORDERING: Acquire pairs with the Release of `kick`, which it consumes.
    word.swap(NONE, Acquire);
}

/// Wakes the thread that halts on the word, or keeps the next halt from sleeping.
pub(super) fn kick(word: &AtomicU32) {
    // ORDERING: Release pairs with the Acquire of `halt`.
    if word.swap(KICKED, Release) == HALTED {
        // SAFETY: as above; a wake reads nothing.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }
}
