//! The function names by which programs lock.
//!
//! A call's return address says where in the program a lock is acquired. At the first instruction of a function it
//! is on the stack (x86-64) or in a register (ARM), and later it may be anywhere. So functions that need it begin
//! with two instructions that pass it on as one more argument. They call nothing and leave the stack as it is, so
//! unwinding still works.
//!
//! Every name is without a version, so it serves callers that ask for any version: programs linked against the
//! C library before and after 2.34, in which many of these functions moved, find the same one. The names with
//! two underscores are what old programs and libraries call.

use core::ffi::c_void;
use core::ptr::null;

use libc::{
    c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, pthread_mutexattr_t,
    pthread_rwlock_t, pthread_rwlockattr_t, pthread_spinlock_t, pthread_t, timespec,
};

use crate::processor::call_with_site;
use crate::sleep::system_call;
use crate::{c11, condvar, join, mutex, rwlock, spin, statistics};

/// Functions that also get their return address, after this many arguments.
macro_rules! with_site {
    ($($name:ident, $arguments:tt => $function:path;)*) => { $(
        /// The C library's function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C-unwind" fn $name() {
            call_with_site!($arguments, $function)
        }
    )* };
}

with_site! {
    pthread_mutex_lock, 1 => mutex_lock;
    __pthread_mutex_lock, 1 => mutex_lock;
    pthread_mutex_trylock, 1 => mutex_trylock;
    __pthread_mutex_trylock, 1 => mutex_trylock;
    pthread_mutex_timedlock, 2 => mutex_timedlock;
    pthread_mutex_clocklock, 3 => mutex_clocklock;
    mtx_lock, 1 => c11_lock;
    mtx_trylock, 1 => c11_trylock;
    mtx_timedlock, 2 => c11_timedlock;
    pthread_cond_wait, 2 => cond_wait;
    pthread_cond_timedwait, 3 => cond_timedwait;
    pthread_cond_clockwait, 4 => cond_clockwait;
    cnd_wait, 2 => c11_wait;
    cnd_timedwait, 3 => c11_timedwait;
    pthread_join, 2 => thread_join;
    pthread_rwlock_rdlock, 1 => rwlock_rdlock;
    __pthread_rwlock_rdlock, 1 => rwlock_rdlock;
    pthread_rwlock_timedrdlock, 2 => rwlock_timedrdlock;
    pthread_rwlock_clockrdlock, 3 => rwlock_clockrdlock;
    pthread_rwlock_tryrdlock, 1 => rwlock_tryrdlock;
    __pthread_rwlock_tryrdlock, 1 => rwlock_tryrdlock;
    pthread_rwlock_wrlock, 1 => rwlock_wrlock;
    __pthread_rwlock_wrlock, 1 => rwlock_wrlock;
    pthread_rwlock_timedwrlock, 2 => rwlock_timedwrlock;
    pthread_rwlock_clockwrlock, 3 => rwlock_clockwrlock;
    pthread_rwlock_trywrlock, 1 => rwlock_trywrlock;
    __pthread_rwlock_trywrlock, 1 => rwlock_trywrlock;
}

/// The functions that the names above continue in.
macro_rules! continued {
    ($(fn $name:ident($($argument:ident: $type:ty),*) = $call:expr;)*) => { $(
        unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's (PRELOAD-1).
            unsafe { $call }
        }
    )* };
}

continued! {
    fn mutex_lock(m: *mut pthread_mutex_t, site: usize) = mutex::lock(m, site);
    fn mutex_trylock(m: *mut pthread_mutex_t, site: usize) = mutex::try_lock(m, site);
    fn mutex_timedlock(m: *mut pthread_mutex_t, time: *const timespec, site: usize) =
        mutex::lock_until(m, None, time, site);
    fn mutex_clocklock(m: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec, site: usize) =
        mutex::lock_until(m, Some(clock), time, site);
    fn c11_lock(m: *mut pthread_mutex_t, site: usize) = c11::said(mutex::lock(m, site));
    fn c11_trylock(m: *mut pthread_mutex_t, site: usize) = c11::said(mutex::try_lock(m, site));
    fn c11_timedlock(m: *mut pthread_mutex_t, time: *const timespec, site: usize) =
        c11::said(mutex::lock_until(m, None, time, site));
    fn cond_wait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, site: usize) =
        condvar::wait(c, m, None, null(), site);
    fn cond_timedwait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, time: *const timespec, site: usize) =
        condvar::wait(c, m, None, time, site);
    fn cond_clockwait(
        c: *mut pthread_cond_t, m: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec, site: usize) =
        condvar::wait(c, m, Some(clock), time, site);
    fn c11_wait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, site: usize) =
        c11::said(condvar::wait(c, m, None, null(), site));
    fn c11_timedwait(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, time: *const timespec, site: usize) =
        c11::said(condvar::wait(c, m, None, time, site));
    fn thread_join(t: pthread_t, r: *mut *mut c_void, site: usize) = join::join(t, r, site);
    fn rwlock_rdlock(l: *mut pthread_rwlock_t, site: usize) = rwlock::acquire::<true>(l, None, site);
    fn rwlock_timedrdlock(l: *mut pthread_rwlock_t, time: *const timespec, site: usize) =
        rwlock::acquire::<true>(l, Some((None, time)), site);
    fn rwlock_clockrdlock(l: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec, site: usize) =
        rwlock::acquire::<true>(l, Some((Some(clock), time)), site);
    fn rwlock_tryrdlock(l: *mut pthread_rwlock_t, site: usize) = rwlock::try_read(l, site);
    fn rwlock_wrlock(l: *mut pthread_rwlock_t, site: usize) = rwlock::acquire::<false>(l, None, site);
    fn rwlock_timedwrlock(l: *mut pthread_rwlock_t, time: *const timespec, site: usize) =
        rwlock::acquire::<false>(l, Some((None, time)), site);
    fn rwlock_clockwrlock(l: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec, site: usize) =
        rwlock::acquire::<false>(l, Some((Some(clock), time)), site);
    fn rwlock_trywrlock(l: *mut pthread_rwlock_t, site: usize) = rwlock::try_write(l, site);
}

/// Functions that need no more than their arguments.
macro_rules! plain {
    ($(fn $name:ident($($argument:ident: $type:ty),*) = $call:expr;)*) => { $(
        /// The C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's (PRELOAD-1).
            unsafe { $call }
        }
    )* };
}

plain! {
    fn pthread_mutex_init(m: *mut pthread_mutex_t, a: *const pthread_mutexattr_t) = mutex::init(m, a);
    fn __pthread_mutex_init(m: *mut pthread_mutex_t, a: *const pthread_mutexattr_t) = mutex::init(m, a);
    fn pthread_mutex_destroy(m: *mut pthread_mutex_t) = mutex::destroy(m);
    fn __pthread_mutex_destroy(m: *mut pthread_mutex_t) = mutex::destroy(m);
    fn pthread_mutex_unlock(m: *mut pthread_mutex_t) = mutex::unlock(m);
    fn __pthread_mutex_unlock(m: *mut pthread_mutex_t) = mutex::unlock(m);
    fn mtx_init(m: *mut pthread_mutex_t, kind: c_int) = c11::mutex_init(m, kind);
    fn mtx_unlock(m: *mut pthread_mutex_t) = c11::said(mutex::unlock(m));

    fn pthread_cond_init(c: *mut pthread_cond_t, a: *const pthread_condattr_t) = condvar::init(c, a);
    fn pthread_cond_destroy(c: *mut pthread_cond_t) = condvar::destroy(c);
    fn pthread_cond_signal(c: *mut pthread_cond_t) = condvar::signal(c);
    fn pthread_cond_broadcast(c: *mut pthread_cond_t) = condvar::broadcast(c);
    fn cnd_init(c: *mut pthread_cond_t) = c11::said(condvar::init(c, null()));
    fn cnd_signal(c: *mut pthread_cond_t) = c11::said(condvar::signal(c));
    fn cnd_broadcast(c: *mut pthread_cond_t) = c11::said(condvar::broadcast(c));

    fn pthread_rwlock_init(l: *mut pthread_rwlock_t, a: *const pthread_rwlockattr_t) = rwlock::init(l, a);
    fn __pthread_rwlock_init(l: *mut pthread_rwlock_t, a: *const pthread_rwlockattr_t) = rwlock::init(l, a);
    fn pthread_rwlock_destroy(l: *mut pthread_rwlock_t) = rwlock::destroy(l);
    fn __pthread_rwlock_destroy(l: *mut pthread_rwlock_t) = rwlock::destroy(l);
    fn pthread_rwlock_unlock(l: *mut pthread_rwlock_t) = rwlock::unlock(l);
    fn __pthread_rwlock_unlock(l: *mut pthread_rwlock_t) = rwlock::unlock(l);

    fn pthread_spin_init(l: *mut pthread_spinlock_t, _shared: c_int) = spin::init(l);
    fn pthread_spin_lock(l: *mut pthread_spinlock_t) = spin::lock(l);
    fn pthread_spin_trylock(l: *mut pthread_spinlock_t) = spin::try_lock(l);
    fn pthread_spin_unlock(l: *mut pthread_spinlock_t) = spin::unlock(l);
}

/// `_exit` and `_Exit`, after which no destructor runs: the counts of the locks are collected first.
macro_rules! ends {
    ($($name:ident)*) => { $(
        /// The C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(code: c_int) -> ! {
            statistics::end();
            loop {
                // SAFETY: a system call that touches no memory.
                unsafe { system_call(libc::SYS_exit_group, [code as u64]) };
            }
        }
    )* };
}

ends! { _exit _Exit }

/// `pthread_spin_destroy`: there is nothing to do.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pthread_spin_destroy(_: *mut pthread_spinlock_t) -> c_int {
    0
}

/// `mtx_destroy`, which cannot say that it failed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mtx_destroy(m: *mut pthread_mutex_t) {
    // SAFETY: the caller's (PRELOAD-1).
    let _ = unsafe { mutex::destroy(m) };
}

/// `cnd_destroy`, which cannot say that it failed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cnd_destroy(c: *mut pthread_cond_t) {
    // SAFETY: the caller's (PRELOAD-1).
    let _ = unsafe { condvar::destroy(c) };
}
