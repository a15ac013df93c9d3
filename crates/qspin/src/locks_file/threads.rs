//! What each thread waits for and what it holds: one record per thread.
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
use core::sync::atomic::{AtomicU64, fence};

use super::FRAMES;

/// How many threads find a record.
pub const THREADS: usize = 1024;
/// How many holds fit in a record. Those beyond are counted, but not known.
pub const HOLDS: usize = 32;

/// What kind of wait or hold it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    Mutex = 1,
    Read = 2,
    Write = 3,
    Spin = 4,
    Condition = 5,
    Join = 6,
}

impl Kind {
    /// That of this number.
    pub const fn of(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Mutex,
            2 => Self::Read,
            3 => Self::Write,
            4 => Self::Spin,
            5 => Self::Condition,
            6 => Self::Join,
            _ => return None,
        })
    }

    /// What kind of object it is.
    pub const fn object(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Read | Self::Write => "reader-writer lock",
            Self::Spin => "spinlock",
            Self::Condition => "condition variable",
            Self::Join => "thread",
        }
    }
}

/// In a wait's kind: it has a deadline.
pub const TIMED: u64 = 1 << 8;
/// In a wait's kind: a lock whose waiting writers come before readers.
pub const WRITERS_FIRST: u64 = 1 << 9;
/// Where the kind is in a hold's first word.
pub const KIND: u32 = 60;
/// The rest of that word.
pub const ADDRESS: u64 = (1 << KIND) - 1;

#[repr(C, align(1024))]
pub struct Record {
    /// The thread's number; 0: of no thread yet.
    pub thread: AtomicU64,
    /// What `pthread_self` returns in it.
    pub handle: AtomicU64,
    /// Goes up with each wait that begins or ends.
    pub turn: AtomicU64,
    pub kind: AtomicU64,
    pub address: AtomicU64,
    pub since: AtomicU64,
    /// For a wait on a condition variable: the mutex.
    pub mutex: AtomicU64,
    pub depth: AtomicU64,
    pub frames: [AtomicU64; FRAMES],
    /// On one cache line with the first holds: an acquisition writes no other.
    pub epoch: AtomicU64,
    pub held: AtomicU64,
    pub holds: [[AtomicU64; 2]; HOLDS],
}

impl Record {
    /// THREADS-3.
    #[inline]
    pub fn renew(&self, current: &AtomicU64) {
        // ORDERING: Acquire pairs with the Release by which a command sets the mode, after it has raised the epoch.
        fence(Acquire);
        let epoch = current.load(Relaxed);
        if self.epoch.load(Relaxed) != epoch {
            self.held.store(0, Relaxed);
            self.epoch.store(epoch, Relaxed);
        }
    }

    /// The wait is over.
    #[inline]
    pub fn end(&self) {
        // THREADS-2.
        self.turn.store((self.turn.load(Relaxed) + 1) & !1, Release);
    }

    /// One more hold, by plain stores to a line of the thread's own.
    #[inline(always)]
    pub fn put(&self, kind: Kind, address: usize, site: usize) {
        if !self.put_if_room(kind, address, site) {
            self.held.store(self.held.load(Relaxed) + 1, Release);
        }
    }

    /// The same, if there is room for it. Returns whether there was.
    #[inline(always)]
    pub fn put_if_room(&self, kind: Kind, address: usize, site: usize) -> bool {
        let held = self.held.load(Relaxed);
        let Some([lock, place]) = self.holds.get(held as usize) else { return false };
        place.store(site as u64, Relaxed);
        lock.store(address as u64 | (kind as u64) << KIND, Relaxed);
        // ORDERING: Release: a reader that sees the count sees the hold.
        self.held.store(held + 1, Release);
        true
    }

    /// Removes the holds that other threads have released: they leave the room to the record's owner.
    pub fn forget_released(&self) {
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
    pub fn take_out(&self, address: usize) -> bool {
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
