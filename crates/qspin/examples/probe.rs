//! A lock behind two plain symbols, to look at the machine code that comes of it:
//! `cargo rustc --release -p qspin --example probe -- --emit asm`.

use lock_api::RawMutex;
use qspin::native::{CountedRawLock, RawLock};

/// Acquires a lock that does not count.
///
/// # Safety
/// `lock` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_acquire(lock: &RawLock) {
    let _ = lock.lock();
}

/// Acquires a lock that counts.
///
/// # Safety
/// `lock` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_acquire_counted(lock: &CountedRawLock) {
    let _ = lock.lock();
}

fn main() {
    let (plain, counted) = (RawLock::new(), CountedRawLock::new());
    // SAFETY: both locks live.
    unsafe {
        probe_acquire(&plain);
        probe_acquire_counted(&counted);
    }
}
