//! What sleepers need from a platform.

use core::sync::atomic::Ordering;

use super::{SleepBucket, Sleeper, Throughput};
use crate::node::NodeId;
use crate::platform::{Platform, Until};

/// What sleeping needs from a platform beyond spinning and halting.
pub trait SleepPlatform: Platform {
    /// The hints, one for each bucket; their number is a power of two.
    fn hints(&self) -> &[Self::Word];

    /// The buckets, as many as hints.
    fn buckets(&self) -> &[SleepBucket<Self::Word>];

    /// The record of the sleeper that waits with this node.
    fn sleeper(&self, id: NodeId) -> &Sleeper<Self::Word, Self::Address>;

    /// A number, not 0, that no other thread has at the same time; a signal handler has that of the code that it
    /// interrupts.
    fn token(&self) -> u32;

    /// Whether there is a heavy barrier. The answer may change; a heavy barrier that was promised when a hint
    /// became quiet stays available.
    fn asymmetric(&self) -> bool;

    /// The light side of the asymmetric fence: keeps the compiler from reordering, and nothing else.
    /// `order` is SeqCst; a checker may weaken it.
    fn light_barrier(&self, order: Ordering);

    /// The heavy side: every thread passes a full fence between its call and its return.
    fn heavy_barrier(&self, order: Ordering);

    /// Halts as [`Platform::halt`], until this time of [`Platform::now_ns`] at the latest.
    fn halt_until(&self, me: NodeId, deadline_ns: u64);

    /// Waits briefly until `word` meets `until`, because another thread is about to change it. Returns whether to
    /// go on after `rounds` such waits.
    fn wait_briefly(&self, word: &Self::Word, until: Until, rounds: u32) -> bool;

    /// Sleeps for a short time (a timed backoff), where the context cannot join a queue.
    fn timed_backoff(&self);

    /// Sleeps for about so many nanoseconds, or for a timed backoff where the platform has no other. No lock is held, and
    /// no node is in use.
    fn rest(&self, _ns: u32) {
        self.timed_backoff();
    }

    /// The priority of this context among the sleepers (SLEEP-7); 0 for contexts without one. Read once for each
    /// sleep.
    #[inline]
    fn priority(&self) -> u32 {
        0
    }

    /// Where the time that a thread takes to wake is kept, in nanoseconds ([`SpinBudget`](super::SpinBudget)); `None`
    /// if it is not to be measured.
    #[inline]
    fn wake_ns(&self) -> Option<&Self::Word> {
        None
    }

    /// The acquisitions of the process, from which waiters learn how often to poll ([`Pace`](super::Pace)); `None` if
    /// they are to watch. A platform that has it has [`Platform::pause_ns`] as well.
    #[inline]
    fn throughput(&self) -> Option<&Throughput<Self::Word>> {
        None
    }

    /// The number of this process in a line of forks: state bits that waiters have set in a lock do not count in
    /// a child, which has no such waiters.
    #[inline]
    fn generation(&self) -> u32 {
        0
    }
}
