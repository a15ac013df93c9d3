//! What waiters have learned of a lock, as one guess that each of them may correct.
//!
//! Evidence for the guess adds points, evidence against it takes points off, between none and [`MAX`]. So a few
//! waits outweigh the guess, however long it has been right. If two waiters add points at the same time, one of
//! the updates may be lost, which is one wait less to learn from: the word is read and written without any order.

use core::sync::atomic::Ordering::Relaxed;

use crate::node::NodeId;
use crate::platform::{AtomicWord, ConstWord, Platform};

/// The most points.
const MAX: u32 = 8;
/// From this many points on the guess holds.
const HOLDS: u32 = 4;
/// One waiter in 2 to the power of this acts as if the guess did not hold, to test whether it still does.
const TRY_BITS: u32 = 4;
/// The same where a test takes much longer than what it replaces.
const RARE_TRY_BITS: u32 = 6;

/// The points of a guess.
#[derive(Debug, Default)]
pub(super) struct Score<W>(W);

impl<W: AtomicWord> Score<W> {
    /// A guess without evidence.
    pub(super) fn new() -> Self {
        Self(W::new(0))
    }

    /// Whether the guess holds.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.0.load(Relaxed) >= HOLDS
    }

    /// Whether the guess holds, and this waiter is not one of those that test the contrary.
    #[inline]
    pub(super) fn holds_for<P: Platform>(&self, p: &P) -> bool {
        self.holds() && !one_in(p, TRY_BITS)
    }

    /// Whether the guess holds, or this waiter is one of those few that test whether it does, which is dear.
    #[inline]
    pub(super) fn holds_or_is_tried<P: Platform>(&self, p: &P) -> bool {
        self.holds() || one_in(p, RARE_TRY_BITS)
    }

    /// Adds points for the guess, or takes some off.
    pub(super) fn add(&self, points: i32) {
        let before = self.0.load(Relaxed);
        let now = before.saturating_add_signed(points).min(MAX);
        if now != before {
            self.0.store(now, Relaxed);
        }
    }
}

impl<W: ConstWord> Score<W> {
    /// The same for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub(super) const EMPTY: Self = Self(W::ZERO);
}

/// True for one waiter in 2 to the power of `bits`; false for a context without a number.
#[inline]
pub(super) fn one_in<P: Platform>(p: &P, bits: u32) -> bool {
    p.cpu().is_some() && draw(p, bits) == 0
}

/// A random number below 2 to the power of `bits`, from the generator of this context; 0 where it has none.
#[inline]
pub(super) fn draw<P: Platform>(p: &P, bits: u32) -> u32 {
    let first = p.cpu().and_then(|cpu| NodeId::new(cpu, 0));
    first.map_or(0, |first| p.node(first).throw(bits))
}
