//! `pthread_spinlock_t`: a flag in the C library's form, whose waiters give up the CPU.
//!
//! # Problem
//! It has four bytes, none of which says whether processes share it: only `pthread_spin_init` knows that. So
//! the word is the C library's, and another process without this library may use it at the same time: 1 is
//! free, and acquiring subtracts. What can be improved is waiting: the C library spins for as long as it takes,
//! through whole time slices of a holder that is not running. Here a waiter spins for a while, then yields its
//! CPU, and then sleeps a little.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::{c_int, pthread_spinlock_t};

use crate::sleep::Backoff;
use crate::statistics::{self, Begins, Kind};

const FREE: u32 = 1;
const HELD: u32 = 0;

/// Polls before a waiter yields its CPU: some microseconds, longer than a section under a spinlock.
const LOOKS: u32 = 256;

unsafe fn at<'a>(lock: *mut pthread_spinlock_t) -> &'a AtomicU32 {
    // SAFETY: PRELOAD-1.
    unsafe { AtomicU32::from_ptr(lock.cast::<u32>()) }
}

#[inline(always)]
fn try_take(word: &AtomicU32) -> bool {
    // There is no cheaper way for a process with one thread: another process may share the word.
    // ORDERING: Acquire pairs with the Release of `unlock`.
    word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
}

/// `pthread_spin_lock`.
#[inline(always)]
pub(crate) unsafe fn lock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let word = unsafe { at(lock) };
    if !try_take(word) {
        wait(word);
    }
    if statistics::tracks() {
        statistics::hold(Kind::Spin, lock.addr(), 0);
    }
    0
}

#[cold]
#[inline(never)]
fn wait(word: &AtomicU32) {
    if !statistics::tracks() {
        return spin(word);
    }
    let record = Begins::new(Kind::Spin, core::ptr::from_ref(word).addr(), 0).begin_with_stack();
    spin(word);
    if let Some(record) = record {
        record.end();
    }
}

#[inline]
fn spin(word: &AtomicU32) {
    let mut backoff = Backoff::new();
    loop {
        for _ in 0..LOOKS {
            if word.load(Relaxed) == FREE && try_take(word) {
                return;
            }
            core::hint::spin_loop();
        }
        backoff.wait();
    }
}

/// `pthread_spin_trylock`.
pub(crate) unsafe fn try_lock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: PRELOAD-1.
    if !try_take(unsafe { at(lock) }) {
        return libc::EBUSY;
    }
    if statistics::tracks() {
        statistics::hold(Kind::Spin, lock.addr(), 0);
    }
    0
}

/// `pthread_spin_init`.
pub(crate) unsafe fn init(lock: *mut pthread_spinlock_t) -> c_int {
    statistics::spinlock_made();
    // ORDERING: as in `unlock`.
    // SAFETY: PRELOAD-1.
    unsafe { at(lock) }.store(FREE, Release);
    0
}

/// `pthread_spin_unlock`.
#[inline(always)]
pub(crate) unsafe fn unlock(lock: *mut pthread_spinlock_t) -> c_int {
    if statistics::tracks() {
        statistics::release(lock.addr());
    }
    // ORDERING: Release pairs with the Acquire of `try_take`.
    // SAFETY: PRELOAD-1.
    unsafe { at(lock) }.store(FREE, Release);
    0
}
