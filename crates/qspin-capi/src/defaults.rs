//! What the default mutex and reader-writer lock can do beyond other locks, which is waiting for a time, and
//! the condition variable of the mutex.

use core::ffi::c_int;
use core::time::Duration;

use lock_api::{GuardSend, RawCondvar, RawCondvarTimed, RawMutexTimed, RawRwLockTimed};

use crate::counting::Switched;
use crate::locks::{qspin_mutex_t, qspin_rwlock_t};
use crate::pointer::{Lock, is_laid_out_alike, raw};

type Condition = qspin::condvar::RawCondvarWith<Switched>;

/// 0 if the lock was acquired.
fn said<G>(acquired: Option<G>) -> c_int {
    if acquired.is_some() { 0 } else { libc::ETIMEDOUT }
}

/// Acquires the mutex; waits for `nanoseconds` at most. UINT64_MAX is some centuries.
///
/// Returns 0, or ETIMEDOUT if it was not to be had in that time.
///
/// Thread-safe. Async-signal-safe, if the code that the handler interrupts neither holds this lock nor
/// is acquiring it. Not a cancellation point.
///
/// # Safety
/// `lock` points to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_mutex_lock_for(lock: *mut qspin_mutex_t, nanoseconds: u64) -> c_int {
    // SAFETY: CAPI-1.
    said(unsafe { raw(lock) }.try_lock_for(Duration::from_nanos(nanoseconds)))
}

/// Acquires the lock for reading; waits for `nanoseconds` at most.
///
/// Returns 0, or ETIMEDOUT if it was not to be had in that time.
///
/// Thread-safe. Async-signal-safe, if the code that the handler interrupts neither holds this lock nor
/// is acquiring it. Not a cancellation point.
///
/// # Safety
/// `lock` points to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_rwlock_rdlock_for(
    lock: *mut qspin_rwlock_t,
    nanoseconds: u64,
) -> c_int {
    // SAFETY: CAPI-1.
    said(unsafe { raw(lock) }.try_lock_shared_for(Duration::from_nanos(nanoseconds)))
}

/// Acquires the lock for writing; waits for `nanoseconds` at most.
///
/// Returns 0, or ETIMEDOUT if it was not to be had in that time.
///
/// Thread-safe. Async-signal-safe, if the code that the handler interrupts neither holds this lock nor
/// is acquiring it. Not a cancellation point.
///
/// # Safety
/// `lock` points to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_rwlock_wrlock_for(
    lock: *mut qspin_rwlock_t,
    nanoseconds: u64,
) -> c_int {
    // SAFETY: CAPI-1.
    said(unsafe { raw(lock) }.try_lock_exclusive_for(Duration::from_nanos(nanoseconds)))
}

/// The condition variable of the default mutex.
///
/// 16 bytes; a new one is all zeros. It owns nothing, and while no thread waits for it, it may be moved as bytes.
/// After a broadcast one is woken, and the others when they can have the mutex.
#[repr(C)]
#[derive(Debug)]
pub struct qspin_cond_t {
    /// The library's; do not touch.
    pub qspin_private: [u64; 2],
}

// SAFETY: the assertion; it is made of atomic words, and any bits are a value of these.
unsafe impl Lock for qspin_cond_t {
    type Raw = Condition;
}
const _: () = assert!(is_laid_out_alike::<qspin_cond_t>());

/// Makes `*cond` a condition variable without waiters: as `= QSPIN_COND_INIT`. Cannot fail.
///
/// Thread-safety: no other thread may use `*cond` meanwhile. Async-signal-safe.
///
/// # Safety
/// `cond` points to memory for a condition variable, which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_cond_init(cond: *mut qspin_cond_t) {
    // SAFETY: the caller's: all zeros are a new one.
    unsafe { cond.write_bytes(0, 1) };
}

/// Releases the mutex, waits for a notification, and acquires the mutex again. It may end without a
/// notification: look again at what is waited for. Cannot fail.
///
/// Thread-safe. Not async-signal-safe. Not a cancellation point.
///
/// # Safety
/// `cond` points to a condition variable and `mutex` to a lock that the caller holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_cond_wait(cond: *mut qspin_cond_t, mutex: *mut qspin_mutex_t) {
    // SAFETY: CAPI-1, CAPI-2.
    unsafe { RawCondvar::wait(raw(cond), raw(mutex), &mut GuardSend::new()) };
}

/// As qspin_cond_wait(), for `nanoseconds` at most, and until the mutex is to be had again.
///
/// Returns 0, or ETIMEDOUT if it has waited so long. The mutex is held in either case.
///
/// Thread-safe. Not async-signal-safe. Not a cancellation point.
///
/// # Safety
/// `cond` points to a condition variable and `mutex` to a lock that the caller holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_cond_wait_for(
    cond: *mut qspin_cond_t,
    mutex: *mut qspin_mutex_t,
    nanoseconds: u64,
) -> c_int {
    let longest = Duration::from_nanos(nanoseconds);
    // SAFETY: CAPI-1, CAPI-2.
    let timed_out = unsafe {
        let mutex = raw(mutex);
        RawCondvarTimed::wait_for(raw(cond), mutex, &mut GuardSend::new(), &longest)
    };
    if timed_out { libc::ETIMEDOUT } else { 0 }
}

/// Wakes one of those who wait, if there are any. Cannot fail. A woken thread may free the condition variable
/// while this still returns.
///
/// Thread-safe. Async-signal-safe, if the code that the handler interrupts is not in a function of this
/// condition variable.
///
/// # Safety
/// `cond` points to a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_cond_signal(cond: *mut qspin_cond_t) {
    // SAFETY: CAPI-1.
    let _ = unsafe { raw(cond) }.notify_one();
}

/// Wakes all who wait. Cannot fail. A woken thread may free the condition variable while this still returns.
///
/// Thread-safe. Async-signal-safe, if the code that the handler interrupts is not in a function of this
/// condition variable.
///
/// # Safety
/// `cond` points to a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qspin_cond_broadcast(cond: *mut qspin_cond_t) {
    // SAFETY: CAPI-1.
    let _ = unsafe { raw(cond) }.notify_all();
}
