//! What each thread waits for and what it holds: one record per thread, which another process reads.
//!
//! # Problem
//! The word of a lock does not say which thread holds it: a counter of readers cannot, and that of the default
//! mutex names a CPU. Finding a deadlock, or showing which thread the others wait for, needs that.
//!
//! So a thread records what it holds, by plain stores to a record of its own, while another process wants to
//! know (TRACKED in the process's mode); and what it waits for while that or counting is on. Only the command
//! reads the records, from outside.
//!
//! The invariants THREADS-1 to THREADS-3 are those of [`qspin::locks_file::Record`]'s file.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};

use qspin::locks_file::{ADDRESS, HOLDS, Kind, Record, THREADS, TIMED, WRITERS_FIRST};

use super::SLOT;
use super::stacks::Captured;
use crate::deadline::coarse_ns;
use crate::sleep::system_call;
use crate::{generation, thread};

/// In place of a record's address: there is none for this thread.
const NONE: usize = 1;

/// The record at an address that a thread keeps.
#[inline]
fn at(address: usize) -> Option<&'static Record> {
    // SAFETY: not 0 and not `NONE`: the address of one of the static records.
    (address > NONE).then(|| unsafe { &*(address as *const Record) })
}

/// This thread's record.
#[inline]
fn mine() -> Option<&'static Record> {
    // STATISTICS-2.
    if !generation::reports() {
        return None;
    }
    match thread::record() {
        0 => claim(),
        address => at(address),
    }
}

/// The same, if the thread has one, and its holds count (THREADS-3).
#[inline(always)]
fn known() -> Option<&'static Record> {
    if !generation::reports() {
        return None;
    }
    let record = at(thread::record())?;
    (record.epoch.load(Relaxed) == SLOT.head.epoch.load(Relaxed)).then_some(record)
}

/// The first call of a thread: a new record, or that of a thread that has ended.
#[cold]
#[inline(never)]
fn claim() -> Option<&'static Record> {
    static CURSOR: AtomicU32 = AtomicU32::new(0);
    let own = u64::from(thread::number());
    let given = &SLOT.head.threads;
    let next =
        given.fetch_update(Relaxed, Relaxed, |many| (many < THREADS as u64).then_some(many + 1));
    let place = match next {
        Ok(place) => {
            SLOT.threads[place as usize].thread.store(own, Relaxed);
            Some(place as usize)
        }
        Err(_) => (0..THREADS).find_map(|_| {
            let place = CURSOR.fetch_add(1, Relaxed) as usize % THREADS;
            let thread = &SLOT.threads[place].thread;
            let other = thread.load(Relaxed);
            // SAFETY: asks whether there is such a thread; nothing is sent.
            let ended = other != 0
                && unsafe {
                    let process = system_call(libc::SYS_getpid, []) as u64;
                    system_call(libc::SYS_tgkill, [process, other, 0]) == -i64::from(libc::ESRCH)
                };
            (ended && thread.compare_exchange(other, own, Relaxed, Relaxed).is_ok())
                .then_some(place)
        }),
    };
    let record = place.and_then(|place| SLOT.threads.get(place));
    thread::set_record(record.map_or(NONE, |record| core::ptr::from_ref(record).addr()));
    let record = record?;
    record.held.store(0, Relaxed);
    record.turn.store((record.turn.load(Relaxed) + 1) & !1, Relaxed);
    record.epoch.store(SLOT.head.epoch.load(Relaxed), Relaxed);
    // SAFETY: asks for a number.
    record.handle.store(unsafe { libc::pthread_self() }, Relaxed);
    Some(record)
}

/// A wait that begins.
#[derive(Clone, Copy)]
pub(crate) struct Begins {
    pub(crate) kind: Kind,
    pub(crate) address: usize,
    /// For a condition variable, the mutex.
    pub(crate) mutex: usize,
    /// Where the program called, if known.
    pub(crate) site: usize,
    /// It has a deadline.
    pub(crate) timed: bool,
    pub(crate) writers_first: bool,
    /// Its thread calls [`sleeps`](super::sleeps) before it sleeps.
    pub(crate) tells_of_sleep: bool,
}

impl Begins {
    pub(crate) const fn new(kind: Kind, address: usize, site: usize) -> Self {
        let (timed, writers_first, tells_of_sleep) = (false, false, false);
        Self { kind, address, mutex: 0, site, timed, writers_first, tells_of_sleep }
    }

    /// As [`Self::begin`], with the stack of this thread.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_with_stack(&self) -> Option<&'static Record> {
        self.begin(Some(&Captured::now()), coarse_ns())
    }

    /// Records it, with the stack if known, as of `now` on the cheap clock. The returned record must be told when
    /// the wait ends.
    pub(crate) fn begin(&self, stack: Option<&Captured>, now: u64) -> Option<&'static Record> {
        let record = mine()?;
        record.renew(&SLOT.head.epoch);
        let mut kind = self.kind as u64;
        if self.timed {
            kind |= TIMED;
        }
        if self.writers_first {
            kind |= WRITERS_FIRST;
        }
        record.kind.store(kind, Relaxed);
        record.address.store(self.address as u64, Relaxed);
        record.mutex.store(self.mutex as u64, Relaxed);
        record.since.store(now, Relaxed);
        match stack {
            Some(stack) => {
                for (to, frame) in record.frames.iter().zip(stack.frames()) {
                    to.store(*frame, Relaxed);
                }
                record.depth.store(stack.frames().len() as u64, Relaxed);
            }
            None => {
                record.frames[0].store(self.site as u64, Relaxed);
                record.depth.store(u64::from(self.site != 0), Relaxed);
            }
        }
        // ORDERING: Release: a reader that sees the turn sees what the thread waits for.
        record.turn.store((record.turn.load(Relaxed) + 1) | 1, Release);
        Some(record)
    }
}

/// This thread has acquired the lock at `address` (THREADS-1), unless that is its first hold of this epoch, or its
/// record is full.
#[inline(always)]
pub(crate) fn hold_at_once(kind: Kind, address: usize, site: usize) -> bool {
    known().is_some_and(|record| record.put_if_room(kind, address, site))
}

/// This thread has acquired the lock at `address`.
#[inline]
pub(crate) fn hold(kind: Kind, address: usize, site: usize) {
    if !hold_at_once(kind, address, site) {
        hold_first(kind, address, site);
    }
}

#[cold]
#[inline(never)]
fn hold_first(kind: Kind, address: usize, site: usize) {
    if let Some(record) = mine() {
        record.renew(&SLOT.head.epoch);
        record.forget_released();
        record.put(kind, address, site);
    }
}

/// This thread is about to release the lock at `address` (THREADS-1), if that is the one that it acquired last.
#[inline(always)]
pub(crate) fn release_at_once(address: usize) -> bool {
    let Some(record) = known() else { return false };
    let held = record.held.load(Relaxed).wrapping_sub(1);
    let Some([lock, _]) = record.holds.get(held as usize) else { return false };
    let is_it = lock.load(Relaxed) & ADDRESS == address as u64;
    if is_it {
        record.held.store(held, Release);
    }
    is_it
}

/// This thread is about to release the lock at `address`.
#[inline]
pub(crate) fn release(address: usize) {
    if !release_at_once(address) {
        release_any(address);
    }
}

#[cold]
#[inline(never)]
fn release_any(address: usize) {
    let Some(record) = mine() else { return };
    record.renew(&SLOT.head.epoch);
    if !record.take_out(address) {
        forget_elsewhere(address);
    }
}

/// A thread releases what it does not hold: another has acquired it, or it was acquired before tracking was on.
#[cold]
#[inline(never)]
fn forget_elsewhere(address: usize) {
    let given = (SLOT.head.threads.load(Relaxed) as usize).min(THREADS);
    for record in &SLOT.threads[..given] {
        let held = (record.held.load(Relaxed) as usize).min(HOLDS);
        for [lock, _] in &record.holds[..held] {
            let seen = lock.load(Relaxed);
            if seen & ADDRESS == address as u64
                && lock.compare_exchange(seen, 0, Relaxed, Relaxed).is_ok()
            {
                return;
            }
        }
    }
}
