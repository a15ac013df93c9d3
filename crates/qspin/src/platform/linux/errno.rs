//! Keeping `errno`: a lock may be acquired between a failing call of the program and the program's check of
//! `errno`.
//!
//! Calls of the C library set it, some of them even when they succeed: `malloc` may make one system call that
//! fails and then one that succeeds. System calls of this library do not set it ([`syscall`](super::syscall)).

use libc::c_int;

/// A saved value of `errno`. Restored by hand: frames that a cancellation may unwind must have nothing to drop.
#[derive(Debug, Clone, Copy)]
#[must_use = "it is kept to be restored"]
pub struct Errno(c_int);

impl Errno {
    /// The present value.
    #[must_use]
    pub fn now() -> c_int {
        // SAFETY: the place of this thread's `errno`.
        unsafe { *libc::__errno_location() }
    }

    /// Saves the present value.
    pub fn keep() -> Self {
        Self(Self::now())
    }

    /// Restores the saved value.
    pub fn restore(self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_put_back() {
        Errno(7).restore();
        let kept = Errno::keep();
        // SAFETY: -1 is no descriptor.
        assert_eq!(unsafe { libc::close(-1) }, -1);
        assert_eq!(Errno::now(), libc::EBADF);
        kept.restore();
        assert_eq!(Errno::now(), 7);
    }
}
