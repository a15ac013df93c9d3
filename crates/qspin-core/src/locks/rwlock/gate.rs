//! The owner of the gate: of all threads that queue there, writers mostly, it alone waits for the word.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{
    CLOSED, DefaultRwLock, HEIR, SLEEPING, STATE_BITS, Sleeper, Slept, UPGRADABLE, UPGRADING,
    WAITING, WRITER, Want, admitting, is_over, readers,
};
use crate::node::NodeId;
use crate::platform::AtomicWord;
use crate::site::Site;
use crate::sleepers::{self, Pace, SleepPlatform, SpinBudget};

/// Polls of a waiter that keeps away. One is mostly enough; where the owner was preempted, all are in vain.
const DISTANT_POLLS: u32 = 8;

/// How a wait with the gate has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The lock was acquired.
    Inside,
    /// The deadline has passed.
    Over,
    /// There is an upgradable reader: waiters do not wait for that with the gate (RWLOCK-6).
    Elsewhere,
}

/// One wait with the gate.
pub(super) struct Wait<'a, P: SleepPlatform, G> {
    pub(super) lock: &'a DefaultRwLock<P::Word, G>,
    pub(super) p: &'a P,
    pub(super) want: Want,
    pub(super) deadline: u64,
    /// When the waiter began to sleep; 0 before. A reader has slept before it came to the gate.
    pub(super) since: u64,
    /// When this writer closed the lock to further readers while readers were inside; 0 if it has not, or without
    /// a measured pause.
    pub(super) closed: u64,
}

impl<P: SleepPlatform, G> Wait<'_, P, G> {
    /// Waits until the lock is acquired, or the waiter has to leave; its state bits are clear then.
    pub(super) fn wait(&mut self) -> End {
        let (p, word) = (self.p, &self.lock.word);
        let mut budget = SpinBudget::of_rwlock(p, p.address(word));
        loop {
            let seen = word.load(Relaxed);
            if self.want.fits(seen) {
                if self.take(seen) {
                    return End::Inside;
                }
                continue;
            }
            if self.is_elsewhere(seen) {
                self.clear(STATE_BITS);
                return End::Elsewhere;
            }
            if is_over(p, self.deadline) {
                self.clear(STATE_BITS);
                return End::Over;
            }
            let stops = self.lock.stops_polling(p, self.want, seen, &budget);
            if budget.only_spins() && !stops {
                budget.watch(p, word, self.want.until());
                continue;
            }
            // RWLOCK-5.
            let bits = self.bits();
            if seen & bits != bits {
                // RWLOCK-2. A stream of readers that come and go does not keep the waiter from this.
                if self.closed == 0 && seen & WRITER == 0 && p.pause_ns() != 0 {
                    self.closed = p.now_ns();
                }
                word.fetch_or(bits, Relaxed);
                continue;
            }
            if budget.only_spins() || !budget.is_spent() && !stops {
                budget.watch(p, word, self.want.until());
                continue;
            }
            // No release wakes a waiter that waits for room (RWLOCK-7).
            let for_room = self.want != Want::Write && seen & (WRITER | UPGRADING) == 0;
            // Also without a node, with which it could sleep: else it would never be the heir.
            if self.since == 0 && !for_room {
                self.since = p.now_ns().max(1);
            }
            if for_room || sleepers::with_sleeper(p, |me| self.sleep(me, bits)) != Some(true) {
                p.timed_backoff();
            }
            budget = SpinBudget::of_rwlock(p, p.address(word));
        }
    }

    /// Waits for some intervals of the [pace](Pace), and acquires the lock if it is admitted at the end of one of them.
    /// Until then it closes the lock to no thread: the one that runs has the lock's line for itself.
    pub(super) fn keep_away(&self) -> bool {
        let (p, word, until) = (self.p, &self.lock.word, self.want.until());
        let mut pace = Pace::of_rwlock(p, self.lock.on(p));
        let mut left = if p.has_cpu_quota() { 1 } else { DISTANT_POLLS };
        while left != 0 && pace.keeps_away() && !is_over(p, self.deadline) {
            left -= 1;
            let seen = pace.interval(p, (self.lock.on(p), None), word, until);
            if self.want.fits(seen) && self.take(seen) {
                return true;
            }
        }
        false
    }

    /// Acquires the lock, which admits the waiter in `seen`.
    fn take(&self, seen: u32) -> bool {
        let (p, on) = (self.p, self.lock.on(self.p));
        let to = admitting(self.want.inside(seen & !STATE_BITS));
        // RWLOCK-1, RWLOCK-2. ORDERING: Acquire pairs with the Release at `RwLeaveShared` and
        // `RwLeaveExclusive`.
        let order = p.ordering(Site::RwGateTake, Acquire);
        if self.lock.word.compare_exchange(seen, to, order).is_err() {
            return false;
        }
        if self.closed != 0 {
            sleepers::note_readers(p, on, p.now_ns().saturating_sub(self.closed));
        }
        if seen & !to & WAITING != 0 {
            readers::wake_all(p, on);
        }
        true
    }

    fn is_elsewhere(&self, seen: u32) -> bool {
        self.want == Want::Upgradable && seen & UPGRADABLE != 0
    }

    /// The state bits that are due.
    fn bits(&self) -> u32 {
        let closed = if self.want == Want::Write { CLOSED } else { 0 };
        let limit = sleepers::starves_after_ns(self.p, self.lock.on(self.p));
        if self.since != 0 && self.p.now_ns().saturating_sub(self.since) >= limit {
            closed | HEIR
        } else {
            closed
        }
    }

    /// RWLOCK-3. Returns false if the waiter could not join the queue.
    fn sleep(&mut self, me: NodeId, bits: u32) -> bool {
        let (p, lock) = (self.p, self.lock);
        let queued = (Sleeper::Gate, sleepers::End::Last);
        let waits = |seen| !self.want.fits(seen) && !self.is_elsewhere(seen);
        let slept = lock.sleep_while(p, me, queued, bits | SLEEPING, waits, self.deadline);
        if slept == Slept::NoRoom {
            return false;
        }
        self.clear(SLEEPING);
        true
    }

    /// Clears state bits of the owner of the gate (RWLOCK-2).
    fn clear(&self, bits: u32) {
        if self.lock.word.fetch_and(!bits, Relaxed) & WAITING != 0 {
            self.lock.admit_readers(self.p);
        }
    }
}
