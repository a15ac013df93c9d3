//! Bits of the queued lock word and its legal transitions.
//!
//! ```text
//!  31            16 15   14 13       10     9         8     7          1       0
//! ┌────────────────┬───────┬──────────┬──────────┬─────────┬─────────┬────────┐
//! │ tail: CPU + 1  │ index │ reserved │ no steal │ pending │ sleeper │ locked │
//! └────────────────┴───────┴──────────┴──────────┴─────────┴─────────┴────────┘
//! ```
//!
//! The layout is that of Linux (`include/asm-generic/qspinlock_types.h`), except that its tail has two bits
//! fewer; there `_Q_SLOW_VAL` is *locked* with *sleeper*, and pending and no-steal are one bit. The *accesses*
//! differ: Linux stores the locked byte and swaps the tail halfword; here every access is to the whole word,
//! since accesses of different sizes to one word are undefined behaviour in Rust's memory model.
//!
//! # States
//!
//! Written (tail, pending, locked), `n` a tail, `*` anything:
//!
//! ```text
//!              acquire                    newcomer            owner releases
//!  (0,0,0) ────────────► (0,0,1) ─────────────────► (0,1,1) ────────────► (0,1,0)
//!     ▲                     │ ▲                        │                     │
//!     └──────── release ────┘ └── pending acquires ────┼─────────────────────┘
//!                                                      │ newcomer queues
//!                                                      ▼
//!  (n,0,0) ◄── release ── (n,0,1) ◄ pending acquires ─ (n,1,*)
//!     │ head acquires         ▲
//!     ├── tail is mine ───────┼──► (0,0,1), or (m,0,1): m is the last of the secondary queue
//!     └── others behind me ───┘
//! ```
//!
//! Where the head may halt, a held lock with a queue has a second form, *slow* (`S`):
//!
//! ```text
//!            head is about to halt, or the new owner
//!            defers its kick to the release
//!  (n,p,1) ─────────────────────────────────────────► (n,p,S) ── release, and kick ──► (n,p,0)
//!                                                        │ ▲
//!        culled, p = 1: release, and let the head sleep  ▼ │ pending acquires, or a thief
//!                                                     (n,1,sleeper, not locked)
//! ```
//!
//! # Invariants
//!
//! * **WORD-1** At most one CPU owns *locked*; only it clears it. With it goes *sleeper*: set while the lock is
//!   held and has a queue, by the head or the owner; cleared by the owner in the step that releases the lock, or
//!   by the head in the step that acquires it.
//! * **WORD-2** At most one CPU owns *pending*: the one whose set found it clear. Only it clears it.
//! * **WORD-3** *pending* is won only where the tail is empty; a newcomer that finds a tail takes it back. In a
//!   culled lock it is won wherever the lock is held and stealing allowed, tail or not.
//! * **WORD-4** *locked* is set by a compare-exchange from a word in which it was clear, or by the owner of
//!   *pending* in the step that clears *pending*.
//! * **WORD-5** The tail is cleared only by the head of the queue, in the step that acquires the lock; and only
//!   when it names the head itself. Where the order keeps a secondary queue and a waiter is in it, the head does
//!   not clear the tail then, but replaces it by the last of that queue, in the same step.
//! * **WORD-6** *no steal* is set by an awake head, or a culled lock's pending waiter, and cleared in the step in
//!   which a waiter acquires the lock, falls asleep as the head, or gives up as pending. While it is set, the
//!   lock is acquired by the head, by *pending*, and by contexts that have no place in the queue
//!   ([`is_placeless`]), but by no thief.
//!
//! [`Kind::is_legal`] states the invariants for single steps, [`Kind::is_legal_with_secondary`] for those of a
//! lock whose order keeps a secondary queue. The model checkers assert them on every step of every execution that
//! they explore, and assert that a tail that is left belongs to the secondary queue.

use crate::node::NodeId;

const _: () = assert!(NodeId::END - 1 == u32::MAX >> TAIL_SHIFT);

/// The lock is held.
pub const LOCKED: u32 = 1;
/// The head of the queue is asleep, and in the hash.
pub const SLEEPER: u32 = 2;
/// Held, and the head is asleep: the value of the locked byte that tells the owner to search the hash
/// (`_Q_SLOW_VAL`).
pub const SLOW: u32 = LOCKED | SLEEPER;
/// Bits of the locked byte.
pub const LOCKED_MASK: u32 = 0xff;
/// One waiter waits for the owner without a queue node.
pub const PENDING: u32 = 1 << 8;
/// Newcomers may not steal the lock past the queue.
pub const NO_STEAL: u32 = 1 << 9;
/// Reserved; zero.
pub const RESERVED_MASK: u32 = 0xf << 10;
/// Where the tail begins.
pub const TAIL_SHIFT: u32 = 14;
/// Bits of the tail: the number of the last waiter's node.
pub const TAIL_MASK: u32 = u32::MAX << TAIL_SHIFT;

/// The tail bits that name `node` as the last of the queue.
#[inline]
#[must_use]
pub const fn tail_of(node: NodeId) -> u32 {
    node.number() << TAIL_SHIFT
}

/// The last waiter's node, `None` if the queue is empty.
#[inline]
#[must_use]
pub const fn tail(word: u32) -> Option<NodeId> {
    NodeId::from_number(word >> TAIL_SHIFT)
}

/// The kinds of queued lock, which differ in the steps that their words may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Waiters spin, in the order of arrival.
    Native,
    /// Waiters halt, in the order of arrival.
    Halting,
    /// Waiters halt, and newcomers steal.
    Stealing,
    /// Waiters halt but for the pending one, which competes with newcomers.
    Culled,
}

impl Kind {
    /// Whether `word` is a state that a lock of this kind may be in.
    #[must_use]
    pub const fn is_state(self, word: u32) -> bool {
        let number = word >> TAIL_SHIFT;
        let queue = number != 0;
        if word & (LOCKED_MASK & !SLOW | RESERVED_MASK) != 0 || queue && number < NodeId::FIRST {
            return false;
        }
        let competes = self.is_culled() && word & PENDING != 0;
        // WORD-1; for a culled lock CULLED-1: the owner of *pending* is awake and will acquire and release the
        // lock.
        let sleeper_fits = word & SLEEPER == 0 || queue && (word & LOCKED != 0 || competes);
        // WORD-6
        let no_steal_fits = word & NO_STEAL == 0 || queue || competes;
        sleeper_fits
            && no_steal_fits
            && match self {
                Kind::Native => word & (SLEEPER | NO_STEAL) == 0,
                Kind::Halting => word & NO_STEAL == 0,
                Kind::Stealing => word & PENDING == 0,
                Kind::Culled => true,
            }
    }

    const fn is_culled(self) -> bool {
        matches!(self, Kind::Culled)
    }

    /// Whether one atomic step may turn `from` into `to` in a lock of this kind, by a context that has a place in
    /// its queue or needs none.
    ///
    /// *pending* may be set over a word with a tail or with *pending* already set (the loser sees it in the
    /// returned value; in the first case it takes it back), so those two steps are legal where it is set blindly.
    #[must_use]
    pub const fn is_legal(self, from: u32, to: u32) -> bool {
        if !self.is_state(from) || !self.is_state(to) {
            return false;
        }
        let set = to & !from & !TAIL_MASK;
        let cleared = from & !to & !TAIL_MASK;
        let (tail, same_tail) = (to & TAIL_MASK, (from ^ to) & TAIL_MASK == 0);
        if !same_tail && tail != 0 {
            // A newcomer queues.
            return set == 0 && cleared == 0;
        }
        if !same_tail {
            // WORD-5: the last waiter acquires.
            return set == LOCKED && self.head_may_clear(from, cleared);
        }
        // What the owner of pending clears with it, where it set it (WORD-6).
        let raised = if self.is_culled() { NO_STEAL } else { 0 };
        match set {
            0 => match cleared {
                // A set that changes nothing: of pending, or of no-steal by two awake waiters of a culled lock.
                0 => match self {
                    Kind::Native | Kind::Halting => from & PENDING != 0,
                    Kind::Stealing => false,
                    Kind::Culled => from & NO_STEAL != 0,
                },
                // Release; `is_state` knows in which states SLEEPER may stay.
                LOCKED | SLOW => true,
                // Pending gives up, or a newcomer that lost it takes it back; in a culled lock only while the
                // lock is held.
                _ => {
                    cleared & PENDING != 0
                        && cleared & !(PENDING | raised) == 0
                        && (!self.is_culled() || from & LOCKED != 0)
                }
            },
            LOCKED if cleared & PENDING != 0 => cleared & !(PENDING | raised) == 0,
            // The head acquires, with others behind it; or a newcomer that finds the lock free.
            LOCKED => {
                let newcomer = cleared == 0 && from & NO_STEAL == 0;
                let free = self.is_culled() || from & PENDING == 0;
                let head = tail != 0 && self.head_may_clear(from, cleared);
                free && (newcomer || head)
            }
            PENDING => match self {
                Kind::Native | Kind::Halting => cleared == 0,
                Kind::Stealing => false,
                Kind::Culled => cleared == 0 && from & LOCKED != 0 && from & NO_STEAL == 0,
            },
            // WORD-1. The head clears its own no-steal bit in the same step.
            SLEEPER => cleared & !NO_STEAL == 0 && from & LOCKED != 0,
            NO_STEAL => cleared == 0,
            _ => false,
        }
    }

    /// The same where the order keeps a secondary queue (WORD-5).
    #[must_use]
    pub const fn is_legal_with_secondary(self, from: u32, to: u32) -> bool {
        self.is_legal(from, to) || self.replaces_tail(from, to)
    }

    /// Whether `from` to `to` is the step by which the head, last of the main queue, acquires the lock and leaves
    /// the last of the secondary queue as the tail (WORD-5).
    #[must_use]
    pub const fn replaces_tail(self, from: u32, to: u32) -> bool {
        let (old, new) = (from & TAIL_MASK, to & TAIL_MASK);
        let replaced = old != 0 && new != 0 && old != new;
        replaced && self.is_state(to) && self.is_legal(from, to & !TAIL_MASK)
    }

    /// Whether the head that acquires the lock may clear exactly these bits: SLEEPER and NO_STEAL, where they are
    /// set.
    const fn head_may_clear(self, from: u32, cleared: u32) -> bool {
        let marks = from & (SLEEPER | NO_STEAL);
        let free = from & LOCKED == 0 && (self.is_culled() || from & PENDING == 0);
        free && cleared == marks
    }
}

/// Whether `from` to `to` is the step by which a context without a place in the queue acquires the lock: past the
/// queue, and past the bit that forbids it to others (WORD-6).
#[must_use]
pub const fn is_placeless(from: u32, to: u32) -> bool {
    from & LOCKED == 0 && to == from | LOCKED
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::platform::CpuId;

    fn node(cpu: u32, level: u32) -> NodeId {
        NodeId::new(CpuId::new(cpu).unwrap(), level).unwrap()
    }

    #[test]
    fn a_tail_names_its_node_and_zero_names_none() {
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
        let fields = [LOCKED_MASK, PENDING, NO_STEAL, RESERVED_MASK, TAIL_MASK];
        assert_eq!(fields.iter().sum::<u32>(), u32::MAX);
        assert_eq!(fields.iter().fold(0, |all, bits| all | bits), u32::MAX);
    }

    const ALL: [Kind; 4] = [Kind::Native, Kind::Halting, Kind::Stealing, Kind::Culled];

    /// The kinds that have the step.
    fn kinds(from: u32, to: u32) -> Vec<Kind> {
        ALL.into_iter().filter(|kind| kind.is_legal(from, to)).collect()
    }

    fn check(steps: &[(u32, u32)], wanted: &[Kind]) {
        for &(from, to) in steps {
            assert_eq!(kinds(from, to), wanted, "{from:#010x} -> {to:#010x}");
        }
    }

    #[test]
    fn the_steps_of_the_diagram_are_legal() {
        use Kind::{Culled, Halting, Native, Stealing};
        let n = tail_of(node(0, 0));
        let m = tail_of(node(1, 0));
        let everywhere = [
            (0, LOCKED),
            (LOCKED, 0),
            (n | LOCKED, m | LOCKED),
            (n | LOCKED, n),
            (n, LOCKED),
            (n, n | LOCKED),
        ];
        check(&everywhere, &ALL);
        let with_pending = [
            (LOCKED, LOCKED | PENDING),
            (LOCKED | PENDING, PENDING),
            (PENDING, LOCKED),
            (LOCKED | PENDING, n | LOCKED | PENDING),
            (n | LOCKED | PENDING, n | PENDING),
            (n | PENDING, n | LOCKED),
            (n | LOCKED, n | LOCKED | PENDING),
            (n | LOCKED | PENDING, n | LOCKED),
        ];
        check(&with_pending, &[Native, Halting, Culled]);
        check(&[(n, n | PENDING), (n | PENDING, n)], &[Native, Halting]);
        let slow = [(n | LOCKED, n | SLOW), (n | SLOW, m | SLOW), (n | SLOW, n)];
        check(&slow, &[Halting, Stealing, Culled]);
        check(&[(n | SLOW, n | SLOW | PENDING)], &[Halting, Culled]);
        let marked = [
            (n | LOCKED, n | LOCKED | NO_STEAL),
            (n | LOCKED | NO_STEAL, n | NO_STEAL),
            (n | LOCKED | NO_STEAL, n | SLOW),
            (n | NO_STEAL, LOCKED),
            (n | NO_STEAL, n | LOCKED),
        ];
        check(&marked, &[Stealing, Culled]);
        let culled = [
            (n | SLOW | PENDING, n | SLEEPER | PENDING),
            (n | SLEEPER | PENDING, n | SLOW),
            (n | SLEEPER | PENDING, n | SLOW | PENDING),
            (n | SLEEPER | PENDING, LOCKED | PENDING),
            (LOCKED | PENDING, LOCKED | PENDING | NO_STEAL),
            (n | LOCKED | PENDING | NO_STEAL, n | LOCKED),
            (PENDING | NO_STEAL, LOCKED),
            (n | PENDING, n | PENDING | LOCKED),
        ];
        check(&culled, &[Culled]);
    }

    #[test]
    fn what_the_invariants_forbid_is_illegal() {
        let n = tail_of(node(0, 0));
        let m = tail_of(node(1, 0));
        let steps = [
            (LOCKED, LOCKED),                      // WORD-1: taken twice
            (n | SLOW, n | SLEEPER), // WORD-1, CULLED-1: no awake waiter will release the lock
            (n, n | SLEEPER),        // WORD-1: set on a free lock
            (LOCKED, SLOW),          // WORD-1: no queue, so no head
            (n | SLOW, n | LOCKED),  // WORD-1: a sleeper is forgotten
            (LOCKED | PENDING, 0),   // WORD-2: the owner clears pending
            (n | LOCKED, LOCKED),    // WORD-5: tail lost while the lock is held
            (n, 0),                  // WORD-5: tail lost
            (n | LOCKED, m),         // two steps in one
            (n | PENDING, LOCKED),   // pending forgets the queue
            (n | NO_STEAL, n | NO_STEAL | LOCKED), // WORD-6: stolen
            (n | LOCKED | NO_STEAL, n | LOCKED), // WORD-6: the bit vanishes
            (n | SLEEPER | PENDING, n | PENDING), // CULLED-1: pending gives up a free lock
            (0, LOCKED | RESERVED_MASK), // reserved bits
            (0, 4),                  // no such locked value
            (0, 3 << TAIL_SHIFT),    // no such node
        ];
        check(&steps, &[]);
        // WORD-5: only some orders keep a secondary queue.
        let left = [
            (n, m | LOCKED),
            (n | PENDING, m | LOCKED),             // pending comes first
            (0, m | LOCKED),                       // there was no queue
            (n | LOCKED, m),                       // by a release
            (n | NO_STEAL, m | NO_STEAL | LOCKED), // the head's bit is left
        ];
        check(&left, &[]);
        let kinds = left.map(|(from, to)| {
            ALL.into_iter().filter(|kind| kind.is_legal_with_secondary(from, to)).count()
        });
        assert_eq!(kinds, [4, 0, 0, 0, 0]);
        assert!(Kind::Culled.replaces_tail(n | SLEEPER | PENDING, m | PENDING | LOCKED));
        // A newcomer queues behind: legal, and no replacement.
        assert!(Kind::Halting.is_legal_with_secondary(n | LOCKED, m | LOCKED));
        assert!(!Kind::Halting.replaces_tail(n | LOCKED, m | LOCKED));
        // WORD-4: stolen from the pending waiter, as a thief may do in a culled lock only.
        check(&[(PENDING, PENDING | LOCKED)], &[Kind::Culled]);
        assert!(is_placeless(n | NO_STEAL, n | NO_STEAL | LOCKED));
        assert!(!is_placeless(n | LOCKED, LOCKED));
    }
}
