//! What the harness knows of a lock: what it is run through, what its words may do, and how it is tuned.

use qspin_core::locks::{Family, Lock, Waits};
use qspin_core::tuning::Tuning;

use crate::trace::Rules;

/// How many buckets of sleepers there are, and which words meet in which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buckets {
    /// One, in which all meet.
    One,
    /// Two: of a condition and its mutex each is in another one.
    Two,
    /// The same the other way round.
    Swapped,
}

/// What kinds of scenario a lock is run through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// It admits readers.
    pub shared: bool,
    /// A reader that interrupts another reader passes a writer that waits, though they sleep or halt.
    pub interrupted: bool,
    /// Waiters queue with nodes, which have lives, levels and an end.
    pub nodes: bool,
    /// Each step concerns all waiters, which watch one word, or takes so many steps itself that four CPUs are too
    /// many to explore.
    pub crowded: bool,
    /// Its release may wait for a successor, and so for whatever interrupts that one.
    pub release_waits: bool,
    /// Waiters halt until they are kicked.
    pub halts: bool,
    /// They sleep in a queue beside the lock.
    pub sleeps: bool,
    /// Releases may be plain stores, since there is a heavy barrier.
    pub asymmetric: bool,
    /// The buckets in which they sleep.
    pub buckets: Buckets,
    /// Waiters have deadlines.
    pub timed: bool,
    /// A release wakes all sleepers.
    pub wakes_all: bool,
    /// It is opened once, for all.
    pub latch: bool,
    /// A release does not touch it any more once another context may acquire it, so that one may free it.
    pub freed: bool,
    /// A writer leaves by way of a read: others may read, and be done, while it still leaves.
    pub reads_on: bool,
    /// It was inherited by a fork.
    pub inherited: bool,
    /// The heavy barrier is there only once a context has obtained it.
    pub late: bool,
    /// Readers become writers, and the reverse, in steps of the scenario.
    pub converts: bool,
    /// The table of halted waiters has no room.
    pub no_room: bool,
    /// Waiters that are near come first.
    pub near_first: bool,
    /// To acquire it takes so many steps that schedules with more than one preemption are too many.
    pub long: bool,
    /// So does a release: two contexts have one preemption, and three none.
    pub longer: bool,
    /// It takes so few steps that one preemption more than others have is not too many.
    pub brief: bool,
    /// It differs from another lock in a step that is switched on or off, or is made of the same pieces, and is
    /// run through what concerns the difference.
    pub step: bool,
}

impl Traits {
    /// Those of a lock of the register.
    #[must_use]
    pub fn of(lock: &Lock) -> Self {
        let sleeps = lock.family == Family::Sleeping;
        Self {
            shared: lock.shared,
            interrupted: lock.shared && lock.waits == Waits::Halts,
            nodes: lock.queues(),
            // Of those that sleep beside more than one word, four CPUs are more than loom can do in a minute.
            crowded: lock.family == Family::Ticket || sleeps && lock.words > 1,
            release_waits: lock.family == Family::Mcs,
            halts: lock.waits == Waits::Halts,
            sleeps,
            asymmetric: sleeps,
            buckets: Buckets::One,
            timed: false,
            wakes_all: false,
            latch: false,
            freed: true,
            reads_on: false,
            inherited: false,
            late: false,
            converts: false,
            no_room: false,
            near_first: lock.near_first,
            long: false,
            longer: false,
            brief: false,
            // The pieces that a reader-writer lock shares with the mutex of its family have stood the rest there.
            step: sleeps && lock.shared,
        }
    }
}

/// What is known of a lock.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// What it is run through.
    pub traits: Traits,
    /// What its words may do.
    pub rules: Rules,
    /// The tunables in force.
    pub tuning: Tuning,
}
