//! The functions of a lock that excludes, for whatever lock.

use core::ffi::c_int;

use lock_api::{GuardNoSend, GuardSend, RawMutex};

/// A type of C that is a lock.
///
/// # Safety
/// It has the size and the alignment of `Raw`, and all its bits may stand in one.
pub(crate) unsafe trait Lock {
    type Raw: RawMutex<Guard: Marker>;
}

/// A guard of `lock_api` can be made of nothing: what the caller promises is what it stands for.
pub(crate) trait Marker {
    fn new() -> Self;
}

impl Marker for GuardSend {
    fn new() -> Self {
        Self::new()
    }
}

impl Marker for GuardNoSend {
    fn new() -> Self {
        Self::new()
    }
}

/// `$c` is `$raw`, as C sees it.
macro_rules! as_the_lock {
    ($c:ty, $raw:ty) => {
        const _: () = assert!(size_of::<$c>() == size_of::<$raw>());
        const _: () = assert!(align_of::<$c>() == align_of::<$raw>());
        // SAFETY: the assertions; a lock is made of atomic words, and any bits are a value of these.
        unsafe impl crate::exclude::Lock for $c {
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
pub(crate) unsafe fn lock<L: Lock>(lock: *mut L) {
    // SAFETY: X1. That the lock is held is what the caller knows now; the guard is zero-sized.
    let _ = unsafe { raw(lock) }.lock();
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn trylock<L: Lock>(lock: *mut L) -> c_int {
    // SAFETY: X1.
    if unsafe { raw(lock) }.try_lock().is_some() { 0 } else { libc::EBUSY }
}

/// # Safety
/// X1, X2.
#[inline(always)]
pub(crate) unsafe fn unlock<L: Lock>(lock: *mut L) {
    // SAFETY: X1, X2.
    unsafe { raw(lock).unlock(Marker::new()) };
}

/// # Safety
/// X1.
#[inline(always)]
pub(crate) unsafe fn is_locked<L: Lock>(lock: *const L) -> bool {
    // SAFETY: X1.
    unsafe { raw(lock) }.is_locked()
}
