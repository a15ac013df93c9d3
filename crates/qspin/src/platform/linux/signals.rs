//! Keeping signals off, async-signal-safe and without the C library's `errno`.

use super::syscall::syscall;

/// While this value lives, no signal handler runs on the thread.
pub(crate) struct SignalsBlocked(u64);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
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
