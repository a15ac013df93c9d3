//! Reads that may become writes: one at a time, beside other readers.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{
    ASKED, DefaultRwLock, End, READER, READERS, SLEEPING, Sleeper, Slept, UPGRADABLE, UPGRADING,
    WAITING, WRITER, Want, is_over, left, wake,
};
use crate::lock::{RawTimedLock, RawUpgradableLock};
use crate::node::NodeId;
use crate::platform::{AtomicWord, Until};
use crate::site::Site;
use crate::sleepers::{self, SleepPlatform, SpinBudget};

impl<W: AtomicWord, G> DefaultRwLock<W, G> {
    /// Waits until the lock is acquired for an upgradable read, or the deadline has passed.
    #[cold]
    #[inline(never)]
    fn acquire_upgradable_slow<P>(&self, p: &P, deadline: u64) -> bool
    where
        P: SleepPlatform<Word = W>,
        G: RawTimedLock<P>,
    {
        let want = Want::Upgradable;
        // Whether this waiter was woken on behalf of all such waiters (RWLOCK-8).
        let mut told = false;
        let inside = loop {
            if is_over(p, deadline) {
                // One attempt, which the latest release may have made possible.
                break self.newcomer(p, want);
            }
            if self.polls(p, want) {
                break true;
            }
            if self.word.load(Relaxed) & UPGRADABLE == 0 {
                match self.acquire_by_gate(p, want, deadline, false, 0) {
                    End::Inside => break true,
                    End::Over => break false,
                    End::Elsewhere => {}
                }
            }
            match sleepers::with_sleeper(p, |me| self.sleep_asking(p, me, told, deadline)) {
                Some(Some(woken)) => told |= woken,
                Some(None) | None => p.timed_backoff(),
            }
        };
        if told {
            self.ask_for_others(p);
        }
        inside
    }

    /// RWLOCK-8. Returns whether a release has woken the waiter; `None` if it could not sleep. A waiter that was
    /// woken before, in vain, is the next.
    fn sleep_asking<P>(&self, p: &P, me: NodeId, told: bool, deadline: u64) -> Option<bool>
    where
        P: SleepPlatform<Word = W>,
    {
        let end = if told { sleepers::End::First } else { sleepers::End::Last };
        let is_asked = |seen| seen & UPGRADABLE != 0;
        match self.sleep_while(p, me, (Sleeper::Asking, end), ASKED, is_asked, deadline) {
            Slept::NoRoom => None,
            Slept::Needless { woken, .. } | Slept::Over { woken } => Some(woken),
        }
    }

    /// RWLOCK-8: other waiters may sleep, which the upgradable reader has to wake, if only because of this bit.
    fn ask_for_others<P: SleepPlatform<Word = W>>(&self, p: &P) {
        let mut seen = self.word.load(Relaxed);
        while seen & UPGRADABLE != 0 {
            match self.word.compare_exchange(seen, seen | ASKED, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        wake(p, self.on(p), Sleeper::Asking);
    }

    /// Ends an upgradable read: the word becomes what `next` makes of it.
    fn end_upgradable<P>(&self, p: &P, next: impl Fn(u32) -> u32)
    where
        P: SleepPlatform<Word = W>,
    {
        let on = self.on(p);
        // ORDERING: Release pairs with the Acquire of `come`, of `Wait::wait` and of `take_alone`.
        let order = p.ordering(Site::RwLeaveShared, Release);
        let mut seen = self.word.load(Relaxed);
        loop {
            let to = next(without_upgradable(seen));
            match self.word.compare_exchange(seen, to, order) {
                Ok(_) => return ended(p, on, seen, to),
                Err(now) => seen = now,
            }
        }
    }

    /// Becomes the writer, if it is the only reader.
    fn take_alone<P: SleepPlatform<Word = W>>(&self, p: &P) -> bool {
        let mut seen = self.word.load(Relaxed);
        while seen / READER == 1 {
            let to = without_upgradable(seen) - READER + WRITER;
            // RWLOCK-1. ORDERING: Acquire pairs with the Release at `RwLeaveShared` and
            // `RwLeaveExclusive`.
            match self.word.compare_exchange(seen, to, p.ordering(Site::RwUpgrade, Acquire)) {
                Ok(_) => {
                    ended(p, self.on(p), seen, to);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Gives the upgrade up: new readers are admitted again, among them those that sleep, and one with the gate.
    fn open_again<P: SleepPlatform<Word = W>>(&self, p: &P) {
        let before = self.word.fetch_and(!UPGRADING, Relaxed);
        if before & SLEEPING != 0 {
            wake(p, self.on(p), Sleeper::Gate);
        }
        if before & WAITING != 0 {
            self.admit_readers(p);
        }
    }

    /// Sleeps until this is the only reader, as RWLOCK-3. Returns false if it could not join the queue.
    fn sleep_upgrading<P>(&self, p: &P, me: NodeId, deadline: u64) -> bool
    where
        P: SleepPlatform<Word = W>,
    {
        let queued = (Sleeper::Upgrading, sleepers::End::Last);
        let is_beside_others = |seen| seen / READER != 1;
        self.sleep_while(p, me, queued, UPGRADING, is_beside_others, deadline) != Slept::NoRoom
    }
}

/// The word after the upgradable read has ended; its thread still counts as a reader.
pub(super) fn without_upgradable(word: u32) -> u32 {
    word & !(UPGRADABLE | UPGRADING | ASKED)
}

/// After the step from `before` to `now`, which has ended an upgradable read. The lock may no longer exist
/// (RWLOCK-4).
#[inline]
pub(super) fn ended<P: SleepPlatform>(p: &P, on: usize, before: u32, now: u32) {
    if before & ASKED != 0 {
        wake(p, on, Sleeper::Asking);
    }
    if now & SLEEPING != 0 || before & !now & WAITING != 0 {
        left(p, on, before, now);
    }
}

// SAFETY: RWLOCK-6. An upgradable reader is a reader; one that upgrades is a writer by RWLOCK-1, since it
// was the only reader in the step that makes it one.
unsafe impl<P: SleepPlatform, G: RawTimedLock<P>> RawUpgradableLock<P>
    for DefaultRwLock<P::Word, G>
{
    fn acquire_upgradable_until(&self, p: &P, deadline: u64) -> bool {
        self.newcomer(p, Want::Upgradable) || self.acquire_upgradable_slow(p, deadline)
    }

    fn try_acquire_upgradable(&self, p: &P) -> bool {
        self.newcomer(p, Want::Upgradable)
    }

    unsafe fn release_upgradable(&self, p: &P) {
        self.end_upgradable(p, |seen| seen - READER);
    }

    unsafe fn upgrade_until(&self, p: &P, deadline: u64) -> bool {
        let mut budget = SpinBudget::of_rwlock(p, p.address(&self.word));
        while !self.take_alone(p) {
            if is_over(p, deadline) {
                self.open_again(p);
                return false;
            }
            if self.word.load(Relaxed) & UPGRADING == 0 {
                // RWLOCK-6: the readers inside leave, and no others are admitted.
                self.word.fetch_or(UPGRADING, Relaxed);
            } else if !budget.is_spent() {
                budget.watch(p, &self.word, Until { mask: READERS, value: READER, equal: true });
            } else if sleepers::with_sleeper(p, |me| self.sleep_upgrading(p, me, deadline))
                != Some(true)
            {
                p.timed_backoff();
            }
        }
        true
    }

    unsafe fn try_upgrade(&self, p: &P) -> bool {
        self.take_alone(p)
    }

    unsafe fn downgrade_upgradable(&self, p: &P) {
        self.end_upgradable(p, |seen| seen);
    }

    unsafe fn downgrade(&self, p: &P) {
        self.end_write(p, READER);
    }

    unsafe fn downgrade_to_upgradable(&self, p: &P) {
        self.end_write(p, READER | UPGRADABLE);
    }
}
