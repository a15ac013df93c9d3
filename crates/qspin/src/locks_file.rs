//! The file in which processes record what their locks do, one row per lock, for another process to read.
//!
//! It is written by the library that interposes the C library's locks (`crates/qspin-preload/src/statistics.rs`)
//! and by the feature `profile` of this crate, and read by `qspin run` and `qspin stat`. Not part of the
//! interface: it changes without notice, and then [`MAGIC`] does.
//!
//! ```text
//! file = a block: magic, processes so far │ slot 0 │ slot 1 │ …         one slot a process, of whole blocks of 64 KiB
//! slot = a head: pid, on, rows lost, left to the C library, lock, mode │ rows │ the process's map of memory │
//!        stacks │ threads
//! ```
//!
//! **Switched on from outside.** The word that every fast path reads anyway, the process's mode, lies in the
//! slot. So another process of the same user switches counting and tracking on and off by setting bits of it;
//! nothing is sent, and no thread of the program has to listen.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

pub use rows::{BUCKETS, LONG_NS, Row, SITES, add_to_bucket, bucket};
pub use stacks::{FRAMES, STACKS, Stack};
pub use threads::{ADDRESS, HOLDS, KIND, Kind, Record, THREADS, TIMED, WRITERS_FIRST};

mod rows;
mod stacks;
mod threads;

/// The name of the format, and its number.
pub const FORMAT: [u8; 16] = *b"qspin-locks 4\0\0\0";
/// The same as two words.
pub const MAGIC: [u64; 2] = match FORMAT.as_chunks() {
    ([first, second], []) => [u64::from_ne_bytes(*first), u64::from_ne_bytes(*second)],
    _ => panic!("sixteen bytes are two words"),
};
/// What lies before the slots, and of what each begins at a multiple: the largest page that any kernel has.
pub const BLOCK: usize = 1 << 16;
/// How far the slots are from each other.
pub const SLOT_BYTES: usize = size_of::<Slot>().next_multiple_of(BLOCK);
/// How many processes find a slot.
pub const SLOTS: u64 = 64;
/// How long the file is.
pub const LENGTH: u64 = BLOCK as u64 + SLOTS * SLOT_BYTES as u64;
/// How many locks find a row.
pub const ROWS: usize = 2048;
/// How many bytes of the process's memory map are kept.
pub const MAP: usize = 1 << 17;

/// Why an object was left to the C library.
#[derive(Debug, Clone, Copy)]
pub enum LeftToLibc {
    SharedMutex,
    RobustMutex,
    InheritingMutex,
    ProtectedMutex,
    SharedCondvar,
    SharedRwLock,
}

/// What was left to the C library, for each [`LeftToLibc`].
pub const LEFT: [&str; 6] = [
    "process-shared mutexes",
    "robust mutexes",
    "priority-inheriting mutexes",
    "priority-protected mutexes",
    "process-shared condition variables",
    "process-shared reader-writer locks",
];

/// A bit of the mode: locks are counted.
pub const COUNTED: u32 = 2;
/// A bit of the mode: what threads hold is recorded.
pub const TRACKED: u32 = 4;

/// What the file begins with.
#[repr(C)]
pub struct First {
    pub magic: [AtomicU64; 2],
    /// How many processes have asked for a slot.
    pub asked: AtomicU64,
}

impl First {
    /// The number of a new slot; `None` if there is none left, or the file is none of this format.
    pub fn claim(&self) -> Option<u64> {
        // Other processes may be beginning here, too.
        let is_ours = |(word, magic): (&AtomicU64, u64)| [0, magic].contains(&word.load(Relaxed));
        if !self.magic.iter().zip(MAGIC).all(is_ours) {
            return None;
        }
        self.magic[0].store(MAGIC[0], Relaxed);
        self.magic[1].store(MAGIC[1], Relaxed);
        Some(self.asked.fetch_add(1, Relaxed)).filter(|slot| *slot < SLOTS)
    }
}

/// Where in the file a slot begins.
pub const fn place_of(slot: u64) -> u64 {
    BLOCK as u64 + slot * SLOT_BYTES as u64
}

/// What is recorded of a process.
#[repr(C, align(4096))]
pub struct Head {
    pub magic: [AtomicU64; 2],
    pub process: AtomicU64,
    /// Whether it has ever counted.
    pub counts: AtomicU64,
    /// Acquisitions of locks that found no row.
    pub lost: AtomicU64,
    pub left: [AtomicU64; LEFT.len()],
    pub map_length: AtomicU64,
    /// The name of the lock that serves, and zeros.
    pub lock: [AtomicU8; 32],
    /// The length of the memory map with which the process began; that map is valid where no other was written.
    pub first_map: AtomicU64,
    /// Spinlocks that were initialised: their use is not counted.
    pub spinlocks: AtomicU64,
    /// Of `lost` and `left`, what counts no more: written by `qspin stat --reset`.
    pub before: [AtomicU64; 1 + LEFT.len()],
    /// Stacks that found no room.
    pub stacks_lost: AtomicU64,
    /// The name of the reader-writer lock that serves in the place of the library's own, and zeros.
    pub rwlock: [AtomicU8; 32],
    /// On a cache line that is hardly ever written: 512 bytes from the beginning.
    rest: [AtomicU64; 34],
    /// What the fast paths must read. Other processes set bits of it.
    pub mode: AtomicU32,
    /// How many users want counting, and tracking: the last one switches it off.
    pub wanted: [AtomicU32; 2],
    /// A thread that was sent SIGQUIT asks for a report (1), and has got it (2).
    pub quit: AtomicU32,
    /// Raised when tracking is switched on: earlier holds do not count.
    pub epoch: AtomicU64,
    /// How many records were given to threads.
    pub threads: AtomicU64,
}

const _: () = assert!(offset_of!(Head, mode) == 512 && size_of::<Head>() == 4096);
// They are read, and reset, as one array.
const _: () = assert!(offset_of!(Head, left) == offset_of!(Head, lost) + 8);

impl Head {
    /// The process has this number, and these locks serve in it.
    pub fn begin(&self, process: u64, counts: bool, lock: &str, rwlock: &str) {
        self.process.store(process, Relaxed);
        self.counts.store(counts.into(), Relaxed);
        for (places, name) in [(&self.lock, lock), (&self.rwlock, rwlock)] {
            for (place, byte) in places.iter().zip(name.bytes()) {
                place.store(byte, Relaxed);
            }
        }
        self.magic[1].store(MAGIC[1], Relaxed);
        self.magic[0].store(MAGIC[0], Relaxed);
    }
}

/// A process's part of the file.
#[repr(C)]
pub struct Slot {
    pub head: Head,
    pub rows: [Row; ROWS],
    pub map: UnsafeCell<[u8; MAP]>,
    pub stacks: [Stack; STACKS],
    pub threads: [Record; THREADS],
}

// SAFETY: `map` is written by the process's first and last thread alone.
unsafe impl Sync for Slot {}

const _: () = assert!(size_of::<Slot>().is_multiple_of(4096));

impl Slot {
    /// The number of the row of the lock at `address`; 0, the first row, if there is no room.
    pub fn place(&self, address: usize) -> usize {
        let address = address as u64;
        let start = (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        for step in 0..16 {
            let place = 1 + (start as usize + step) % (ROWS - 1);
            let row = &self.rows[place];
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
        self.head.lost.fetch_add(1, Relaxed);
        0
    }

    /// That row.
    pub fn row(&self, address: usize) -> &Row {
        &self.rows[self.place(address)]
    }
}
