//! Where the C library keeps its attribute bits in a condition variable: process-shared, and waiting by the
//! monotonic clock.
//!
//! It has moved them already: up to version 2.40 they are in byte 36, from 2.41 on in byte 28. So nothing is
//! taken for granted: the library makes two condition variables, one with each attribute, and the bits that are
//! not zero in them are the attribute bits.
//!
//! # Invariants
//! * **MARKS-1** The place and the attribute bits are found before the first condition variable is used: by the
//!   constructor, or by the first use that comes before it. All find the same.

use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::pthread_condattr_t;

use super::Condvar;
use crate::libc_locks as real;

/// Which of the words of `rest` it is, plus 1; 0 before it is known.
static WORD: AtomicU32 = AtomicU32::new(0);
static SHARED: AtomicU32 = AtomicU32::new(0);
static MONOTONIC: AtomicU32 = AtomicU32::new(0);

/// The default if nothing was found: the place up to 2.40.
const OF_OLD: [u32; 3] = [3, 1, 2];

#[inline]
fn has(condvar: &Condvar, mark: &AtomicU32) -> bool {
    // ORDERING: Acquire pairs with the Release of `find`.
    let mut word = WORD.load(Acquire);
    if word == 0 {
        find();
        word = WORD.load(Acquire);
    }
    let words = &condvar.rest;
    words[(word as usize).wrapping_sub(1) % words.len()].load(Relaxed) & mark.load(Relaxed) != 0
}

/// Whether other processes may use it.
#[inline]
pub(super) fn is_shared(condvar: &Condvar) -> bool {
    has(condvar, &SHARED)
}

/// Whether it waits by the monotonic clock.
#[inline]
pub(super) fn is_monotonic(condvar: &Condvar) -> bool {
    has(condvar, &MONOTONIC)
}

/// The first word that the C library changes in a condition variable with these attributes, and what it writes
/// there.
fn marked(set: impl FnOnce(*mut pthread_condattr_t)) -> Option<(usize, u32)> {
    let mut attributes = MaybeUninit::<pthread_condattr_t>::uninit();
    let mut made = MaybeUninit::<Condvar>::zeroed();
    // SAFETY: attributes and a condition variable of this frame, initialised before they are used. Zeros
    // are one, too.
    let made = unsafe {
        libc::pthread_condattr_init(attributes.as_mut_ptr());
        set(attributes.as_mut_ptr());
        real::pthread_cond_init(made.as_mut_ptr().cast(), attributes.as_ptr());
        libc::pthread_condattr_destroy(attributes.as_mut_ptr());
        made.assume_init()
    };
    let words = made.rest.iter().map(|word| word.load(Relaxed));
    words.enumerate().find(|(_, value)| *value != 0)
}

/// Finds the place and the bits (MARKS-1).
#[cold]
pub(crate) fn find() {
    let shared = marked(|attributes| {
        // SAFETY: initialised.
        unsafe { libc::pthread_condattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED) };
    });
    let monotonic = marked(|attributes| {
        // SAFETY: initialised.
        unsafe { libc::pthread_condattr_setclock(attributes, libc::CLOCK_MONOTONIC) };
    });
    let found = match (shared, monotonic) {
        (Some((one, shared)), Some((other, monotonic))) if one == other && shared != monotonic => {
            [one as u32, shared, monotonic]
        }
        _ => OF_OLD,
    };
    SHARED.store(found[1], Relaxed);
    MONOTONIC.store(found[2], Relaxed);
    // ORDERING: Release pairs with the Acquire of `has`.
    WORD.store(found[0] + 1, Release);
}
