//! What a lock needs from the world: traits only.
//!
//! A lock of this crate never names a concrete atomic, clock, thread or CPU. It is written against [`Platform`],
//! which is passed as a *value* (zero-sized natively), so that one binary can hold the threads platform, two
//! model checkers and a simulator side by side, and the code that is checked is the code that is measured.
//!
//! # Contract
//!
//! * **PLATFORM-1** Words are coherent 32-bit atomics with the memory model of C11 and Rust. They are only ever
//!   accessed whole: accesses of different sizes to one word are undefined.
//! * **PLATFORM-2** [`Platform::cpu`] names an execution context that runs one *level* at a time: an interrupt
//!   (on threads: a signal handler) may come between any two steps of the level below, and ends before that level
//!   goes on. Two contexts never share a number at once, and when a number is reused, everything its former user
//!   did happens before.
//! * **PLATFORM-3** Every loop that watches a word goes through [`Platform::wait_until`], so that hardware can
//!   pause, a simulator can jump to the moment of the change and a model checker can yield. A pause that must
//!   *not* watch the word is [`Platform::relax`].
//! * **PLATFORM-4** A kick is *sticky*: a [`Platform::kick`] of a node that comes after the last
//!   [`Platform::halt`] with that node has returned makes the next one return. So a kick that comes late, to a
//!   node in its next life, is a spurious wake-up and nothing worse. Halts may return spuriously. A kick is a
//!   release, and the return that it causes an acquire.

use core::sync::atomic::Ordering;
use core::time::Duration;

pub use crate::atomic::{AtomicAddress, AtomicWord, ConstWord};
use crate::events::Events;
pub use crate::node::CpuId;
use crate::node::{Node, NodeId};
use crate::observer::Observer;
use crate::processor::{self, Spinning};
use crate::site::Site;
use crate::tuning::Tuning;
use crate::waiting::bucket::Bucket;

/// What a waiter waits for: `word & mask` to be, or no longer to be, `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// Bits that matter.
    pub mask: u32,
    /// The value they are compared with.
    pub value: u32,
    /// Whether to wait until they are equal to `value`, or until they are not.
    pub equal: bool,
}

impl Until {
    /// Until every bit of `mask` is clear.
    #[inline]
    #[must_use]
    pub const fn clear(mask: u32) -> Self {
        Self { mask, value: 0, equal: true }
    }
    /// Until the whole word is `value`.
    #[inline]
    #[must_use]
    pub const fn is(value: u32) -> Self {
        Self { mask: u32::MAX, value, equal: true }
    }
    /// Until the whole word is no longer `value`.
    #[inline]
    #[must_use]
    pub const fn is_not(value: u32) -> Self {
        Self { mask: u32::MAX, value, equal: false }
    }
    /// Whether a word with this value ends the wait.
    #[inline]
    #[must_use]
    pub const fn met_by(self, word: u32) -> bool {
        (word & self.mask == self.value) == self.equal
    }
}

/// How long [`Platform::wait_until`] watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Until the condition holds.
    Unbounded,
    /// At most this many polls of the word.
    Polls(u32),
}

/// What a lock needs from the world.
///
/// Everything that only some platforms have comes with a default that does nothing.
pub trait Platform {
    /// The platform's atomic word.
    type Word: AtomicWord;
    /// The platform's atomic for the address of a lock.
    type Address: AtomicAddress;
    /// The platform's event counters.
    type Events: Events;

    /// Where events are counted.
    fn events(&self) -> &Self::Events;

    /// The tunables in force.
    #[inline]
    fn tuning(&self) -> &Tuning {
        &Tuning::DEFAULT
    }

    /// The CPU that executes this, or `None` if it has no number (more threads than numbers, or a thread that is
    /// being torn down). A context without a number still locks, without a node.
    fn cpu(&self) -> Option<CpuId>;

    /// The node of this number. The locks ask only for numbers made of a [`CpuId`] that [`Platform::cpu`]
    /// returned.
    fn node(&self, id: NodeId) -> &Node<Self::Word>;

    /// Watches `word` until `until` holds or `budget` is spent; returns the last value seen, loaded with `order`.
    ///
    /// The default polls, with a pause instruction in between; without a budget it also uses what else the
    /// processor has for waiting for a line ([`AtomicWord::await_change`]). A platform that can do better
    /// overrides it.
    #[inline]
    fn wait_until(&self, word: &Self::Word, until: Until, budget: Budget, order: Ordering) -> u32 {
        let mut polls = 0;
        let spinning = Spinning::begin();
        loop {
            let seen = word.load(order);
            if until.met_by(seen) {
                return seen;
            }
            match budget {
                Budget::Unbounded => spinning.await_change(word, seen),
                Budget::Polls(limit) => {
                    polls += 1;
                    if polls >= limit {
                        return seen;
                    }
                    spinning.pause();
                }
            }
        }
    }

    /// A blind delay of `pauses` pause instructions that watches nothing.
    #[inline]
    fn relax(&self, pauses: u32) {
        for _ in 0..pauses {
            processor::pause();
        }
    }

    /// About how long a pause instruction takes, in nanoseconds: 5 to 50, by the processor. 0 where pauses take
    /// no time: then a budget that is a time is one poll, and waiters learn nothing of how to poll.
    #[inline]
    fn pause_ns(&self) -> u32 {
        16
    }

    /// Memory fence; `Relaxed` is no fence at all.
    #[inline]
    fn fence(&self, order: Ordering) {
        if order != Ordering::Relaxed {
            core::sync::atomic::fence(order);
        }
    }

    /// The ordering to use at a named site. A checker weakens one site at a time here; every
    /// other platform returns `order` and the call folds away.
    #[inline]
    fn ordering(&self, site: Site, order: Ordering) -> Ordering {
        let _ = site;
        order
    }

    /// Whether this context interrupted another one that may hold the lock's queue: readers in such a context may
    /// pass a waiting writer.
    #[inline]
    fn in_interrupt(&self) -> bool {
        false
    }

    /// Gives the CPU to any thread that can use it (`sched_yield`, a yield hypercall).
    #[inline]
    fn yield_cpu(&self) {
        self.relax(1);
    }

    /// Halts this CPU, which waits with its node `me`, until that node is kicked (PLATFORM-4).
    #[inline]
    fn halt(&self, me: NodeId) {
        let _ = me;
        self.relax(1);
    }

    /// Ends the halt of `node`, or its next one (PLATFORM-4).
    #[inline]
    fn kick(&self, node: NodeId) {
        let _ = node;
    }

    /// The address by which the lock of this word is known in the table of halted heads.
    #[inline]
    fn address(&self, word: &Self::Word) -> usize {
        core::ptr::from_ref(word) as usize
    }

    /// A hint that this CPU has just acquired a lock, and should not be preempted until
    /// [`Platform::holder_exit`], which follows the release. They nest. Remedy (b) of document 001.
    #[inline]
    fn holder_enter(&self) {}

    /// Ends what [`Platform::holder_enter`] began.
    #[inline]
    fn holder_exit(&self) {}

    /// What is to be told of every lock, while a user looks at them.
    #[inline]
    fn observer(&self) -> Option<&'static dyn Observer> {
        None
    }

    /// Whether `cpu` is known not to be running: remedy (c) of document 001. A hint. Without run status this is
    /// not known of any CPU.
    #[inline]
    fn is_preempted(&self, cpu: CpuId) -> bool {
        let _ = cpu;
        false
    }

    /// The CPU of the machine on which this context runs, where that can be read within a few instructions. For
    /// platforms whose CPUs are threads: while this one runs there, another that ran there does not. It may be
    /// out of date when it is used: no more than a guess may depend on it.
    #[inline]
    fn runs_on(&self) -> Option<u32> {
        None
    }

    /// Whether a CPU quota limits the CPU time of all CPUs together: what a waiter burns is taken from the owner.
    #[inline]
    fn has_cpu_quota(&self) -> bool {
        false
    }

    /// The place at which this CPU is, for [`Platform::distance`]. Below 2^31.
    #[inline]
    fn place(&self) -> u32 {
        0
    }

    /// The distance from one place to another: 0 if none is nearer (a shared last-level cache), then one more for
    /// each level of the machine.
    #[inline]
    fn distance(&self, from: u32, to: u32) -> u32 {
        u32::from(from != to)
    }

    /// Whether this context must not be passed over: an interrupt, an urgent task.
    #[inline]
    fn is_urgent(&self) -> bool {
        self.in_interrupt()
    }

    /// Nanoseconds of a monotonic clock; 0 where there is none. For statistics, and for bounds that are times:
    /// without a clock the NUMA-aware order never flushes, and culled locks rotate only after a number of turns.
    #[inline]
    fn now_ns(&self) -> u64 {
        0
    }

    /// The table of halted waiters, empty on a platform where no waiter halts. A power of two of buckets, with at
    /// least as many entries as the platform has nodes.
    #[inline]
    fn hash(&self) -> &[Bucket<Self::Word, Self::Address>] {
        &[]
    }

    /// Gives the CPU to `holder` in particular, where the platform can; else like
    /// [`Platform::yield_cpu`].
    #[inline]
    fn yield_to(&self, holder: CpuId) {
        let _ = holder;
        self.yield_cpu();
    }
}

/// A platform that is one value for the whole program, known at compile time: what the
/// `lock_api` adaptors in [`crate::raw`] need.
pub trait StaticPlatform: Platform + 'static {
    /// The platform.
    const PLATFORM: Self;
}

/// A platform whose programs specify timeouts in a time type of their own.
pub trait TimedPlatform: StaticPlatform {
    /// A point in time.
    type Instant: Copy;

    /// The time until `instant`; zero if it has passed.
    fn until(instant: Self::Instant) -> Duration;

    /// The point in time that is `duration` from now; `None` if there is none.
    fn after(duration: Duration) -> Option<Self::Instant>;
}

/// The time of [`Platform::now_ns`] after `duration`; `u64::MAX`, which never comes, if that is beyond it.
#[inline]
#[must_use]
pub fn deadline_after<P: Platform>(p: &P, duration: Duration) -> u64 {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    p.now_ns().saturating_add(nanoseconds)
}
