//! A lock behind a pointer of C.

use core::ffi::c_int;

/// A C type that is a lock.
///
/// # Safety
/// It has the size and the alignment of `Raw`, and any bits of it are a valid `Raw`.
pub(crate) unsafe trait Lock {
    type Raw;
}

/// Whether a type of C has the size and the alignment of its lock.
pub(crate) const fn is_laid_out_alike<C: Lock>() -> bool {
    size_of::<C>() == size_of::<C::Raw>() && align_of::<C>() == align_of::<C::Raw>()
}

/// The lock.
///
/// # Safety
/// CAPI-1.
#[inline(always)]
pub(crate) unsafe fn raw<'a, C: Lock>(lock: *const C) -> &'a C::Raw {
    // SAFETY: CAPI-1, and the promise of `Lock`.
    unsafe { &*lock.cast::<C::Raw>() }
}

/// What a function that does not wait returns.
#[inline(always)]
pub(crate) fn busy_unless(done: bool) -> c_int {
    if done { 0 } else { libc::EBUSY }
}
