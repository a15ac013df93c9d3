//! One wait for a lock, which may be measured, and may be recorded.
//!
//! Reading the clock costs as much as an acquisition, and the second reading delays the other waiters; a stack
//! takes a microsecond. So the first 64 waits of a lock are measured, then one in 16 of each thread, which counts for
//! all of these, and of a lock with thousands of waits one in 64, then one in 256. Waits of 20 ms and more always are, by
//! a cheap clock that ticks in milliseconds. If the waits for a lock are long on average, they are few, and one in 16
//! would say little: then each is measured up to some thousand, and four times as many as otherwise after that.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use qspin::locks_file::LONG_NS;

use super::stacks::Captured;
use super::threads::Begins;
use super::{ROWS, Record, Row, SLOT, is_on, tracks, watches};
use crate::deadline::{coarse_ns, now_ns};
use crate::thread;

/// If the average wait is this long, more are measured.
const LONG_ON_AVERAGE_NS: u64 = 100_000;
/// Of the waits up to the first number each is measured; up to the second one in 16, up to the third one in 64, then one
/// in 256. Where they are long each is up to the second number, and so on.
const MANY_WAITS: [u64; 3] = [64, 1 << 12, 1 << 16];

/// Of the waits of a lock with so many of them one in how many is measured: 0 for each, 1 to 3 for 16, 64, 256.
pub(super) fn rarity(row: &Row, waits: u64) -> u32 {
    rarity_of(waits, row.wait_ns.load(Relaxed))
}

/// The same for waits that together took `wait_ns`.
fn rarity_of(waits: u64, wait_ns: u64) -> u32 {
    let rarity = MANY_WAITS.iter().filter(|many| waits >= **many).count() as u32;
    let are_long = wait_ns >= waits.saturating_mul(LONG_ON_AVERAGE_NS);
    if are_long { rarity.saturating_sub(1) } else { rarity }
}

/// A wait that may be measured.
pub(crate) struct Wait {
    what: Begins,
    /// When it began, and when it ended, if it has; 0 if it is not measured.
    since: u64,
    ended: u64,
    /// When it was recorded, by the cheap clock; 0 if it is not.
    coarse: Cell<u64>,
    record: Cell<Option<&'static Record>>,
    /// How many waits it stands for.
    weight: u32,
    /// The place of its stack, if it is measured.
    pub(super) stack: u32,
    /// Whether its row counts it as waiting, and what `Row::waiter_comes` said.
    told: bool,
    as_one: u64,
    /// What this thread's word was before, if it has set it (WAIT-1).
    outer: Option<usize>,
}

impl Wait {
    /// The wait begins, for a lock whose waits are measured this rarely. The stack of a measured wait is
    /// captured now, when no other thread waits for this one; `row` then finds the lock's row.
    pub(super) fn begin(
        what: &Begins,
        rarity: u32,
        row: impl FnOnce() -> (&'static Row, usize),
    ) -> Self {
        let mut this = Self {
            what: *what,
            since: 0,
            ended: 0,
            coarse: Cell::new(0),
            record: Cell::new(None),
            weight: 0,
            stack: 0,
            told: false,
            as_one: 0,
            outer: None,
        };
        let (counts, tracks) = (is_on(), tracks());
        if counts {
            let one_in = if rarity == 0 { 1 } else { 4 << (2 * rarity) };
            this.weight =
                if rarity == 0 || thread::tick().is_multiple_of(one_in) { one_in } else { 0 };
        }
        if this.weight == 0 && (what.tells_of_sleep || !counts && !tracks) {
            return this;
        }
        let stack = (this.weight > 0 || tracks).then(Captured::now);
        this.record(stack.as_ref());
        if let Some(stack) = stack.filter(|_| this.weight > 0) {
            this.stack = stack.place(what.address);
            this.since = now_ns();
            let (row, place) = row();
            // Row 0 is shared by many locks.
            if place % ROWS != 0 {
                this.as_one = row.waiter_comes(this.since, this.weight);
                this.told = true;
            }
        }
        this
    }

    /// From now on, if it is not recorded yet, it is when this thread goes to sleep.
    pub(crate) fn listen(&mut self) {
        let is_pending = self.coarse.get() == 0 && self.what.tells_of_sleep;
        // WAIT-1: `leave` follows, in this very place.
        let address = if is_pending { core::ptr::from_ref(&*self).addr() } else { 0 };
        self.outer = Some(thread::set_wait(address));
    }

    fn record(&self, stack: Option<&Captured>) {
        self.coarse.set(coarse_ns());
        self.record.set(self.what.begin(stack, self.coarse.get()));
    }

    /// Whether the releases of the lock are to be examined while it lasts.
    pub(super) fn charges(&self) -> bool {
        self.told
    }

    /// When it began, if it is measured.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// The wait is over, with the lock or without it: its row must not count it any more.
    #[inline]
    pub(super) fn leave(&mut self, row: impl FnOnce() -> &'static Row) {
        if let Some(outer) = self.outer {
            thread::set_wait(outer);
        }
        if let Some(record) = self.record.get() {
            record.end();
        }
        if self.weight > 0 {
            self.ended = now_ns();
        }
        if self.told {
            row().waiter_goes(self.since, self.ended, self.weight, self.as_one);
        }
    }

    /// How long it took, in nanoseconds, and how many waits that stands for, if it was measured.
    #[inline]
    pub(super) fn end(&self) -> Option<(u64, u32)> {
        let exact = self.ended.saturating_sub(self.since);
        if self.weight > 0 {
            // A long wait stands for itself alone, since each of them is measured.
            return Some((exact, if exact >= LONG_NS { 1 } else { self.weight }));
        }
        // One that was not recorded was short.
        let since = Some(self.coarse.get()).filter(|since| *since != 0)?;
        let coarse = coarse_ns().saturating_sub(since);
        (coarse >= LONG_NS).then_some((coarse, 1))
    }

    /// Adds what was measured to the row and the stack. One of `address` that was long, and of which nothing was
    /// known before, is charged to a later release, and its stack is taken now: it has taken longer than that.
    pub(super) fn tell(&mut self, row: &Row, address: usize, waited: u64, weight: u32) {
        if self.weight == 0 {
            row.uncharged.fetch_add(waited, Relaxed);
            self.stack = Captured::now().place(address);
        }
        if waited > row.longest_wait_ns.fetch_max(waited, Relaxed) {
            row.longest_stack.store(self.stack.into(), Relaxed);
        }
        SLOT.note_wait(self.stack, waited, weight);
    }
}

/// This thread is about to sleep: records what it waits for, if it has not yet.
pub(crate) fn sleeps() {
    let address = thread::wait();
    if address != 0 {
        // SAFETY: WAIT-1. It is not moved meanwhile, and what is changed are cells.
        let wait = unsafe { &*(address as *const Wait) };
        if wait.coarse.get() == 0 && watches() {
            wait.record(tracks().then(Captured::now).as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_waits_the_fewer_are_measured_and_of_long_ones_more_than_of_short_ones() {
        let at = [1, 63, 64, 4095, 4096, 65_535, 65_536, u64::MAX];
        assert_eq!(at.map(|waits| rarity_of(waits, 0)), [0, 0, 1, 1, 2, 2, 3, 3]);
        let long = |waits: u64| waits.saturating_mul(LONG_ON_AVERAGE_NS);
        assert_eq!(at.map(|waits| rarity_of(waits, long(waits))), [0, 0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(rarity_of(100, long(100) - 1), 1, "just not long");
    }
}
