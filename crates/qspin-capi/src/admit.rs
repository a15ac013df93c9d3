//! The functions of a lock that admits readers, for whatever lock.

use core::ffi::c_int;

use lock_api::RawRwLock;

use crate::exclude::Marker;

/// A type of C that is a reader-writer lock.
///
/// # Safety
/// It has the size and the alignment of `Raw`, and all its bits may stand in one.
pub(crate) unsafe trait Lock {
    type Raw: RawRwLock<SharedGuard: Marker, ExclusiveGuard: Marker>;
}

/// `$c` is `$raw`, as C sees it.
macro_rules! as_the_lock {
    ($c:ty, $raw:ty) => {
        const _: () = assert!(size_of::<$c>() == size_of::<$raw>());
        const _: () = assert!(align_of::<$c>() == align_of::<$raw>());
        // SAFETY: the assertions; a lock is made of atomic words, and any bits are a value of these.
        unsafe impl crate::admit::Lock for $c {
            type Raw = $raw;
        }
    };
}
pub(crate) use as_the_lock;

/// # Safety
/// X1.
#[inline(always)]
unsafe fn raw<'a, L: Lock>(lock: *const L) -> &'a L::Raw {
    // SAFETY: X1, and the promise of `Lock`.
    unsafe { &*lock.cast::<L::Raw>() }
}

/// # Safety
/// X1, and nobody else uses the memory.
#[inline(always)]
pub(crate) unsafe fn init<L: Lock>(lock: *mut L) {
    // SAFETY: the caller's; the sizes are equal.
    unsafe { lock.cast::<L::Raw>().write(L::Raw::INIT) };
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn destroy<L: Lock>(lock: *mut L) -> c_int {
    // SAFETY: X1.
    if unsafe { is_locked(lock) } { libc::EBUSY } else { 0 }
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn rdlock<L: Lock>(lock: *mut L) {
    // SAFETY: X1. That the lock is held is what the caller knows now; the guard is zero-sized.
    let _ = unsafe { raw(lock) }.lock_shared();
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn tryrdlock<L: Lock>(lock: *mut L) -> c_int {
    // SAFETY: X1.
    if unsafe { raw(lock) }.try_lock_shared().is_some() { 0 } else { libc::EBUSY }
}

/// # Safety
/// X1, X2.
#[inline(always)]
pub(crate) unsafe fn rdunlock<L: Lock>(lock: *mut L) {
    // SAFETY: X1, X2.
    unsafe { raw(lock).unlock_shared(Marker::new()) };
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn wrlock<L: Lock>(lock: *mut L) {
    // SAFETY: X1.
    let _ = unsafe { raw(lock) }.lock_exclusive();
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn trywrlock<L: Lock>(lock: *mut L) -> c_int {
    // SAFETY: X1.
    if unsafe { raw(lock) }.try_lock_exclusive().is_some() { 0 } else { libc::EBUSY }
}

/// # Safety
/// X1, X2.
#[inline(always)]
pub(crate) unsafe fn wrunlock<L: Lock>(lock: *mut L) {
    // SAFETY: X1, X2.
    unsafe { raw(lock).unlock_exclusive(Marker::new()) };
}

/// # Safety
/// X1, X2: the caller holds the lock, one way or the other.
#[inline(always)]
pub(crate) unsafe fn unlock<L: Lock>(lock: *mut L) {
    // While a reader holds the lock no writer does, and a writer sees its own mark: so the mark says
    // which of the two the caller is.
    // SAFETY: X1, X2.
    unsafe { if raw(lock).is_locked_exclusive() { wrunlock(lock) } else { rdunlock(lock) } }
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn is_locked<L: Lock>(lock: *const L) -> bool {
    // SAFETY: X1.
    unsafe { raw(lock) }.is_locked()
}
