//! Bits of the queued lock word and its legal transitions.
//!
//! ```text
//!  31            18 17   16 15       9     8    7       0
//! ┌────────────────┬───────┬──────────┬─────────┬─────────┐
//! │ tail: CPU + 1  │ index │ reserved │ pending │ locked  │
//! └────────────────┴───────┴──────────┴─────────┴─────────┘
//! ```
//!
//! The layout is Linux's (`include/asm-generic/qspinlock_types.h`, more than 16 Ki CPUs'
//! variant apart). The *accesses* are not: Linux stores the locked byte and swaps the tail
//! halfword; here every access is to the whole word, since accesses of different sizes to one
//! word are undefined behaviour in Rust's memory model.
//!
//! # States
//!
//! Written (tail, pending, locked), `n` a tail, `*` anything:
//!
//! ```text
//!              acquire                    newcomer            owner releases
//!  (0,0,0) ────────────► (0,0,1) ─────────────────► (0,1,1) ────────────► (0,1,0)
//!     ▲                     │ ▲                        │                     │
//!     └──────── release ────┘ └────── pending takes ───┼─────────────────────┘
//!                                                      │ newcomer queues
//!                                                      ▼
//!  (n,0,0) ◄── release ── (n,0,1) ◄─ pending takes ─ (n,1,*)
//!     │ head takes            ▲
//!     ├── tail is mine ───────┼──► (0,0,1)
//!     └── others behind me ───┘
//! ```
//!
//! # Invariants
//!
//! * **W1** At most one CPU owns *locked*; only it clears it.
//! * **W2** At most one CPU owns *pending*: the one whose set found it clear. Only it clears it.
//! * **W3** *pending* is won only where the tail is empty; one that finds a tail takes it back.
//! * **W4** *locked* is set by a compare-exchange from a word in which it was clear, or by the
//!   owner of *pending* in the step that clears *pending*.
//! * **W5** The tail is cleared only by the head of the queue, in the step that takes the lock.
//!
//! [`is_legal`] states them for single steps; the model checkers assert it on every step of
//! every execution that they explore.

use crate::node::NodeId;

/// The lock is held.
pub const LOCKED: u32 = 1;
/// The head of the queue is asleep, and in the hash.
pub const SLEEPER: u32 = 2;
/// Held, and the head is asleep: the value of the locked byte that tells the owner to look in
/// the hash (`_Q_SLOW_VAL`).
pub const SLOW: u32 = LOCKED | SLEEPER;
/// Bits of the locked byte.
pub const LOCKED_MASK: u32 = 0xff;
/// One waiter waits for the owner without a queue node.
pub const PENDING: u32 = 1 << 8;
/// Newcomers may not take the lock past the queue.
pub const NO_STEAL: u32 = 1 << 9;
/// Reserved; zero.
pub const RESERVED_MASK: u32 = 0x3f << 10;
/// Where the tail begins.
pub const TAIL_SHIFT: u32 = 16;
/// Bits of the tail: the number of the last waiter's node.
pub const TAIL_MASK: u32 = u32::MAX << TAIL_SHIFT;

/// The tail bits that name `node` as the last of the queue.
#[inline]
#[must_use]
pub const fn tail_of(node: NodeId) -> u32 {
    (node.number() as u32) << TAIL_SHIFT
}

/// The last waiter's node, `None` if the queue is empty.
#[inline]
#[must_use]
pub const fn tail(word: u32) -> Option<NodeId> {
    NodeId::from_number((word >> TAIL_SHIFT) as u16)
}

/// Whether `word` is a state that a native queued lock may be in.
#[must_use]
pub const fn is_state(word: u32) -> bool {
    let locked = word & LOCKED_MASK;
    let number = (word >> TAIL_SHIFT) as u16;
    locked <= LOCKED && word & RESERVED_MASK == 0 && (number == 0 || number >= NodeId::FIRST)
}

/// Whether one atomic step may turn `from` into `to` in a native queued lock.
///
/// *pending* may be set over a word with a tail or with *pending* already set (the loser sees
/// it in the returned value; in the first case it takes it back), so those two steps are legal.
#[must_use]
pub const fn is_legal(from: u32, to: u32) -> bool {
    if !is_state(from) || !is_state(to) {
        return false;
    }
    let changed = from ^ to;
    let tails_differ = changed & TAIL_MASK != 0;
    let pending_differs = changed & PENDING != 0;
    let locked_differs = changed & LOCKED_MASK != 0;
    let sets_locked = to & LOCKED != 0;
    match (tails_differ, pending_differs, locked_differs) {
        // A set of pending that changes nothing.
        (false, false, false) => from & PENDING != 0,
        // Acquire (W4), or release by the owner.
        (false, false, true) => !sets_locked || from & PENDING == 0,
        // Pending is won, or lost and taken back.
        (false, true, false) => true,
        // W4: pending takes.
        (false, true, true) => sets_locked && from & PENDING != 0,
        // A newcomer queues.
        (true, false, false) => to & TAIL_MASK != 0,
        // W5: the last waiter takes.
        (true, false, true) => sets_locked && to == LOCKED && from & PENDING == 0,
        // Nobody changes the tail and pending in one step.
        (true, true, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::CpuId;

    fn node(cpu: u32, level: u32) -> NodeId {
        NodeId::new(CpuId::new(cpu).unwrap(), level).unwrap()
    }

    #[test]
    fn a_tail_names_its_node_and_zero_names_nobody() {
        assert_eq!(tail(0), None);
        assert_eq!(tail(LOCKED | PENDING | RESERVED_MASK), None);
        for cpu in [0, 1, 2, 4095, CpuId::LIMIT - 1] {
            for level in 0..4 {
                let word = tail_of(node(cpu, level));
                assert_eq!(word & !TAIL_MASK, 0);
                assert_eq!(tail(word | LOCKED | PENDING), Some(node(cpu, level)));
            }
        }
    }

    #[test]
    fn the_fields_do_not_overlap_and_fill_the_word() {
        let fields = [LOCKED_MASK, PENDING, RESERVED_MASK, TAIL_MASK];
        assert_eq!(fields.iter().sum::<u32>(), u32::MAX);
        assert_eq!(fields.iter().fold(0, |all, bits| all | bits), u32::MAX);
    }

    #[test]
    fn the_steps_of_the_diagram_are_legal() {
        let n = tail_of(node(0, 0));
        let m = tail_of(node(1, 0));
        let steps = [
            (0, LOCKED),
            (LOCKED, 0),
            (LOCKED, LOCKED | PENDING),
            (LOCKED | PENDING, PENDING),
            (PENDING, LOCKED),
            (LOCKED | PENDING, n | LOCKED | PENDING),
            (n | LOCKED | PENDING, n | PENDING),
            (n | PENDING, n | LOCKED),
            (n | LOCKED, m | LOCKED),
            (n | LOCKED, n),
            (n, LOCKED),
            (n, n | LOCKED),
            (n | LOCKED, n | LOCKED | PENDING),
            (n | LOCKED | PENDING, n | LOCKED),
        ];
        for (from, to) in steps {
            assert!(is_legal(from, to), "{from:#010x} -> {to:#010x}");
        }
    }

    #[test]
    fn what_the_invariants_forbid_is_illegal() {
        let n = tail_of(node(0, 0));
        let m = tail_of(node(1, 0));
        let steps = [
            (LOCKED, LOCKED),            // W1: taken twice
            (PENDING, PENDING | LOCKED), // W4: stolen from the pending waiter
            (LOCKED | PENDING, 0),       // W2: the owner clears pending
            (n | LOCKED, LOCKED),        // W5: tail lost while the lock is held
            (n, 0),                      // W5: tail lost
            (n | LOCKED, m),             // two steps in one
            (n | PENDING, LOCKED),       // pending forgets the queue
            (0, LOCKED | RESERVED_MASK), // reserved bits
            (0, 2),                      // no such locked value
            (0, 3 << TAIL_SHIFT),        // no such node
        ];
        for (from, to) in steps {
            assert!(!is_legal(from, to), "{from:#010x} -> {to:#010x}");
        }
    }
}
