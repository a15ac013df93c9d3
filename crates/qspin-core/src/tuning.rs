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
    /// Pause instructions before the first of those looks; each further one is after twice as
    /// many.
    pub owner_pauses: u32,
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
        owner_pauses: OWNER_PAUSES,
        pending_looks: PENDING_LOOKS,
        simple_looks: SIMPLE_LOOKS,
        yield_looks: YIELD_LOOKS,
    };
}

// The evidence is printed by `cargo run --release -p qspin --example tunables`; docs/tuning.md holds
// its table from a machine with 2 CPUs.

/// Default of [`Tuning::owner_looks`]. Without them two threads with empty sections do 0.51 of the
/// work; with sections of 300 ns and of 3 µs there is no clear difference. Eight looks do 1.37 of
/// the work of empty sections, but keep a newcomer out of line for 510 pauses.
pub const OWNER_LOOKS: u32 = 4;

/// Default of [`Tuning::owner_pauses`]. With 8, two threads do 1.79 of the work with empty sections
/// and 0.89 with sections of 300 ns; with 1, it is 0.87 and 1.06.
pub const OWNER_PAUSES: u32 = 2;

/// Default of [`Tuning::pending_looks`]. With 1, two threads with empty sections do 0.73 of the
/// work; from 16 to 4096 there is no clear difference, so the document's 512 stays.
pub const PENDING_LOOKS: u32 = 512;

/// Default of [`Tuning::simple_looks`]. With 16, eight threads on 2 CPUs do 0.85 to 0.9 of the work,
/// with 1 from 0.7 to 0.75; more than 256 gains nothing.
pub const SIMPLE_LOOKS: u32 = 256;

/// Default of [`Tuning::yield_looks`]. With 16, eight threads on 2 CPUs do 0.8 to 0.9 of the work,
/// with 1 from 0.7 to 0.8; more than 256 gains nothing.
pub const YIELD_LOOKS: u32 = 256;

/// Largest pause of the backoff lock, in pause instructions: document 003's bound. Its grid,
/// `qspin bench --workload kernel-lock-bench --ratio backoff/tas`, is the evidence.
pub const BACKOFF_CAP: u32 = 64;
