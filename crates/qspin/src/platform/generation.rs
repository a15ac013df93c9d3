//! Which process is this, in a line of forks?
//!
//! # Problem
//! A `fork` copies the memory of a process with one of its threads. What queues and words say of the others is not
//! true in the child: nobody waits there, and nobody will wake up. The C library calls handlers in a child, but not in
//! one of a bare `clone` or of `_Fork`, and not before other libraries' handlers.
//!
//! # How
//! A page that the kernel empties in the child says which generation this is. So it is noticed at the first look,
//! whoever made the child. Where the kernel does not do that (before Linux 4.14) handlers alone tell.
//!
//! # Invariants
//! * **G1** `PAGE.number` is `LAST + 1` from `register` on in the process that wrote it, and 0 in its child, until that
//!   writes the next number. Before `register` both are 0, and this is generation 0.
//! * **G2** What the parent's sleepers have left is forgotten (by the `forget` that `register` was given) once in a
//!   child: by the thread that has made itself the `beginner`, before it writes the number. Others wait for that, but
//!   for a handler that has interrupted it.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::OnceLock;

use super::syscall::syscall;

#[repr(C, align(4096))]
struct Page {
    /// The generation and one more.
    number: AtomicU32,
    /// The thread that forgets what the parent has left; 0 for none.
    beginner: AtomicU32,
}

static PAGE: Page = Page { number: AtomicU32::new(0), beginner: AtomicU32::new(0) };
/// The generation that was last begun, in this process or the one that it was copied from.
static LAST: AtomicU32 = AtomicU32::new(0);
/// Whether the kernel empties the page.
static EMPTIED: AtomicU32 = AtomicU32::new(0);

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

/// Lets the kernel empty these pages in a child. Returns whether it will.
pub fn empty_in_a_child<T: Sync>(pages: &'static T) -> bool {
    /// `MADV_WIPEONFORK`.
    const EMPTY_IN_A_CHILD: u64 = 18;
    const { assert!(align_of::<T>() == 4096) };
    let arguments =
        [core::ptr::from_ref(pages).addr() as u64, size_of::<T>() as u64, EMPTY_IN_A_CHILD];
    // SAFETY: whole pages, private to this process, which stay. Of what a child finds in them says their
    // own file.
    unsafe { syscall(libc::SYS_madvise, arguments) == 0 }
}

/// What a child calls that begins. Set before there is a generation that could begin.
static FORGET: OnceLock<fn()> = OnceLock::new();

/// When the program is loaded. `forget` is called in a child, once: it forgets those who slept in its parent.
pub(super) fn register(forget: fn()) {
    let _ = FORGET.set(forget);
    EMPTIED.store(u32::from(empty_in_a_child(&PAGE)), Relaxed);
    PAGE.number.store(LAST.load(Relaxed) + 1, Relaxed);
}

/// In the handler that the C library calls in a child.
pub(super) extern "C" fn child_begins() {
    if EMPTIED.load(Relaxed) == 0 {
        begin();
    } else {
        // Perhaps another handler has locked something before.
        let _ = current();
    }
}

/// Not registered yet; or the first look in a child.
#[cold]
fn look() -> u32 {
    if EMPTIED.load(Relaxed) != 0 {
        // SAFETY: asks for a number.
        let me = unsafe { syscall::<0>(libc::SYS_gettid, []) } as u32;
        // G2.
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

/// This process is a child, which nobody has told yet.
fn begin() {
    let generation = LAST.load(Relaxed) + 1;
    LAST.store(generation, Relaxed);
    if let Some(forget) = FORGET.get() {
        forget();
    }
    // ORDERING: Release pairs with the Acquire of `current`.
    PAGE.number.store(generation + 1, Release);
}
