//! `pthread_join`: the C library's, but other processes can see that a thread waits for another to end.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use libc::{c_int, pthread_t};

use crate::condvar::{_pthread_cleanup_pop, _pthread_cleanup_push, Cleanup};
use crate::libc_locks as real;
use crate::statistics::{self, Begins, Kind, Record};

/// A wait that was cancelled is over.
unsafe extern "C" fn cancelled(record: *mut c_void) {
    // SAFETY: a record, which lives as long as the process.
    unsafe { &*record.cast::<Record>() }.end();
}

/// `pthread_join`.
pub(crate) unsafe fn join(thread: pthread_t, result: *mut *mut c_void, site: usize) -> c_int {
    if !statistics::tracks() {
        // SAFETY: the caller's.
        return unsafe { real::pthread_join(thread, result) };
    }
    let begins = Begins::new(Kind::Join, thread as usize, site);
    let Some(record) = begins.begin_with_stack() else {
        // SAFETY: the caller's.
        return unsafe { real::pthread_join(thread, result) };
    };
    let mut cleanup = MaybeUninit::<Cleanup>::uninit();
    // SAFETY: the buffer lives until it is popped; a cancellation calls `cancelled` with a record (PRELOAD-5).
    unsafe {
        let argument = core::ptr::from_ref(record).cast_mut().cast();
        _pthread_cleanup_push(cleanup.as_mut_ptr(), cancelled, argument);
        let joined = real::pthread_join(thread, result);
        _pthread_cleanup_pop(cleanup.as_mut_ptr(), 0);
        record.end();
        joined
    }
}
