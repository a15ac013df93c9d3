//! A reader-writer lock that counts its readers in one word; the last holder to leave wakes the sleepers.
//!
//! # Problem
//! A reader may acquire again what it already holds for reading: that is why the C library lets readers pass
//! waiting writers, unless the program says otherwise. So a queue that is fair to writers, as
//! `qspin::queued_rw`, may not serve here: a reader would wait for a writer that waits for it.
//!
//! A thread that has released the lock must not access it again, since the next owner may free it. So the
//! release and the call to the waiters are one step, on eight bytes, and waking them takes the address alone.
//!
//! # State
//! ```text
//!  63      32  31           24  23             22              21     0
//! ┌──────────┬────────────────┬──────────────┬──────────────┬──────────┐
//! │ calls    │ acquisitions   │ writers wait │ readers wait │ readers  │
//! └──────────┴────────────────┴──────────────┴──────────────┴──────────┘
//!  calls: the number of releases that had a waiter     readers: all bits set: a writer
//! ```
//!
//! # Invariants
//! * **PTHREADRW-1** READERS_WAIT is set before a reader sleeps on the calls, WRITERS_WAIT before a writer
//!   does, and each sleeps on the number of calls that stood beside the bit. The thread that frees the lock and
//!   sees one of these bits counts a call in that very step, and wakes; so no waiter sleeps on at a lock that
//!   was released.
//! * **PTHREADRW-2** After the step that makes the lock free nothing of it is touched on behalf of the release
//!   (PRELOAD-4).
//! * **PTHREADRW-3** Waking a writer clears WRITERS_WAIT, so that no other waiter is woken before that writer
//!   has checked the lock. It sets the bit again if it sleeps again, or if it acquires the lock and others
//!   wait; it wakes another writer if it gives up. Where waiting writers come first, the bit stays until the
//!   last of them is done, since it keeps readers out.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::object::{RwLock, Taken};
use crate::deadline::Deadline;
use crate::sleep::{Woken, sleep_among, wake_among};
use crate::{generation, statistics};

const COUNT: u64 = (1 << 22) - 1;
const WRITER: u64 = COUNT;
const MAX_READERS: u64 = COUNT - 1;
const READERS_WAIT: u64 = 1 << 22;
const WRITERS_WAIT: u64 = 1 << 23;
const WAIT: u64 = READERS_WAIT | WRITERS_WAIT;
/// One acquisition. Every 256th carries into the calls: then a thread that is about to sleep checks once more.
const ACQUISITION: u64 = 1 << NUMBER;
const NUMBER: u32 = 24;
/// One call: the upper half counts them, and is what waiters sleep on.
const CALL: u64 = 1 << 32;

/// The futex bits of those that sleep on the calls.
const READERS: u32 = 1;
const WRITERS: u32 = 2;

/// Polls before a sleep: about as long as a short critical section.
const LOOKS: u32 = 100;

/// The number of the last acquisition, modulo 256.
#[inline(always)]
pub(super) const fn number(state: u64) -> u8 {
    (state >> NUMBER) as u8
}

/// A lock that this one serves.
#[derive(Clone, Copy)]
pub(super) struct Own<'a>(pub(super) &'a RwLock);

impl Own<'_> {
    /// Forgets the waiters of another process (PRELOAD-6).
    pub(super) fn renew(self) {
        generation::renew(&self.0.generation, || {
            self.0.waiting_writers.store(0, Relaxed);
            self.0.state.fetch_and(!WAIT, Relaxed);
        });
    }

    /// Whether a reader waits for waiting writers.
    pub(super) fn writers_first(self) -> bool {
        self.0.writers_first()
    }

    /// Whether a waiter says so when it goes to sleep.
    pub(super) fn tells_of_sleep(self) -> bool {
        true
    }

    /// The number of the last acquisition.
    pub(super) fn acquisitions(self) -> u8 {
        number(self.0.state.load(Relaxed))
    }

    fn admits_reader(self, state: u64) -> bool {
        state & COUNT < MAX_READERS && (state & WRITERS_WAIT == 0 || !self.writers_first())
    }

    /// Acquires the lock for reading if that takes no waiting; else EBUSY or EAGAIN.
    #[inline]
    pub(super) fn try_read(self) -> Taken {
        let mut state = self.0.state.load(Relaxed);
        loop {
            if !self.admits_reader(state) {
                let is_full = state & COUNT == MAX_READERS;
                return Err(if is_full { libc::EAGAIN } else { libc::EBUSY });
            }
            let after = (state + 1).wrapping_add(ACQUISITION);
            // ORDERING: Acquire pairs with the Release of `release`.
            match self.0.state.compare_exchange_weak(state, after, Acquire, Relaxed) {
                Ok(_) => return Ok(number(after)),
                Err(now) => state = now,
            }
        }
    }

    /// Acquires the lock for writing if that takes no waiting.
    #[inline]
    pub(super) fn try_write(self) -> Taken {
        let mut state = self.0.state.load(Relaxed);
        while state & COUNT == 0 {
            let after = (state | WRITER).wrapping_add(ACQUISITION);
            // ORDERING: Acquire pairs with the Release of `release`.
            match self.0.state.compare_exchange_weak(state, after, Acquire, Relaxed) {
                Ok(_) => {
                    self.0.has_writer();
                    return Ok(number(after));
                }
                Err(now) => state = now,
            }
        }
        Err(libc::EBUSY)
    }

    /// Whether this thread holds the lock for writing.
    fn is_mine(self) -> bool {
        self.0.state.load(Relaxed) & COUNT == WRITER && self.0.is_writer()
    }

    /// Polls for a while until `ready` is met.
    fn look(self, ready: impl Fn(u64) -> bool) -> u64 {
        for _ in 0..LOOKS {
            let state = self.0.state.load(Relaxed);
            if ready(state) || state & WAIT != 0 {
                return state;
            }
            core::hint::spin_loop();
        }
        self.0.state.load(Relaxed)
    }

    #[cold]
    pub(super) fn read_slow(self, deadline: Option<&Deadline>) -> Taken {
        self.renew();
        loop {
            let state = self.look(|state| self.admits_reader(state));
            match self.try_read() {
                Err(libc::EBUSY) => {}
                result => return result,
            }
            if state & COUNT == WRITER && self.is_mine() {
                return Err(libc::EDEADLK);
            }
            if self.admits_reader(state) || state & COUNT == MAX_READERS {
                continue;
            }
            // PTHREADRW-1.
            if state & READERS_WAIT == 0
                && self
                    .0
                    .state
                    .compare_exchange(state, state | READERS_WAIT, Relaxed, Relaxed)
                    .is_err()
            {
                continue;
            }
            if self.sleep(state, READERS, deadline) == Woken::Late {
                return self.try_read().or(Err(libc::ETIMEDOUT));
            }
        }
    }

    #[cold]
    pub(super) fn write_slow(self, deadline: Option<&Deadline>) -> Taken {
        self.renew();
        let mut counted = false;
        let result = loop {
            let state = self.look(|state| state & COUNT == 0);
            if let Ok(number) = self.try_write() {
                break Ok(number);
            }
            if self.is_mine() {
                break Err(libc::EDEADLK);
            }
            if !counted {
                counted = true;
                self.0.waiting_writers.fetch_add(1, SeqCst);
            }
            if state & COUNT == 0 {
                continue;
            }
            // PTHREADRW-1. Also if the bit is already there: the last of the previous waiters may have cleared
            // it after it was read, before this waiter was counted.
            let marked = state | WRITERS_WAIT;
            if self.0.state.compare_exchange(state, marked, SeqCst, Relaxed).is_err() {
                continue;
            }
            if self.sleep(state, WRITERS, deadline) == Woken::Late {
                break self.try_write().or(Err(libc::ETIMEDOUT));
            }
        };
        if counted {
            self.waits_no_more(result.is_err());
        }
        result
    }

    /// A writer waits no more. If it was the last, no writer waits.
    fn waits_no_more(self, gave_up: bool) {
        if self.0.waiting_writers.fetch_sub(1, SeqCst) > 1 {
            if gave_up {
                // This writer may have consumed a wake-up: pass it on.
                self.wake_writer();
            } else if !self.writers_first() {
                // PTHREADRW-3. Before the release, so that it sees the bit.
                self.0.state.fetch_or(WRITERS_WAIT, Relaxed);
            }
            return;
        }
        loop {
            let before = self.0.state.fetch_and(!WRITERS_WAIT, SeqCst);
            if self.0.waiting_writers.load(SeqCst) == 0 {
                if gave_up && before & READERS_WAIT != 0 && before & COUNT != WRITER {
                    // This thread may access the lock: it is in one of the lock's functions.
                    self.0.state.fetch_and(!READERS_WAIT, Relaxed);
                    self.0.state.fetch_add(CALL, Relaxed);
                    wake_among(self.calls(), u32::MAX, READERS);
                }
                return;
            }
            // A writer began to wait meanwhile, and may have set the bit that is now cleared. It may also have
            // ended its wait before the bit is back: so check again.
            self.0.state.fetch_or(WRITERS_WAIT, SeqCst);
            self.wake_writer();
            if self.0.waiting_writers.load(SeqCst) > 0 {
                return;
            }
        }
    }

    /// The half of the state that counts calls, by its address.
    fn calls(self) -> *const AtomicU32 {
        self.0.state.as_ptr().cast::<AtomicU32>().wrapping_add(1)
    }

    /// Sleeps until a call after `state`, or the deadline.
    fn sleep(self, state: u64, who: u32, deadline: Option<&Deadline>) -> Woken {
        statistics::sleeps();
        sleep_among(self.calls(), (state >> 32) as u32, deadline, who)
    }

    /// Wakes a writer in place of one that has given up.
    fn wake_writer(self) {
        self.0.state.fetch_add(CALL, Relaxed);
        wake_among(self.calls(), 1, WRITERS);
    }

    /// The caller releases: one reader, or the writer. If the lock is not held, that is undefined, and has no
    /// effect here.
    #[inline]
    pub(super) fn end(self) {
        match self.0.state.load(Relaxed) & COUNT {
            0 => {}
            WRITER => {
                self.0.has_no_writer();
                self.release(WRITER);
            }
            _ => self.release(1),
        }
    }

    /// Subtracts `held` from the count.
    #[inline]
    fn release(self, held: u64) {
        let mut seen = self.0.state.load(Relaxed);
        while seen & COUNT != held || seen & WAIT == 0 {
            // ORDERING: Release pairs with the Acquire of `try_read` and `try_write`.
            match self.0.state.compare_exchange_weak(seen, seen - held, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        self.release_to_waiters(held);
    }

    /// Frees the lock and wakes waiters: readers, unless the program wants writers first; or a writer.
    #[cold]
    fn release_to_waiters(self, held: u64) {
        // Before the release (PTHREADRW-2): clear the waiters of another process, and remember where to wake.
        self.renew();
        let calls = self.calls();
        let writers_first = self.writers_first();
        let mut seen = self.0.state.load(Relaxed);
        loop {
            let mut after = seen - held;
            if after & COUNT == 0 && after & WAIT != 0 {
                after = after.wrapping_add(CALL);
            }
            let readers = seen & READERS_WAIT != 0 && (seen & WRITERS_WAIT == 0 || !writers_first);
            if after & COUNT == 0 {
                if readers {
                    after &= !READERS_WAIT;
                }
                if !writers_first {
                    // PTHREADRW-3.
                    after &= !WRITERS_WAIT;
                }
            }
            // ORDERING: as in `release`.
            if let Err(now) = self.0.state.compare_exchange_weak(seen, after, Release, Relaxed) {
                seen = now;
                continue;
            }
            // PTHREADRW-2. If the lock is acquired meanwhile, its new holder will wake the waiters.
            if after & COUNT != 0 {
                return;
            }
            if readers {
                wake_among(calls, u32::MAX, READERS);
            }
            // A writer that finds the lock free is as welcome as readers. Where writers come first, the next
            // release wakes the readers.
            if seen & WRITERS_WAIT != 0 {
                wake_among(calls, 1, WRITERS);
            }
            return;
        }
    }
}
