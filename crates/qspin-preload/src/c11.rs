//! `mtx_t` and `cnd_t` of C11: pthread's objects under other names, as in the C library.

use libc::{c_int, pthread_mutex_t};

use crate::libc_locks as real;
use crate::mutex;

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// The error number in C11's terms.
#[inline(always)]
pub(crate) fn said(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// `mtx_init`: the C library leaves a mutex as `pthread_mutex_init` does (PRELOAD-2), or refuses.
pub(crate) unsafe fn mutex_init(place: *mut pthread_mutex_t, kind: c_int) -> c_int {
    // SAFETY: the caller's memory for a mutex.
    unsafe {
        let result = real::mtx_init(place, kind);
        if result == SUCCESS {
            mutex::begin(place);
        }
        result
    }
}
