//! What the locks of a program do, for `qspin stat PID` and `qspin run --stats`: which lock is waited for, where,
//! and whose releases the others waited for. With the feature `profile`.
//!
//! A program that is built with it, and started as usual, can be looked at by `qspin stat PID`: that switches
//! counting on while it looks. `QSPIN_PROFILE=1` in its environment lets it count from the start; so does
//! `qspin run --stats=FORMAT -- PROGRAM`, which writes the table, or what `go tool pprof`, a flame graph or
//! Prometheus reads, when it ends. No source is changed: every lock of this crate is seen, but those of
//! [`select`](crate::select) are under the address of the lock that was chosen.
//!
//! # What it costs
//! Without the feature nothing. With it, at load five system calls and a file in memory; for each operation a
//! load and a branch; and while it counts some ten nanoseconds, a locked instruction, and two readings of the
//! clock for each wait. That is more than the library for programs that cannot be changed needs
//! (`qspin run`), which has room for its counts in the lock.
//!
//! # What is seen
//! Every acquisition and every wait is counted, each wait is measured; holds are measured of the first 32, then
//! of one in 64 of a thread, and counted for all of these; holds of readers are not. A stack that keeps others
//! waiting is taken about once in 128 µs of that, and stands for all of it. Deadlocks are not looked for. A child of `fork` is not
//! counted. Stacks are read by the unwinder that comes with the standard library.
//!
//! # How
//! The file is that of the library for programs that cannot be changed, and the command reads both alike.
//!
//! # Invariants
//! * **PROFILE-1** `SLOT` is null, or points to a slot that stays mapped for as long as the process lives. It is
//!   written once, at load.
//! * **PROFILE-2** Words of a slot are atomic: other threads, and the command, read and write them meanwhile.
//! * **PROFILE-3** A child of a `fork` writes nothing, since the slot is its parent's: its generation is another.

mod file;
mod rows;
mod stacks;

use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32};

use qspin_core::observer::Observer;

use crate::platform::system::generation;

use crate::locks_file::{COUNTED, Slot};
pub(crate) use file::begin;

/// Where this process counts (PROFILE-1).
static SLOT: AtomicPtr<Slot> = AtomicPtr::new(null_mut());
/// The generation of the process that has it.
static GENERATION: AtomicU32 = AtomicU32::new(0);

fn slot() -> Option<&'static Slot> {
    // SAFETY: PROFILE-1.
    unsafe { SLOT.load(Relaxed).as_ref() }
}

/// The observer of this crate's locks, while they are counted.
#[inline]
pub(crate) fn observer() -> Option<&'static dyn Observer> {
    let slot = slot()?;
    let counts = slot.head.mode.load(Relaxed) & COUNTED != 0;
    // PROFILE-3.
    (counts && generation::current() == GENERATION.load(Relaxed)).then_some(slot)
}

/// Nanoseconds on the monotonic clock.
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place; every system has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Observer for Slot {
    #[cold]
    fn waits(&self, lock: usize) -> u64 {
        let now = now_ns();
        rows::waiter_comes(self.row(lock), now);
        now
    }

    #[cold]
    fn has_waited(&self, lock: usize, since: u64, acquired: bool) {
        let now = now_ns();
        let row = self.row(lock);
        // Each wait stands for itself alone.
        row.waiter_goes(since, now, 1, 0);
        if acquired {
            let place = self.place_of_stack(lock, stacks::capture().frames());
            let waited = now.saturating_sub(since);
            rows::note_wait(row, waited, place);
            self.note_wait(place, waited, 1);
        }
    }

    fn acquired(&self, lock: usize, shared: bool) {
        rows::note_acquisition(self.row(lock), shared);
    }

    fn releases(&self, lock: usize) -> [u64; 2] {
        rows::note_release(self.row(lock))
    }

    fn has_released(&self, lock: usize, [delayed, holds]: [u64; 2]) {
        if delayed != 0 || holds != 0 {
            let stack = stacks::capture();
            self.note_release(self.place_of_stack(lock, stack.frames()), delayed, holds);
            if holds != 0 {
                self.row(lock).note_site(stack.first(), holds);
            }
        }
    }
}
