//! The remedies of document 001 against an owner that does not run, as far as a program has a say in them.
//!
//! That waiters yield, remedy (a), is in the locks `yield` and `simple`; that they heed the run status, remedy
//! (c), is the tunable `heed_preempted`.

use core::ffi::c_int;

use qspin::platform::holder::{self, Hint, Hinted, Unavailable};
use qspin::platform::run_status;

/// Whether waiters can know that a thread does not run: remedy (c) of docs/remedies.md. They heed it where
/// the tunable "heed_preempted" is 1, which it is not by default: qspin_simple_t towards the owner, locks
/// whose waiters halt towards the one before. What is known is that the other thread was on the waiter's own
/// CPU, so a "no" about other threads means nothing.
///
/// It needs a C library that registers rseq areas: glibc from 2.35 on.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_run_status_available() -> bool {
    run_status::available()
}

/// Whether the kernel heeds this thread's qspin_holder_enter(): remedy (b) of docs/remedies.md. Enables it
/// where that is possible.
///
/// Returns 0; ENOSYS if the kernel does not know it (Linux does from 7.0 on); ENOTSUP if it does not offer it
/// to this program; ENXIO if the C library has registered no rseq area (glibc does from 2.35 on); or the error
/// with which the kernel refuses.
///
/// Thread-safe: concerns the calling thread. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_holder_available() -> c_int {
    match holder::available() {
        Ok(()) => 0,
        Err(Unavailable::NotInKernel) => libc::ENOSYS,
        Err(Unavailable::NotOffered) => libc::ENOTSUP,
        Err(Unavailable::NoArea) => libc::ENXIO,
        Err(Unavailable::Refused(error)) => error,
    }
}

/// Says that this thread has acquired a lock, of this library or another, and asks the kernel not to preempt it
/// for the few microseconds of a short critical section. To be called right after locking; may be nested. A
/// thread's first critical section goes without. Where the kernel does not heed it (qspin_holder_available()),
/// it costs one load. A system call inside the critical section ends what the kernel has granted.
///
/// Thread-safe: concerns the calling thread. Async-signal-safe, if the handler calls qspin_holder_exit() as often.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_holder_enter() {
    Hinted::enter();
}

/// Says that this thread has released that lock: once for each qspin_holder_enter(), by the same thread, right
/// after unlocking. More time that the kernel has granted is given back here.
///
/// Thread-safe: concerns the calling thread. Async-signal-safe, as qspin_holder_enter().
#[unsafe(no_mangle)]
pub extern "C" fn qspin_holder_exit() {
    Hinted::exit();
}
