//! How a CPU is woken: the word of a node between its halt and its kick (contract PLATFORM-4).
//!
//! ```text
//!            halt, interrupts on: HALTED_ON               kick: by what the state asks for
//!  NONE ──────────────────────────────────────► HALTED ────────────────────────────► KICKED
//!   ▲        halt, interrupts off: HALTED_OFF      │ any interrupt                     │
//!   └──────────────────────────────────────────────┴──────── consumed by the halt ◄────┘ ◄─ kick ─ NONE
//! ```
//!
//! # Invariants
//! * **GUESTKICK-1** The processor halts only while the word says that it does, in a window through
//!   which every interrupt goes on behind it. A kick changes the word first, and interrupts then what
//!   it has replaced there. So either the window finds the word changed, or the interrupt ends it.
//! * **GUESTKICK-2** A kick of a node that does not halt changes the word and nothing else; the next
//!   halt finds it.
//! * **GUESTKICK-3** A halt with interrupts off is ended by what comes nevertheless: an NMI, or the
//!   hypercall, which does not interrupt at all.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// There was no kick since the last halt.
pub const NONE: u32 = 0;
/// Kicked: the next halt returns at once.
pub const KICKED: u32 = 1;
/// Halted, or about to, with interrupts on.
pub const HALTED_ON: u32 = 2;
/// Halted, or about to, with interrupts off.
pub const HALTED_OFF: u32 = 3;

/// What ends a halt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// Nothing: it does not halt.
    Nothing,
    /// An interrupt of the vector for kicks.
    Vector,
    /// An NMI.
    Nmi,
    /// The hypercall.
    Hypercall,
}

/// Begins a halt; returns what the word is while it lasts, `None` if it has ended already.
#[inline]
pub fn begin(word: &AtomicU32, interrupts_on: bool) -> Option<u32> {
    let state = if interrupts_on { HALTED_ON } else { HALTED_OFF };
    word.compare_exchange(NONE, state, Relaxed, Relaxed).is_ok().then_some(state)
}

/// Ends a halt, for a kick or for nothing.
#[inline]
pub fn end(word: &AtomicU32) {
    // ORDERING: Acquire pairs with the Release of `kick`, which it consumes.
    word.swap(NONE, Acquire);
}

/// Kicks; returns what must be sent to a CPU that halts. `hypercall`: there is one.
#[inline]
pub fn kick(word: &AtomicU32, hypercall: bool) -> Means {
    // ORDERING: Release pairs with the Acquire of `end`.
    match word.swap(KICKED, Release) {
        HALTED_ON | HALTED_OFF if hypercall => Means::Hypercall,
        HALTED_ON => Means::Vector,
        HALTED_OFF => Means::Nmi,
        _ => Means::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_before_the_halt_is_kept_and_consumed_once() {
        let word = AtomicU32::new(NONE);
        assert_eq!(kick(&word, false), Means::Nothing);
        assert_eq!(kick(&word, false), Means::Nothing, "kicks do not add up");
        assert_eq!(begin(&word, true), None);
        end(&word);
        assert_eq!(begin(&word, true), Some(HALTED_ON));
    }

    #[test]
    fn a_halt_is_ended_by_what_reaches_it() {
        for (on, hypercall, means) in [
            (true, false, Means::Vector),
            (false, false, Means::Nmi),
            (true, true, Means::Hypercall),
            (false, true, Means::Hypercall),
        ] {
            let word = AtomicU32::new(NONE);
            let state = begin(&word, on).unwrap();
            assert_eq!(word.load(Relaxed), state);
            assert_eq!(kick(&word, hypercall), means);
            assert_ne!(word.load(Relaxed), state, "the window finds it changed");
            end(&word);
            assert_eq!(word.load(Relaxed), NONE);
        }
    }
}
