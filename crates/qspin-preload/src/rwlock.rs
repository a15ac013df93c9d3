//! `pthread_rwlock_t`: what the names of its functions do. `object` is the lock in the caller's memory.

use libc::{c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

use crate::deadline::{self, Deadline};
use crate::libc_locks as real;
use crate::statistics::{self, LeftToLibc};

pub(crate) use chosen::{choose, name};
pub(crate) use object::counts_in;
use object::{RwLock, Taken, at};

mod chosen;
mod object;
mod own;

/// When a wait ends: never, or at a time, of the clock that the caller names or of the default one.
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
    // The C library checks the deadline of a reader-writer lock before the lock.
    if deadline.is_valid() { Ok(Some(deadline)) } else { Err(libc::EINVAL) }
}

/// `pthread_rwlock_rdlock`, `pthread_rwlock_wrlock` and their timed forms.
pub(crate) unsafe fn acquire<const READS: bool>(
    lock: *mut pthread_rwlock_t,
    until: Until,
    site: usize,
) -> c_int {
    // SAFETY: PRELOAD-1, PRELOAD-3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return match (until, READS) {
                (None, true) => real::pthread_rwlock_rdlock(lock),
                (None, false) => real::pthread_rwlock_wrlock(lock),
                (Some((None, time)), true) => real::pthread_rwlock_timedrdlock(lock, time),
                (Some((None, time)), false) => real::pthread_rwlock_timedwrlock(lock, time),
                (Some((Some(clock), time)), true) => {
                    real::pthread_rwlock_clockrdlock(lock, clock, time)
                }
                (Some((Some(clock), time)), false) => {
                    real::pthread_rwlock_clockwrlock(lock, clock, time)
                }
            };
        }
        if let Err(wrong) = deadline_of(until) {
            return wrong;
        }
        match if READS { this.try_read() } else { this.try_write() } {
            Err(libc::EBUSY) => wait::<READS>(this, until, site),
            taken => this.counted::<READS>(taken, site),
        }
    }
}

/// Computes the deadline a second time, so that the path of a free lock need not keep it.
#[cold]
#[inline(never)]
unsafe fn wait<const READS: bool>(this: &RwLock, until: Until, site: usize) -> c_int {
    // SAFETY: the caller's time is valid.
    let deadline = unsafe { deadline_of(until) }.ok().flatten();
    let deadline = deadline.as_ref();
    this.counted_wait::<READS>(site, deadline.is_some(), || {
        if READS { this.read_slow(deadline) } else { this.write_slow(deadline) }
    })
}

/// Attempts once, and once more if waiters of another process may have been in the way.
#[inline(always)]
fn tried(this: &RwLock, attempt: impl Fn(&RwLock) -> Taken) -> Taken {
    match attempt(this) {
        Err(libc::EBUSY) => {
            this.renew();
            attempt(this)
        }
        taken => taken,
    }
}

/// `pthread_rwlock_tryrdlock`.
pub(crate) unsafe fn try_read(lock: *mut pthread_rwlock_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1, PRELOAD-3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return real::pthread_rwlock_tryrdlock(lock);
        }
        this.counted::<true>(tried(this, RwLock::try_read), site)
    }
}

/// `pthread_rwlock_trywrlock`.
pub(crate) unsafe fn try_write(lock: *mut pthread_rwlock_t, site: usize) -> c_int {
    // SAFETY: PRELOAD-1, PRELOAD-3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return real::pthread_rwlock_trywrlock(lock);
        }
        this.counted::<false>(tried(this, RwLock::try_write), site)
    }
}

/// `pthread_rwlock_unlock`.
pub(crate) unsafe fn unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: PRELOAD-1, PRELOAD-3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return real::pthread_rwlock_unlock(lock);
        }
        this.leave();
    }
    0
}

/// `pthread_rwlock_init`.
pub(crate) unsafe fn init(
    lock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
) -> c_int {
    // SAFETY: the caller's.
    let result = unsafe { real::init(lock, attributes, real::pthread_rwlock_init) };
    if result == 0 {
        // SAFETY: PRELOAD-1.
        let this = unsafe { at(lock) };
        if this.is_served() {
            this.begin();
        } else {
            statistics::left_to_libc(LeftToLibc::SharedRwLock);
        }
    }
    result
}

/// `pthread_rwlock_destroy`: as in the C library, there is nothing to do, except for the counts.
pub(crate) unsafe fn destroy(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: PRELOAD-1, PRELOAD-3.
    unsafe {
        let this = at(lock);
        if !this.is_served() {
            return real::pthread_rwlock_destroy(lock);
        }
        this.hand_on();
    }
    0
}
