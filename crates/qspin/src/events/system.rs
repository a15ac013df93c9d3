//! System calls without the C library: they leave `errno` alone and are async-signal-safe.

use core::arch::asm;

/// A system call; a negative result is an error number.
///
/// # Safety
/// As the call asks: pointers among the arguments are valid for what it reads and writes.
pub(super) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller's promise. `syscall` overwrites rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Nanoseconds since the machine was started: one clock for all its processes.
pub(super) fn since_boot_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place. The clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// No signal handler runs on this thread while it lives.
pub(super) struct SignalsBlocked(u64);

impl SignalsBlocked {
    pub(super) fn new() -> Self {
        Self(set_mask(!0))
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        set_mask(self.0);
    }
}

/// Sets this thread's signal mask, and gives the one before.
fn set_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    let arguments = [
        libc::SIG_SETMASK as usize,
        &raw const mask as usize,
        &raw mut before as usize,
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: both masks are valid places of the size that is given.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    before
}
