//! Every tunable of the locks, in one block, each with its evidence.
//!
//! "Do you have any support for the magic numbers?" is asked of every lock in its review.
//! The answers stand here.

/// The tunables in force on a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Looks at the word while the pending waiter is just taking the lock, before a newcomer
    /// gives up waiting for the word to settle and queues. Linux: 1 by default, 512 on x86 and
    /// powerpc ("not tuned").
    pub pending_looks: u32,
    /// Looks at a taken simple lock before its waiter yields to the holder.
    pub simple_looks: u32,
    /// Looks at a taken yielding lock before its waiter yields.
    pub yield_looks: u32,
    /// Halt: looks of a waiter in the queue before it halts.
    pub queue_looks: u32,
    /// Halt: looks of the head before it halts.
    pub head_looks: u32,
    /// Halt: whether a newcomer may wait as pending.
    pub pending: bool,
    /// Halt: looks of the pending waiter before it queues.
    pub pending_wait_looks: u32,
    /// Halt: whether a release kicks the halted head whatever its state.
    pub kick_unconditionally: bool,
    /// Halt: waiters behind the head that a release kicks as well.
    pub kick_ahead: u32,
    /// Halt: when the kick of a new head is left to the release.
    pub defer: Defer,
    /// Halt: whether a waiter halts earlier when the one before it is halted.
    pub adaptive: Adaptive,
    /// Halt: whether a waiter halts earlier when the one before it is preempted.
    pub heed_preempted: bool,
    /// Halt: the short threshold is `queue_looks` divided by this.
    pub short_divisor: u32,
    /// Halt: looks between two looks at the waiter before.
    pub check_looks: u32,
    /// Halt: what a halt adds to the wait history.
    pub history_increment: u32,
    /// Halt: bounds of the wait history.
    pub history_least: u32,
    /// Halt: bounds of the wait history.
    pub history_most: u32,
    /// Halt: wait history above which waiters heed the one before them.
    pub history_threshold: u32,
    /// Stealing: looks of a newcomer at a taken lock.
    pub steal_looks: u32,
    /// Culled: looks of a newcomer before it queues.
    pub cull_looks: u32,
    /// Culled: looks of the awake waiter before it gives up.
    pub awake_looks: u32,
    /// Culled: looks of an awake waiter before it forbids stealing.
    pub patience_looks: u32,
    /// Culled: releases of a CPU past a sleeping head before it wakes the head.
    pub rotate_turns: u32,
}

/// When the kick of a new head is left to the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defer {
    /// Never: kicked when the head is handed over.
    Never,
    /// Where no kick-ahead is set, or where the waiter behind the new head is halted, too.
    Conditions,
    /// Always.
    Always,
}

/// Whether a waiter halts earlier than its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adaptive {
    /// Never.
    Off,
    /// By its history of halts: the sixth patch of document 000.
    History,
    /// By a look at the waiter before it: what its reviewer proposed.
    Neighbour,
}

/// Most waiters that a release may kick beside the head.
pub const KICK_AHEAD_MOST: usize = 5;

impl Tuning {
    /// What [`crate::platform::Platform::tuning`] returns unless a platform says otherwise.
    pub const DEFAULT: Self = Self {
        pending_looks: PENDING_LOOKS,
        simple_looks: SIMPLE_LOOKS,
        yield_looks: YIELD_LOOKS,
        queue_looks: 1 << 15,
        head_looks: 1 << 15,
        pending: true,
        pending_wait_looks: 1 << 10,
        kick_unconditionally: true,
        kick_ahead: 0,
        defer: Defer::Always,
        adaptive: Adaptive::Off,
        heed_preempted: false,
        short_divisor: 32,
        check_looks: 256,
        history_increment: 2,
        history_least: 1,
        history_most: 30,
        history_threshold: 15,
        steal_looks: 64,
        cull_looks: 32,
        awake_looks: 1 << 10,
        patience_looks: 64,
        rotate_turns: 512,
    };
}

/// Default of [`Tuning::pending_looks`].
pub const PENDING_LOOKS: u32 = 512;

/// Default of [`Tuning::simple_looks`].
pub const SIMPLE_LOOKS: u32 = 64;

/// Default of [`Tuning::yield_looks`].
pub const YIELD_LOOKS: u32 = 1024;

/// Largest pause of the backoff lock, in pause instructions: document 003's bound.
pub const BACKOFF_CAP: u32 = 64;
