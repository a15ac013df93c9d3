//! A reader-writer lock as it lies in the caller's memory: which lock serves it, and its counts.
//!
//! ```text
//!   byte  the C library's     of a lock that is served
//!      0  readers, writers    the lock: the own one's state, or one of the register
//!      8  phase               the own one's: writers that wait; else: acquisitions while they were counted
//!     12  writers' word       generation of the process in which a thread began to wait
//!     16  padding             where locks are counted: what the table has heard of them
//!     24  writer              the thread that writes
//!     28  shared              the same: not 0 if shared between processes
//!     48  flags               the same: 2 if writers that wait come before readers
//! ```
//!
//! # Invariants
//! * **RWOBJECT-1** The thread that holds the lock for writing writes `writer`: its number after it has acquired
//!   the lock, 0 before it releases it.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use libc::{c_int, pthread_rwlock_t};

use super::chosen::{self, Chosen};
use super::own::{self, Own};
use crate::deadline::Deadline;
use crate::served::{Mode, Words};
use crate::statistics::{self, Begins, Kind, SharedTally};
use crate::{generation, thread};

#[repr(C)]
pub(super) struct RwLock {
    pub(super) state: AtomicU64,
    pub(super) waiting_writers: AtomicU32,
    pub(super) generation: AtomicU32,
    tally: SharedTally,
    writer: AtomicU32,
    shared: AtomicU32,
    rest: [AtomicU32; 4],
    flags: AtomicU32,
    end: AtomicU32,
}

const _: () = assert!(size_of::<RwLock>() == size_of::<pthread_rwlock_t>());
const _: () = assert!(align_of::<RwLock>() <= align_of::<pthread_rwlock_t>());

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const WRITERS_FIRST: u32 = 2;

/// The number of an acquisition, modulo 256; or the error code that says why there was none.
pub(super) type Taken = Result<u8, c_int>;

/// For a lock with these words: its tally, and the number of its last acquisition.
pub(crate) fn counts_in(words: &[u32]) -> ([u32; 2], u8) {
    const TALLY: usize = offset_of!(RwLock, tally) / size_of::<u32>();
    const COUNTED: usize = offset_of!(RwLock, waiting_writers) / size_of::<u32>();
    let number = match chosen::choice() {
        None => own::number(words[0].into()),
        Some(_) => words[COUNTED] as u8,
    };
    ([words[TALLY], words[TALLY + 1]], number)
}

#[inline(always)]
pub(super) unsafe fn at<'a>(lock: *mut pthread_rwlock_t) -> &'a RwLock {
    // SAFETY: PRELOAD-1.
    unsafe { &*lock.cast::<RwLock>() }
}

/// Calls a function of the lock that serves. The own one's fast paths come first, and keep their registers.
macro_rules! of_what_serves {
    ($this:expr, $($call:tt)*) => {
        match chosen::choice() {
            None => Own($this).$($call)*,
            Some(choice) => {
                #[cold]
                #[inline(never)]
                fn out_of_line<T>(call: impl FnOnce() -> T) -> T {
                    call()
                }
                out_of_line(|| Chosen::new($this, choice).$($call)*)
            }
        }
    };
}

impl RwLock {
    pub(super) fn is_served(&self) -> bool {
        self.shared.load(Relaxed) == 0
    }

    /// Whether the program wants waiting writers to come before readers.
    pub(super) fn writers_first(&self) -> bool {
        self.flags.load(Relaxed) == WRITERS_FIRST
    }

    /// The lock's own words.
    pub(super) fn words(&self) -> &Words {
        // SAFETY: two words where there is one of twice the size, and all accesses are atomic; one lock serves,
        // so no other code reads them together (SERVED-1).
        unsafe { &*self.state.as_ptr().cast::<Words>() }
    }

    /// This thread has acquired the lock for writing (RWOBJECT-1).
    #[inline]
    pub(super) fn has_writer(&self) {
        self.writer.store(thread::number(), Relaxed);
    }

    /// This thread is about to release it.
    #[inline]
    pub(super) fn has_no_writer(&self) {
        self.writer.store(0, Relaxed);
    }

    /// Whether this thread holds the lock, where a writer does (RWOBJECT-1).
    pub(super) fn is_writer(&self) -> bool {
        self.writer.load(Relaxed) == thread::number()
    }

    /// Forgets the waiters of another process (PRELOAD-6).
    pub(super) fn renew(&self) {
        of_what_serves!(self, renew());
    }

    /// Acquires the lock for reading if that takes no waiting; else EBUSY or EAGAIN.
    #[inline]
    pub(super) fn try_read(&self) -> Taken {
        of_what_serves!(self, try_read())
    }

    /// Acquires the lock for writing if that takes no waiting; else EBUSY.
    #[inline]
    pub(super) fn try_write(&self) -> Taken {
        of_what_serves!(self, try_write())
    }

    #[cold]
    pub(super) fn read_slow(&self, deadline: Option<&Deadline>) -> Taken {
        of_what_serves!(self, read_slow(deadline))
    }

    #[cold]
    pub(super) fn write_slow(&self, deadline: Option<&Deadline>) -> Taken {
        of_what_serves!(self, write_slow(deadline))
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The outcome of an attempt, as the C library returns it; an acquisition is counted.
    #[inline(always)]
    pub(super) fn counted<const READS: bool>(&self, taken: Taken, site: usize) -> c_int {
        match taken {
            Ok(number) => {
                let mode = Mode::now();
                if mode.watches() && (mode.tracks() || self.tally.is_due(number)) {
                    self.is_taken::<READS>(number, site);
                }
                0
            }
            Err(why) => why,
        }
    }

    #[inline(never)]
    fn is_taken<const READS: bool>(&self, number: u8, site: usize) {
        if statistics::is_on() && self.tally.is_due(number) {
            self.tally.tell(self.address(), site, number);
        }
        if statistics::tracks() {
            let kind = if READS { Kind::Read } else { Kind::Write };
            statistics::hold(kind, self.address(), site);
        }
    }

    /// The same for an attempt that waits, which is measured.
    pub(super) fn counted_wait<const READS: bool>(
        &self,
        site: usize,
        timed: bool,
        wait: impl FnOnce() -> Taken,
    ) -> c_int {
        let kind = if READS { Kind::Read } else { Kind::Write };
        let begins = Begins {
            timed,
            writers_first: of_what_serves!(self, writers_first()),
            tells_of_sleep: of_what_serves!(self, tells_of_sleep()),
            ..Begins::new(kind, self.address(), site)
        };
        let mut waits = self.tally.begins_to_wait(&begins);
        waits.listen();
        let taken = wait();
        self.tally.stops_waiting(self.address(), &mut waits);
        if taken.is_ok() && statistics::is_on() {
            self.tally.has_waited(self.address(), site, &mut waits);
        }
        self.counted::<READS>(taken, site)
    }

    /// Hands on what is counted in the lock's own memory.
    pub(super) fn hand_on(&self) {
        self.tally.end(self.address(), of_what_serves!(self, acquisitions()));
    }

    /// The caller releases: one reader, or the writer. If the lock is not held, that is undefined, and has no
    /// effect here.
    #[inline]
    pub(super) fn leave(&self) {
        let mode = Mode::now();
        if mode.watches() && (mode.tracks() || self.tally.has_waiters()) {
            self.leave_watched();
        } else {
            self.end();
        }
    }

    #[inline]
    fn end(&self) {
        of_what_serves!(self, end());
    }

    #[cold]
    #[inline(never)]
    fn leave_watched(&self) {
        let address = self.address();
        let released = self.tally.note_release(address);
        if statistics::tracks() {
            statistics::release(address);
        }
        self.end();
        // The lock is released: no thread waits for this bookkeeping.
        statistics::has_released(address, released);
    }

    /// A new lock belongs to this process.
    pub(super) fn begin(&self) {
        self.generation.store(generation::current(), Relaxed);
    }
}
