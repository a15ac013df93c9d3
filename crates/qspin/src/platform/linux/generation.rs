//! Which process this is, in a line of forks.
//!
//! # Problem
//! A `fork` copies the memory of a process, but only one of its threads. What queues and words say of the other
//! threads is not true in the child: those threads do not wait there, and will not wake up. The C library calls
//! handlers in a child, but not in the child of a bare `clone` or of `_Fork`, and not before other libraries'
//! handlers.
//!
//! # How
//! A page that the kernel wipes in the child holds the number of this generation. So the first access in a
//! child notices the fork, however the child was made. Where the kernel does not wipe the page (before Linux
//! 4.14, or with pages larger than any that [`page`] allows for) the handlers alone tell.
//!
//! The process asks the kernel for this at its first call of [`current`]: before that, no thread has waited in
//! it.
//!
//! # Invariants
//! * **GENERATION-1** From `register` on, `PAGE.number` is `LAST + 1` in the process that wrote it, and 0 in
//!   its child until the child writes the next number. Before `register` both are 0, and this is generation 0.
//!   It is written before `KERNEL` says that the page is wiped: so a thread that sees zero after that is in a
//!   child.
//! * **GENERATION-2** What the parent's sleepers have left is forgotten once in a child: by the thread that has
//!   made itself the `beginner`, before it writes the number. Other threads wait for that, but a signal handler
//!   that has interrupted the beginner does not.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::events::NoEvents;
use qspin_core::sleepers;

use super::page::{self, Whole};
use super::syscall::syscall;
use super::{barrier, threads};
use crate::platform::Threads;
use crate::platform::sleep::DOZING;

#[repr(C)]
struct Page {
    /// The generation plus one.
    number: AtomicU32,
    /// The thread that forgets what the parent has left; 0 for none.
    beginner: AtomicU32,
}

static PAGE: Whole<Page> =
    Whole::new(Page { number: AtomicU32::new(0), beginner: AtomicU32::new(0) });
/// The generation that was last begun, in this process or in the one that it was copied from.
static LAST: AtomicU32 = AtomicU32::new(0);
/// What the kernel does with the page.
static KERNEL: AtomicU32 = AtomicU32::new(NOT_ASKED);
const NOT_ASKED: u32 = 0;
const BEING_ASKED: u32 = 1;
const LEAVES_IT: u32 = 2;
const EMPTIES_IT: u32 = 3;

/// The generation of this process.
#[inline]
#[must_use]
pub fn current() -> u32 {
    // ORDERING: Acquire pairs with the Release of `begin`: what the parent left is forgotten.
    match PAGE.number.load(Acquire) {
        0 => look(),
        number => number - 1,
    }
}

/// Asks the kernel to empty these pages in a child. Returns whether it will.
pub fn empty_in_a_child<T: Sync>(pages: &'static Whole<T>) -> bool {
    /// `MADV_WIPEONFORK`.
    const EMPTY_IN_A_CHILD: u64 = 18;
    let size = size_of::<Whole<T>>() as u64;
    let arguments = [core::ptr::from_ref(pages).addr() as u64, size, EMPTY_IN_A_CHILD];
    // SAFETY: whole pages (PAGE-1 of `page`), private to this process, which stay mapped. Their owners cope
    // with what a child finds in them.
    page::are_whole() && unsafe { syscall(libc::SYS_madvise, arguments) == 0 }
}

/// Asks the kernel, before any thread waits. Several threads may do so at the same time. Async-signal-safe.
pub(crate) fn register() {
    KERNEL.fetch_max(BEING_ASKED, Relaxed);
    let emptied = empty_in_a_child(&PAGE);
    // Fails if another thread came first, or if a child forked by a handler has interrupted this and begun.
    let _ = PAGE.number.compare_exchange(0, LAST.load(Relaxed) + 1, Relaxed, Relaxed);
    // GENERATION-1. ORDERING: Release pairs with the Acquire of `look`.
    KERNEL.fetch_max(if emptied { EMPTIES_IT } else { LEAVES_IT }, Release);
}

/// The handler that the C library calls in a child.
pub(crate) extern "C" fn child_begins() {
    match KERNEL.load(Relaxed) {
        // No thread has waited in the parent.
        NOT_ASKED => {}
        // Another handler may have locked something before.
        EMPTIES_IT => {
            let _ = current();
        }
        BEING_ASKED => {
            begin();
            register();
        }
        _ => begin(),
    }
}

/// The first call in the process, or in a child.
#[cold]
fn look() -> u32 {
    // ORDERING: Acquire pairs with the Release of `register`.
    if KERNEL.load(Acquire) != EMPTIES_IT {
        register();
    } else if PAGE.number.load(Relaxed) == 0 {
        // GENERATION-1.
        // SAFETY: asks for a number.
        let me = unsafe { syscall::<0>(libc::SYS_gettid, []) } as u32;
        // GENERATION-2.
        match PAGE.beginner.compare_exchange(0, me, Relaxed, Relaxed) {
            Ok(_) => begin(),
            Err(other) if other == me => {}
            // ORDERING: as in `current`.
            Err(_) => {
                while PAGE.number.load(Acquire) == 0 {
                    // SAFETY: touches no memory.
                    unsafe { syscall::<0>(libc::SYS_sched_yield, []) };
                }
            }
        }
    }
    LAST.load(Relaxed)
}

/// Begins a new generation: this process is a child that has not noticed it yet.
fn begin() {
    let generation = LAST.load(Relaxed) + 1;
    LAST.store(generation, Relaxed);
    forget();
    // ORDERING: Release pairs with the Acquire of `current`.
    PAGE.number.store(generation + 1, Release);
}

/// Forgets the parent's sleepers: only one of its threads exists here.
fn forget() {
    DOZING.store(0, Relaxed);
    barrier::register();
    sleepers::forget(&Threads::<NoEvents>::NEW, threads::numbered());
}
