//! One wait for a lock, which is measured or not.
//!
//! A look at the clock costs as much as an acquisition, and the second one keeps the others waiting. So the first 64
//! waits of a lock are measured, then one in 16 of each thread, which counts for all of these; and those of 20 ms and
//! more always are, by a clock that costs little and ticks in milliseconds. Of a lock whose waits take long on average each is
//! measured: a look at the clock is nothing beside them, and there are so few that one in 16 would say nothing.

use core::sync::atomic::Ordering::Relaxed;

use super::stacks::{self, Captured};
use super::threads::{Begins, Record};
use super::{ROWS, Row, is_on, tracks};
use crate::deadline::{coarse_ns, now_ns};
use crate::thread;

/// So many waits of a lock are measured each.
const FIRST_WAITS: u64 = 64;
/// On average so long: each is measured.
const EACH_NS: u64 = 1_000_000;
/// Later one in so many.
const SAMPLE: u32 = 16;
/// Waits of this length are always measured: two ticks of the slowest clock.
const LONG_NS: u64 = 20_000_000;

/// Whether of a lock with so many waits some are measured, and no longer each.
pub(super) fn only_some(row: &Row, waits: u64) -> bool {
    waits >= FIRST_WAITS && row.wait_ns.load(Relaxed) / waits < EACH_NS
}

/// A wait that may be measured.
pub(crate) struct Wait {
    /// When it began; 0 if that is not measured.
    since: u64,
    coarse: u64,
    /// How many waits it stands for.
    weight: u32,
    /// Its stack's place, if it is measured.
    pub(super) stack: u32,
    /// Whether it is among those that its row says wait (`Row::waiter_comes`).
    told: bool,
    record: Option<&'static Record>,
}

impl Wait {
    /// It begins, and is one of the first of its lock, or comes after many. The stack of one that is measured is looked
    /// at now, when nobody waits for this thread; `row` finds the lock's row then.
    pub(super) fn begin(
        what: &Begins,
        after_many: bool,
        row: impl FnOnce() -> (&'static Row, usize),
    ) -> Self {
        let mut this = Self { since: 0, coarse: 0, weight: 0, stack: 0, told: false, record: None };
        let (counts, tracks) = (is_on(), tracks());
        if counts {
            this.coarse = coarse_ns();
            this.weight = if !after_many {
                1
            } else if thread::tick().is_multiple_of(SAMPLE) {
                SAMPLE
            } else {
                0
            };
        }
        if !counts && !tracks {
            return this;
        }
        let stack = (this.weight > 0 || tracks).then(Captured::now);
        this.record = what.begin(stack.as_ref());
        if let Some(stack) = stack.filter(|_| this.weight > 0) {
            this.stack = stack.place(what.address);
            this.since = now_ns();
            let (row, place) = row();
            // Row 0 is that of many locks.
            if place % ROWS != 0 {
                row.waiter_comes(this.since, this.weight);
                this.told = true;
            }
        }
        this
    }

    /// Whether the releases of the lock are to be looked at while it lasts.
    pub(super) fn charges(&self) -> bool {
        self.told
    }

    /// It is over, with the lock or without it: nobody is to believe that it lasts.
    #[inline]
    pub(super) fn leave(&self, row: impl FnOnce() -> &'static Row) {
        if let Some(record) = self.record {
            record.end();
        }
        if self.told {
            row().waiter_goes(self.since, self.weight);
        }
    }

    /// How long it took, in nanoseconds, and how many waits that stands for; if it was measured.
    #[inline]
    pub(super) fn end(&self) -> Option<(u64, u32)> {
        let coarse = coarse_ns().saturating_sub(self.coarse);
        if coarse >= LONG_NS {
            // A long one stands for itself alone, since each of them is here.
            let exact = if self.weight > 0 { now_ns().saturating_sub(self.since) } else { coarse };
            return Some((exact, 1));
        }
        (self.weight > 0).then(|| (now_ns().saturating_sub(self.since), self.weight))
    }

    /// Tells the row and the stack what was measured.
    pub(super) fn tell(&self, row: &Row, waited: u64, weight: u32) {
        if waited > row.longest_wait_ns.fetch_max(waited, Relaxed) {
            row.longest_stack.store(self.stack.into(), Relaxed);
        }
        stacks::has_waited(self.stack, waited, weight);
    }
}
