//! What the locks of a process do, one row a lock, for another process to see.
//!
//! # Problem
//! Counting must not be what is measured, must need no allocation, and must be there after the process has
//! ended, however that ended.
//!
//! So the table is a static array, and the file of whoever wants to see it is put in its place, as the event
//! counters of the crate `qspin` are. A row is found by the lock's address. It is written by who holds the
//! lock, without a locked instruction. Every acquisition and every wait is counted, in the locks' own memory;
//! times are measured of some, since a look at the clock costs as much as an acquisition (`tally`, `shared`,
//! `wait`). What the locks have not handed on yet is fetched when the process ends (`file`).
//!
//! ```text
//! file = a page: magic, processes so far │ slot 0 │ slot 1 │ …          one slot a process
//! slot = a page: pid, on, rows lost, left to the C library, lock │ rows │ the process's map of memory
//! ```
//!
//! # Invariants
//! * **STATISTICS-1** A row is written by who holds its lock; rows of reader-writer locks by several, with locked
//!   instructions. What two locks without a row of their own write to row 0 may lose counts.
//! * **STATISTICS-2** A child of a `fork` writes nothing, since the slot is its parent's: `generation::reports` and
//!   `counts` are false in it.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::generation;

pub(crate) use file::{begin, end};
pub(crate) use shared::SharedTally;
pub(crate) use tally::{MEASURED, Tally};
pub(crate) use wait::Wait;

mod file;
mod print;
mod shared;
mod tally;
mod wait;

const PAGE: usize = 4096;
const ROWS: usize = 2048;
const BUCKETS: usize = 96;
const SITES: usize = 4;
/// Bytes of the process's map of memory that are kept.
const MAP: usize = 1 << 17;
/// Processes that find a slot.
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
    /// How many holds that one stands for.
    weight: AtomicU64,
    /// Acquisitions, contended ones and nanoseconds waited that do not count any more: written by `qspin stat --reset`.
    before: [AtomicU64; 3],
}

/// What is said of a process.
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
    /// How long the map is with which the process began; it holds where no other was written.
    first_map: AtomicU64,
    /// Spinlocks that were initialised: what is done with them is not counted.
    spinlocks: AtomicU64,
    /// Of `lost` and `left`, what does not count any more.
    lost_before: AtomicU64,
    left_before: [AtomicU64; REASONS],
}

#[repr(C)]
struct Slot {
    head: Head,
    rows: [Row; ROWS],
    map: UnsafeCell<[u8; MAP]>,
}

// SAFETY: `map` is written by the library's destructor alone.
unsafe impl Sync for Slot {}

const _: () = assert!(size_of::<Slot>().is_multiple_of(PAGE) && size_of::<Head>() == PAGE);

/// `qspin-locks` and the number of the format.
const MAGIC: [u64; 2] = [u64::from_le_bytes(*b"qspin-lo"), u64::from_le_bytes(*b"cks 1\0\0\0")];

// SAFETY: made of atomics and bytes, of which zeros are a value.
static SLOT: Slot = unsafe { MaybeUninit::zeroed().assume_init() };

/// Whether locks are counted.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    generation::counts()
}

/// Something was left to the C library.
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

/// The number of the row of the lock at `address`; that of the first one if there is no room.
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

/// How many acquisitions of a lock make a period, after which its row hears of them: a 32nd of those so far, up to
/// about `longest`. By chance it is longer or shorter by up to a quarter, so that a program that does the same again
/// and again is not always looked at in the same place.
fn period_after(acquisitions: u64, longest: u64) -> u32 {
    /// A period is so many times shorter than what went before it.
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

/// Adds to a bucket. When it is full all are halved: what matters is their shares.
fn add_to_bucket(buckets: &[AtomicU32; BUCKETS], place: usize, weight: u32) {
    if buckets[place].load(Relaxed).checked_add(weight).is_none() {
        buckets.iter().for_each(|bucket| bucket.store(bucket.load(Relaxed) / 2, Relaxed));
    }
    let sum = buckets[place].load(Relaxed).wrapping_add(weight);
    buckets[place].store(sum, Relaxed);
}

/// A site that takes the lock, or waits for it, so many times: the four that do so most, by an estimate that errs
/// upwards.
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
