//! `pthread_cond_t`: a queue of waiters, each with a semaphore on its own stack.
//!
//! # Problem
//! A signal must wake somebody who waited before it, not who comes later and takes it away; a thread that is
//! woken must not look at the condition variable again, since that may be gone; a wait may be
//! cancelled, and then has the mutex when the program's handlers run, and has taken no signal from others.
//!
//! So a waiter stands in a list, oldest first, and sleeps on a semaphore of its own, which is a point of
//! cancellation in the C library. Who signals takes it out of the list and posts the semaphore:
//! from then on nothing of the waiter is in the condition variable.
//!
//! ```text
//!         signal, broadcast                  posted
//!  LISTED ────────────────► SIGNALLED ───────────────► returns
//!    └── the deadline passes, a cancellation ──► LEAVING ──► takes itself out
//!
//!   byte  the C library's       of one that is served
//!      0  sequence, group 1     latch; the generation of the process in which somebody began to wait
//!      8  start, references     the oldest waiter; the youngest
//!     36  references            the same two marks: 1 process-shared, 2 waits by the monotonic clock
//! ```
//!
//! # Invariants
//! * **V1** The list and the states of who is in it change under the latch.
//! * **V2** A node stays in place until its semaphore was posted, if it is SIGNALLED, and until it was taken out
//!   of the list otherwise. Who signals does not look at it after the post.
//! * **V3** A waiter that was signalled does not touch the condition variable. One that leaves of itself does,
//!   and is in the list until then: who destroys a condition variable waits for it.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use libc::{
    c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, sem_t, timespec,
};

use crate::deadline::{self, Deadline};
use crate::libc_locks as real;
use crate::sleep::Latch;
use crate::statistics::{self, LeftToLibc};
use crate::{generation, mutex};

mod mixed;

/// A condition variable as it lies in the caller's memory.
#[repr(C)]
pub(crate) struct Condvar {
    latch: Latch,
    generation: AtomicU32,
    oldest: AtomicPtr<Waiter>,
    youngest: AtomicPtr<Waiter>,
    unused: [AtomicU32; 3],
    marks: AtomicU32,
    rest: [AtomicU32; 2],
}

const _: () = assert!(size_of::<Condvar>() == size_of::<pthread_cond_t>());
const _: () = assert!(align_of::<Condvar>() <= align_of::<pthread_cond_t>());

const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;

/// A thread that waits, on its own stack.
struct Waiter {
    older: AtomicPtr<Waiter>,
    younger: AtomicPtr<Waiter>,
    state: AtomicU32,
    /// Whether others waited when this one was signalled alone.
    others: AtomicU32,
    semaphore: sem_t,
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    site: usize,
}

const LISTED: u32 = 0;
const SIGNALLED: u32 = 1;
const LEAVING: u32 = 2;

unsafe extern "C-unwind" {
    // Points of cancellation, which unwind the stack.
    #[link_name = "sem_wait"]
    fn wait_for_post(semaphore: *mut sem_t) -> c_int;
    #[link_name = "sem_timedwait"]
    fn wait_for_post_until(semaphore: *mut sem_t, time: *const timespec) -> c_int;

    // The C library's own list of what a cancellation calls; <pthread.h> of old had it.
    fn _pthread_cleanup_push(
        buffer: *mut Cleanup,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn _pthread_cleanup_pop(buffer: *mut Cleanup, execute: c_int);
}

/// `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct Cleanup {
    routine: *mut c_void,
    argument: *mut c_void,
    canceltype: c_int,
    previous: *mut c_void,
}

#[inline(always)]
unsafe fn at<'a>(condvar: *mut pthread_cond_t) -> &'a Condvar {
    // SAFETY: L1.
    unsafe { &*condvar.cast::<Condvar>() }
}

impl Condvar {
    fn is_served(&self) -> bool {
        self.marks.load(Relaxed) & SHARED == 0
    }

    fn clock(&self) -> clockid_t {
        if self.marks.load(Relaxed) & MONOTONIC == 0 {
            libc::CLOCK_REALTIME
        } else {
            libc::CLOCK_MONOTONIC
        }
    }

    /// Waiters of another process are none (L6).
    fn renew(&self) {
        generation::renew(&self.generation, || {
            self.oldest.store(null_mut(), Relaxed);
            self.youngest.store(null_mut(), Relaxed);
            self.latch.0.store(0, Relaxed);
        });
    }

    /// Puts `waiter` at the end.
    unsafe fn enter(&self, waiter: *mut Waiter) {
        self.renew();
        self.latch.lock();
        let youngest = self.youngest.load(Relaxed);
        // SAFETY: the caller's own node; the youngest is in the list, so it is in place (V1, V2).
        unsafe {
            (*waiter).older.store(youngest, Relaxed);
            if youngest.is_null() {
                // ORDERING: pairs with the load of `has_waiters`; who signals after this thread has given up
                // the mutex sees it by the mutex.
                self.oldest.store(waiter, SeqCst);
            } else {
                (*youngest).younger.store(waiter, Relaxed);
            }
        }
        self.youngest.store(waiter, Relaxed);
        self.latch.unlock();
    }

    /// Takes `waiter`, which is in the list, out of it. Under the latch.
    unsafe fn take_out(&self, waiter: *mut Waiter) {
        // SAFETY: all of them are in the list, so they are in place (V1, V2).
        unsafe {
            let (older, younger) = ((*waiter).older.load(Relaxed), (*waiter).younger.load(Relaxed));
            if older.is_null() {
                self.oldest.store(younger, Relaxed);
            } else {
                (*older).younger.store(younger, Relaxed);
            }
            if younger.is_null() {
                self.youngest.store(older, Relaxed);
            } else {
                (*younger).older.store(older, Relaxed);
            }
        }
    }

    /// Takes `waiter` out of the list unless it is signalled; whether it was not.
    unsafe fn leave(&self, waiter: *mut Waiter) -> bool {
        // SAFETY: the caller's own node.
        let state = unsafe { &(*waiter).state };
        // ORDERING: Acquire pairs with the Release of `signalled`.
        if state.compare_exchange(LISTED, LEAVING, Acquire, Acquire).is_err() {
            return false;
        }
        self.latch.lock();
        // SAFETY: V1.
        unsafe { self.take_out(waiter) };
        self.latch.unlock();
        true
    }

    /// Takes `waiter`, which is in the list, out of it as signalled, unless it is leaving. Under the latch.
    unsafe fn signalled(&self, waiter: *mut Waiter) -> bool {
        // SAFETY: it is in the list, so it is in place (V1, V2).
        unsafe {
            let state = &(*waiter).state;
            // ORDERING: Release pairs with the Acquire of `leave`.
            if state.compare_exchange(LISTED, SIGNALLED, Release, Relaxed).is_err() {
                return false;
            }
            self.take_out(waiter);
        }
        true
    }

    #[inline]
    fn has_waiters(&self) -> bool {
        // ORDERING: pairs with the store of `enter`.
        !self.oldest.load(SeqCst).is_null()
    }

    /// Wakes the oldest waiter.
    fn signal(&self) {
        if !self.has_waiters() {
            return;
        }
        self.renew();
        self.latch.lock();
        let mut waiter = self.oldest.load(Relaxed);
        // SAFETY: all of them are in the list, so they are in place (V1, V2).
        unsafe {
            while !waiter.is_null() && !self.signalled(waiter) {
                waiter = (*waiter).younger.load(Relaxed);
            }
            if !waiter.is_null() {
                let others = !self.oldest.load(Relaxed).is_null();
                (*waiter).others.store(u32::from(others), Relaxed);
            }
        }
        self.latch.unlock();
        if !waiter.is_null() {
            // SAFETY: it waits for the post (V2).
            unsafe { post(waiter) };
        }
    }

    /// Wakes all who wait.
    fn broadcast(&self) {
        if !self.has_waiters() {
            return;
        }
        self.renew();
        // Those who are taken out, from the youngest on: they stay in place (V2).
        let mut taken = null_mut::<Waiter>();
        self.latch.lock();
        let mut waiter = self.youngest.load(Relaxed);
        while !waiter.is_null() {
            // SAFETY: it is in the list, so it is in place (V1, V2).
            unsafe {
                let older = (*waiter).older.load(Relaxed);
                if self.signalled(waiter) {
                    (*waiter).younger.store(taken, Relaxed);
                    taken = waiter;
                }
                waiter = older;
            }
        }
        self.latch.unlock();
        while !taken.is_null() {
            // SAFETY: it waits for the post; what comes after it is read before (V2).
            unsafe {
                let next = (*taken).younger.load(Relaxed);
                post(taken);
                taken = next;
            }
        }
    }

    /// Whether somebody waits who was not signalled. Those who leave of themselves are gone after it.
    fn is_awaited(&self) -> bool {
        self.renew();
        loop {
            let mut awaited = false;
            self.latch.lock();
            let mut waiter = self.oldest.load(Relaxed);
            let leaving = !waiter.is_null();
            while !waiter.is_null() {
                // SAFETY: it is in the list, so it is in place (V1, V2).
                unsafe {
                    awaited |= (*waiter).state.load(Relaxed) == LISTED;
                    waiter = (*waiter).younger.load(Relaxed);
                }
            }
            self.latch.unlock();
            if awaited || !leaving {
                return awaited;
            }
            // SAFETY: a system call that touches no memory.
            unsafe { libc::sched_yield() };
        }
    }
}

/// Posts the semaphore of a waiter that is signalled.
unsafe fn post(waiter: *mut Waiter) {
    let errno = Errno::keep();
    // SAFETY: V2. The C library's semaphores may be gone as soon as they are posted.
    unsafe { libc::sem_post(&raw mut (*waiter).semaphore) };
    errno.restore();
}

/// `errno` as it was (L7). Restored by hand: there is to be nothing to drop (L5).
#[derive(Clone, Copy)]
struct Errno(c_int);

impl Errno {
    fn now() -> c_int {
        // SAFETY: the place of this thread's `errno`.
        unsafe { *libc::__errno_location() }
    }

    fn keep() -> Self {
        Self(Self::now())
    }

    fn restore(self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// A wait that was cancelled: no signal is lost, and the mutex is this thread's again.
unsafe extern "C" fn cancelled(waiter: *mut c_void) {
    let waiter = waiter.cast::<Waiter>();
    // SAFETY: the node is on this thread's stack, which is unwound after this only. The condition variable is
    // there while somebody waits for it.
    unsafe {
        if !at((*waiter).condvar).leave_or_wait(waiter) && (*waiter).others.load(Relaxed) != 0 {
            // The signal was meant for somebody who goes on.
            at((*waiter).condvar).signal();
        }
        let _ = mutex::lock((*waiter).mutex, (*waiter).site);
    }
}

impl Condvar {
    /// As `leave`; where the waiter was signalled, waits for the post, which must find it in place (V2).
    unsafe fn leave_or_wait(&self, waiter: *mut Waiter) -> bool {
        // SAFETY: the caller's own node.
        unsafe {
            if self.leave(waiter) {
                return true;
            }
            while libc::sem_trywait(&raw mut (*waiter).semaphore) != 0 {
                // Between taking a waiter out and posting is next to nothing, unless the other does not run.
                libc::sched_yield();
            }
        }
        false
    }
}

/// Waits for the post, or for the deadline: 0, or an error number. Nothing here is dropped (L5).
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
                real::sem_clockwait(semaphore, (*deadline).clock, &raw const (*deadline).time)
            }
        };
        if result == 0 {
            return 0;
        }
        let error = if result == libc::ENOSYS { libc::EINVAL } else { Errno::now() };
        if error != libc::EINTR {
            return error;
        }
    }
}

/// Waits, with the mutex given up meanwhile.
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
    // SAFETY: the node lives in this frame until it is out of the list and posted, if it was signalled
    // (V2); an unwinding calls `cancelled` first, which sees to the same.
    unsafe {
        waiter.write(Waiter {
            older: AtomicPtr::new(null_mut()),
            younger: AtomicPtr::new(null_mut()),
            state: AtomicU32::new(LISTED),
            others: AtomicU32::new(0),
            semaphore: core::mem::zeroed(),
            condvar,
            mutex,
            site,
        });
        libc::sem_init(&raw mut (*waiter).semaphore, 0, 0);
        at(condvar).enter(waiter);
        let refused = mutex::unlock(mutex);
        if refused != 0 {
            at(condvar).leave_or_wait(waiter);
            errno.restore();
            return refused;
        }
        _pthread_cleanup_push(cleanup.as_mut_ptr(), cancelled, waiter.cast());
        let mut result = await_post(waiter, deadline);
        _pthread_cleanup_pop(cleanup.as_mut_ptr(), 0);
        if result != 0 && !at(condvar).leave_or_wait(waiter) {
            // The signal came with the deadline.
            result = 0;
        }
        let locked = mutex::lock(mutex, site);
        errno.restore();
        if locked != 0 { locked } else { result }
    }
}

/// Waits: by whom is it served?
unsafe fn wait_by(
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

/// `pthread_cond_wait`.
pub(crate) unsafe extern "C-unwind" fn wait(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    site: usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { wait_by(condvar, mutex, None, core::ptr::null(), site) }
}

/// `pthread_cond_timedwait`.
pub(crate) unsafe extern "C-unwind" fn wait_until(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { wait_by(condvar, mutex, None, time, site) }
}

/// `pthread_cond_clockwait`.
pub(crate) unsafe extern "C-unwind" fn wait_until_on(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { wait_by(condvar, mutex, Some(clock), time, site) }
}

/// `pthread_cond_signal`.
pub(crate) unsafe fn signal(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        if !at(condvar).is_served() {
            return real::pthread_cond_signal(condvar);
        }
        at(condvar).signal();
    }
    0
}

/// `pthread_cond_broadcast`.
pub(crate) unsafe fn broadcast(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        if !at(condvar).is_served() {
            return real::pthread_cond_broadcast(condvar);
        }
        at(condvar).broadcast();
    }
    0
}

/// `pthread_cond_init`.
pub(crate) unsafe fn init(
    condvar: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    if attributes.is_null() {
        // SAFETY: memory for a condition variable, which nobody else uses. Zeros are a new one (L2).
        unsafe { condvar.write_bytes(0, 1) };
    } else {
        // SAFETY: the caller's; the C library leaves zeros but for the marks (L2).
        let result = unsafe { real::pthread_cond_init(condvar, attributes) };
        // SAFETY: L1.
        if result != 0 || !unsafe { at(condvar) }.is_served() {
            if result == 0 {
                statistics::left_to_libc(LeftToLibc::SharedCondvar);
            }
            return result;
        }
    }
    // SAFETY: L1.
    unsafe { at(condvar) }.generation.store(generation::current(), Relaxed);
    0
}

/// `pthread_cond_destroy`: who was signalled needs it no more.
pub(crate) unsafe fn destroy(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: L1, L3.
    unsafe {
        let this = at(condvar);
        if !this.is_served() {
            return real::pthread_cond_destroy(condvar);
        }
        if this.is_awaited() { libc::EBUSY } else { 0 }
    }
}
