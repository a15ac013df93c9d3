//! What publishing needs of the system, async-signal-safe and without the C library's `errno`.

use crate::platform::syscall::syscall;

/// Nanoseconds since boot: one clock for all processes of the machine.
pub(super) fn since_boot_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place. The clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// While this value lives, no signal handler runs on the thread.
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

/// Sets this thread's signal mask, and returns the previous one.
fn set_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    let arguments = [
        libc::SIG_SETMASK as u64,
        &raw const mask as u64,
        &raw mut before as u64,
        size_of::<u64>() as u64,
    ];
    // SAFETY: both masks are valid places of the size that is given.
    unsafe { syscall(libc::SYS_rt_sigprocmask, arguments) };
    before
}
