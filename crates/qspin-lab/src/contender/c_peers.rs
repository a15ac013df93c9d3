//! The locks of C and C++ libraries, behind the shims that the build script found headers for.
//!
//! A call into the shim stands between the loop and the lock, as a call into a library would in a
//! C program; for locks that their headers inline that is a few cycles more than their users pay.
#![cfg_attr(
    not(any(has_tbb, has_absl, has_nsync, has_ck)),
    allow(unused_imports, dead_code, reason = "none of the libraries is there")
)]

use std::cell::UnsafeCell;
use std::ffi::c_void;

use crate::bench::engine::MutexEngine;

use super::Contender;
use super::catalog::{Engine, Lock, Origin};

/// The room that the shims expect.
#[repr(C, align(128))]
struct Room(UnsafeCell<[u8; 128]>);

// SAFETY: what lies in the room is a lock, made to be used from many threads.
unsafe impl Sync for Room {}

/// A contender out of a shim's functions, and its line in the catalog.
macro_rules! c_peer {
    ($(#[$doc:meta])* $contender:ident, $name:literal, $cfg:ident,
     $size:ident, $init:ident, $lock:ident, $unlock:ident,
     $fairness:literal, $waits:literal, $purpose:literal) => {
        $(#[$doc])*
        #[cfg($cfg)]
        pub struct $contender(Room);

        #[cfg($cfg)]
        unsafe extern "C" {
            safe fn $size() -> usize;
            fn $init(room: *mut c_void);
            fn $lock(lock: *mut c_void);
            fn $unlock(lock: *mut c_void);
        }

        #[cfg($cfg)]
        impl Contender for $contender {
            type Held<'a> = ();

            fn new() -> Self {
                Self(Room(UnsafeCell::new([0; 128])))
            }

            fn settle(&mut self) {
                // SAFETY: the room is large enough, as the shim asserts, and at its final address.
                unsafe { $init(self.0.0.get().cast()) };
            }

            #[inline(always)]
            fn lock(&self) {
                // SAFETY: `settle` initialised the lock.
                unsafe { $lock(self.0.0.get().cast()) };
            }

            #[inline(always)]
            unsafe fn unlock(&self, (): ()) {
                // SAFETY: this thread holds the lock, as the trait demands.
                unsafe { $unlock(self.0.0.get().cast()) };
            }
        }

        #[cfg($cfg)]
        impl $contender {
            fn in_catalog() -> Lock {
                Lock {
                    name: $name,
                    origin: Origin::PeerC,
                    bytes: $size(),
                    fairness: $fairness,
                    waits: $waits,
                    numa_aware: false,
                    purpose: $purpose,
                    engine: Engine::Mutex(MutexEngine::of::<Self>()),
                    ours: None,
                }
            }
        }
    };
}

c_peer!(
    /// oneTBB's `spin_mutex`.
    TbbSpin, "tbb_spin", has_tbb,
    qspin_tbb_spin_size, qspin_tbb_spin_init, qspin_tbb_spin_lock, qspin_tbb_spin_unlock,
    "none", "pauses, ever longer, then yields", "oneTBB's spin_mutex"
);

c_peer!(
    /// oneTBB's `mutex`.
    TbbMutex, "tbb_mutex", has_tbb,
    qspin_tbb_mutex_size, qspin_tbb_mutex_init, qspin_tbb_mutex_lock, qspin_tbb_mutex_unlock,
    "none", "spins briefly, then sleeps", "oneTBB's mutex"
);

c_peer!(
    /// Abseil's `Mutex`.
    Absl, "absl", has_absl,
    qspin_absl_size, qspin_absl_init, qspin_absl_lock, qspin_absl_unlock,
    "none", "spins, then sleeps in a queue", "Abseil's Mutex"
);

c_peer!(
    /// nsync's `nsync_mu`.
    Nsync, "nsync", has_nsync,
    qspin_nsync_size, qspin_nsync_init, qspin_nsync_lock, qspin_nsync_unlock,
    "none; long waiters first", "spins briefly, then sleeps in a queue", "nsync's nsync_mu"
);

c_peer!(
    /// ConcurrencyKit's fetch-and-store lock.
    CkFas, "ck_fas", has_ck,
    qspin_ck_fas_size, qspin_ck_fas_init, qspin_ck_fas_lock, qspin_ck_fas_unlock,
    "none", "spins on the lock", "ConcurrencyKit's ck_spinlock_fas"
);

c_peer!(
    /// ConcurrencyKit's MCS lock.
    CkMcs, "ck_mcs", has_ck,
    qspin_ck_mcs_size, qspin_ck_mcs_init, qspin_ck_mcs_lock, qspin_ck_mcs_unlock,
    "first come, first served", "spins on its own cache line", "ConcurrencyKit's ck_spinlock_mcs"
);

/// Those that were found when this program was built.
pub(super) fn locks() -> Vec<Lock> {
    vec![
        #[cfg(has_tbb)]
        TbbSpin::in_catalog(),
        #[cfg(has_tbb)]
        TbbMutex::in_catalog(),
        #[cfg(has_absl)]
        Absl::in_catalog(),
        #[cfg(has_nsync)]
        Nsync::in_catalog(),
        #[cfg(has_ck)]
        CkFas::in_catalog(),
        #[cfg(has_ck)]
        CkMcs::in_catalog(),
    ]
}
