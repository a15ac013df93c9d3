//! What the locks of a process do, one row per lock, for another process to see.
//!
//! # Problem
//! Counting must not distort what it measures, must need no allocation, and the counts must still be there
//! after the process has ended, however it ended.
//!
//! So the table is a static array, and the file of the process that wants to see it takes its place, as with
//! the event counters of the crate `qspin`. A row is found by the lock's address. The lock's holder writes it,
//! without a locked instruction but for call sites and buckets, once in a period. Every acquisition and every wait is counted, in the locks' own memory; only
//! some are timed, since reading the clock costs as much as an acquisition (`tally`, `shared`, `wait`). What
//! the locks have not handed on yet is fetched when the process ends (`file`).
//!
//! The layout of the file is that of [`qspin::locks_file`].
//!
//! # Invariants
//! * **STATISTICS-1** The holder of a lock writes its row. Rows of reader-writer locks have several writers,
//!   which use locked instructions. What two locks without a row of their own write to row 0 may lose counts.
//! * **STATISTICS-2** A child of a `fork` writes nothing, since the slot is its parent's: `generation::reports` and
//!   `counts` are false in it.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use qspin::inside::Whole;
pub(crate) use qspin::locks_file::{Kind, LeftToLibc, Record};
use qspin::locks_file::{ROWS, Row, Slot, add_to_bucket, bucket};

use crate::generation;
use crate::served::Mode;

pub(crate) use file::{begin, end};
pub(crate) use shared::SharedTally;
pub(crate) use stacks::{Released, has_released};
pub(crate) use tally::{MEASURED, Tally};
pub(crate) use threads::{Begins, hold, hold_at_once, release, release_at_once};
pub(crate) use unwind::prepare;
pub(crate) use wait::sleeps;

mod file;
mod print;
mod shared;
mod stacks;
mod tally;
mod threads;
mod unwind;
mod wait;

// SAFETY: made of atomics and bytes, for which zeros are valid.
static SLOT: Whole<Slot> = Whole::new(unsafe { MaybeUninit::zeroed().assume_init() });

/// How many users want counting and tracking from the beginning, so that no command switches them off.
pub(crate) fn want(wanted: [bool; 2]) {
    for (count, wanted) in SLOT.head.wanted.iter().zip(wanted) {
        count.fetch_add(wanted.into(), Relaxed);
    }
}

/// The word by which a thread that was sent SIGQUIT asks.
pub(crate) fn quit() -> &'static AtomicU32 {
    &SLOT.head.quit
}

/// The mode, which the fast paths read.
#[inline(always)]
pub(crate) fn mode() -> &'static AtomicU32 {
    &SLOT.head.mode
}

/// Whether locks are counted.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    Mode::now().counts() && generation::counts()
}

/// Whether what threads hold is recorded.
#[inline(always)]
pub(crate) fn tracks() -> bool {
    Mode::now().tracks()
}

/// Whether what threads wait for is recorded.
#[inline(always)]
pub(crate) fn watches() -> bool {
    let mode = Mode::now();
    mode.counts() || mode.tracks()
}

/// Counts an object that was left to the C library.
pub(crate) fn left_to_libc(why: LeftToLibc) {
    // STATISTICS-2.
    if generation::reports() {
        SLOT.head.left[why as usize].fetch_add(1, Relaxed);
    }
}

/// A spinlock was initialised.
pub(crate) fn spinlock_made() {
    // STATISTICS-2.
    if generation::reports() {
        SLOT.head.spinlocks.fetch_add(1, Relaxed);
    }
}

/// How many acquisitions of a lock make a period, after which its row is updated: a 32nd of those so far, up to
/// about `longest`. A random quarter more or less, so that a program with a regular pattern is not always
/// sampled at the same place.
fn period_after(acquisitions: u64, longest: u64) -> u32 {
    /// A period is this many times shorter than what went before it.
    const SHARE: u64 = 32;
    let period = (acquisitions / SHARE).clamp(1, longest);
    let chance = acquisitions.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    (period - period / 4 + chance % (period / 2 + 1)) as u32
}

/// Adds without a locked instruction (STATISTICS-1).
#[inline(always)]
fn add(counter: &AtomicU64, amount: u64) -> u64 {
    let sum = counter.load(Relaxed).wrapping_add(amount);
    counter.store(sum, Relaxed);
    sum
}
