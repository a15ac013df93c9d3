//! Internals for the library that interposes the C library's locks. Not part of the interface: they change
//! without notice.

use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

pub use super::environment::Environment;
pub use super::errno::Errno;
pub use super::generation::{current as generation, empty_in_a_child};
pub use super::page::{Whole, are_whole, pretend_pages_of};
pub use super::syscall::{be_silent, syscall};
use crate::tuning::Tuning;

/// Sets what `text` says, `NAME=VALUE` with commas between; what is wrong in it sets nothing.
pub fn apply_tunables(tuning: &mut Tuning, text: &[u8]) {
    crate::tuning::apply(tuning, text);
}

/// Lets other processes change the tunables, unless the environment or the kernel refuses.
pub fn share_tunables() {
    // The user has not asked for it, so nothing is said.
    let _ = crate::tuning::listen();
}

/// The first step of locking the default mutex. Returns whether it acquired the lock.
#[inline(always)]
pub fn lock_at_once(lock: &crate::RawMutex) -> bool {
    lock.0.lock_at_once()
}

/// Locks the default mutex for a waiter that another condition variable than this crate's has woken, most likely
/// notified by a thread that still owns the lock: it does not stay awake for long.
#[inline]
pub fn lock_notified(lock: &crate::RawMutex) {
    let _: lock_api::GuardSend = lock.0.lock_notified();
}

/// Does at once what otherwise the first release and the first wait of the process do: registers handlers and
/// asks the kernel. For a library that runs before the C library has an environment, and before this library's
/// own load-time function.
pub fn begin(environment: &Environment) {
    super::load::begin(environment);
    crate::platform::sleep::prepare();
}

/// What a thread does before it goes to sleep for a lock; null: nothing.
static BEFORE_SLEEP: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// From now on each thread calls this whenever it is about to sleep for a lock. It must neither panic nor acquire one.
pub fn before_sleep(call: fn()) {
    BEFORE_SLEEP.store(call as *mut (), Relaxed);
}

/// This thread is about to sleep.
#[inline]
pub(super) fn sleeps() {
    let call = BEFORE_SLEEP.load(Relaxed);
    if !call.is_null() {
        // SAFETY: what `before_sleep` has stored, a function of this type.
        unsafe { transmute::<*mut (), fn()>(call)() };
    }
}
