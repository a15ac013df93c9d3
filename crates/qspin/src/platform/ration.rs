//! Whether the CPU time of this process is limited to less than its CPUs have, by a quota.
//!
//! # Problem
//! In a container with a quota all threads stand still when it is used up. A waiter that stays awake uses it up
//! without doing anything, and so does a lock that is handed from thread to thread for the sake of fairness.
//!
//! # How
//! The quota is read when the program says so, by [`look`] or by [`decide`](crate::select::decide): that needs files
//! and memory, for which neither the path of a lock nor the time before `main` is a place. Or the program knows of a
//! quota otherwise, and says so ([`set_rationed`]). Until then none is known, and locks wait as where there is none:
//! they exclude and wake as ever, and waiters stay awake for longer than a quota is worth (docs/mutex.md).
//!
//! # Limits
//! A quota that comes or goes while the program runs is not noticed by itself; nor one above what a container can
//! see.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::process::allowed_cpus;
use super::quota::quota;

static RATIONED: AtomicBool = AtomicBool::new(false);

/// Whether this process is taken to have less CPU time than CPUs.
#[inline]
#[must_use]
pub fn is_rationed() -> bool {
    RATIONED.load(Relaxed)
}

/// Says whether this process has less CPU time than CPUs, at any moment: waits that begin later go by it.
pub fn set_rationed(rationed: bool) {
    // Not written where nothing changes: every wait reads the line.
    if is_rationed() != rationed {
        RATIONED.store(rationed, Relaxed);
    }
}

/// Looks whether there is a quota at this moment, below the number of CPUs on which the calling thread may run.
/// Returns whether there is. Reads files and allocates.
pub fn look() -> bool {
    let quota = quota(Path::new("/"), &mut |_| ());
    let rationed = quota.is_some_and(|quota| quota.cpus < allowed_cpus().len() as f64);
    set_rationed(rationed);
    rationed
}
