//! The ticket lock: strictly fair, four bytes, and every waiter watches the same word.
//!
//! # Problem
//! A test-and-set lock can starve a waiter for ever. Here each draws a ticket, and tickets are
//! served in order.
//!
//! # Source
//! Mellor-Crummey and Scott, TOCS 1991; Linux's x86 spinlock from 2.6.25 to 4.1 (Nick Piggin),
//! which document 001's guests run.
//!
//! # States
//! ```text
//!  31        16 15         0
//! ┌────────────┬────────────┐   free: next = serving
//! │ next       │ serving    │   held: next - serving = 1 + waiters (modulo 2^16)
//! └────────────┴────────────┘
//! ```
//!
//! # Invariants
//! * **T1** A ticket is drawn once per 2^16 draws, and served only after the release of the
//!   one before it.
//! * **T2** Only the holder changes *serving*; anybody may draw at any time, so both change by
//!   read-modify-writes of the whole word.
//!
//! * **T3** A context without a number draws no ticket: it takes the lock only where it finds it
//!   free. So at most as many tickets are out as there are numbered contexts, nesting levels
//!   included: 4 × 16 383 of the 65 535 that there can be.
//!
//! # Limits
//! Contexts without a number wait unfairly. Contexts nested more than four deep count on top of
//! T3's bound. Collapses when threads outnumber CPUs, like every strict order.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawLock};
use crate::platform::{AtomicWord, Budget, ConstWord, Platform, Until};
use crate::site::Site;

const SERVING: u32 = 0xffff;
const NEXT_SHIFT: u32 = 16;
const DRAW: u32 = 1 << NEXT_SHIFT;

/// A ticket lock. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct TicketLock<W> {
    word: W,
}

#[inline]
const fn is_free(word: u32) -> bool {
    word >> NEXT_SHIFT == word & SERVING
}

/// What to add to the word to serve the next ticket: one, without the carry into *next*.
#[inline]
const fn serve_next(word: u32) -> u32 {
    if word & SERVING == SERVING { 1u32.wrapping_sub(DRAW) } else { 1 }
}

// SAFETY: T1 gives exclusion; `TicketServe` releases what `TicketDraw`, `TicketTry` and
// `TicketTurn` acquire, draws in between continuing its release sequence (T2).
unsafe impl<P: Platform> RawLock<P> for TicketLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(0) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        if !take(p, &self.word) {
            acquire_slow(p, &self.word);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        take(p, &self.word)
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        let seen = self.word.load(Relaxed);
        // ORDERING: Release pairs with the Acquire of the next ticket's owner (`TicketTurn`, or
        // `TicketDraw` and `TicketTry` of a newcomer).
        self.word.fetch_add(serve_next(seen), p.ordering(Site::TicketServe, Release));
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        !is_free(self.word.load(Relaxed))
    }
}

/// Takes a free lock: draws the ticket that is served.
#[inline]
fn take<P: Platform>(p: &P, word: &P::Word) -> bool {
    let seen = word.load(Relaxed);
    // ORDERING: Acquire pairs with the Release of `release`.
    let order = p.ordering(Site::TicketTry, Acquire);
    is_free(seen) && word.compare_exchange(seen, seen.wrapping_add(DRAW), order).is_ok()
}

#[cold]
#[inline(never)]
fn acquire_slow<P: Platform>(p: &P, word: &P::Word) {
    if p.cpu().is_none() {
        // T3.
        while !take(p, word) {
            p.relax(1);
        }
        return;
    }
    // ORDERING: Acquire pairs with the Release of `release`, if the lock was free.
    let seen = word.fetch_add(DRAW, p.ordering(Site::TicketDraw, Acquire));
    if !is_free(seen) {
        let mine = Until { mask: SERVING, value: seen >> NEXT_SHIFT, equal: true };
        // ORDERING: Acquire pairs with the Release of `release`.
        let order = p.ordering(Site::TicketTurn, Acquire);
        p.wait_until(word, mine, Budget::Unbounded, order);
    }
}

impl<W: ConstWord> ConstLock for TicketLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO };
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serving_wraps_without_touching_next() {
        for next in [0u32, 1, 0x7fff, 0xffff] {
            for serving in [0u32, 1, 0xfffe, 0xffff] {
                let word = next << NEXT_SHIFT | serving;
                let after = word.wrapping_add(serve_next(word));
                assert_eq!(after >> NEXT_SHIFT, next);
                assert_eq!(after & SERVING, (serving + 1) & SERVING);
            }
        }
    }
}
