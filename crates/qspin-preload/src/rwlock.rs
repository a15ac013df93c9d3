//! `pthread_rwlock_t`: readers counted in one word, sleepers woken by who leaves last.
//!
//! # Problem
//! A reader may lock again what it reads already: that is why the C library lets readers pass writers that
//! wait, unless the program says otherwise. So a queue that is fair to writers, as `qspin::queued_rw`, may
//! not serve here: a reader would wait for a writer that waits for it.
//!
//! ```text
//!   byte  the C library's     of a lock that is served
//!      0  readers             state: readers in 30 bits (all set: a writer), readers wait, writers wait
//!      4  writers             calls: releases that somebody waited for, counted
//!      8  phase               writers that wait
//!     12  writers' word       the generation of the process in which somebody began to wait
//!     24  writer              the thread that writes
//!     28  shared              the same: not 0 if shared between processes
//!     48  flags               the same: 2 if writers that wait come before readers
//! ```
//!
//! Whoever has released the lock must not look at it again, since the next owner may free it: so the release
//! and the call to those who wait are one step, on eight bytes, and waking them takes the address alone.
//!
//! # Invariants
//! * **R1** READERS_WAIT is set before a reader sleeps on the calls, WRITERS_WAIT before a writer does, and the number of
//!   calls until which they sleep is that which stood beside the mark. Who makes the lock free and sees one of
//!   them counts a call in that very step, and wakes; so nobody sleeps on at a lock that was released.
//! * **R2** `writer` is written by who holds the lock for writing, as the owner of a mutex is.
//! * **R3** After the step that makes the lock free nothing of it is touched on behalf of the release (L4).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64};

use libc::{c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

use crate::deadline::{self, Deadline};
use crate::libc_locks as real;
use crate::sleep::{Woken, sleep_among, wake_among};
use crate::statistics::{self, LeftToLibc};
use crate::{generation, thread};

/// A reader-writer lock as it lies in the caller's memory.
#[repr(C)]
pub(crate) struct RwLock {
    state: AtomicU64,
    waiting_writers: AtomicU32,
    generation: AtomicU32,
    unused: [AtomicU32; 2],
    writer: AtomicU32,
    shared: AtomicU32,
    rest: [AtomicU32; 4],
    flags: AtomicU32,
    end: AtomicU32,
}

const _: () = assert!(size_of::<RwLock>() == size_of::<pthread_rwlock_t>());
const _: () = assert!(align_of::<RwLock>() <= align_of::<pthread_rwlock_t>());

const COUNT: u64 = (1 << 30) - 1;
const WRITER: u64 = COUNT;
const MOST_READERS: u64 = COUNT - 1;
const READERS_WAIT: u64 = 1 << 30;
const WRITERS_WAIT: u64 = 1 << 31;
const WAIT: u64 = READERS_WAIT | WRITERS_WAIT;
/// One call: the upper half counts them, and is what waiters sleep on.
const CALL: u64 = 1 << 32;

/// The kernel's marks of those who sleep on the calls.
const READERS: u32 = 1;
const WRITERS: u32 = 2;

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const WRITERS_FIRST: u32 = 2;

/// Looks before a sleep: about as long as a short critical section.
const LOOKS: u32 = 100;

#[inline(always)]
unsafe fn at<'a>(lock: *mut pthread_rwlock_t) -> &'a RwLock {
    // SAFETY: L1.
    unsafe { &*lock.cast::<RwLock>() }
}

impl RwLock {
    fn is_served(&self) -> bool {
        self.shared.load(Relaxed) == 0
    }

    fn writers_first(&self) -> bool {
        self.flags.load(Relaxed) == WRITERS_FIRST
    }

    /// Who waited in another process is forgotten (L6).
    fn renew(&self) {
        generation::renew(&self.generation, || {
            self.waiting_writers.store(0, Relaxed);
            self.state.fetch_and(!WAIT, Relaxed);
        });
    }

    fn admits_reader(&self, state: u64) -> bool {
        state & COUNT < MOST_READERS && (state & WRITERS_WAIT == 0 || !self.writers_first())
    }

    /// Takes the lock for reading if that takes no waiting: 0, EBUSY or EAGAIN.
    #[inline]
    fn try_read(&self) -> c_int {
        let mut state = self.state.load(Relaxed);
        loop {
            if !self.admits_reader(state) {
                return if state & COUNT == MOST_READERS { libc::EAGAIN } else { libc::EBUSY };
            }
            // ORDERING: Acquire pairs with the Release of `release`.
            match self.state.compare_exchange_weak(state, state + 1, Acquire, Relaxed) {
                Ok(_) => return 0,
                Err(now) => state = now,
            }
        }
    }

    /// Takes the lock for writing if that takes no waiting.
    #[inline]
    fn try_write(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        while state & COUNT == 0 {
            // ORDERING: Acquire pairs with the Release of `release`.
            match self.state.compare_exchange_weak(state, state | WRITER, Acquire, Relaxed) {
                Ok(_) => {
                    self.writer.store(thread::number(), Relaxed);
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// Whether this thread writes (R2).
    fn is_mine(&self) -> bool {
        self.state.load(Relaxed) & COUNT == WRITER && self.writer.load(Relaxed) == thread::number()
    }

    /// Looks for a while whether `ready` is met.
    fn look(&self, ready: impl Fn(u64) -> bool) -> u64 {
        for _ in 0..LOOKS {
            let state = self.state.load(Relaxed);
            if ready(state) || state & WAIT != 0 {
                return state;
            }
            core::hint::spin_loop();
        }
        self.state.load(Relaxed)
    }

    #[cold]
    fn read_slow(&self, deadline: Option<&Deadline>) -> c_int {
        self.renew();
        loop {
            let state = self.look(|state| self.admits_reader(state));
            match self.try_read() {
                libc::EBUSY => {}
                result => return result,
            }
            if state & COUNT == WRITER && self.is_mine() {
                return libc::EDEADLK;
            }
            if self.admits_reader(state) || state & COUNT == MOST_READERS {
                continue;
            }
            // R1.
            if state & READERS_WAIT == 0
                && self
                    .state
                    .compare_exchange(state, state | READERS_WAIT, Relaxed, Relaxed)
                    .is_err()
            {
                continue;
            }
            if self.sleep(state, READERS, deadline) == Woken::Late {
                return if self.try_read() == 0 { 0 } else { libc::ETIMEDOUT };
            }
        }
    }

    #[cold]
    fn write_slow(&self, deadline: Option<&Deadline>) -> c_int {
        self.renew();
        let mut counted = false;
        let result = loop {
            let state = self.look(|state| state & COUNT == 0);
            if self.try_write() {
                break 0;
            }
            if self.is_mine() {
                break libc::EDEADLK;
            }
            if !counted {
                counted = true;
                self.waiting_writers.fetch_add(1, SeqCst);
            }
            if state & COUNT == 0 {
                continue;
            }
            // R1. Also where the mark is there: the last of those who waited may have taken it away since it was seen,
            // before this one was counted.
            let marked = state | WRITERS_WAIT;
            if self.state.compare_exchange(state, marked, SeqCst, Relaxed).is_err() {
                continue;
            }
            if self.sleep(state, WRITERS, deadline) == Woken::Late {
                break if self.try_write() { 0 } else { libc::ETIMEDOUT };
            }
        };
        if counted {
            self.waits_no_more(result != 0);
        }
        result
    }

    /// A writer waits no more. If it was the last, nobody waits for it.
    fn waits_no_more(&self, gave_up: bool) {
        if self.waiting_writers.fetch_sub(1, SeqCst) > 1 {
            if gave_up {
                // A wake-up may have been this one's.
                self.wake_writer();
            }
            return;
        }
        loop {
            let before = self.state.fetch_and(!WRITERS_WAIT, SeqCst);
            if self.waiting_writers.load(SeqCst) == 0 {
                if gave_up && before & READERS_WAIT != 0 && before & COUNT != WRITER {
                    // The lock is this thread's to look at: it is in one of its functions.
                    self.state.fetch_and(!READERS_WAIT, Relaxed);
                    self.state.fetch_add(CALL, Relaxed);
                    wake_among(self.calls(), u32::MAX, READERS);
                }
                return;
            }
            // One began to wait meanwhile, and may have set the mark that is gone. It may have ended its
            // wait before the mark is back, too: so look again.
            self.state.fetch_or(WRITERS_WAIT, SeqCst);
            self.wake_writer();
            if self.waiting_writers.load(SeqCst) > 0 {
                return;
            }
        }
    }

    /// The half of the state that counts calls, by its address.
    fn calls(&self) -> *const AtomicU32 {
        self.state.as_ptr().cast::<AtomicU32>().wrapping_add(1)
    }

    /// Sleeps until a call after `state`, or the deadline.
    fn sleep(&self, state: u64, who: u32, deadline: Option<&Deadline>) -> Woken {
        sleep_among(self.calls(), (state >> 32) as u32, deadline, who)
    }

    /// Wakes a writer in place of one that has given up.
    fn wake_writer(&self) {
        self.state.fetch_add(CALL, Relaxed);
        wake_among(self.calls(), 1, WRITERS);
    }

    #[inline]
    fn end_read(&self) {
        self.release(1);
    }

    #[inline]
    fn end_write(&self) {
        self.writer.store(0, Relaxed);
        self.release(WRITER);
    }

    /// Takes `held` away from the count.
    #[inline]
    fn release(&self, held: u64) {
        let mut seen = self.state.load(Relaxed);
        while seen & COUNT != held || seen & WAIT == 0 {
            // ORDERING: Release pairs with the Acquire of `try_read` and `try_write`.
            match self.state.compare_exchange_weak(seen, seen - held, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        self.release_to_waiters(held);
    }

    /// Makes the lock free, and wakes those who wait: readers, unless the program wants writers first; or a writer.
    #[cold]
    fn release_to_waiters(&self, held: u64) {
        // Before the release (R3): who waited in another process, and where to wake.
        self.renew();
        let calls = self.calls();
        let writers_first = self.writers_first();
        let mut seen = self.state.load(Relaxed);
        loop {
            let mut after = seen - held;
            if after & COUNT == 0 && after & WAIT != 0 {
                after = after.wrapping_add(CALL);
            }
            let readers = seen & READERS_WAIT != 0 && (seen & WRITERS_WAIT == 0 || !writers_first);
            if after & COUNT == 0 && readers {
                after &= !READERS_WAIT;
            }
            // ORDERING: as in `release`.
            if let Err(now) = self.state.compare_exchange_weak(seen, after, Release, Relaxed) {
                seen = now;
                continue;
            }
            // R3. If the lock is taken meanwhile, it is up to who has it.
            if after & COUNT != 0 {
                return;
            }
            if readers {
                wake_among(calls, u32::MAX, READERS);
            }
            // The mark of the writers stays: the last of them clears it. A writer that finds the lock free is
            // as welcome as readers, and where it comes first, readers are woken by who leaves next.
            if seen & WRITERS_WAIT != 0 {
                wake_among(calls, 1, WRITERS);
            }
            return;
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn counted(&self, site: usize, wait: impl FnOnce() -> c_int) -> c_int {
        let since = statistics::waits();
        let result = wait();
        if result == 0 && statistics::is_on() {
            statistics::taken_shared(self.address(), site, Some(since));
        }
        result
    }
}

/// When a wait ends: never, or at a time of a clock that the caller names or not.
pub(crate) type Until = Option<(Option<clockid_t>, *const timespec)>;

/// The deadline, or EINVAL.
unsafe fn deadline_of(until: Until) -> Result<Option<Deadline>, c_int> {
    let Some((clock, time)) = until else { return Ok(None) };
    let clock = clock.unwrap_or(libc::CLOCK_REALTIME);
    if !deadline::is_served(clock) {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's time is valid.
    let deadline = unsafe { Deadline::of(clock, time) };
    // The C library looks at the time of a reader-writer lock before it looks at the lock.
    if deadline.is_valid() { Ok(Some(deadline)) } else { Err(libc::EINVAL) }
}

/// `pthread_rwlock_rdlock` and its timed forms.
pub(crate) unsafe fn read(lock: *mut pthread_rwlock_t, until: Until, site: usize) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return match until {
                None => real::pthread_rwlock_rdlock(lock),
                Some((None, time)) => real::pthread_rwlock_timedrdlock(lock, time),
                Some((Some(clock), time)) => real::pthread_rwlock_clockrdlock(lock, clock, time),
            };
        }
        let deadline = match deadline_of(until) {
            Ok(deadline) => deadline,
            Err(wrong) => return wrong,
        };
        let result = this.try_read();
        if result == 0 && statistics::is_on() {
            statistics::taken_shared(this.address(), site, None);
        }
        if result != libc::EBUSY {
            return result;
        }
        this.counted(site, || this.read_slow(deadline.as_ref()))
    }
}

/// `pthread_rwlock_wrlock` and its timed forms.
pub(crate) unsafe fn write(lock: *mut pthread_rwlock_t, until: Until, site: usize) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return match until {
                None => real::pthread_rwlock_wrlock(lock),
                Some((None, time)) => real::pthread_rwlock_timedwrlock(lock, time),
                Some((Some(clock), time)) => real::pthread_rwlock_clockwrlock(lock, clock, time),
            };
        }
        let deadline = match deadline_of(until) {
            Ok(deadline) => deadline,
            Err(wrong) => return wrong,
        };
        if this.try_write() {
            if statistics::is_on() {
                statistics::taken_shared(this.address(), site, None);
            }
            return 0;
        }
        this.counted(site, || this.write_slow(deadline.as_ref()))
    }
}

/// `pthread_rwlock_tryrdlock`.
pub(crate) unsafe fn try_read(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return real::pthread_rwlock_tryrdlock(lock);
        }
        match this.try_read() {
            libc::EBUSY => {
                this.renew();
                this.try_read()
            }
            result => result,
        }
    }
}

/// `pthread_rwlock_trywrlock`.
pub(crate) unsafe fn try_write(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return real::pthread_rwlock_trywrlock(lock);
        }
        if this.try_write() { 0 } else { libc::EBUSY }
    }
}

/// `pthread_rwlock_unlock`.
pub(crate) unsafe fn unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return real::pthread_rwlock_unlock(lock);
        }
        match this.state.load(Relaxed) & COUNT {
            // Nobody has it: undefined, and without effect here.
            0 => {}
            WRITER => this.end_write(),
            _ => this.end_read(),
        }
    }
    0
}

/// `pthread_rwlock_init`.
pub(crate) unsafe fn init(
    lock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
) -> c_int {
    if attributes.is_null() {
        // SAFETY: memory for a lock, which nobody else uses. Zeros are a new one (L2).
        unsafe { lock.write_bytes(0, 1) };
    } else {
        // SAFETY: the caller's; the C library leaves zeros but for the marks (L2).
        let result = unsafe { real::pthread_rwlock_init(lock, attributes) };
        // SAFETY: L1.
        if result != 0 || !unsafe { at(lock) }.is_served() {
            if result == 0 {
                statistics::left_to_libc(LeftToLibc::SharedRwLock);
            }
            return result;
        }
    }
    // SAFETY: L1.
    unsafe { at(lock) }.generation.store(generation::current(), Relaxed);
    0
}

/// `pthread_rwlock_destroy`: as in the C library, there is nothing to do.
pub(crate) unsafe fn destroy(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: L1, L3.
    unsafe { if at(lock).is_served() { 0 } else { real::pthread_rwlock_destroy(lock) } }
}
