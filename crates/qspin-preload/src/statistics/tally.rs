//! The counts that a mutex keeps in its own memory, so that an acquisition writes nothing else.
//!
//! # Problem
//! A row lies on cache lines that follow the mutex from CPU to CPU, and reading the clock takes longer than an
//! acquisition. Whatever the holder spends on it makes every waiter wait longer.
//!
//! So an acquisition counts down a word beside the lock, on the cache line that its holder already owns. When
//! it reaches its end the holder reads the clock, measures how long it holds the mutex, and adds the whole
//! period to the row. A period is a 32nd of the acquisitions so far, up to about 1024: the first 32 are each
//! examined, and the row is never more than 3 % behind. All waits are counted, and some are measured
//! ([`Wait`]). A measured time counts for all waits that it stands for.
//!
//! # Invariants
//! * **TALLY-1** The lock's holder writes the tally. The highest bit of the mutex's kind, which means nothing
//!   to the C library, says that the release is to be examined: the hold is measured, or a thread's wait is.
//!   Only instructions that change nothing else set and clear it, and only the lock's holder clears it. All
//!   zeros are a new tally.
//! * **TALLY-2** With SEATED in `seat`, `period - 1 - left` acquisitions are not in the row yet.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::stacks::Released;
use super::threads::Begins;
use super::wait::{Wait, only_some};
use super::{ROWS, Row, SLOT, add, add_to_bucket, bucket, is_on, note_site, period_after, place};
use crate::deadline::now_ns;

/// Counts of a mutex that its row does not have yet.
#[repr(C)]
pub(crate) struct Tally {
    /// Acquisitions still to come in this period; below 0 it is over. Every acquisition writes it: it is in the
    /// first 32 bytes, and so on the line of the lock's word even where a line ends within the mutex.
    left: AtomicU32,
    /// The row, and the period.
    seat: AtomicU32,
    /// Acquisitions after a wait, and whether there were many before.
    waited: AtomicU32,
}

/// The words of a mutex, and where among them its tally is.
pub(super) const WORDS: usize = 10;
const FIRST: usize = 7;
const KIND: usize = 4;

/// In `seat`: its row was looked up.
const SEATED: u32 = 1 << 31;
const PLACE: u32 = ROWS as u32 - 1;
const PERIOD: u32 = 16;

/// The longest period, not counting the random part.
const LONGEST: u64 = 1024;

/// In `waited`: the first waits are over.
const MANY: u32 = 1 << 31;

/// In a mutex's kind: the release is to be examined (TALLY-1).
pub(crate) const MEASURED: u32 = 1 << 31;

impl Tally {
    /// Counts one more acquisition. Returns whether it is to be noted.
    #[inline(always)]
    pub(crate) fn count(&self) -> bool {
        let left = self.left.load(Relaxed).wrapping_sub(1);
        self.left.store(left, Relaxed);
        left.cast_signed() < 0
    }

    /// The row, which is looked up if this is new, and its number.
    fn row(&self, address: usize) -> (&'static Row, u32) {
        let seat = self.seat.load(Relaxed);
        let place = if seat & SEATED == 0 { place(address) as u32 } else { seat & PLACE };
        (&SLOT.rows[place as usize % ROWS], place)
    }

    fn period(&self) -> u32 {
        period_of(self.seat.load(Relaxed))
    }

    /// The period ends with this acquisition, by a call from `site`: adds the counts to the row, and measures
    /// this hold.
    pub(crate) fn note(&self, kind: &AtomicU32, address: usize, site: usize) {
        if !is_on() {
            // A child (STATISTICS-2), or the end of the process.
            self.left.store(i32::MAX.cast_unsigned(), Relaxed);
            return;
        }
        let period = self.period();
        let (row, place) = self.row(address);
        if place == 0 {
            SLOT.head.lost.fetch_add(period.into(), Relaxed);
        }
        let next = period_after(add(&row.acquisitions, period.into()), LONGEST);
        self.seat.store(SEATED | next << PERIOD | place, Relaxed);
        self.left.store(next - 1, Relaxed);
        self.note_waits(row);
        note_site(row, site, 1);
        row.weight.store(period.into(), Relaxed);
        kind.fetch_or(MEASURED, Relaxed);
        row.since.store(now_ns(), Relaxed);
    }

    /// Adds the number of waits to the row.
    fn note_waits(&self, row: &Row) {
        let waited = self.waited.load(Relaxed) & !MANY;
        if waited > 0 {
            let all = add(&row.contended, waited.into());
            self.waited.store(if only_some(row, all) { MANY } else { 0 }, Relaxed);
        }
    }

    /// This thread is about to wait for the lock.
    pub(crate) fn begins_to_wait(&self, kind: &AtomicU32, what: &Begins) -> Wait {
        let many = self.waited.load(Relaxed) & MANY != 0;
        let row = || {
            let (row, place) = self.row(what.address);
            (row, place as usize)
        };
        let wait = Wait::begin(what, many, row);
        if wait.charges() {
            // TALLY-1.
            kind.fetch_or(MEASURED, Relaxed);
        }
        wait
    }

    /// The wait is over, with the lock or without it.
    pub(crate) fn stops_waiting(&self, address: usize, wait: &Wait) {
        wait.leave(|| self.row(address).0);
    }

    /// The thread has waited, and holds the lock now.
    pub(crate) fn has_waited(&self, kind: &AtomicU32, address: usize, site: usize, wait: &Wait) {
        if !is_on() {
            return;
        }
        self.waited.store(self.waited.load(Relaxed) + 1, Relaxed);
        if let Some((waited, weight)) = wait.end() {
            self.note_wait(address, site, wait, waited, weight);
        }
        if self.count() {
            self.note(kind, address, site);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_wait(&self, address: usize, site: usize, wait: &Wait, waited: u64, weight: u32) {
        let (row, _) = self.row(address);
        self.note_waits(row);
        add(&row.wait_ns, waited * u64::from(weight));
        wait.tell(row, waited, weight);
        add_to_bucket(&row.waits, bucket(waited), weight);
        note_site(row, site, weight);
    }

    /// The lock is about to be released, and the release is to be examined.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_release(&self, kind: &AtomicU32, address: usize) -> Released {
        if !is_on() {
            kind.fetch_and(!MEASURED, Relaxed);
            return Released::default();
        }
        let (row, _) = self.row(address);
        let mut released = Released::default();
        let since = row.since.load(Relaxed);
        let is_due = row.is_due();
        if since == 0 && !is_due {
            self.look_on(row, kind);
            return released;
        }
        let now = now_ns();
        if since != 0 {
            row.since.store(0, Relaxed);
            let held = now.saturating_sub(since);
            released.holds = row.weight.load(Relaxed);
            add_to_bucket(&row.holds, bucket(held), released.holds as u32);
        }
        if is_due {
            released.delayed_ns = row.charge(now);
        }
        self.look_on(row, kind);
        released
    }

    /// The next release is to be examined, too, if a measured wait of another thread goes on.
    #[inline]
    fn look_on(&self, row: &Row, kind: &AtomicU32) {
        if row.waiting.load(Relaxed) == 0 {
            kind.fetch_and(!MEASURED, Relaxed);
            // A wait that began meanwhile has set the bit before, or sets it later.
            if row.waiting.load(Relaxed) != 0 {
                kind.fetch_or(MEASURED, Relaxed);
            }
        }
    }

    /// The mutex is destroyed: adds the rest to the row.
    pub(crate) fn end(&self, address: usize) {
        if is_on() && self.seat.load(Relaxed) & SEATED != 0 {
            let (row, _) = self.row(address);
            add(&row.acquisitions, rest_of(self.period(), self.left.load(Relaxed)));
            self.note_waits(row);
        }
        self.seat.store(0, Relaxed);
        self.left.store(0, Relaxed);
        self.waited.store(0, Relaxed);
    }
}

/// For a new one the first acquisition is a period.
const fn period_of(seat: u32) -> u32 {
    if seat & SEATED == 0 { 1 } else { (seat & !SEATED) >> PERIOD }
}

/// TALLY-2; 0 where that cannot be.
fn rest_of(period: u32, left: u32) -> u64 {
    if left < period { u64::from(period - 1 - left) } else { 0 }
}

/// Adds to the row at `place` what it lacks according to the words of its mutex, if they are its mutex's.
pub(super) fn add_rest(row: &Row, place: usize, words: &[u32; WORDS]) {
    let [left, seat, waited] = [words[FIRST], words[FIRST + 1], words[FIRST + 2] & !MANY];
    let is_seated = seat & (SEATED | PLACE) == SEATED | place as u32;
    if is_seated && crate::mutex::is_kind(words[KIND]) && left < period_of(seat) {
        let rest = rest_of(period_of(seat), left);
        add(&row.acquisitions, rest);
        // Words that are not this mutex's have more waits than acquisitions.
        add(&row.contended, u64::from(waited).min(rest));
    }
}
