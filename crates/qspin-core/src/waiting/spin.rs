//! Native waiting: poll until the condition holds.
//!
//! Right where every waiter runs: as many threads as CPUs at most, none of them preempted. A waiter that is not
//! running when its turn comes stalls all waiters behind it.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Headship, Waiting};
use crate::admission::Admission;
use crate::node::{NodeId, TURN};
use crate::order::{Arranged, Order};
use crate::platform::{AtomicWord, Budget, Platform, Until};
use crate::site::Site;
use crate::word::LOCKED;

/// Watches the word, and stores what the successor polls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spin;

impl Waiting for Spin {
    #[inline]
    fn pending_budget<P: Platform>(_: &P) -> Option<Budget> {
        Some(Budget::Unbounded)
    }

    #[inline]
    fn await_turn<P: Platform>(p: &P, me: NodeId, _: NodeId) {
        // ORDERING: Acquire pairs with the Release of `hand_over`: the predecessor's last access
        // to this node happens before the node's next life (NODE-2).
        let order = p.ordering(Site::QueueTurn, Acquire);
        p.wait_until(&p.node(me).locked, Until::is(TURN), Budget::Unbounded, order);
    }

    #[inline]
    fn await_owner<P: Platform, O: Order, A: Admission>(
        p: &P,
        word: &P::Word,
        me: NodeId,
        headship: &mut Headship,
    ) -> u32 {
        let free = Until::clear(A::OCCUPIED);
        headship.begins::<P, O>(p, me);
        // Arranging uses time that would otherwise be spent spinning.
        while headship.arranges {
            let arranged = O::arrange(p, me);
            if arranged == Arranged::Settled {
                headship.arranges = false;
                break;
            }
            let seen = p.wait_until(word, free, Budget::Polls(1), Relaxed);
            if free.met_by(seen) {
                return seen;
            }
            if arranged == Arranged::Waits {
                p.relax(1);
            }
        }
        p.wait_until(word, free, Budget::Unbounded, Relaxed)
    }

    #[inline]
    fn hand_over<P: Platform, A: Admission>(p: &P, _: &P::Word, next: NodeId) {
        // ORDERING: Release pairs with the Acquire of `await_turn`.
        p.node(next).locked.store(TURN, p.ordering(Site::QueueHandOver, Release));
    }

    #[inline]
    fn release<P: Platform, A: Admission>(p: &P, word: &P::Word) {
        // A subtraction, not a store of the byte: accesses of two sizes are undefined, and on some processors a
        // byte store cannot be forwarded to the next compare-exchange (docs/algorithms.md has the costs).
        // ORDERING: Release pairs with the Acquire of the next acquisition (`QueueTry`, `QueuePendingTake`,
        // `QueueHeadTake`, `QueueNoNodeTake`); steps of other contexts in between are read-modify-writes, which
        // continue its release sequence.
        word.fetch_add(LOCKED.wrapping_neg(), p.ordering(Site::QueueRelease, Release));
    }
}
