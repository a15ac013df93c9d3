//! A lock's row: what it did, and how long others wait for it now.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// How many buckets of times there are, two to a power of two.
pub const BUCKETS: usize = 96;
/// How many call sites are kept.
pub const SITES: usize = 4;
/// Waits of this length stand for themselves alone: two ticks of the slowest clock.
pub const LONG_NS: u64 = 20_000_000;

#[repr(C, align(1024))]
pub struct Row {
    pub address: AtomicU64,
    pub acquisitions: AtomicU64,
    pub contended: AtomicU64,
    pub wait_ns: AtomicU64,
    pub longest_wait_ns: AtomicU64,
    /// When the hold that is measured began, or 0.
    pub since: AtomicU64,
    pub sites: [[AtomicU64; 2]; SITES],
    pub waits: [AtomicU32; BUCKETS],
    pub holds: [AtomicU32; BUCKETS],
    /// How many holds the measured one stands for.
    pub weight: AtomicU64,
    /// Acquisitions, contended ones and nanoseconds waited that count no more: written by `qspin stat --reset`.
    pub before: [AtomicU64; 3],
    /// Of the measured waits that have not ended: how many waits they stand for, and the sum of the times at
    /// which they began, or up to which they have been charged.
    waiting: AtomicU64,
    began: AtomicU64,
    /// When waiters were last charged to a release.
    pub charged: AtomicU64,
    /// The stack of the longest wait: one more than its number.
    pub longest_stack: AtomicU64,
    /// What ended waits had waited and no release was charged with, less what was charged too much (two's
    /// complement): the next charge has it, too.
    pub uncharged: AtomicU64,
    /// Of the releases since a stack was last taken: how long they took, and how many measured holds that were.
    pub spent: AtomicU64,
    pub holds_without_stack: AtomicU64,
    /// When a release was last examined, if the next one is examined, too; else 0.
    pub examined: AtomicU64,
    /// While a measured waiter waits, one in this many releases is examined.
    pub one_in: AtomicU64,
    /// Acquisitions of a period that was ended early: the next measured hold stands for these, too.
    pub cut_off: AtomicU64,
    /// How many measured waits have not ended; and in how much time, altogether, each waiter was charged as one.
    waiters: AtomicU64,
    as_one: AtomicU64,
    /// When the waiter came for which the current release is examined.
    pub noticed: AtomicU64,
}

impl Row {
    /// A measured wait begins, which stands for `weight` waits. Returns what is to be told when it ends.
    #[inline]
    pub fn waiter_comes(&self, now: u64, weight: u32) -> u64 {
        let weight = u64::from(weight);
        let as_one = self.as_one.load(Relaxed);
        self.waiters.fetch_add(1, Relaxed);
        // In this order: a release that sees the one without the other charges too little, and the next one the
        // rest.
        // ORDERING: AcqRel pairs with the Acquires of `charge_waiting`, which reads the two the other way round.
        self.began.fetch_add(weight.wrapping_mul(now), AcqRel);
        self.waiting.fetch_add(weight, AcqRel);
        as_one
    }

    /// The wait ends at `now`. A long one stands for itself alone, whatever its weight was: so what was charged
    /// for it is put right, and what was not is charged later.
    #[inline]
    pub fn waiter_goes(&self, began: u64, now: u64, weight: u32, as_one: u64) {
        let weight = u64::from(weight);
        let since = began.max(self.charged.load(Relaxed)).min(now);
        let (charged, rest) = (since - began, now - since);
        let as_one = self.as_one.load(Relaxed).wrapping_sub(as_one).min(charged);
        let more = weight - 1;
        let due = if now - began >= LONG_NS {
            rest.wrapping_sub(more * (charged - as_one))
        } else {
            (weight * rest).wrapping_add(more * as_one)
        };
        self.uncharged.fetch_add(due, Relaxed);
        self.waiters.fetch_sub(1, Relaxed);
        // ORDERING: AcqRel pairs with that of other waiters and with `charge_waiting`: the last one to go sees
        // all of the sum.
        let left = self.waiting.fetch_sub(weight, AcqRel) - weight;
        let began = self
            .began
            .fetch_sub(weight.wrapping_mul(since), AcqRel)
            .wrapping_sub(weight.wrapping_mul(since));
        // Drops the rounding error left by waiters that came and went at once.
        if left == 0 && began != 0 && self.waiting.load(Acquire) == 0 {
            let _ = self.began.compare_exchange(began, 0, AcqRel, Relaxed);
        }
    }

    /// Whether a measured waiter waits.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }

    /// The lock is about to be released: how long the other threads together have waited for it since a release
    /// was last charged.
    pub fn charge(&self, now: u64) -> u64 {
        let due = self.charge_waiting(now).wrapping_add(self.uncharged.swap(0, Relaxed));
        if due.cast_signed() < 0 {
            self.uncharged.fetch_add(due, Relaxed);
            return 0;
        }
        due
    }

    /// Of that, the part of those that still wait.
    fn charge_waiting(&self, now: u64) -> u64 {
        let before = self.charged.load(Relaxed);
        loop {
            // ORDERING: Acquire pairs with the AcqRel of `waiter_comes`: a waiter that is counted has begun.
            let waiting = self.waiting.load(Acquire);
            if waiting == 0 {
                return 0;
            }
            let began = self.began.load(Acquire);
            let due = waiting.wrapping_mul(now).wrapping_sub(began).cast_signed();
            // A waiter may come or go in between.
            let most = waiting.saturating_mul(now.saturating_sub(before));
            let due = u64::try_from(due).unwrap_or(0).min(most);
            if self.began.compare_exchange(began, began.wrapping_add(due), AcqRel, Relaxed).is_ok()
            {
                self.charged.store(now, Relaxed);
                let each = due / waiting;
                if each < LONG_NS {
                    return due;
                }
                // Others that wait so long are measured, too.
                self.as_one.fetch_add(each, Relaxed);
                return each * self.waiters.load(Relaxed);
            }
        }
    }

    /// Counts for a site that it acquired the lock, or waited for it, so many times. The four most frequent sites
    /// are kept, by an estimate that errs upwards.
    pub fn note_site(&self, site: u64, many: u64) {
        let is_it = |[address, _]: &&[AtomicU64; 2]| address.load(Relaxed) == site;
        let count = |[_, count]: &&[AtomicU64; 2]| count.load(Relaxed);
        if let Some([address, seen]) =
            self.sites.iter().find(is_it).or_else(|| self.sites.iter().min_by_key(count))
        {
            address.store(site, Relaxed);
            seen.fetch_add(many, Relaxed);
        }
    }
}

/// The bucket of a time: two to a power of two.
pub fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < 2 {
        return nanoseconds as usize;
    }
    let power = nanoseconds.ilog2();
    let half = nanoseconds >> (power - 1) & 1;
    (2 * power as usize + half as usize).min(BUCKETS - 1)
}

/// Adds to a bucket. When it is full all buckets are halved: only their shares matter.
pub fn add_to_bucket(buckets: &[AtomicU32; BUCKETS], place: usize, weight: u32) {
    if buckets[place].load(Relaxed).checked_add(weight).is_none() {
        buckets.iter().for_each(|bucket| bucket.store(bucket.load(Relaxed) / 2, Relaxed));
    }
    buckets[place].fetch_add(weight, Relaxed);
}
