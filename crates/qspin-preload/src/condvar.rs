//! `pthread_cond_t`: a queue of waiters, each with a semaphore on its own stack.
//!
//! # Problem
//! A signal must wake a thread that waited before it, not a newcomer that consumes it. A woken thread must not
//! access the condition variable again, since it may be gone. A wait may be cancelled; it must then hold the
//! mutex when the program's handlers run, and must not have consumed another waiter's signal.
//!
//! So a waiter stands in a list, ordered by priority and then by age, and sleeps on a semaphore of its own,
//! which is a cancellation point in the C library (`wait`). The signaller takes the waiter out of the list and
//! posts its semaphore: from then on nothing of the waiter is in the condition variable. A waiter that is
//! cancelled after that hands the signal on to another waiter, which it finds in static memory (`register`).
//!
//! ```text
//!         signal, broadcast                  posted
//!  LISTED ────────────────► SIGNALLED ───────────────► returns
//!    └── the deadline passes, a cancellation ──► LEAVING ──► takes itself out
//!
//!   byte  the C library's       of one that is served
//!      4  sequence              the generation of the process in which a thread began to wait
//!      8  groups                the waiter that is to be woken first; the last one
//!  24..48 references and others the same: process-shared, waits by the monotonic clock (`marks`)
//! ```
//!
//! # Invariants
//! * **PTHREADCOND-1** The list, and the states of the waiters in it, change under the latch of its address
//!   (`register`).
//! * **PTHREADCOND-2** A node stays in place until its semaphore is posted if it is SIGNALLED, and otherwise
//!   until it is taken out of the list. The signaller does not access it after the post.
//! * **PTHREADCOND-3** A waiter that was signalled does not touch the condition variable. One that leaves by
//!   itself does, and is in the list until then: the thread that destroys a condition variable waits for it.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use libc::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, sem_t};

use crate::generation;
use crate::libc_locks as real;
use crate::sleep::Backoff;
use crate::statistics::{self, LeftToLibc};

use register::Place;

mod marks;
mod mixed;
pub(crate) mod register;
mod wait;

pub(crate) use marks::find as find_marks;
pub(crate) use wait::{_pthread_cleanup_pop, _pthread_cleanup_push, Cleanup, wait};

/// A condition variable as it lies in the caller's memory.
#[repr(C)]
pub(crate) struct Condvar {
    first: AtomicU32,
    generation: AtomicU32,
    next: AtomicPtr<Waiter>,
    last: AtomicPtr<Waiter>,
    rest: [AtomicU32; 6],
}

const _: () = assert!(size_of::<Condvar>() == size_of::<pthread_cond_t>());
const _: () = assert!(align_of::<Condvar>() <= align_of::<pthread_cond_t>());

/// A thread that waits, on its own stack.
struct Waiter {
    /// Its neighbours among the waiters of the condition variable.
    sooner: AtomicPtr<Waiter>,
    later: AtomicPtr<Waiter>,
    /// Its thread's priority when it began to wait.
    priority: u32,
    state: AtomicU32,
    /// Whether there were other waiters when this one was signalled alone.
    others: AtomicU32,
    semaphore: sem_t,
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    site: usize,
    /// Where other processes can see that it waits, while they want to.
    record: Option<&'static statistics::Record>,
    /// Its neighbours among all waiters at this place of the register.
    before: AtomicPtr<Waiter>,
    behind: AtomicPtr<Waiter>,
}

const LISTED: u32 = 0;
const SIGNALLED: u32 = 1;
const LEAVING: u32 = 2;

#[inline(always)]
unsafe fn at<'a>(condvar: *mut pthread_cond_t) -> &'a Condvar {
    // SAFETY: PRELOAD-1.
    unsafe { &*condvar.cast::<Condvar>() }
}

impl Condvar {
    fn is_served(&self) -> bool {
        !marks::is_shared(self)
    }

    fn clock(&self) -> clockid_t {
        if marks::is_monotonic(self) { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
    }

    #[inline]
    fn place(&self) -> &'static Place {
        register::of(core::ptr::from_ref(self).addr())
    }

    /// Forgets waiters of another process (PRELOAD-6).
    fn renew(&self) {
        generation::renew(&self.generation, || {
            self.next.store(null_mut(), Relaxed);
            self.last.store(null_mut(), Relaxed);
        });
    }

    /// Puts `waiter` behind all waiters of its priority.
    unsafe fn enter(&self, waiter: *mut Waiter) {
        self.renew();
        let place = self.place();
        place.latch.lock();
        let mut sooner = self.last.load(Relaxed);
        // SAFETY: the caller's own node; the others are in the list, so they are in place (PTHREADCOND-1,
        // PTHREADCOND-2).
        unsafe {
            while !sooner.is_null() && (*sooner).priority < (*waiter).priority {
                sooner = (*sooner).sooner.load(Relaxed);
            }
            let later = if sooner.is_null() { &self.next } else { &(*sooner).later };
            (*waiter).sooner.store(sooner, Relaxed);
            (*waiter).later.store(later.load(Relaxed), Relaxed);
            // ORDERING: pairs with the load of `has_waiters`. A thread that signals after this one has released
            // the mutex sees the waiter by way of the mutex.
            let later = later.swap(waiter, SeqCst);
            if later.is_null() {
                self.last.store(waiter, Relaxed);
            } else {
                (*later).sooner.store(waiter, Relaxed);
            }
            place.insert(waiter);
        }
        place.latch.unlock();
    }

    /// Takes `waiter`, which is in the list, out of it. Under the latch.
    unsafe fn take_out(&self, waiter: *mut Waiter) {
        // SAFETY: all of them are in the list, so they are in place (PTHREADCOND-1, PTHREADCOND-2).
        unsafe {
            let (sooner, later) = ((*waiter).sooner.load(Relaxed), (*waiter).later.load(Relaxed));
            if sooner.is_null() {
                self.next.store(later, Relaxed);
            } else {
                (*sooner).later.store(later, Relaxed);
            }
            if later.is_null() {
                self.last.store(sooner, Relaxed);
            } else {
                (*later).sooner.store(sooner, Relaxed);
            }
            self.place().remove(waiter);
        }
    }

    /// Takes `waiter` out of the list unless it is signalled. Returns whether it was not.
    unsafe fn leave(condvar: *mut pthread_cond_t, waiter: *mut Waiter) -> bool {
        // SAFETY: the caller's own node.
        let state = unsafe { &(*waiter).state };
        // ORDERING: Acquire pairs with the Release of `signalled`.
        if state.compare_exchange(LISTED, LEAVING, Acquire, Acquire).is_err() {
            // No reference was made of it: it may be gone (PTHREADCOND-3).
            return false;
        }
        let place = register::of(condvar.addr());
        place.latch.lock();
        // SAFETY: PTHREADCOND-1, PTHREADCOND-3.
        unsafe { at(condvar).take_out(waiter) };
        place.latch.unlock();
        true
    }

    /// Takes `waiter`, which is in the list, out of it as signalled, unless it is leaving. Under the latch.
    unsafe fn signalled(&self, waiter: *mut Waiter) -> bool {
        // SAFETY: it is in the list, so it is in place (PTHREADCOND-1, PTHREADCOND-2).
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
        !self.next.load(SeqCst).is_null()
    }

    /// Takes the waiter that is to be woken first out of the list, as signalled; the caller posts it. Under the
    /// latch.
    fn choose(&self) -> *mut Waiter {
        let mut waiter = self.next.load(Relaxed);
        // SAFETY: all of them are in the list, so they are in place (PTHREADCOND-1, PTHREADCOND-2).
        unsafe {
            while !waiter.is_null() && !self.signalled(waiter) {
                waiter = (*waiter).later.load(Relaxed);
            }
            if !waiter.is_null() {
                let others = !self.next.load(Relaxed).is_null();
                (*waiter).others.store(u32::from(others), Relaxed);
            }
        }
        waiter
    }

    /// Wakes one waiter.
    fn signal(&self) {
        if !self.has_waiters() {
            return;
        }
        self.renew();
        let place = self.place();
        place.latch.lock();
        let waiter = self.choose();
        place.latch.unlock();
        if !waiter.is_null() {
            // SAFETY: it waits for the post (PTHREADCOND-2).
            unsafe { wait::post(waiter) };
        }
    }

    /// Wakes all waiters.
    fn broadcast(&self) {
        if !self.has_waiters() {
            return;
        }
        self.renew();
        // The waiters taken out, starting with the last: they stay in place (PTHREADCOND-2).
        let mut taken = null_mut::<Waiter>();
        let place = self.place();
        place.latch.lock();
        let mut waiter = self.last.load(Relaxed);
        while !waiter.is_null() {
            // SAFETY: it is in the list, so it is in place (PTHREADCOND-1, PTHREADCOND-2).
            unsafe {
                let sooner = (*waiter).sooner.load(Relaxed);
                if self.signalled(waiter) {
                    (*waiter).later.store(taken, Relaxed);
                    taken = waiter;
                }
                waiter = sooner;
            }
        }
        place.latch.unlock();
        while !taken.is_null() {
            // SAFETY: it waits for the post; what comes after it is read before (PTHREADCOND-2).
            unsafe {
                let next = (*taken).later.load(Relaxed);
                wait::post(taken);
                taken = next;
            }
        }
    }

    /// Whether there is a waiter that was not signalled. When this returns, waiters that leave by themselves
    /// are gone: also the last one, which may still be leaving, behind the latch, when the list is already
    /// empty.
    fn is_awaited(&self) -> bool {
        self.renew();
        let mut backoff = Backoff::new();
        loop {
            let mut awaited = false;
            let place = self.place();
            place.latch.lock();
            let mut waiter = self.next.load(Relaxed);
            let leaving = !waiter.is_null();
            while !waiter.is_null() {
                // SAFETY: it is in the list, so it is in place (PTHREADCOND-1, PTHREADCOND-2).
                unsafe {
                    awaited |= (*waiter).state.load(Relaxed) == LISTED;
                    waiter = (*waiter).later.load(Relaxed);
                }
            }
            place.latch.unlock();
            if awaited || !leaving {
                return awaited;
            }
            backoff.wait();
        }
    }
}

/// `pthread_cond_signal`.
pub(crate) unsafe fn signal(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: PRELOAD-1, PRELOAD-3.
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
    // SAFETY: PRELOAD-1, PRELOAD-3.
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
    // SAFETY: the caller's.
    let result = unsafe { real::init(condvar, attributes, real::pthread_cond_init) };
    if result == 0 {
        // SAFETY: PRELOAD-1.
        let this = unsafe { at(condvar) };
        if this.is_served() {
            this.generation.store(generation::current(), Relaxed);
        } else {
            statistics::left_to_libc(LeftToLibc::SharedCondvar);
        }
    }
    result
}

/// `pthread_cond_destroy`: a waiter that was signalled needs it no more.
pub(crate) unsafe fn destroy(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: PRELOAD-1, PRELOAD-3.
    unsafe {
        let this = at(condvar);
        if !this.is_served() {
            return real::pthread_cond_destroy(condvar);
        }
        if this.is_awaited() { libc::EBUSY } else { 0 }
    }
}
