//! The barging quantum: how long a thread may acquire a lock past waiters. Both families of locks share it.
//!
//! # Problem
//! Culling keeps most waiters asleep, so a running CPU may acquire a lock over and over past them. To bound that,
//! each CPU counts its acquisitions past waiters since it last waited itself. When they use up the quantum it lets
//! a waiter in: [`crate::admission::Culled`] says how where waiters queue, [`crate::locks::mutex`] where they
//! sleep beside the lock.
//!
//! # Source
//! Dave Dice, "Malthusian Locks", EuroSys 2017.

use core::sync::atomic::Ordering::Relaxed;

use crate::atomic::AtomicWord;
use crate::node::{Node, NodeId};
use crate::platform::Platform;
use crate::tuning::QUOTA_ROTATE_US;

/// Of many sleepers each is let in within this, in microseconds, if one is at the end of each quantum. 64 threads on 2 CPUs
/// of a Xeon, 10 µs inside and nothing outside: the longest wait was 24 to 26 ms before, and is 21 to 23 ms with this and more
/// yields after a quantum. 1 µs and 1 µs: 26 to 30 ms, and 21 to 25 ms.
const CYCLE_US: u32 = 8000;
/// For that a quantum is shortened to this part of `rotate_us` at most: a thread that sleeps and one that wakes cost some
/// ten microseconds. With a quarter the first of these loads waits for 12 to 15 ms, but a simulated machine of 104
/// processors loses 15 percent: 152 threads, 50 ns inside, nothing outside, 64 locks.
const SHORTEST: u32 = 2;

/// The barging quantum of this CPU: its turns past waiters since it last waited itself. A turn is a lock stolen past a
/// queue, or a release past a sleeping head.
///
/// They stand in the CPU's first node and are private: no other CPU reads them. An interrupt between a load and a
/// store loses a few of its turns.
pub(crate) struct Quantum<'a, P: Platform> {
    /// The platform of this CPU.
    pub(crate) p: &'a P,
    first: Option<&'a Node<P::Word>>,
}

impl<'a, P: Platform> Quantum<'a, P> {
    /// Acquisitions between two readings of the clock, each of which costs as much as ten pauses. At first there are
    /// fewer, since eight long turns may be many quanta.
    const A_READING_OF_THE_CLOCK: u32 = 8;

    #[inline]
    pub(crate) fn of(p: &'a P) -> Self {
        let first = p.cpu().and_then(|cpu| NodeId::new(cpu, 0));
        Self { p, first: first.map(|first| p.node(first)) }
    }

    /// Whether turns are counted: a CPU without a number has none.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.first.is_some()
    }

    /// How long the quantum may last past so many sleepers, which have the lock one after the other.
    pub(crate) fn length_us(&self, sleepers: u32) -> u32 {
        if self.p.has_cpu_quota() {
            return QUOTA_ROTATE_US;
        }
        let rotate_us = self.p.tuning().rotate_us;
        rotate_us.min((CYCLE_US / sleepers.max(1)).max(rotate_us / SHORTEST))
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.first.is_some_and(|node| node.turns.load(Relaxed) >= self.p.tuning().rotate_turns)
    }

    /// The number of turns, while the quantum is not used up.
    pub(crate) fn number(&self) -> u32 {
        self.first.map_or(0, |node| node.turns.load(Relaxed))
    }

    /// The mean time of a turn, for this number of turns, in nanoseconds.
    pub(crate) fn mean_ns(&self, number: u32) -> u64 {
        let Some(node) = self.first else { return 0 };
        let elapsed = self.clock().wrapping_sub(node.since.load(Relaxed));
        (u64::from(elapsed) << Self::CLOCK_SHIFT) / u64::from(number.max(1))
    }

    /// The clock's unit is 2 to the power of this, in nanoseconds: nearly a microsecond.
    const CLOCK_SHIFT: u32 = 10;

    /// The low bits of near-microseconds: they only serve to tell how long ago something was.
    fn clock(&self) -> u32 {
        (self.p.now_ns() >> Self::CLOCK_SHIFT) as u32
    }

    /// The thread was replaced, whatever the word says.
    const REPLACED: u32 = u32::MAX;

    pub(crate) fn is_replaced(&self) -> bool {
        self.first.is_some_and(|node| node.turns.load(Relaxed) == Self::REPLACED)
    }

    pub(crate) fn replace(&self) {
        if let Some(node) = self.first {
            node.turns.store(Self::REPLACED, Relaxed);
        }
    }

    /// One more release since the quantum was used up: yields, once in `yield_turns`. Returns how many there were
    /// before.
    pub(crate) fn give_way(&self) -> u32 {
        self.give_way_each(self.p.tuning().yield_turns, false)
    }

    /// The same once in so many turns; where that is to become `rarer`, after so many, twice, four times as many and so on.
    pub(crate) fn give_way_each(&self, yield_turns: u32, rarer: bool) -> u32 {
        let Some(node) = self.first else { return 0 };
        let turns = node.turns.load(Relaxed);
        let before = turns.saturating_sub(self.p.tuning().rotate_turns);
        if turns < Self::REPLACED - 1 {
            node.turns.store(turns + 1, Relaxed);
        }
        // Yielding in a context that has interrupted a wait would help no waiter.
        let interrupts = node.nesting.load(Relaxed) != 0 || self.p.in_interrupt();
        let is_due = before.checked_rem(yield_turns) == Some(0)
            && (!rarer || (before / yield_turns).count_ones() <= 1);
        if is_due && !interrupts {
            self.p.yield_cpu();
        }
        before
    }

    pub(crate) fn begin_anew(&self) {
        if let Some(node) = self.first {
            node.turns.store(0, Relaxed);
        }
    }

    /// Counts one more turn; returns whether the quantum is used up now.
    #[inline]
    pub(crate) fn count(&self) -> bool {
        self.count_past(1)
    }

    /// The same past so many sleepers: the more there are, the sooner it is used up.
    #[inline]
    pub(crate) fn count_past(&self, sleepers: u32) -> bool {
        let Some(node) = self.first else { return false };
        let tuning = self.p.tuning();
        let mut turns = node.turns.load(Relaxed);
        if turns >= tuning.rotate_turns {
            return true;
        }
        let before = turns;
        let reads_the_clock =
            before % Self::A_READING_OF_THE_CLOCK == 0 || before.is_power_of_two();
        turns = turns.saturating_add(1);
        if reads_the_clock {
            let now = self.clock();
            if turns == 1 {
                node.since.store(now, Relaxed);
            } else {
                // The first few turns may be far apart, and not long.
                let few = Self::A_READING_OF_THE_CLOCK.checked_div(before).unwrap_or(1).max(1);
                let elapsed = now.wrapping_sub(node.since.load(Relaxed));
                if elapsed / few >= self.length_us(sleepers) {
                    turns = turns.max(tuning.rotate_turns);
                }
            }
        }
        node.turns.store(turns, Relaxed);
        turns >= tuning.rotate_turns
    }
}
