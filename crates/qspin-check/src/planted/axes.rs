//! Flaws in the axes of the queued lock: the one slow path around them is the real one.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::admission::Admission;
use qspin_core::platform::{AtomicWord, Platform};
use qspin_core::waiting::Waiting;
use qspin_core::word::{LOCKED, LOCKED_MASK, PENDING};

/// The owner's release orders nothing.
#[derive(Debug)]
pub struct RelaxedRelease;

impl Waiting for RelaxedRelease {
    fn release<P: Platform>(_: &P, word: &P::Word) {
        word.fetch_add(LOCKED.wrapping_neg(), Relaxed);
    }
}

/// The owner's release clears the whole word, the queue's tail with it.
#[derive(Debug)]
pub struct WipingRelease;

impl Waiting for WipingRelease {
    fn release<P: Platform>(_: &P, word: &P::Word) {
        word.store(0, Release);
    }
}

/// A newcomer takes a free lock although others queue, where first come, first served is
/// promised.
#[derive(Debug)]
pub struct Barging;

impl Admission for Barging {
    const OCCUPIED: u32 = LOCKED_MASK | PENDING;

    fn newcomer<P: Platform, W: Waiting>(_: &P, word: &P::Word, _: u32) -> bool {
        let seen = word.load(Relaxed);
        seen & Self::OCCUPIED == 0 && word.compare_exchange(seen, seen | LOCKED, Acquire).is_ok()
    }
}

/// A newcomer that finds the pending bit set by somebody else takes it for its own.
#[derive(Debug)]
pub struct SharedPending;

impl Admission for SharedPending {
    const OCCUPIED: u32 = LOCKED_MASK | PENDING;

    fn newcomer<P: Platform, W: Waiting>(p: &P, word: &P::Word, _: u32) -> bool {
        let seen = word.fetch_or(PENDING, Relaxed);
        if seen & !(LOCKED_MASK | PENDING) != 0 {
            return false;
        }
        W::await_owner(p, word, LOCKED_MASK);
        word.fetch_add(LOCKED.wrapping_sub(PENDING), Acquire);
        true
    }
}
