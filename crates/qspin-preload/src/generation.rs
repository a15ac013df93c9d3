//! Which process is this? What words say of waiters is true in the process in which it was written.
//!
//! # Problem
//! A `fork` copies the memory of a process with one of its threads. A lock on which others waited says in
//! the child that they wait; they don't, and nobody will wake them or be woken by them.
//!
//! So a process has a generation, one more than its parent's, and an object says in which generation
//! somebody began to wait for it. Whoever comes off the fast path sees one that is not the process's, and
//! first clears what it says of waiters. How does a process notice that it is a child? A page that the
//! kernel empties in the child: no handler has to run, so it is also right in other libraries' handlers
//! and in children that the C library does not know of.
//!
//! # Invariants
//! * **G1** `PAGE` holds `LAST + 1` from the first call of `begin` on in the process that wrote it, and 0 in its
//!   child, until that writes the next number. Before `begin` it holds 0 and `LAST` does: both mean
//!   generation 0. Generations are so numbered from 0, and static objects are of generation 0.
//! * **G2** An object's generation is changed under `clearing`, once a generation.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::condvar::register;
use crate::sleep::{Latch, system_call};

#[repr(C, align(4096))]
struct Page {
    /// The generation and one more.
    number: AtomicU32,
    /// Held by who clears an object.
    clearing: Latch,
    /// Whether this process has a slot to write to, and whether it counts. A child does not: the slot is its
    /// parent's.
    reports: AtomicU32,
    counts: AtomicU32,
}

const _: () = assert!(size_of::<Page>() == 4096);

/// Emptied by the kernel in a child: the latch, too, which a thread of the parent may have held.
static PAGE: Page = Page {
    number: AtomicU32::new(0),
    clearing: Latch::new(),
    reports: AtomicU32::new(0),
    counts: AtomicU32::new(0),
};
/// The generation that was last begun, in this process or the one that it was copied from.
static LAST: AtomicU32 = AtomicU32::new(0);
/// Whether the kernel empties the page.
static EMPTIED: AtomicU32 = AtomicU32::new(0);

/// The generation of this process.
#[inline]
pub(crate) fn current() -> u32 {
    match PAGE.number.load(Relaxed) {
        0 => next(),
        number => number - 1,
    }
}

/// Not begun yet; or the first look in a child.
#[cold]
fn next() -> u32 {
    if EMPTIED.load(Relaxed) == 0 {
        return LAST.load(Relaxed);
    }
    let last = LAST.load(Relaxed);
    // Several threads of the child may come here at once: one of them counts. A look between its two
    // steps finds the page still empty, and `LAST` changed: so the number is made in one step, there.
    let _ = PAGE.number.compare_exchange(0, last + 2, Relaxed, Relaxed);
    let number = PAGE.number.load(Relaxed) - 1;
    LAST.store(number, Relaxed);
    number
}

/// From here on the process notices that it is a child.
pub(crate) fn begin() {
    let emptied = empty_in_a_child(&PAGE) && register::begin();
    PAGE.number.store(LAST.load(Relaxed) + 1, Relaxed);
    if emptied {
        EMPTIED.store(1, Relaxed);
    } else {
        // SAFETY: a function that lives as long as the process, since the library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    }
}

/// Lets the kernel empty these pages in a child. Returns whether it will.
pub(crate) fn empty_in_a_child<T: Sync>(pages: &'static T) -> bool {
    /// `MADV_WIPEONFORK`, since Linux 4.14.
    const EMPTY_IN_A_CHILD: u64 = 18;
    const { assert!(align_of::<T>() == 4096) };
    let arguments = [core::ptr::from_ref(pages) as u64, size_of::<T>() as u64, EMPTY_IN_A_CHILD];
    // SAFETY: whole pages, private to this process, which stay. Of what a child finds in them says their
    // own file.
    unsafe { system_call(libc::SYS_madvise, arguments) == 0 }
}

extern "C" fn in_the_child() {
    let number = LAST.load(Relaxed) + 1;
    LAST.store(number, Relaxed);
    PAGE.clearing.forget();
    register::forget();
    PAGE.reports.store(0, Relaxed);
    PAGE.counts.store(0, Relaxed);
    PAGE.number.store(number + 1, Relaxed);
}

/// Lets an object be of this generation; calls `clear` first if it was not.
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
        // ORDERING: Release: who sees the generation sees the object cleared.
        generation.store(current, Release);
    }
    PAGE.clearing.unlock();
}

/// Whether this process counts what its locks do.
#[inline(always)]
pub(crate) fn counts() -> bool {
    PAGE.counts.load(Relaxed) != 0
}

/// Whether this process says what it does.
#[inline]
pub(crate) fn reports() -> bool {
    PAGE.reports.load(Relaxed) != 0
}

/// Lets this process say what it does.
pub(crate) fn begin_to_report() {
    PAGE.reports.store(1, Relaxed);
}

/// Lets this process count.
pub(crate) fn begin_to_count() {
    PAGE.counts.store(1, Relaxed);
}

/// Lets this process count no more.
pub(crate) fn end_to_count() {
    PAGE.counts.store(0, Relaxed);
}
