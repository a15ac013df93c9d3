//! What the locks of a process do, one row per lock, for another process to see.
//!
//! # Problem
//! Counting must not distort what it measures, must need no allocation, and the counts must still be there
//! after the process has ended, however it ended.
//!
//! So the table is a static array, and the file of the process that wants to see it takes its place, as with
//! the event counters of the crate `qspin`. A row is found by the lock's address. The lock's holder writes it,
//! without a locked instruction. Every acquisition and every wait is counted, in the locks' own memory; only
//! some are timed, since reading the clock costs as much as an acquisition (`tally`, `shared`, `wait`). What
//! the locks have not handed on yet is fetched when the process ends (`file`).
//!
//! ```text
//! file = a block: magic, processes so far │ slot 0 │ slot 1 │ …         one slot a process, of whole blocks of 64 KiB
//! slot = a head: pid, on, rows lost, left to the C library, lock, mode │ rows │ the process's map of memory │
//!        stacks (`stacks`) │ threads (`threads`)
//! ```
//!
//! **Switched on from outside.** The word that every fast path reads anyway, the process's mode, lies in the
//! slot. So another process of the same user switches counting and tracking on and off by setting bits of it;
//! nothing is sent, and no thread of the program has to listen.
//!
//! # Invariants
//! * **STATISTICS-1** The holder of a lock writes its row. Rows of reader-writer locks have several writers,
//!   which use locked instructions. What two locks without a row of their own write to row 0 may lose counts.
//! * **STATISTICS-2** A child of a `fork` writes nothing, since the slot is its parent's: `generation::reports` and
//!   `counts` are false in it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use qspin::inside::Whole;

use crate::deadline::coarse_ns;
use crate::generation;
use crate::served::Mode;

pub(crate) use file::{begin, end};
pub(crate) use shared::SharedTally;
pub(crate) use stacks::{Released, has_released};
pub(crate) use tally::{MEASURED, Tally};
pub(crate) use threads::{Begins, Kind, Record, hold, hold_at_once, release, release_at_once};
pub(crate) use unwind::prepare;
use wait::LONG_NS;

mod file;
mod print;
mod shared;
mod stacks;
mod tally;
mod threads;
mod unwind;
mod wait;

/// What lies before the slots, and of what each begins at a multiple: the largest page that any kernel has.
const BLOCK: usize = 1 << 16;
/// How far the slots are from each other.
const SLOT_BYTES: usize = size_of::<Slot>().next_multiple_of(BLOCK);
const ROWS: usize = 2048;
const BUCKETS: usize = 96;
const SITES: usize = 4;
/// How many bytes of the process's memory map are kept.
const MAP: usize = 1 << 17;
/// How many processes find a slot.
const SLOTS: u32 = 64;

/// Why an object was left to the C library.
#[derive(Clone, Copy)]
pub(crate) enum LeftToLibc {
    SharedMutex,
    RobustMutex,
    InheritingMutex,
    ProtectedMutex,
    SharedCondvar,
    SharedRwLock,
}

const REASONS: usize = 6;

/// A lock's row.
#[repr(C, align(1024))]
struct Row {
    address: AtomicU64,
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
    /// Acquisitions, contended ones and nanoseconds waited that count no more: written by `qspin stat --reset`.
    before: [AtomicU64; 3],
    /// Of the measured waits that have not ended: how many waits they stand for, and the sum of the times at
    /// which they began, or up to which they have been charged.
    waiting: AtomicU64,
    began: AtomicU64,
    /// When waiters were last charged to a release.
    charged: AtomicU64,
    /// The stack of the longest wait: one more than its number.
    longest_stack: AtomicU64,
    /// What ended waits had waited and no release was charged with, less what was charged too much (two's
    /// complement): the next charge has it, too.
    uncharged: AtomicU64,
    /// Of the releases since a stack was last taken: how long they took, and how many measured holds that were.
    spent: AtomicU64,
    holds_without_stack: AtomicU64,
    /// When a release was last examined, if the next one is examined, too; else 0.
    examined: AtomicU64,
    /// While a measured waiter waits, one in this many releases is examined.
    one_in: AtomicU64,
    /// Acquisitions of a period that was ended early: the next measured hold stands for these, too.
    cut_off: AtomicU64,
    /// How many measured waits have not ended; and in how much time, altogether, each waiter was charged as one.
    waiters: AtomicU64,
    as_one: AtomicU64,
    /// When the waiter came for which the current release is examined.
    noticed: AtomicU64,
}

impl Row {
    /// A measured wait begins, which stands for `weight` waits. Returns what is to be told when it ends.
    fn waiter_comes(&self, now: u64, weight: u32) -> u64 {
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
    fn waiter_goes(&self, began: u64, now: u64, weight: u32, as_one: u64) {
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
    fn has_waiters(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }

    /// For a lock with several owners: whether a release is to be charged now. The first after each tick of the
    /// cheap clock is. So by chance each owner is charged in proportion to how long it held the lock.
    #[inline]
    fn is_due(&self) -> bool {
        self.has_waiters() && coarse_ns() > self.charged.load(Relaxed)
    }

    /// The lock is about to be released: how long the other threads together have waited for it since a release
    /// was last charged.
    fn charge(&self, now: u64) -> u64 {
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
}

/// What is recorded of a process.
#[repr(C, align(4096))]
struct Head {
    magic: [AtomicU64; 2],
    process: AtomicU64,
    counts: AtomicU64,
    lost: AtomicU64,
    left: [AtomicU64; REASONS],
    map_length: AtomicU64,
    /// The name of the lock that serves, and zeros.
    lock: [AtomicU8; 32],
    /// The length of the memory map with which the process began; that map is valid where no other was written.
    first_map: AtomicU64,
    /// Spinlocks that were initialised: their use is not counted.
    spinlocks: AtomicU64,
    /// Of `lost` and `left`, what counts no more.
    lost_before: AtomicU64,
    left_before: [AtomicU64; REASONS],
    /// Stacks that found no room.
    stacks_lost: AtomicU64,
    /// On a cache line that is hardly ever written: 512 bytes from the beginning.
    rest: [AtomicU64; 38],
    /// What the fast paths must read: see `served::Mode`. Other processes set bits of it.
    mode: AtomicU32,
    /// How many commands have switched counting on, and tracking: the last one switches it off.
    wanted: [AtomicU32; 2],
    /// A thread that was sent SIGQUIT asks for a report (1), and has got it (2).
    quit: AtomicU32,
    /// Raised when tracking is switched on: earlier holds do not count.
    epoch: AtomicU64,
    /// How many records were given to threads.
    threads: AtomicU64,
}

const _: () = assert!(core::mem::offset_of!(Head, mode) == 512);

#[repr(C)]
struct Slot {
    head: Head,
    rows: [Row; ROWS],
    map: UnsafeCell<[u8; MAP]>,
    stacks: [stacks::Stack; stacks::STACKS],
    threads: [threads::Record; threads::THREADS],
}

// SAFETY: `map` is written by the library's destructor alone.
unsafe impl Sync for Slot {}

const _: () = assert!(size_of::<Slot>().is_multiple_of(4096) && size_of::<Head>() == 4096);

/// `qspin-locks` and the number of the format.
const MAGIC: [u64; 2] = [u64::from_le_bytes(*b"qspin-lo"), u64::from_le_bytes(*b"cks 4\0\0\0")];

// SAFETY: made of atomics and bytes, for which zeros are valid.
static SLOT: Whole<Slot> = Whole::new(unsafe { MaybeUninit::zeroed().assume_init() });

/// How many users want counting and tracking from the beginning, so that no command switches them off.
pub(crate) fn want(wanted: [bool; 2]) {
    for (count, wanted) in SLOT.head.wanted.iter().zip(wanted) {
        count.fetch_add(wanted.into(), Relaxed);
    }
}

/// The word by which a thread that was sent SIGQUIT asks.
pub(crate) fn quit() -> &'static AtomicU32 {
    &SLOT.head.quit
}

/// The mode, which the fast paths read.
#[inline(always)]
pub(crate) fn mode() -> &'static AtomicU32 {
    &SLOT.head.mode
}

/// Whether locks are counted.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    Mode::now().counts() && generation::counts()
}

/// Whether what threads hold is recorded.
#[inline(always)]
pub(crate) fn tracks() -> bool {
    Mode::now().tracks()
}

/// Whether what threads wait for is recorded.
#[inline(always)]
pub(crate) fn watches() -> bool {
    let mode = Mode::now();
    mode.counts() || mode.tracks()
}

/// Counts an object that was left to the C library.
pub(crate) fn left_to_libc(why: LeftToLibc) {
    // STATISTICS-2.
    if generation::reports() {
        SLOT.head.left[why as usize].fetch_add(1, Relaxed);
    }
}

/// A spinlock was initialised.
pub(crate) fn spinlock_made() {
    // STATISTICS-2.
    if generation::reports() {
        SLOT.head.spinlocks.fetch_add(1, Relaxed);
    }
}

/// The number of the row of the lock at `address`; 0, the first row, if there is no room.
fn place(address: usize) -> usize {
    let address = address as u64;
    let start = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    for step in 0..16 {
        let place = 1 + (start as usize + step) % (ROWS - 1);
        let row = &SLOT.rows[place];
        match row.address.load(Relaxed) {
            seen if seen == address => return place,
            0 => match row.address.compare_exchange(0, address, Relaxed, Relaxed) {
                Ok(_) => return place,
                Err(other) if other == address => return place,
                Err(_) => {}
            },
            _ => {}
        }
    }
    SLOT.head.lost.fetch_add(1, Relaxed);
    0
}

/// How many acquisitions of a lock make a period, after which its row is updated: a 32nd of those so far, up to
/// about `longest`. A random quarter more or less, so that a program with a regular pattern is not always
/// sampled at the same place.
fn period_after(acquisitions: u64, longest: u64) -> u32 {
    /// A period is this many times shorter than what went before it.
    const SHARE: u64 = 32;
    let period = (acquisitions / SHARE).clamp(1, longest);
    let chance = acquisitions.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    (period - period / 4 + chance % (period / 2 + 1)) as u32
}

/// Adds without a locked instruction (STATISTICS-1).
#[inline(always)]
fn add(counter: &AtomicU64, amount: u64) -> u64 {
    let sum = counter.load(Relaxed).wrapping_add(amount);
    counter.store(sum, Relaxed);
    sum
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

/// Adds to a bucket. When it is full all buckets are halved: only their shares matter.
fn add_to_bucket(buckets: &[AtomicU32; BUCKETS], place: usize, weight: u32) {
    if buckets[place].load(Relaxed).checked_add(weight).is_none() {
        buckets.iter().for_each(|bucket| bucket.store(bucket.load(Relaxed) / 2, Relaxed));
    }
    let sum = buckets[place].load(Relaxed).wrapping_add(weight);
    buckets[place].store(sum, Relaxed);
}

/// Counts for a site that it acquired the lock, or waited for it, so many times. The four most frequent sites
/// are kept, by an estimate that errs upwards.
fn note_site(row: &Row, site: usize, many: u32) {
    let site = site as u64;
    let mut least = 0;
    for (place, [address, count]) in row.sites.iter().enumerate() {
        if address.load(Relaxed) == site {
            add(count, many.into());
            return;
        }
        if count.load(Relaxed) < row.sites[least][1].load(Relaxed) {
            least = place;
        }
    }
    row.sites[least][0].store(site, Relaxed);
    add(&row.sites[least][1], many.into());
}
