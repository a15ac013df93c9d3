//! What GenMC provides, and how a wait is put to it.

use core::ffi::{c_char, c_int, c_long, c_void};

unsafe extern "C" {
    fn __VERIFIER_thread_create(
        attributes: *const c_void,
        body: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn __VERIFIER_thread_join(thread: c_long, result: *mut *mut c_void) -> c_int;
    fn __VERIFIER_assert_fail(claim: *const c_char, file: *const c_char, line: c_int);
    fn __VERIFIER_loop_begin();
    fn __VERIFIER_spin_start();
    fn __VERIFIER_spin_end(met: bool);
}

/// Starts a thread; returns its number.
#[inline(always)]
pub(crate) fn start(
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's function, called with the caller's argument.
    unsafe { __VERIFIER_thread_create(core::ptr::null(), body, argument) }
}

/// Waits for the end of a thread.
#[inline(always)]
pub(crate) fn join(thread: c_int) {
    // SAFETY: a result is not asked for.
    unsafe { __VERIFIER_thread_join(c_long::from(thread), core::ptr::null_mut()) };
}

/// The program is wrong.
#[inline(always)]
pub(crate) fn fail() {
    // SAFETY: the strings end with zero.
    unsafe { __VERIFIER_assert_fail(c"every section counts".as_ptr(), c"client".as_ptr(), 1) };
}

/// Waits until `attempt` returns something. Attempts that return nothing change nothing: GenMC explores the one that
/// succeeds, and reports a thread for which none ever does.
#[inline(always)]
pub(crate) fn spin<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    // SAFETY: the marks of a loop without side effects, in the order that GenMC's header gives.
    unsafe { __VERIFIER_loop_begin() };
    loop {
        // SAFETY: as above.
        unsafe { __VERIFIER_spin_start() };
        let outcome = attempt();
        // SAFETY: as above.
        unsafe { __VERIFIER_spin_end(outcome.is_some()) };
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
}
