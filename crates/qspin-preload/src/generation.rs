//! Which process this is. What words say of waiters is true only in the process in which it was written.
//!
//! # Problem
//! A `fork` copies the memory of a process, but only one of its threads. In the child a lock still says that
//! other threads wait for it; they do not, and will neither be woken nor wake another.
//!
//! So a process has a [generation](qspin::inside::generation), one more than its parent's, and an object
//! records the generation in which a thread began to wait for it. A thread that leaves the fast path and finds
//! another generation there first clears what the object says of waiters. Static objects are of generation 0,
//! as is a process after `exec`.
//!
//! # Invariants
//! * **PRELOADGEN-1** State of this process that its children must not believe is in `PAGE`, which the kernel
//!   empties in a child, or else a handler does.
//! * **PRELOADGEN-2** An object's generation is changed under `clearing`, once per generation.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin::inside::Whole;
pub(crate) use qspin::inside::{empty_in_a_child, generation as current};

use crate::condvar::register;
use crate::sleep::Latch;

#[repr(C)]
struct Page {
    /// Held by the thread that clears an object.
    clearing: Latch,
    /// Whether this process has a slot to write to, and whether it counts. A child does not: the slot is its
    /// parent's.
    reports: AtomicU32,
    counts: AtomicU32,
}

/// Emptied by the kernel in a child, including the latch, which a thread of the parent may have held.
static PAGE: Whole<Page> = Whole::new(Page {
    clearing: Latch::new(),
    reports: AtomicU32::new(0),
    counts: AtomicU32::new(0),
});
/// From here on a child notices that it is one.
pub(crate) fn begin() {
    if !(empty_in_a_child(&PAGE) && register::begin()) {
        // SAFETY: a function that lives as long as the process, since the library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    }
}

extern "C" fn in_the_child() {
    PAGE.clearing.forget();
    register::forget();
    PAGE.reports.store(0, Relaxed);
    PAGE.counts.store(0, Relaxed);
}

/// Makes an object one of this generation; calls `clear` first if it was not.
#[inline]
pub(crate) fn renew(generation: &AtomicU32, clear: impl FnOnce()) {
    // ORDERING: Acquire pairs with the Release of `renew_slow`.
    if generation.load(Acquire) != current() {
        renew_slow(generation, clear);
    }
}

#[cold]
fn renew_slow(generation: &AtomicU32, clear: impl FnOnce()) {
    let current = current();
    PAGE.clearing.lock();
    if generation.load(Relaxed) != current {
        clear();
        // ORDERING: Release: a thread that sees the generation sees the object cleared.
        generation.store(current, Release);
    }
    PAGE.clearing.unlock();
}

/// Whether this process counts what its locks do.
#[inline(always)]
pub(crate) fn counts() -> bool {
    PAGE.counts.load(Relaxed) != 0
}

/// Whether this process reports what it does.
#[inline(always)]
pub(crate) fn reports() -> bool {
    PAGE.reports.load(Relaxed) != 0
}

/// Lets this process report what it does.
pub(crate) fn begin_to_report() {
    PAGE.reports.store(1, Relaxed);
}

/// Lets this process count.
pub(crate) fn begin_to_count() {
    PAGE.counts.store(1, Relaxed);
}

/// Stops this process from counting.
pub(crate) fn end_to_count() {
    PAGE.counts.store(0, Relaxed);
}
