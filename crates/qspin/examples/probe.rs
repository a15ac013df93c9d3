//! Locks behind plain symbols, to look at the machine code that comes of them:
//! `cargo rustc --release -p qspin --example probe -- --emit asm`.

use lock_api::{GuardSend, RawMutex};

macro_rules! probe {
    ($($lock:ident::$raw:ident: $acquire:ident $release:ident)*) => {
        $(
            /// Acquires the lock.
            ///
            /// # Safety
            /// `lock` is valid.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $acquire(lock: &qspin::$lock::$raw) {
                let _ = lock.lock();
            }

            /// Releases the lock.
            ///
            /// # Safety
            /// `lock` is valid, and held by the caller.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $release(lock: &qspin::$lock::$raw) {
                // SAFETY: the caller's promise.
                unsafe { lock.unlock(GuardSend::new()) };
            }
        )*

        fn main() {
            $(
                let lock = qspin::$lock::$raw::new();
                // SAFETY: the lock lives, and is held where it is released.
                unsafe {
                    $acquire(&lock);
                    $release(&lock);
                }
            )*
        }
    };
}

probe! {
    native::RawMutex: probe_native_acquire probe_native_release
    native::CountedRawMutex: probe_native_acquire_counted probe_native_release_counted
    paravirt::RawMutex: probe_paravirt_acquire probe_paravirt_release
    paravirt::CountedRawMutex: probe_paravirt_acquire_counted probe_paravirt_release_counted
    paravirt_ticket::RawMutex: probe_paravirt_ticket_acquire probe_paravirt_ticket_release
    paravirt_ticket::CountedRawMutex:
        probe_paravirt_ticket_acquire_counted probe_paravirt_ticket_release_counted
    select::RawMutex: probe_select_acquire probe_select_release
}
