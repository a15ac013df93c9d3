//! `pthread_mutex_t`: what the names of its functions do. `object` is the mutex in the caller's memory.

use core::sync::atomic::Ordering::Relaxed;

use libc::{c_int, pthread_mutex_t, pthread_mutexattr_t, timespec};

use crate::deadline::Deadline;
use crate::generation;
use crate::libc_locks as real;
use crate::served::{self, Mode};
use crate::statistics::{self, LeftToLibc};

use object::{INHERITS, PROTECTED, ROBUST, SHARED};
pub(crate) use object::{at, is_kind};

mod object;

/// `pthread_mutex_lock`.
#[inline(always)]
pub(crate) unsafe fn lock(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    let mode = Mode::now();
    if this.is_plain() && served::lock_at_once(mode, &this.words) {
        // Calls in tail position only, so that nothing has to be saved across them.
        return if mode.watches() { this.is_taken_at_once(mode, site) } else { 0 };
    }
    // SAFETY: the caller's.
    unsafe { lock_special(mutex, site) }
}

#[cold]
#[inline(never)]
unsafe fn lock_special(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_lock(mutex) };
    }
    if this.knows_owner() {
        return this.lock_owned(site);
    }
    this.take_specially(site, served::lock_slow);
    0
}

/// `pthread_mutex_unlock`.
#[inline(always)]
pub(crate) unsafe fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if this.is_plain() {
        if this.release_at_once(Mode::now()) {
            return 0;
        }
        return this.release_tracked();
    }
    // SAFETY: the caller's.
    unsafe { unlock_special(mutex) }
}

#[cold]
#[inline(never)]
unsafe fn unlock_special(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_unlock(mutex) };
    }
    if this.knows_owner() {
        return this.unlock_owned();
    }
    this.release_specially();
    0
}

/// As [`unlock`], for a wait after which this thread reacquires the mutex: until then it cannot be destroyed.
pub(crate) unsafe fn lend(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    // Not if the unlock would be refused.
    if (this.is_served() && !this.knows_owner()) || this.is_owned() {
        this.lent().inspect(|lent| {
            lent.fetch_add(1, Relaxed);
        });
    }
    // SAFETY: the caller's.
    unsafe { unlock(mutex) }
}

/// As [`lock`], after [`lend`].
pub(crate) unsafe fn take_back(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1, the caller's.
    unsafe {
        let this = at(mutex);
        let result = if this.is_served() && !this.knows_owner() {
            this.take_notified(site);
            0
        } else {
            lock(mutex, site)
        };
        if result == 0 || result == libc::EOWNERDEAD {
            this.lent().inspect(|lent| {
                lent.fetch_sub(1, Relaxed);
            });
        }
        result
    }
}

/// `pthread_mutex_trylock`.
#[inline(always)]
pub(crate) unsafe fn try_lock(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_trylock(mutex) };
    }
    let take = || if this.try_take(site) { 0 } else { libc::EBUSY };
    if this.knows_owner() { this.take_owned(libc::EBUSY, take) } else { take() }
}

/// `pthread_mutex_timedlock`, and `pthread_mutex_clocklock` for a clock that is served.
pub(crate) unsafe fn lock_until(
    mutex: *mut pthread_mutex_t,
    clock: Option<libc::clockid_t>,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe {
            match clock {
                None => real::pthread_mutex_timedlock(mutex, time),
                Some(clock) => real::pthread_mutex_clocklock(mutex, clock, time),
            }
        };
    }
    let clock = clock.unwrap_or(libc::CLOCK_REALTIME);
    if !served::serves_clock(clock) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's time is valid.
    let take = || unsafe { this.take_until(&Deadline::of(clock, time), site) };
    if this.knows_owner() { this.take_owned(libc::EDEADLK, take) } else { take() }
}

/// `pthread_mutex_init`.
pub(crate) unsafe fn init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    // SAFETY: the caller's.
    let result = unsafe { real::init(mutex, attributes, real::pthread_mutex_init) };
    if result != 0 {
        return result;
    }
    // SAFETY: PRELOAD-1.
    let kind = unsafe { at(mutex) }.kind();
    for (bit, why) in [
        (ROBUST, LeftToLibc::RobustMutex),
        (INHERITS, LeftToLibc::InheritingMutex),
        (PROTECTED, LeftToLibc::ProtectedMutex),
        // Last, since the C library sets this bit in robust ones, too.
        (SHARED, LeftToLibc::SharedMutex),
    ] {
        if kind & bit != 0 {
            statistics::left_to_libc(why);
            return 0;
        }
    }
    // SAFETY: PRELOAD-1.
    unsafe { begin(mutex) };
    0
}

/// A mutex is new: what it says of waiters is of this process.
pub(crate) unsafe fn begin(mutex: *mut pthread_mutex_t) {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if this.is_served() && served::names_waiters() {
        this.generation.store(generation::current(), Relaxed);
    }
}

/// `pthread_mutex_destroy`.
pub(crate) unsafe fn destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: PRELOAD-1.
    let this = unsafe { at(mutex) };
    if !this.is_served() {
        // SAFETY: PRELOAD-3: the C library's.
        return unsafe { real::pthread_mutex_destroy(mutex) };
    }
    if served::is_locked(&this.words) || this.lent.load(Relaxed) != 0 {
        return libc::EBUSY;
    }
    this.tally.end(this.address());
    // As the C library does: a use after this is detected.
    this.kind.store(u32::MAX, Relaxed);
    0
}
