//! The memory in which other processes ask for other tunables, and that in which tunables are kept.
//!
//! # Invariants
//! * **TUNABLES-1** Memory that was handed out stays mapped as long as the process lives, in its children too.

use super::publish::{File, make_file};
use super::syscall::syscall;

fn map<T>(flags: libc::c_int, descriptor: u64) -> Option<&'static T> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let arguments = [0, size_of::<T>() as u64, protection, flags as u64, descriptor, 0];
    // SAFETY: a new mapping, wherever the kernel wants it.
    let place = unsafe { syscall(libc::SYS_mmap, arguments) };
    // SAFETY: the kernel returned a place of that size, aligned to a page, of zeros, which are valid by the
    // promise of both callers; it is never unmapped (TUNABLES-1).
    (place > 0).then(|| unsafe { &*(place as usize as *const T) })
}

/// Makes a file in memory that other processes find among this one's open files, and maps it. `None` if the
/// kernel refuses. The name ends with a zero. Async-signal-safe.
///
/// # Safety
/// Zeros are a valid `T`, which consists of atomics only: other processes write to it.
pub(crate) unsafe fn share<T: Sync>(name: &'static str, file: &File) -> Option<&'static T> {
    let descriptor = make_file(name, size_of::<T>() as u64)?;
    file.keep(descriptor);
    let mapped = map(libc::MAP_SHARED, descriptor);
    if mapped.is_none() {
        file.close();
    }
    mapped
}

/// Maps memory of this process alone, of which only what is used takes memory. `None` if the kernel refuses.
/// Async-signal-safe.
///
/// # Safety
/// Zeros are a valid `T`.
pub(crate) unsafe fn reserve<T: Sync>() -> Option<&'static T> {
    map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, u64::MAX)
}
