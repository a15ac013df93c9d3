//! Whether a CPU quota limits this process to so much less CPU time than its CPUs have that waiters should not poll.
//!
//! # Problem
//! In a container with a quota all threads stop once it is used up. A waiter that spins uses it up without
//! doing anything, and so does a lock that is handed off from thread to thread for the sake of fairness. But under a quota
//! of nearly all CPUs, waiters that sleep may leave part of it unused, most likely since waking takes its time.
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

/// A quota of less than this part of the CPUs is scarce: above it, CPUs that all poll lose a quarter of their time at most. Two
/// CPUs of a Xeon, over the better of `std` and `parking_lot`, where waiters poll as without a quota and where they do not: 5
/// threads, 20 µs inside and 44 outside, 1.65 CPUs 1.00 and 0.74; 2, 26 ns and 6, 1.6 CPUs 1.13 and 0.98; 16, 10 µs and
/// nothing, 1.5 CPUs 0.98 and 0.99; 8, 1 µs and 1 µs, 1.5 CPUs 0.98 and 1.00.
const SCARCE: f64 = 0.75;

static RATIONED: AtomicBool = AtomicBool::new(false);

/// Whether this process is taken to have so much less CPU time than CPUs.
#[inline]
#[must_use]
pub fn has_cpu_quota() -> bool {
    RATIONED.load(Relaxed)
}

/// Says whether this process has so much less CPU time than CPUs. May be called at any moment; later waits go by it.
pub fn set_cpu_quota(rationed: bool) {
    // Written only if it changes: every wait reads this cache line.
    if has_cpu_quota() != rationed {
        RATIONED.store(rationed, Relaxed);
    }
}

/// Checks whether there is a quota at this moment below three quarters of the number of CPUs on which the calling thread
/// may run, and returns the answer. Reads files and allocates.
pub fn look() -> bool {
    let quota = quota(Path::new("/"), &mut |_| ());
    let rationed = quota.is_some_and(|quota| is_scarce(quota.cpus, allowed_cpus().len()));
    set_cpu_quota(rationed);
    rationed
}

/// Whether a quota of so many CPUs' time is scarce on so many CPUs.
fn is_scarce(quota: f64, cpus: usize) -> bool {
    quota < SCARCE * cpus as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_of_nearly_all_cpus_is_not_scarce() {
        for (quota, cpus, scarce) in
            [(0.5, 1, true), (0.8, 1, false), (1.45, 2, true), (1.5, 2, false), (4.0, 64, true)]
        {
            assert_eq!(is_scarce(quota, cpus), scarce, "{quota} of {cpus}");
        }
    }
}
