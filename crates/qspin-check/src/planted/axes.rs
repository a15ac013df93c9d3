//! Flaws in the axes of the queued lock: the one slow path around them is the real one.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::admission::Admission;
use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};
use qspin_core::waiting::{Spin, Waiting};
use qspin_core::word::{LOCKED, LOCKED_MASK, PENDING};

/// The hooks of a [`Waiting`] that are those of another.
macro_rules! as_in {
    ($other:ty: $($hook:ident)*) => { $($crate::planted::axes::as_in!(@$hook $other);)* };
    (@pending_budget $other:ty) => {
        fn pending_budget<P: Platform>(p: &P) -> Option<Budget> {
            <$other>::pending_budget(p)
        }
    };
    (@await_turn $other:ty) => {
        fn await_turn<P: Platform>(p: &P, me: NodeId, prev: NodeId) {
            <$other>::await_turn(p, me, prev);
        }
    };
    (@await_owner $other:ty) => {
        fn await_owner<P: Platform, O: qspin_core::order::Order, A: Admission>(
            p: &P,
            word: &P::Word,
            me: NodeId,
            headship: &mut qspin_core::waiting::Headship,
        ) -> u32 {
            <$other>::await_owner::<P, O, A>(p, word, me, headship)
        }
    };
    (@taken $other:ty) => {
        fn taken<P: Platform>(p: &P, word: &P::Word, seen: u32) {
            <$other>::taken(p, word, seen);
        }
    };
    (@hand_over $other:ty) => {
        fn hand_over<P: Platform, A: Admission>(p: &P, word: &P::Word, next: NodeId) {
            <$other>::hand_over::<P, A>(p, word, next);
        }
    };
    (@release $other:ty) => {
        fn release<P: Platform, A: Admission>(p: &P, word: &P::Word) {
            <$other>::release::<P, A>(p, word);
        }
    };
}

pub(super) use as_in;

/// The owner's release orders nothing.
#[derive(Debug)]
pub struct RelaxedRelease;

impl Waiting for RelaxedRelease {
    as_in!(Spin: pending_budget await_turn await_owner hand_over);

    fn release<P: Platform, A: Admission>(_: &P, word: &P::Word) {
        // ORDERING: the flaw: `Relaxed`, which pairs with no Acquire.
        word.fetch_add(LOCKED.wrapping_neg(), Relaxed);
    }
}

/// The owner's release clears the whole word, the queue's tail with it.
#[derive(Debug)]
pub struct WipingRelease;

impl Waiting for WipingRelease {
    as_in!(Spin: pending_budget await_turn await_owner hand_over);

    fn release<P: Platform, A: Admission>(_: &P, word: &P::Word) {
        // ORDERING: Release pairs with the Acquire of whatever acquires the lock, as in `Spin`.
        word.store(0, Release);
    }
}

/// A newcomer takes a free lock although others queue, where first come, first served is
/// promised.
#[derive(Debug)]
pub struct Barging;

impl Admission for Barging {
    const OCCUPIED: u32 = LOCKED_MASK | PENDING;

    fn newcomer<P: Platform>(
        _: &P,
        word: &P::Word,
        _: u32,
        _: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool {
        let seen = word.load(Relaxed);
        // ORDERING: Acquire pairs with the Release of the owner's release.
        seen & Self::OCCUPIED == 0 && word.compare_exchange(seen, seen | LOCKED, Acquire).is_ok()
    }
}

/// A newcomer that finds the pending bit set by another waiter takes it for its own.
#[derive(Debug)]
pub struct SharedPending;

impl Admission for SharedPending {
    const OCCUPIED: u32 = LOCKED_MASK | PENDING;

    fn newcomer<P: Platform>(
        p: &P,
        word: &P::Word,
        _: u32,
        _: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool {
        let seen = word.fetch_or(PENDING, Relaxed);
        if seen & !(LOCKED_MASK | PENDING) != 0 {
            return false;
        }
        p.wait_until(word, Until::clear(LOCKED_MASK), Budget::Unbounded, Relaxed);
        // ORDERING: Acquire pairs with the Release of the owner's release.
        word.fetch_add(LOCKED.wrapping_sub(PENDING), Acquire);
        true
    }
}
