//! The clock of the locks.
//!
//! It is a type parameter of the platform, as the events are. A test can put its own clock there, for instance
//! one that ticks once per hand-off, so that a preempted thread has not waited longer for it. The locks that
//! programs use read the machine's clock, with not one instruction more.

use super::system::clock;

/// A clock in nanoseconds, from an arbitrary start.
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
        clock::now_ns()
    }
}
