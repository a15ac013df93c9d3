//! Memory from the kernel, async-signal-safe: for what does not fit into static memory.

use core::sync::atomic::Ordering::Acquire;

use qspin_core::waiting::Bucket;

use super::syscall::syscall;
use crate::platform::nodes::{HALTED, Heads};

/// Maps zeroed memory for a `T`, which needs no more alignment than a page has.
pub(crate) fn map<T>() -> Option<*mut T> {
    const { assert!(align_of::<T>() <= 4096) };
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let arguments = [0, size_of::<T>() as u64, access as u64, kind as u64, u64::MAX, 0];
    // SAFETY: a new mapping, wherever there is room.
    let address = unsafe { syscall(libc::SYS_mmap, arguments) };
    (address > 0).then(|| core::ptr::with_exposed_provenance_mut(address as usize))
}

/// Gives the memory back.
///
/// # Safety
/// [`map`] returned it, and nothing refers to it.
pub(crate) unsafe fn unmap<T>(made: *mut T) {
    // SAFETY: the caller's.
    unsafe { syscall(libc::SYS_munmap, [made.addr() as u64, size_of::<T>() as u64]) };
}

/// In the child of `fork`: no waiter is halted any more.
pub(crate) fn forget_halted() {
    let heads = HALTED.load(Acquire);
    if heads.is_null() {
        return;
    }
    let arguments = [heads.addr() as u64, size_of::<Heads>() as u64, libc::MADV_DONTNEED as u64];
    // SAFETY: whole pages of this process alone, mapped as zeros, which they are again afterwards (NODES-2).
    if unsafe { syscall(libc::SYS_madvise, arguments) } != 0 {
        // SAFETY: NODES-1, NODES-2.
        unsafe { heads.as_ref() }.into_iter().flatten().for_each(Bucket::forget);
    }
}
