//! MCS nodes, and how a tail names them.
//!
//! A waiter in a queue spins on a line of its own: its node. A node has a *number* (CPU and nesting level), not
//! an address: the lock word, a node's `next` and everything else that refers to a node hold that number, and the
//! platform turns it into a place. So a link is as small as a tail, needs no unsafe code, and means the same in a
//! simulator or a guest.
//!
//! A CPU has four nodes, one a nesting level: task, soft interrupt, hard interrupt and NMI in a kernel; on
//! threads, code and the signal handlers that interrupt it. A waiter that finds all four in use waits without a
//! node.
//!
//! # Invariants
//!
//! * **NODE-1** Level `l` of a CPU is used only by the context that raised the CPU's `nesting` from `l` to
//!   `l + 1`, until it lowers it again. Contexts of one CPU nest (contract PLATFORM-2), so plain loads and stores of
//!   `nesting` suffice.
//! * **NODE-2** Between two lives of a node only its owner accesses the fields that belong to a life: a life
//!   begins with [`Node::begin`] and ends when the owner has left the queue, after which no other waiter refers
//!   to it. Two accesses may come late and are made for it: a kick (contract PLATFORM-4) and a
//!   [peek](crate::atomic::AtomicWord::peek) by the waiter that was behind it.
//! * **NODE-3** A node is one cache line, and begins one.

use core::sync::atomic::Ordering::Relaxed;

use crate::atomic::{AtomicWord, ConstWord};

/// The number of a CPU: dense, from 0, below [`CpuId::LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(u16);

impl CpuId {
    /// The number of CPUs that a tail's 16 bits for them can name, the value 0 being "no tail".
    pub const LIMIT: u32 = (1 << 16) - 1;

    /// The CPU of this number, `None` if a tail cannot name it.
    #[inline]
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number < Self::LIMIT { Some(Self(number as u16)) } else { None }
    }

    /// The number, from 0.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

/// The number of nesting levels for which a CPU has nodes.
pub const LEVELS: u32 = 4;

/// The number of a node: `(CPU + 1) * 4 + level`, so that 0 names no node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// The smallest number of a node.
    pub const FIRST: u32 = LEVELS;
    /// All numbers are below this.
    pub const END: u32 = (CpuId::LIMIT + 1) * LEVELS;

    /// The node of `cpu` at nesting `level`, `None` where there are no more levels.
    #[inline]
    #[must_use]
    pub const fn new(cpu: CpuId, level: u32) -> Option<Self> {
        if level < LEVELS { Some(Self((cpu.number() + 1) * LEVELS + level)) } else { None }
    }

    /// The node that a tail or link names; `None` for 0.
    #[inline]
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }

    /// The number: what tails and links hold.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The CPU whose node this is.
    #[inline]
    #[must_use]
    pub const fn cpu(self) -> CpuId {
        CpuId((self.0 / LEVELS).saturating_sub(1) as u16)
    }

    /// The nesting level, from 0.
    #[inline]
    #[must_use]
    pub const fn level(self) -> u32 {
        self.0 % LEVELS
    }
}

/// The waiter has not been given its turn.
pub const WAITING: u32 = 0;
/// The predecessor has handed the headship of the queue over.
pub const TURN: u32 = 1;

/// The waiter runs.
pub const RUNNING: u32 = 0;
/// The waiter is halting in the queue.
pub const HALTED: u32 = 1;
/// The head is in the hash, and halted or about to halt.
pub const HASHED: u32 = 2;
/// The waiter became the head while it was halted; its predecessor is entering it in the hash.
pub const CLAIMED: u32 = 3;

/// One waiter's place in a queue. Fields are in the order in which a hand-over touches them.
///
/// `locked`, `next` and `state` belong to a life (NODE-2), and so do the words of CNA;
/// the others outlive it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Node<W> {
    /// [`WAITING`], then [`TURN`].
    pub locked: W,
    /// The successor's number; 0 while there is none. Written by the successor.
    pub next: W,
    /// At level 0: how many levels of this CPU are in use. Touched by the CPU alone.
    pub nesting: W,
    /// [`RUNNING`], [`HALTED`], [`HASHED`] or [`CLAIMED`].
    pub state: W,
    /// For the platform's `halt` and `kick`; outlives the lives of the node.
    pub kick: W,
    /// How often this context had to halt recently; used by its owner alone, over many lives.
    pub history: W,
    /// When the node was kicked last, low bits of nanoseconds; 0 if not since its last halt.
    /// For statistics only.
    pub kick_time: W,
    /// At level 0: the turns of this CPU past waiters, since it last waited itself.
    pub turns: W,
    /// At level 0: when the first of those turns was, low bits of microseconds.
    pub since: W,
    /// CNA: where the waiter is, and whether it is urgent.
    pub place: W,
    /// CNA, of the head: the place that its order prefers.
    pub near_to: W,
    /// CNA, of the head: the first of the secondary queue; 0 while there is none.
    pub second_head: W,
    /// CNA, of the head: the last of the secondary queue; 0 while there is none.
    pub second_tail: W,
    /// CNA, of the head: when the first of the secondary queue came there.
    pub second_since: W,
    /// The state of this node's random generator; outlives its lives.
    pub dice: W,
}

const _: () = assert!(size_of::<Node<core::sync::atomic::AtomicU32>>() == 64, "N3");

impl<W: AtomicWord> Node<W> {
    /// A node that is not in use.
    #[must_use]
    pub fn new() -> Self {
        Self {
            locked: W::new(0),
            next: W::new(0),
            nesting: W::new(0),
            state: W::new(0),
            kick: W::new(0),
            history: W::new(0),
            kick_time: W::new(0),
            turns: W::new(0),
            since: W::new(0),
            place: W::new(0),
            near_to: W::new(0),
            second_head: W::new(0),
            second_tail: W::new(0),
            second_since: W::new(0),
            dice: W::new(0),
        }
    }

    /// So many random bits from this node's generator (Marsaglia's xorshift), whose state outlives the node's
    /// lives.
    #[inline]
    pub fn throw(&self, bits: u32) -> u32 {
        let mut dice = self.dice.load(Relaxed);
        if dice == 0 {
            dice = 0x9e37_79b9;
        }
        dice ^= dice << 13;
        dice ^= dice >> 17;
        dice ^= dice << 5;
        self.dice.store(dice, Relaxed);
        dice >> (32 - bits)
    }

    /// Begins a life as the last waiter of a queue (NODE-2).
    #[inline]
    pub fn begin(&self) {
        self.locked.begin(WAITING);
        self.next.begin(0);
        self.state.begin(RUNNING);
    }
}

impl<W: AtomicWord> Default for Node<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: ConstWord> Node<W> {
    /// A node that is not in use: the template for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const UNUSED: Self = Self {
        locked: W::ZERO,
        next: W::ZERO,
        nesting: W::ZERO,
        state: W::ZERO,
        kick: W::ZERO,
        history: W::ZERO,
        kick_time: W::ZERO,
        turns: W::ZERO,
        since: W::ZERO,
        place: W::ZERO,
        near_to: W::ZERO,
        second_head: W::ZERO,
        second_tail: W::ZERO,
        second_since: W::ZERO,
        dice: W::ZERO,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_are_never_zero() {
        for cpu in [0, 1, 77, CpuId::LIMIT - 1] {
            for level in 0..LEVELS {
                let id = NodeId::new(CpuId::new(cpu).unwrap(), level).unwrap();
                assert!(id.number() >= NodeId::FIRST);
                assert_eq!(id.cpu().number(), cpu);
                assert_eq!(id.level(), level);
                assert_eq!(NodeId::from_number(id.number()), Some(id));
            }
        }
    }

    #[test]
    fn there_is_no_fifth_level_and_no_cpu_past_the_limit() {
        assert_eq!(NodeId::new(CpuId::new(0).unwrap(), LEVELS), None);
        assert_eq!(CpuId::new(CpuId::LIMIT), None);
        assert_eq!(NodeId::from_number(0), None);
    }
}
