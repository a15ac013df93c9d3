//! `errno` as it was: a lock may be taken between a failing call of the program and its look at that.
//!
//! Calls of the C library set it, some of them although they succeed: memory that the heap did not have comes from a
//! system call that failed and another that did not. System calls of this library do not
//! ([`syscall`](super::syscall)).

use libc::c_int;

/// What is in `errno`. Restored by hand: frames that a cancellation may unwind have nothing to drop.
#[derive(Debug, Clone, Copy)]
#[must_use = "it is kept to be restored"]
pub struct Errno(c_int);

impl Errno {
    /// What is in it now.
    #[must_use]
    pub fn now() -> c_int {
        // SAFETY: the place of this thread's `errno`.
        unsafe { *libc::__errno_location() }
    }

    /// Keeps what is in it.
    pub fn keep() -> Self {
        Self(Self::now())
    }

    /// Puts back what was in it.
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
        // SAFETY: a descriptor that is none.
        assert_eq!(unsafe { libc::close(-1) }, -1);
        assert_eq!(Errno::now(), libc::EBADF);
        kept.restore();
        assert_eq!(Errno::now(), 7);
    }
}
