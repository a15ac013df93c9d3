//! A system call without the C library's `errno`: for this crate, and for the one that interposes locks.
//!
//! # Invariants
//! * **SYSCALL-1** `errno` stays as it was: a lock may be taken between a failing call of the program and
//!   its look at `errno`, in a signal handler for instance.

use core::arch::asm;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

/// Makes a system call with up to six arguments; what it returns is a result, or an error number
/// negated (SYSCALL-1).
///
/// # Safety
/// As that system call with those arguments.
#[cold]
pub unsafe fn syscall<const N: usize>(number: i64, arguments: [u64; N]) -> i64 {
    let mut given = [0; 6];
    given[..N].copy_from_slice(&arguments);
    let result;
    // SAFETY: the caller's. `syscall` overwrites rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") given[0],
            in("rsi") given[1],
            in("rdx") given[2],
            in("r10") given[3],
            in("r8") given[4],
            in("r9") given[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Whether nothing is to be said.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on this library says nothing on stderr. For one that was loaded into a program that has not asked for it.
pub fn be_silent() {
    SILENT.store(true, Relaxed);
}

/// Writes a line to stderr if nobody has to be waited for; otherwise it stays unsaid.
/// Async-signal-safe.
pub(crate) fn say_unless_blocked(line: &[u8]) {
    if SILENT.load(Relaxed) {
        return;
    }
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid `pollfd`, and a timeout of 0.
    let ready = unsafe { syscall(libc::SYS_poll, [&raw mut stderr as u64, 1, 0, 0, 0]) };
    // And nothing else: a pipe that nobody reads is ready, too, and writing to it kills.
    if ready == 1 && stderr.revents == libc::POLLOUT {
        let arguments = [stderr.fd as u64, line.as_ptr() as u64, line.len() as u64, 0, 0];
        // SAFETY: the bytes are valid for reading.
        unsafe { syscall(libc::SYS_write, arguments) };
    }
}
