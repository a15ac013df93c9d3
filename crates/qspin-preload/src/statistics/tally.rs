//! The counts that a mutex keeps in its own memory, so that an acquisition writes nothing else.
//!
//! # Problem
//! A row lies on cache lines that follow the mutex from CPU to CPU, and reading the clock takes longer than an
//! acquisition. Whatever the holder spends on it makes every waiter wait longer.
//!
//! So an acquisition counts down a word beside the lock, on the cache line that its holder already owns; just before
//! the release, since a store just after the instruction that acquires would delay the next such instruction by
//! 1.5 ns. When it has reached its end the next holder reads the clock, measures how long it holds the mutex, and
//! adds the whole period to the row. A period is a 32nd of the acquisitions so far, up to about 1024: the first 32
//! are each examined, and the row is never more than 3 % behind. All waits are counted, and some are measured
//! ([`Wait`]). A measured time counts for all waits that it stands for.
//!
//! # Invariants
//! * **TALLY-1** The lock's holder writes the tally. The highest bit of the mutex's kind, which means nothing
//!   to the C library, says that the release is to be examined: the hold is measured, or a thread's wait is.
//!   Only instructions that change nothing else set and clear it, and only the lock's holder clears it. All
//!   zeros are a new tally.
//! * **TALLY-2** With SEATED in `seat`, `period - 1 - left` acquisitions that have ended are not in the row yet. One
//!   that was noted is there, although it has not ended.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::stacks::Released;
use super::threads::Begins;
use super::wait::{Wait, rarity};
use super::{ROWS, Row, SLOT, add, add_to_bucket, bucket, is_on, period_after};
use crate::deadline::now_ns;

/// Counts of a mutex that its row does not have yet.
#[repr(C)]
pub(crate) struct Tally {
    /// Acquisitions still to come in this period; at 0 it is over. Every release writes it: it is in the
    /// first 32 bytes, and so on the line of the lock's word even where a line ends within the mutex.
    left: AtomicU32,
    /// The row, and the period.
    seat: AtomicU32,
    /// Acquisitions after a wait, and how rarely waits are measured.
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

/// What the period is, above that.
const PERIODS: u32 = 0x7fff;

/// The longest period, not counting the random part.
const LONGEST: u64 = 1024;
/// While a measured waiter waits, a release is examined about once in this time.
const EACH_NS: u64 = 16_000;
/// A stack of releases is taken about once in this time that the lock is held, and in its first holds.
const STACK_NS: u64 = 128_000;
const FIRST_HOLDS: u64 = 32;

/// In `waited`: how rarely waits are measured (`wait::rarity`).
const RARITY: u32 = 30;
const WAITED: u32 = (1 << RARITY) - 1;

/// In a mutex's kind: the release is to be examined (TALLY-1).
pub(crate) const MEASURED: u32 = 1 << 31;

impl Tally {
    /// Whether this acquisition is to be noted.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.left.load(Relaxed).cast_signed() <= 0
    }

    /// Counts the acquisition that the caller is about to end.
    #[inline(always)]
    pub(crate) fn count(&self) {
        self.left.store(self.left.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// The row, which is looked up if this is new, and its number.
    fn row(&self, address: usize) -> (&'static Row, u32) {
        let seat = self.seat.load(Relaxed);
        let place = if seat & SEATED == 0 { SLOT.place(address) as u32 } else { seat & PLACE };
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
        let mut next = period_after(add(&row.acquisitions, period.into()), LONGEST);
        if row.has_waiters() {
            next = next.min(row.one_in.load(Relaxed).max(1) as u32);
        }
        self.seat.store(SEATED | next << PERIOD | place, Relaxed);
        // This one is counted when it ends.
        self.left.store(next, Relaxed);
        self.note_waits(row);
        row.note_site(site as u64, 1);
        row.weight.store(u64::from(period) + row.cut_off.load(Relaxed), Relaxed);
        row.cut_off.store(0, Relaxed);
        kind.fetch_or(MEASURED, Relaxed);
        row.since.store(now_ns(), Relaxed);
    }

    /// Adds the number of waits to the row.
    fn note_waits(&self, row: &Row) {
        let waited = self.waited.load(Relaxed) & WAITED;
        if waited > 0 {
            let all = add(&row.contended, waited.into());
            self.waited.store(rarity(row, all) << RARITY, Relaxed);
        }
    }

    /// This thread is about to wait for the lock.
    pub(crate) fn begins_to_wait(&self, kind: &AtomicU32, what: &Begins) -> Wait {
        let rarity = self.waited.load(Relaxed) >> RARITY;
        let row = || {
            let (row, place) = self.row(what.address);
            (row, place as usize)
        };
        let wait = Wait::begin(what, rarity, row);
        if wait.charges() && kind.load(Relaxed) & MEASURED == 0 {
            row().0.noticed.store(wait.since(), Relaxed);
            // TALLY-1.
            kind.fetch_or(MEASURED, Relaxed);
        }
        wait
    }

    /// The wait is over, with the lock or without it.
    pub(crate) fn stops_waiting(&self, address: usize, wait: &mut Wait) {
        wait.leave(|| self.row(address).0);
    }

    /// The thread has waited, and holds the lock now.
    pub(crate) fn has_waited(
        &self,
        kind: &AtomicU32,
        address: usize,
        site: usize,
        wait: &mut Wait,
    ) {
        if !is_on() {
            return;
        }
        self.waited.store(self.waited.load(Relaxed) + 1, Relaxed);
        if let Some((waited, weight)) = wait.end() {
            self.note_wait(address, site, wait, waited, weight);
        }
        if self.is_over() {
            self.note(kind, address, site);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_wait(&self, address: usize, site: usize, wait: &mut Wait, waited: u64, weight: u32) {
        let (row, _) = self.row(address);
        self.note_waits(row);
        add(&row.wait_ns, waited * u64::from(weight));
        wait.tell(row, address, waited, weight);
        add_to_bucket(&row.waits, bucket(waited), weight);
        row.note_site(site as u64, weight.into());
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
        let since = row.since.load(Relaxed);
        if since == 0 && !row.has_waiters() {
            row.examined.store(0, Relaxed);
            self.look_on(row, kind);
            return Released::default();
        }
        let now = now_ns();
        let mut spent = 0;
        let mut holds = row.holds_without_stack.load(Relaxed);
        if since != 0 {
            row.since.store(0, Relaxed);
            let (held, weight) = (now.saturating_sub(since), row.weight.load(Relaxed));
            add_to_bucket(&row.holds, bucket(held), weight as u32);
            holds += weight;
            spent = held * weight;
        }
        if row.has_waiters() {
            spent = self.look_again(row, kind, now, spent);
        } else {
            row.examined.store(0, Relaxed);
            self.look_on(row, kind);
        }
        // A stack is taken at the release with which another such time is over: so by chance each owner is
        // charged in proportion to how long it held the lock, and one that holds it for as long always is.
        let spent = row.spent.load(Relaxed) + spent;
        let is_over = spent >= STACK_NS;
        let has_stack = is_over || row.acquisitions.load(Relaxed) <= FIRST_HOLDS;
        row.spent.store(if is_over { 0 } else { spent }, Relaxed);
        row.holds_without_stack.store(if has_stack { 0 } else { holds }, Relaxed);
        Released {
            delayed_ns: if is_over { row.charge(now) } else { 0 },
            holds: if has_stack { holds } else { 0 },
        }
    }

    /// A release is examined at `now` while a measured waiter waits: says for how long this and those that it
    /// stands for kept the lock, by measured holds for `spent`, and which release is examined next.
    ///
    /// Where turns are longer than `EACH_NS` that is the next one, and the time between two releases is exact. A
    /// shorter turn would become much longer by that, so then it is that of the next measured hold, of which
    /// there are more while this lasts.
    fn look_again(&self, row: &Row, kind: &AtomicU32, now: u64, spent: u64) -> u64 {
        let before = row.examined.load(Relaxed);
        let (turn, spent) = if before != 0 {
            let turn = now.saturating_sub(before);
            (turn, turn)
        } else if spent != 0 {
            (spent / row.weight.load(Relaxed).max(1), spent)
        } else {
            // The first one: how long its turn was before the waiter came is not known.
            let turn = now.saturating_sub(row.noticed.load(Relaxed));
            row.examined.store(now, Relaxed);
            return turn;
        };
        if turn >= EACH_NS {
            row.examined.store(now, Relaxed);
            return spent;
        }
        row.examined.store(0, Relaxed);
        kind.fetch_and(!MEASURED, Relaxed);
        let one_in = (EACH_NS / turn.max(1)).clamp(2, LONGEST) as u32;
        row.one_in.store(one_in.into(), Relaxed);
        let (period, left) = (self.period(), self.left.load(Relaxed));
        if left < period && left > one_in {
            // TALLY-2: the period ends earlier.
            let rest = rest_of(period, left);
            add(&row.acquisitions, rest);
            add(&row.cut_off, rest);
            self.seat
                .store(self.seat.load(Relaxed) & !(PERIODS << PERIOD) | one_in << PERIOD, Relaxed);
            self.left.store(one_in - 1, Relaxed);
        }
        spent
    }

    /// The next release is to be examined, too, if a measured wait of another thread goes on.
    #[inline]
    fn look_on(&self, row: &Row, kind: &AtomicU32) {
        if !row.has_waiters() {
            kind.fetch_and(!MEASURED, Relaxed);
            // A wait that began meanwhile has set the bit before, or sets it later.
            if row.has_waiters() {
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
    let [left, seat, waited] = [words[FIRST], words[FIRST + 1], words[FIRST + 2] & WAITED];
    let is_seated = seat & (SEATED | PLACE) == SEATED | place as u32;
    if is_seated && crate::mutex::is_kind(words[KIND]) && left < period_of(seat) {
        let rest = rest_of(period_of(seat), left);
        add(&row.acquisitions, rest);
        // Words that are not this mutex's have more waits than acquisitions.
        add(&row.contended, u64::from(waited).min(rest));
    }
}
