//! A system call without the C library's `errno`: for this crate, and for the one that interposes locks.
//!
//! # Invariants
//! * **SYSCALL-1** `errno` stays as it was: a lock may be acquired between a failing call of the program and
//!   the program's check of `errno`, in a signal handler for instance.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use super::processor::system_call;

/// Makes a system call with up to six arguments. It returns a result, or an error number negated (SYSCALL-1).
///
/// # Safety
/// As that system call with those arguments.
#[cold]
pub unsafe fn syscall<const N: usize>(number: i64, arguments: [u64; N]) -> i64 {
    let mut given = [0; 6];
    given[..N].copy_from_slice(&arguments);
    // SAFETY: the caller's.
    unsafe { system_call(number, given) }
}

/// Whether messages are suppressed.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Suppresses this library's messages on stderr from now on. For a program into which it was loaded without
/// being asked for.
pub fn be_silent() {
    SILENT.store(true, Relaxed);
}

/// Writes a line to stderr if that does not block; otherwise the line is dropped. Async-signal-safe.
pub(crate) fn say_unless_blocked(line: &[u8]) {
    if SILENT.load(Relaxed) {
        return;
    }
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Not every processor has `poll`.
    let arguments = [&raw mut stderr as u64, 1, &raw const at_once as u64, 0, 0];
    // SAFETY: one valid `pollfd`, a timeout of 0, and no signal mask.
    let ready = unsafe { syscall(libc::SYS_ppoll, arguments) };
    // No other event may be set: a pipe without a reader is ready, too, and writing to it kills.
    if ready == 1 && stderr.revents == libc::POLLOUT {
        let arguments = [stderr.fd as u64, line.as_ptr() as u64, line.len() as u64, 0, 0];
        // SAFETY: the bytes are valid for reading.
        unsafe { syscall(libc::SYS_write, arguments) };
    }
}
