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
//! ```text
//!   a wait:  turn odd ─► what, since when, stack ─► … the wait … ─► turn even
//!   a hold:  lock taken ─► written down ─► … ─► taken out ─► lock released
//! ```
//!
//! # Invariants
//! * **THREADS-1** A hold is recorded after the lock is acquired, and removed before it is released. So what is
//!   recorded is held; what is held may not be recorded yet.
//! * **THREADS-2** While a thread waits its turn is odd and stays the same, and its holds do not change. So
//!   holds that were read between two reads of the same odd turn were all held at once. A wait may be over for
//!   a moment before its turn ends; then what it waited for is held by this thread, and by no other
//!   (THREADS-1).
//! * **THREADS-3** Holds are those of the record's epoch: they do not count after tracking was switched on
//!   anew.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};

use super::SLOT;
use super::stacks::Captured;
use super::unwind::FRAMES;
use crate::deadline::coarse_ns;
use crate::sleep::system_call;
use crate::{generation, thread};

pub(super) const THREADS: usize = 1024;
/// How many holds fit in a record. Those beyond are counted, but not known.
const HOLDS: usize = 32;

/// What kind of wait or hold it is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Kind {
    Mutex = 1,
    Read = 2,
    Write = 3,
    Spin = 4,
    Condition = 5,
    Join = 6,
}

/// In a wait's kind: it has a deadline.
const TIMED: u64 = 1 << 8;
/// In a wait's kind: a lock whose waiting writers come before readers.
const WRITERS_FIRST: u64 = 1 << 9;
/// Where the kind is in a hold's first word.
const KIND: u32 = 60;
const ADDRESS: u64 = (1 << KIND) - 1;

#[repr(C, align(1024))]
pub(crate) struct Record {
    /// The thread's number; 0: of no thread yet.
    thread: AtomicU64,
    /// What `pthread_self` returns in it.
    handle: AtomicU64,
    turn: AtomicU64,
    kind: AtomicU64,
    address: AtomicU64,
    since: AtomicU64,
    /// For a wait on a condition variable: the mutex.
    mutex: AtomicU64,
    depth: AtomicU64,
    frames: [AtomicU64; FRAMES],
    /// On one cache line with the first holds: an acquisition writes no other.
    epoch: AtomicU64,
    held: AtomicU64,
    holds: [[AtomicU64; 2]; HOLDS],
}

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

impl Record {
    /// THREADS-3.
    #[inline]
    fn renew(&self) {
        // ORDERING: Acquire pairs with the Release by which a command sets the mode, after it has raised the epoch.
        fence(Acquire);
        let epoch = SLOT.head.epoch.load(Relaxed);
        if self.epoch.load(Relaxed) != epoch {
            self.held.store(0, Relaxed);
            self.epoch.store(epoch, Relaxed);
        }
    }

    /// The wait is over.
    #[inline]
    pub(crate) fn end(&self) {
        // THREADS-2.
        self.turn.store((self.turn.load(Relaxed) + 1) & !1, Release);
    }
}

/// A wait that begins.
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
}

impl Begins {
    pub(crate) const fn new(kind: Kind, address: usize, site: usize) -> Self {
        Self { kind, address, mutex: 0, site, timed: false, writers_first: false }
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
        record.renew();
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
                for (to, frame) in record.frames.iter().zip(&stack.frames[..stack.depth]) {
                    to.store(*frame, Relaxed);
                }
                record.depth.store(stack.depth as u64, Relaxed);
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
    let has_room = |record: &&Record| record.held.load(Relaxed) < HOLDS as u64;
    known().filter(has_room).inspect(|record| record.put(kind, address, site)).is_some()
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
        record.renew();
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
    record.renew();
    if !record.take_out(address) {
        forget_elsewhere(address);
    }
}

impl Record {
    /// Plain stores to a line of the thread's own.
    #[inline(always)]
    fn put(&self, kind: Kind, address: usize, site: usize) {
        let held = self.held.load(Relaxed);
        if let Some([lock, place]) = self.holds.get(held as usize) {
            place.store(site as u64, Relaxed);
            lock.store(address as u64 | (kind as u64) << KIND, Relaxed);
        }
        // ORDERING: Release: a reader that sees the count sees the hold.
        self.held.store(held + 1, Release);
    }
}

impl Record {
    /// Removes the holds that other threads have released: they leave the room to the record's owner.
    fn forget_released(&self) {
        let known = (self.held.load(Relaxed) as usize).min(HOLDS);
        let mut left = 0;
        for place in 0..known {
            let [lock, site] = &self.holds[place];
            if lock.load(Relaxed) != 0 {
                self.holds[left][1].store(site.load(Relaxed), Relaxed);
                self.holds[left][0].store(lock.load(Relaxed), Relaxed);
                left += 1;
            }
        }
        if left < known {
            self.held.store(left as u64, Release);
        }
    }

    /// Removes the latest hold of this address. Returns whether there was one.
    #[inline]
    fn take_out(&self, address: usize) -> bool {
        let held = self.held.load(Relaxed) as usize;
        let known = held.min(HOLDS);
        let is_it = |hold: &[AtomicU64; 2]| hold[0].load(Relaxed) & ADDRESS == address as u64;
        let Some(place) = self.holds[..known].iter().rposition(is_it) else {
            // One of the holds for which there was no room.
            if held > HOLDS {
                self.held.store(held as u64 - 1, Release);
            }
            return held > HOLDS;
        };
        for (hold, next) in self.holds[place..known].iter().zip(&self.holds[place + 1..known]) {
            hold[1].store(next[1].load(Relaxed), Relaxed);
            hold[0].store(next[0].load(Relaxed), Relaxed);
        }
        // With more holds than fit, one place in the middle is free: that hold is not known.
        if held > HOLDS {
            self.holds[HOLDS - 1][0].store(0, Relaxed);
        }
        self.held.store(held as u64 - 1, Release);
        true
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
