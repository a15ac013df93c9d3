//! Whether a CPU quota limits this process to less CPU time than its CPUs have.
//!
//! # Problem
//! In a container with a quota all threads stop once it is used up. A waiter that spins uses it up without
//! doing anything, and so does a lock that is handed off from thread to thread for the sake of fairness.
//!
//! # How
//! The quota is read when the program asks for it, by [`look`] or by [`decide`](crate::select::decide). That
//! needs files and memory, so neither the path of a lock nor the time before `main` is the place for it. Or the
//! program knows of a quota otherwise, and says so ([`set_cpu_quota`]). Until then no quota is known, and locks
//! wait as if there were none: they exclude and wake as ever, but waiters stay awake for longer than is worth
//! it under a quota (docs/mutex.md).
//!
//! # Limits
//! A quota that is set or lifted while the program runs is not noticed by itself; nor is one above what a
//! container can see.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::process::allowed_cpus;
use super::quota::quota;

static RATIONED: AtomicBool = AtomicBool::new(false);

/// Whether this process is taken to have less CPU time than CPUs.
#[inline]
#[must_use]
pub fn has_cpu_quota() -> bool {
    RATIONED.load(Relaxed)
}

/// Says whether this process has less CPU time than CPUs. May be called at any moment; later waits go by it.
pub fn set_cpu_quota(rationed: bool) {
    // Written only if it changes: every wait reads this cache line.
    if has_cpu_quota() != rationed {
        RATIONED.store(rationed, Relaxed);
    }
}

/// Checks whether there is a quota at this moment below the number of CPUs on which the calling thread may run,
/// and returns the answer. Reads files and allocates.
pub fn look() -> bool {
    let quota = quota(Path::new("/"), &mut |_| ());
    let rationed = quota.is_some_and(|quota| quota.cpus < allowed_cpus().len() as f64);
    set_cpu_quota(rationed);
    rationed
}
