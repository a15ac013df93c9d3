//! A lock's row: what it did, and how long others wait for it now.

use core::cell::Cell;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::now_ns;

pub(super) const ROWS: usize = 2048;
const BUCKETS: usize = 96;
const SITES: usize = 4;
/// So many holds are each measured, then one in `ONE_IN` of a thread.
const FIRST_HOLDS: u64 = 32;
const ONE_IN: u64 = 64;
/// A stack that keeps others waiting is taken about once in this time.
const STACK_NS: u64 = 128_000;

/// As in the library for programs that cannot be changed; what is not used here is `rest`.
#[repr(C, align(1024))]
pub(super) struct Row {
    pub(super) address: AtomicU64,
    acquisitions: AtomicU64,
    contended: AtomicU64,
    wait_ns: AtomicU64,
    longest_wait_ns: AtomicU64,
    /// When the hold that is measured began, or 0.
    since: AtomicU64,
    sites: [[AtomicU64; 2]; SITES],
    waits: [AtomicU32; BUCKETS],
    holds: [AtomicU32; BUCKETS],
    /// How many holds the measured one stands for.
    weight: AtomicU64,
    before: [AtomicU64; 3],
    /// Of the waits that have not ended: how many, and the sum of the times at which they began, or up to which
    /// they have been charged.
    waiting: AtomicU64,
    began: AtomicU64,
    charged: AtomicU64,
    longest_stack: AtomicU64,
    /// What ended waits had waited since the last charge: the next one has it, too.
    uncharged: AtomicU64,
    /// For how long others have waited since a stack was last taken, in time that passed; and up to when.
    spent: AtomicU64,
    examined: AtomicU64,
}

/// The bucket of a time: two to a power of two.
fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < 2 {
        return nanoseconds as usize;
    }
    let power = nanoseconds.ilog2();
    let half = nanoseconds >> (power - 1) & 1;
    (2 * power as usize + half as usize).min(BUCKETS - 1)
}

std::thread_local! {
    /// Acquisitions of this thread.
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

impl Row {
    /// An acquisition, with or without a wait. Its hold is measured if it excludes others, and now and then.
    pub(super) fn note_acquisition(&self, shared: bool) {
        let before = self.acquisitions.fetch_add(1, Relaxed);
        let ticks = TICKS.with(|ticks| ticks.replace(ticks.get().wrapping_add(1)));
        let weight = if before < FIRST_HOLDS { 1 } else { ONE_IN };
        if weight == 1 || ticks.is_multiple_of(ONE_IN) {
            self.weight.store(weight, Relaxed);
            // Of a reader only that it was there.
            self.since.store(if shared { 1 } else { now_ns() }, Relaxed);
        }
    }

    /// The lock is about to be released: how long other threads have waited for it since a release was last
    /// charged, and how many holds this one stands for; zeros if no stack is to be taken.
    pub(super) fn note_release(&self) -> [u64; 2] {
        let since = self.since.load(Relaxed);
        let waits = self.waiting.load(Relaxed) != 0;
        if since == 0 && !waits {
            return [0; 2];
        }
        let now = now_ns();
        let mut holds = 0;
        if since != 0 {
            self.since.store(0, Relaxed);
            holds = self.weight.load(Relaxed);
            if since != 1 {
                self.holds[bucket(now.saturating_sub(since))].fetch_add(holds as u32, Relaxed);
            }
        }
        let mut delayed = 0;
        if waits {
            let turn = now.saturating_sub(self.examined.swap(now, Relaxed));
            if self.spent.fetch_add(turn, Relaxed) + turn >= STACK_NS {
                self.spent.store(0, Relaxed);
                delayed = self.charge(now);
            }
        }
        [delayed, holds]
    }

    pub(super) fn waiter_comes(&self, now: u64) {
        // In this order: a release that sees the one without the other charges too little, and the next one the
        // rest.
        // ORDERING: AcqRel pairs with the Acquires of `charge`, which reads the two the other way round.
        self.began.fetch_add(now, AcqRel);
        if self.waiting.fetch_add(1, AcqRel) == 0 {
            self.examined.store(now, Relaxed);
        }
    }

    pub(super) fn waiter_goes(&self, since: u64, now: u64) {
        let since = since.max(self.charged.load(Relaxed));
        self.uncharged.fetch_add(now.saturating_sub(since), Relaxed);
        // ORDERING: as in `waiter_comes`.
        self.began.fetch_sub(since, AcqRel);
        self.waiting.fetch_sub(1, AcqRel);
    }

    /// How long the other threads together have waited since a release was last charged.
    fn charge(&self, now: u64) -> u64 {
        let before = self.charged.load(Relaxed);
        let ended = self.uncharged.swap(0, Relaxed);
        loop {
            // ORDERING: Acquire pairs with the AcqRel of `waiter_comes`: a waiter that is counted has begun.
            let waiting = self.waiting.load(Acquire);
            let began = self.began.load(Acquire);
            let due = waiting.wrapping_mul(now).wrapping_sub(began).cast_signed();
            // A waiter may come or go in between.
            let most = waiting.saturating_mul(now.saturating_sub(before));
            let due = u64::try_from(due).unwrap_or(0).min(most);
            if self.began.compare_exchange(began, began.wrapping_add(due), AcqRel, Relaxed).is_ok()
            {
                self.charged.store(now, Relaxed);
                return due + ended;
            }
        }
    }

    pub(super) fn note_wait(&self, waited: u64, place: u32) {
        self.contended.fetch_add(1, Relaxed);
        self.wait_ns.fetch_add(waited, Relaxed);
        self.waits[bucket(waited)].fetch_add(1, Relaxed);
        if waited > self.longest_wait_ns.fetch_max(waited, Relaxed) {
            self.longest_stack.store(place.into(), Relaxed);
        }
    }

    /// The four most frequent call sites are kept, by an estimate that errs upwards.
    pub(super) fn note_site(&self, site: u64, many: u64) {
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
