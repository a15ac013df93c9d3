//! The counts that a reader-writer lock keeps itself: it has several holders, so they write them at once.
//!
//! # Problem
//! Readers that add to a row, each with a locked instruction, wait for the row's cache line, and reading is all
//! that some programs do with a lock.
//!
//! So acquisitions are counted where each of them writes anyhow: in eight bits of the lock's own word, by the
//! very instruction that acquires it. Once per period one thread tells the row how many there were since the
//! last time. As for a mutex (`tally`) a period is a 32nd of the acquisitions so far, but at most about 96,
//! since eight bits wrap around; and it is randomly longer or shorter, so that the call sites that are noted
//! then stand for all.
//!
//! # Invariants
//! * **SHARED-1** An acquisition has a number, one more than that of the one before it, modulo 256. The row has
//!   been told of all up to `told`: the thread that moves `told` from one number to a later one adds the
//!   difference, and no other thread does.
//! * **SHARED-2** A thread that finds its number already told adds nothing. So an acquisition is lost, or
//!   counted 256 times over, only if telling takes longer than `LATE` less a period.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::stacks::Released;
use super::threads::Begins;
use super::wait::{Wait, rarity};
use super::{ROWS, Row, SLOT, add_to_bucket, bucket, is_on, period_after};
use crate::deadline::{coarse_ns, now_ns};
use crate::rwlock;

/// Of a reader-writer lock: what the row was told, and when it will be told again.
#[repr(C)]
pub(crate) struct SharedTally {
    /// SEATED, the row's number, the period, and the number that was told last.
    seat: AtomicU32,
    /// Acquisitions after a wait that the row was not told of, and how rarely waits are measured.
    waited: AtomicU32,
}

/// In `seat`: its row was looked up.
const SEATED: u32 = 1 << 31;
const PLACE: u32 = 16;
const PERIOD: u32 = 8;

/// In `waited`: how rarely waits are measured (`wait::rarity`).
const RARITY: u32 = 30;
const WAITED: u32 = (1 << RARITY) - 1;

/// A thread that is behind what was told appears to be at least this far ahead of it.
const LATE: u8 = 192;
/// The longest period, not counting the random part.
const LONGEST: u64 = 96;

const fn told(seat: u32) -> u8 {
    seat as u8
}

impl SharedTally {
    /// Whether the row is to be told at the acquisition of this number.
    #[inline(always)]
    pub(crate) fn is_due(&self, number: u8) -> bool {
        let seat = self.seat.load(Relaxed);
        number.wrapping_sub(told(seat)) >= (seat >> PERIOD) as u8
    }

    /// The lock's row, and its number.
    fn row(&self, address: usize) -> (&'static Row, usize) {
        let seat = self.seat.load(Relaxed);
        let place = if seat & SEATED == 0 {
            SLOT.place(address)
        } else {
            (seat & !SEATED) as usize >> PLACE
        };
        (&SLOT.rows[place % ROWS], place)
    }

    /// Tells the row of all acquisitions up to the one of this number, by a call from `site`.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(&self, address: usize, site: usize, number: u8) {
        let (row, place) = self.row(address);
        let mut seat = self.seat.load(Relaxed);
        let period = period_after(row.acquisitions.load(Relaxed), LONGEST);
        let after = SEATED | (place as u32) << PLACE | period << PERIOD | u32::from(number);
        loop {
            // SHARED-1.
            let passed = number.wrapping_sub(told(seat));
            if passed >= LATE {
                return;
            }
            match self.seat.compare_exchange_weak(seat, after, Relaxed, Relaxed) {
                Ok(_) => {
                    row.acquisitions.fetch_add(passed.into(), Relaxed);
                    if place == 0 {
                        SLOT.head.lost.fetch_add(passed.into(), Relaxed);
                    }
                    row.note_site(site as u64, 1);
                    return;
                }
                Err(now) => seat = now,
            }
        }
    }

    /// Adds the number of waits to the row.
    fn note_waits(&self, row: &Row) {
        let new = self.waited.load(Relaxed) & WAITED;
        let rarity = rarity(row, row.contended.load(Relaxed) + u64::from(new));
        let waited = self.waited.swap(rarity << RARITY, Relaxed) & WAITED;
        row.contended.fetch_add(waited.into(), Relaxed);
    }

    /// Whether a measured waiter waits: only then a release is examined.
    #[inline(always)]
    pub(crate) fn has_waiters(&self) -> bool {
        let seat = self.seat.load(Relaxed);
        seat & SEATED != 0 && SLOT.rows[((seat & !SEATED) as usize >> PLACE) % ROWS].has_waiters()
    }

    /// This thread is about to wait for the lock.
    pub(crate) fn begins_to_wait(&self, what: &Begins) -> Wait {
        Wait::begin(what, self.waited.load(Relaxed) >> RARITY, || self.row(what.address))
    }

    /// The wait is over, with the lock or without it.
    pub(crate) fn stops_waiting(&self, address: usize, wait: &mut Wait) {
        wait.leave(|| self.row(address).0);
    }

    /// One of the owners is about to release the lock: how long other threads have waited, as for a mutex.
    #[inline]
    pub(crate) fn note_release(&self, address: usize) -> Released {
        if !is_on() || self.seat.load(Relaxed) & SEATED == 0 {
            return Released::default();
        }
        let (row, place) = self.row(address);
        // Only a release with a waiter reads the clock.
        let waits = place != 0 && is_due(row);
        Released { delayed_ns: if waits { row.charge(now_ns()) } else { 0 }, holds: 0 }
    }

    /// The thread has waited, and has acquired the lock by a call from `site`.
    pub(crate) fn has_waited(&self, address: usize, site: usize, wait: &mut Wait) {
        self.waited.fetch_add(1, Relaxed);
        if let Some((waited, weight)) = wait.end() {
            self.note_wait(address, site, wait, waited, weight);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_wait(&self, address: usize, site: usize, wait: &mut Wait, waited: u64, weight: u32) {
        let (row, _) = self.row(address);
        self.note_waits(row);
        row.wait_ns.fetch_add(waited * u64::from(weight), Relaxed);
        wait.tell(row, address, waited, weight);
        add_to_bucket(&row.waits, bucket(waited), weight);
        row.note_site(site as u64, weight.into());
    }

    /// The lock is destroyed, after the acquisition of this number: adds the rest to the row.
    pub(crate) fn end(&self, address: usize, number: u8) {
        let seat = self.seat.load(Relaxed);
        if is_on() && seat & SEATED != 0 {
            let rest = number.wrapping_sub(told(seat));
            let (row, _) = self.row(address);
            row.acquisitions.fetch_add(rest.into(), Relaxed);
            self.note_waits(row);
        }
        self.seat.store(u32::from(number), Relaxed);
        self.waited.store(0, Relaxed);
    }
}

/// Whether a release is to be charged now. The first after each tick of the cheap clock is. So by chance each owner is
/// charged in proportion to how long it held the lock.
#[inline]
fn is_due(row: &Row) -> bool {
    row.has_waiters() && coarse_ns() > row.charged.load(Relaxed)
}

/// Adds to the row at `place` what it was not told according to the words of its lock, if they are its lock's.
/// They are not if a mutex lies there: its word at this place is its kind, which names no row.
pub(super) fn add_rest(row: &Row, place: usize, words: &[u32]) {
    let ([seat, waited], number) = rwlock::counts_in(words);
    if seat & !0xffff == SEATED | (place as u32) << PLACE {
        let rest = number.wrapping_sub(told(seat));
        row.acquisitions.fetch_add(rest.into(), Relaxed);
        row.contended.fetch_add(u64::from(waited & WAITED), Relaxed);
    }
}
