//! All waiters of condition variables, found by the address of the condition variable: in memory that stays.
//!
//! # Problem
//! A wait that is cancelled just after it was signalled has consumed a signal that it does not use: another
//! waiter must get it. But the condition variable may be gone by then: all other waiters may have been woken,
//! and the program may have freed it. Only while there is a waiter is it sure to exist.
//!
//! So a waiter stands in a second list, which is found by the address as a number. A thread that finds a waiter
//! of the same address there, and keeps it there, may touch the condition variable. If another condition
//! variable has come to lie at that address in the meantime, one of its waiters gets a spurious wake-up, as may
//! happen at any time.
//!
//! # Invariants
//! * **REGISTER-1** A waiter in the list of a condition variable is also in the list of its place, and both
//!   change under the place's latch. So a node that is found here under the latch is in place, and so is the
//!   condition variable that it names.
//! * **REGISTER-2** The kernel empties the register in a child of `fork`, which has no waiters.

use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use libc::pthread_cond_t;
use qspin::inside::Whole;

use super::{LISTED, Waiter, at, wait};
use crate::generation;
use crate::sleep::Latch;

/// Condition variables of one place delay each other's signals, for some instructions.
const PLACES: usize = 256;

/// The waiters of condition variables of one hash value.
#[repr(C, align(64))]
pub(super) struct Place {
    pub(super) latch: Latch,
    first: AtomicPtr<Waiter>,
}

static REGISTER: Whole<[Place; PLACES]> = Whole::new(
    [const { Place { latch: Latch::new(), first: AtomicPtr::new(null_mut()) } }; PLACES],
);

/// The place of what lies at `address`. Fibonacci hashing.
#[inline]
pub(super) fn of(address: usize) -> &'static Place {
    let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    &REGISTER[hash as usize % PLACES]
}

impl Place {
    /// Under the latch.
    pub(super) unsafe fn insert(&self, waiter: *mut Waiter) {
        let behind = self.first.load(Relaxed);
        // SAFETY: the caller's node, and one that is here (REGISTER-1).
        unsafe {
            (*waiter).behind.store(behind, Relaxed);
            (*waiter).before.store(null_mut(), Relaxed);
            if !behind.is_null() {
                (*behind).before.store(waiter, Relaxed);
            }
        }
        self.first.store(waiter, Relaxed);
    }

    /// Under the latch.
    pub(super) unsafe fn remove(&self, waiter: *mut Waiter) {
        // SAFETY: all of them are here (REGISTER-1).
        unsafe {
            let (before, behind) = ((*waiter).before.load(Relaxed), (*waiter).behind.load(Relaxed));
            if before.is_null() {
                self.first.store(behind, Relaxed);
            } else {
                (*before).behind.store(behind, Relaxed);
            }
            if !behind.is_null() {
                (*behind).before.store(before, Relaxed);
            }
        }
    }

    /// Whether `condvar` has a waiter that was not signalled. Under the latch.
    fn knows(&self, condvar: *mut pthread_cond_t) -> bool {
        let mut waiter = self.first.load(Relaxed);
        // SAFETY: all of them are here (REGISTER-1).
        unsafe {
            while !waiter.is_null() {
                if (*waiter).condvar == condvar && (*waiter).state.load(Relaxed) == LISTED {
                    return true;
                }
                waiter = (*waiter).behind.load(Relaxed);
            }
        }
        false
    }
}

/// Signals a waiter of `condvar`, which may be gone.
pub(super) fn pass_on(condvar: *mut pthread_cond_t) {
    let place = of(condvar.addr());
    place.latch.lock();
    let waiter = if place.knows(condvar) {
        // SAFETY: it is there (REGISTER-1).
        unsafe { at(condvar) }.choose()
    } else {
        null_mut()
    };
    place.latch.unlock();
    if !waiter.is_null() {
        // SAFETY: it waits for the post (PTHREADCOND-2).
        unsafe { wait::post(waiter) };
    }
}

/// From here on the register is empty in a child (REGISTER-2). Returns whether the kernel empties it.
pub(crate) fn begin() -> bool {
    generation::empty_in_a_child(&REGISTER)
}

/// Empties the register where the kernel does not (REGISTER-2).
pub(crate) fn forget() {
    for place in &*REGISTER {
        place.latch.forget();
        place.first.store(null_mut(), Relaxed);
    }
}
