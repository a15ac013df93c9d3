//! A process-shared condition variable with a mutex of this process.
//!
//! The condition variable is the C library's, the mutex is served here, and neither side can release the
//! other's mutex.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use libc::{c_int, pthread_cond_t, pthread_mutex_t};

use super::wait::{_pthread_cleanup_pop, _pthread_cleanup_push, Cleanup};
use crate::deadline::Deadline;
use crate::libc_locks as real;
use crate::mutex;

/// A wait that was cancelled in the C library, which has reacquired its own mutex.
unsafe extern "C" fn cancelled_mixed(mutex: *mut c_void) {
    // SAFETY: the mutex of the wait, which the program keeps in place meanwhile.
    let _ = unsafe { mutex::take_back(mutex.cast(), 0) };
}

/// The longest sleep of a wait for a signal that may be lost.
const LOST_SIGNAL_NS: u64 = 2_000_000;

/// Waits for a process-shared condition variable with a mutex that is served here. The C library's wait
/// releases mutexes of its own only, so it gets one; a signal between the release of the one and of the other
/// is lost. So the wait ends by itself before long, as a spurious wake-up may.
pub(super) unsafe fn wait_mixed(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const Deadline,
    site: usize,
) -> c_int {
    let mut own = MaybeUninit::<pthread_mutex_t>::zeroed();
    let mut cleanup = MaybeUninit::<Cleanup>::uninit();
    // SAFETY: a mutex of the C library in this frame, which no other thread knows; the others are the caller's.
    unsafe {
        let given = deadline.as_ref();
        let soon = Deadline::at_most(given, LOST_SIGNAL_NS);
        real::pthread_mutex_lock(own.as_mut_ptr());
        let refused = mutex::lend(mutex);
        if refused != 0 {
            real::pthread_mutex_unlock(own.as_mut_ptr());
            return refused;
        }
        _pthread_cleanup_push(cleanup.as_mut_ptr(), cancelled_mixed, mutex.cast());
        let waited = real::pthread_cond_clockwait(
            condvar,
            own.as_mut_ptr(),
            soon.clock,
            &raw const soon.time,
        );
        _pthread_cleanup_pop(cleanup.as_mut_ptr(), 0);
        let locked = mutex::take_back(mutex, site);
        if locked != 0 {
            return locked;
        }
        let late = given.is_some_and(|given| given.remaining().is_none());
        if waited == libc::ETIMEDOUT && !late { 0 } else { waited }
    }
}
