//! What whoever has the gate does: it alone of all waiters looks at the word, or sleeps beside it.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{
    CLOSED, DefaultRwLock, HEIR, MARKS, SLEEPING, Sleeper, UPGRADABLE, UPGRADING, WRITER, Want,
    is_over,
};
use crate::node::NodeId;
use crate::platform::AtomicWord;
use crate::site::Site;
use crate::sleepers::{self, SleepPlatform, SpinBudget};

/// How a wait with the gate has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is inside.
    Inside,
    /// The time is over.
    Over,
    /// Somebody else reads upgradably: that is not waited for with the gate (RWLOCK-6).
    Elsewhere,
}

/// One wait with the gate.
pub(super) struct Wait<'a, P: SleepPlatform, G> {
    pub(super) lock: &'a DefaultRwLock<P::Word, G>,
    pub(super) p: &'a P,
    pub(super) want: Want,
    pub(super) deadline: u64,
    /// When it began to sleep; 0 before.
    pub(super) since: u64,
}

impl<P: SleepPlatform, G> Wait<'_, P, G> {
    /// Waits until it is inside, or has to go; its marks are gone then.
    pub(super) fn wait(&mut self) -> End {
        let (p, word) = (self.p, &self.lock.word);
        let mut budget = SpinBudget::of_rwlock(p, p.address(word));
        loop {
            let seen = word.load(Relaxed);
            if self.want.fits(seen) {
                let to = self.want.inside(seen & !MARKS);
                // RWLOCK-1, RWLOCK-2. ORDERING: Acquire pairs with the Release of `leave`.
                let order = p.ordering(Site::RwGateTake, Acquire);
                if word.compare_exchange(seen, to, order).is_ok() {
                    return End::Inside;
                }
                continue;
            }
            if self.is_elsewhere(seen) {
                self.unmark(MARKS);
                return End::Elsewhere;
            }
            if is_over(p, self.deadline) {
                self.unmark(MARKS);
                return End::Over;
            }
            if budget.only_spins() {
                budget.watch(p, word, self.want.until());
                continue;
            }
            // RWLOCK-5.
            let marks = self.marks();
            if seen & marks != marks {
                // RWLOCK-2. Readers that come and go all the time do not keep it from this.
                word.fetch_or(marks, Relaxed);
                continue;
            }
            if !budget.is_spent() {
                budget.watch(p, word, self.want.until());
                continue;
            }
            // No release wakes who waits for room (RWLOCK-7).
            let for_room = self.want != Want::Write && seen & (WRITER | UPGRADING) == 0;
            if for_room || sleepers::with_sleeper(p, |me| self.sleep(me, marks)) != Some(true) {
                p.doze();
            }
            budget = SpinBudget::of_rwlock(p, p.address(word));
        }
    }

    fn is_elsewhere(&self, seen: u32) -> bool {
        self.want == Want::Upgradable && seen & UPGRADABLE != 0
    }

    /// The marks that are due.
    fn marks(&self) -> u32 {
        let closed = if self.want == Want::Write { CLOSED } else { 0 };
        let limit = sleepers::starves_after_ns(self.p, self.lock.on(self.p));
        if self.since != 0 && self.p.now_ns().saturating_sub(self.since) >= limit {
            closed | HEIR
        } else {
            closed
        }
    }

    /// RWLOCK-3. Returns false if it could not.
    fn sleep(&mut self, me: NodeId, marks: u32) -> bool {
        let (p, lock) = (self.p, self.lock);
        if !sleepers::enqueue(p, me, lock.on(p), Sleeper::Gate as u32, sleepers::End::Last) {
            return false;
        }
        if self.since == 0 {
            self.since = p.now_ns().max(1);
        }
        let mut seen = lock.word.load(Relaxed);
        loop {
            if self.want.fits(seen) || self.is_elsewhere(seen) {
                // Whoever has taken it out meanwhile has meant it, and it is awake.
                let _ = sleepers::cancel(p, me);
                break;
            }
            match lock.word.compare_exchange(seen, seen | marks | SLEEPING, Relaxed) {
                Ok(_) => {
                    // Woken or too late: it looks again either way.
                    let _ = sleepers::await_wake(p, me, self.deadline);
                    break;
                }
                Err(now) => seen = now,
            }
        }
        self.unmark(SLEEPING);
        true
    }

    /// Takes back marks of the owner of the gate (RWLOCK-2).
    fn unmark(&self, marks: u32) {
        self.lock.word.fetch_and(!marks, Relaxed);
    }
}
