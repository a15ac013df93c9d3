//! Every tunable of the locks, in one block, each with its evidence.
//!
//! "Do you have any support for the magic numbers?" is asked of every lock in its review.
//! The answers stand here.

/// The tunables in force on a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Looks at a lock that has an owner and nobody in line, before a newcomer lines up as the
    /// pending waiter. Linux: 0.
    pub owner_looks: u32,
    /// Looks at the word while the pending waiter is just taking the lock, before a newcomer
    /// gives up waiting for the word to settle and queues. Linux: 1 by default, 512 on x86 and
    /// powerpc ("not tuned").
    pub pending_looks: u32,
    /// Looks at a taken simple lock before its waiter yields to the holder.
    pub simple_looks: u32,
    /// Looks at a taken yielding lock before its waiter yields.
    pub yield_looks: u32,
}

impl Tuning {
    /// What [`crate::platform::Platform::tuning`] returns unless a platform says otherwise.
    pub const DEFAULT: Self = Self {
        owner_looks: OWNER_LOOKS,
        pending_looks: PENDING_LOOKS,
        simple_looks: SIMPLE_LOOKS,
        yield_looks: YIELD_LOOKS,
    };
}

/// Default of [`Tuning::owner_looks`]. Against none: 1.11 times the throughput of two threads
/// with sections of 100 ns, 1.19 with empty ones, 1.08 with 1 µs (docs/native.md); from 4 to 64
/// looks differ by no more than the noise.
pub const OWNER_LOOKS: u32 = 16;

/// Default of [`Tuning::pending_looks`].
pub const PENDING_LOOKS: u32 = 512;

/// Default of [`Tuning::simple_looks`].
pub const SIMPLE_LOOKS: u32 = 64;

/// Default of [`Tuning::yield_looks`].
pub const YIELD_LOOKS: u32 = 1024;

/// Largest pause of the backoff lock, in pause instructions: document 003's bound.
pub const BACKOFF_CAP: u32 = 64;
