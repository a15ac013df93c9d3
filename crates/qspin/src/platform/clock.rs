//! The clock by which the locks measure.
//!
//! A type parameter of the platform, as the events are: a test puts a clock of its own there, one that
//! ticks once a hand-over for instance, so that a thread that is preempted has not waited longer
//! for it. The locks that every program uses read the machine's, with not one instruction more.

/// Nanoseconds since whenever.
pub trait Clock: 'static {
    /// The time; it never goes back. Async-signal-safe.
    fn now_ns() -> u64;
}

/// The machine's monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now_ns() -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a valid place. The clock exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}
