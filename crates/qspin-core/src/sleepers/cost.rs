//! The cost of sleeping and being woken, as measured on this machine.
//!
//! # Problem
//! How long should a waiter poll before it sleeps? Without knowing how long the lock will stay taken, for as long
//! as sleeping costs: then it never pays more than twice what it would have paid had it known. But that cost is a
//! few microseconds where the CPU that wakes is already running, some ten where the CPU has to leave a deep
//! sleep, and more in a guest, where each interrupt between CPUs is an exit. A constant is wrong for all machines
//! but one.
//!
//! # What is measured
//! Each thread that wakes another notes the time, and the woken thread computes how long ago that was. Of these
//! delays a low quantile is kept, one for the process: in the others the thread had no CPU to wake on, which is
//! not a cost of sleeping. Sleeping and being woken costs about twice that: what the sleeper waits, and what the
//! thread that wakes it pays on its way out of the critical section. The clock is read beside two system calls.
//!
//! # Source
//! Karlin, Manasse, McGeoch, Owicki, "Competitive randomized algorithms for non-uniform problems", SODA 1990;
//! Karlin, Li, Manasse, Owicki, "Empirical studies of competitive spinning for a shared-memory multiprocessor",
//! SOSP 1991.

use core::sync::atomic::Ordering::Relaxed;

use super::{SleepPlatform, Sleeper};
use crate::platform::AtomicWord;

/// The estimate before any thread has slept, in nanoseconds.
const UNKNOWN_NS: u32 = 6000;
/// No machine puts a thread to sleep and wakes it in less, in nanoseconds: a shorter delay is that of a thread
/// that was kicked on its way to sleep. Many such delays would make sleeping look free.
const MIN_NS: u32 = 1500;
/// The longest delay that is believed, in nanoseconds.
const MAX_NS: u32 = 50_000;
/// A longer delay raises the estimate by this part of it, a shorter one lowers it by four times as much: a fifth
/// of all delays is below the estimate.
const STEP: u32 = 64;

/// What it costs to sleep and to be woken, in nanoseconds.
#[inline]
#[must_use]
pub(super) fn ns<P: SleepPlatform>(p: &P) -> u32 {
    match p.wake_ns().map_or(0, |known| known.load(Relaxed)) {
        0 => UNKNOWN_NS,
        known => 2 * known,
    }
}

/// Notes that this sleeper is woken now; called before the sleeper can see it.
#[inline]
pub(super) fn kicks<P: SleepPlatform>(p: &P, sleeper: &Sleeper<P::Word, P::Address>) {
    if p.wake_ns().is_some() {
        // The low bits are enough: a delay is short.
        sleeper.woken_at.store(p.now_ns() as u32, Relaxed);
    }
}

/// Learns from the delay of this sleeper, which has slept and was woken.
#[inline]
pub(super) fn woke<P: SleepPlatform>(p: &P, sleeper: &Sleeper<P::Word, P::Address>) {
    let Some(known) = p.wake_ns() else { return };
    let delay = (p.now_ns() as u32).wrapping_sub(sleeper.woken_at.load(Relaxed));
    if delay < MIN_NS {
        return;
    }
    let before = known.load(Relaxed);
    let now = match before {
        0 => delay,
        _ if delay > before => before + before / STEP + 1,
        _ => before - before / (STEP / 4),
    };
    known.store(now.clamp(MIN_NS, MAX_NS), Relaxed);
}
