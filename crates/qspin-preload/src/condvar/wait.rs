//! A wait for a condition variable, which releases the mutex meanwhile, and what a cancellation does to it.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32};

use libc::{c_int, clockid_t, pthread_cond_t, pthread_mutex_t, sem_t, timespec};
use qspin::inside::Errno;
use qspin::platform::urgency;

use super::{Condvar, LISTED, Waiter, at, mixed, register};
use crate::deadline::{self, Deadline};
use crate::libc_locks as real;
use crate::mutex;
use crate::sleep::Backoff;
use crate::statistics::{self, Begins, Kind, Record};

unsafe extern "C-unwind" {
    // Cancellation points, which unwind the stack.
    #[link_name = "sem_wait"]
    fn wait_for_post(semaphore: *mut sem_t) -> c_int;
    #[link_name = "sem_timedwait"]
    fn wait_for_post_until(semaphore: *mut sem_t, time: *const timespec) -> c_int;

    // The C library's own list of cancellation handlers; <pthread.h> once used it.
    pub(crate) fn _pthread_cleanup_push(
        buffer: *mut Cleanup,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    pub(crate) fn _pthread_cleanup_pop(buffer: *mut Cleanup, execute: c_int);
}

/// `struct _pthread_cleanup_buffer`.
#[repr(C)]
pub(crate) struct Cleanup {
    routine: *mut c_void,
    argument: *mut c_void,
    canceltype: c_int,
    previous: *mut c_void,
}

/// Posts the semaphore of a waiter that is signalled.
pub(super) unsafe fn post(waiter: *mut Waiter) {
    let errno = Errno::keep();
    // SAFETY: PTHREADCOND-2. The C library's semaphores may be gone as soon as they are posted.
    unsafe { libc::sem_post(&raw mut (*waiter).semaphore) };
    errno.restore();
}

/// A wait that was cancelled: no signal is lost, and this thread holds the mutex again.
unsafe extern "C" fn cancelled(waiter: *mut c_void) {
    let waiter = waiter.cast::<Waiter>();
    let errno = Errno::keep();
    // SAFETY: the node is on this thread's stack, which is unwound only after this; the mutex exists while a
    // thread is still to reacquire it.
    unsafe {
        if let Some(record) = (*waiter).record {
            record.end();
        }
        give_up(waiter);
        let _ = mutex::take_back((*waiter).mutex, (*waiter).site);
    }
    errno.restore();
}

/// Ends a wait without a result: a signal meant for it goes to another waiter.
unsafe fn give_up(waiter: *mut Waiter) {
    // SAFETY: the caller's own node.
    unsafe {
        if !leave_or_wait(waiter) && (*waiter).others.load(Relaxed) != 0 {
            // By the address alone: it was signalled (PTHREADCOND-3).
            register::pass_on((*waiter).condvar);
        }
    }
}

/// Takes the waiter out of the list, and returns true. If it was signalled, waits for the post, which must find
/// it in place (PTHREADCOND-2).
unsafe fn leave_or_wait(waiter: *mut Waiter) -> bool {
    // SAFETY: the caller's own node. The condition variable exists unless the waiter was signalled, and then
    // nothing of it is touched.
    unsafe {
        if Condvar::leave((*waiter).condvar, waiter) {
            return true;
        }
        let mut backoff = Backoff::new();
        while libc::sem_trywait(&raw mut (*waiter).semaphore) != 0 {
            // Next to nothing happens between taking a waiter out and posting it, unless the signaller is not
            // running.
            backoff.wait();
        }
    }
    false
}

/// The longest sleep by the real-time clock in place of the monotonic one: the real-time clock may be set.
const LONGEST_BY_ANOTHER_CLOCK_NS: u64 = 20_000_000;

/// Waits for the post, or for the deadline: 0, or an error number. Nothing here is dropped (PRELOAD-5).
unsafe fn await_post(waiter: *mut Waiter, deadline: *const Deadline) -> c_int {
    // SAFETY: the caller's own node, whose semaphore is initialised.
    let semaphore = unsafe { &raw mut (*waiter).semaphore };
    loop {
        // SAFETY: as above; the deadline is null or valid.
        let result = unsafe {
            if deadline.is_null() {
                wait_for_post(semaphore)
            } else if (*deadline).clock == libc::CLOCK_REALTIME {
                wait_for_post_until(semaphore, &raw const (*deadline).time)
            } else {
                let time = &raw const (*deadline).time;
                match real::sem_clockwait(semaphore, (*deadline).clock, time) {
                    // The C library has no such function: before version 2.30.
                    libc::ENOSYS => match (*deadline).remaining() {
                        None => libc::sem_trywait(semaphore),
                        Some(left) => {
                            let soon =
                                Deadline::in_real_time(left.min(LONGEST_BY_ANOTHER_CLOCK_NS));
                            let result = wait_for_post_until(semaphore, &raw const soon.time);
                            if result != 0 && Errno::now() == libc::ETIMEDOUT {
                                continue;
                            }
                            result
                        }
                    },
                    result => result,
                }
            }
        };
        if result == 0 {
            return 0;
        }
        match Errno::now() {
            libc::EINTR => {}
            // `sem_trywait`, after the deadline.
            libc::EAGAIN => return libc::ETIMEDOUT,
            error => return error,
        }
    }
}

/// Shows other processes that this thread waits.
#[cold]
#[inline(never)]
unsafe fn begins_to_wait(waiter: *mut Waiter, timed: bool) -> Option<&'static Record> {
    // SAFETY: the caller's own node.
    let (condvar, mutex, site) = unsafe { ((*waiter).condvar, (*waiter).mutex, (*waiter).site) };
    let begins = Begins::new(Kind::Condition, condvar.addr(), site);
    Begins { mutex: mutex.addr(), timed, ..begins }.begin_with_stack()
}

/// Waits, with the mutex released meanwhile.
unsafe fn wait_served(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const Deadline,
    site: usize,
) -> c_int {
    let mut node = MaybeUninit::<Waiter>::uninit();
    let waiter = node.as_mut_ptr();
    let mut cleanup = MaybeUninit::<Cleanup>::uninit();
    let errno = Errno::keep();
    // SAFETY: the node lives in this frame until it is out of the list, and posted if it was signalled
    // (PTHREADCOND-2); an unwinding calls `cancelled` first, which ensures the same.
    unsafe {
        waiter.write(Waiter {
            sooner: AtomicPtr::new(null_mut()),
            later: AtomicPtr::new(null_mut()),
            priority: urgency::priority(),
            state: AtomicU32::new(LISTED),
            others: AtomicU32::new(0),
            semaphore: core::mem::zeroed(),
            condvar,
            mutex,
            site,
            record: None,
            before: AtomicPtr::new(null_mut()),
            behind: AtomicPtr::new(null_mut()),
        });
        libc::sem_init(&raw mut (*waiter).semaphore, 0, 0);
        at(condvar).enter(waiter);
        let refused = mutex::lend(mutex);
        if refused != 0 {
            give_up(waiter);
            errno.restore();
            return refused;
        }
        if statistics::tracks() {
            (*waiter).record = begins_to_wait(waiter, !deadline.is_null());
        }
        _pthread_cleanup_push(cleanup.as_mut_ptr(), cancelled, waiter.cast());
        let mut result = await_post(waiter, deadline);
        if let Some(record) = (*waiter).record {
            record.end();
        }
        _pthread_cleanup_pop(cleanup.as_mut_ptr(), 0);
        if result != 0 && !leave_or_wait(waiter) {
            // The signal came with the deadline.
            result = 0;
        }
        let locked = mutex::take_back(mutex, site);
        errno.restore();
        if locked != 0 { locked } else { result }
    }
}

/// `pthread_cond_wait`, `pthread_cond_timedwait` with a time, and `pthread_cond_clockwait` with a clock, too.
pub(crate) unsafe fn wait(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: Option<clockid_t>,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: the caller's, as everywhere below.
    unsafe {
        let this = at(condvar);
        if !this.is_served() && !mutex::at(mutex).is_served() {
            return match clock {
                Some(clock) => real::pthread_cond_clockwait(condvar, mutex, clock, time),
                None if time.is_null() => real::pthread_cond_wait(condvar, mutex),
                None => real::pthread_cond_timedwait(condvar, mutex, time),
            };
        }
        let mut deadline = MaybeUninit::<Deadline>::uninit();
        let mut given: *const Deadline = core::ptr::null();
        if !time.is_null() {
            let until = Deadline::of(clock.unwrap_or_else(|| this.clock()), time);
            if !until.is_valid() || !deadline::is_served(until.clock) {
                return libc::EINVAL;
            }
            given = deadline.write(until);
        }
        if this.is_served() {
            wait_served(condvar, mutex, given, site)
        } else {
            mixed::wait_mixed(condvar, mutex, given, site)
        }
    }
}
