//! How long a pause instruction takes here: 5 ns on some processors, 50 on others.
//!
//! Waiters count time in pauses, so the pause is measured, in some microseconds, by the first thread of the
//! process that waits for a lock whose budgets are times. It takes no system call where the clock is read
//! without one. Threads that come at once all measure, and write much the same.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use qspin_core::processor::pause;

use super::clock::{Clock, Monotonic};

/// Pauses in one measurement.
const PAUSES: u32 = 32;
/// Of so many measurements the shortest counts: in the others the thread was interrupted, or the processor was
/// not awake yet.
const TIMES: u32 = 3;
/// The range of plausible results, in nanoseconds.
const RANGE: (u64, u64) = (1, 1000);

/// In nanoseconds; 0 until a thread has measured.
static PAUSE_NS: AtomicU32 = AtomicU32::new(0);

/// How long a pause takes, in nanoseconds.
#[inline]
pub(super) fn ns() -> u32 {
    match PAUSE_NS.load(Relaxed) {
        0 => measure(),
        known => known,
    }
}

#[cold]
fn measure() -> u32 {
    let once = || {
        let begin = Monotonic::now_ns();
        (0..PAUSES).for_each(|_| pause());
        Monotonic::now_ns().saturating_sub(begin)
    };
    let shortest = (0..TIMES).map(|_| once()).min().unwrap_or(0);
    let ns = (shortest / u64::from(PAUSES)).clamp(RANGE.0, RANGE.1) as u32;
    PAUSE_NS.store(ns, Relaxed);
    ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_measured_once_and_within_what_processors_do() {
        let first = ns();
        assert!((1..=1000).contains(&first), "{first} ns");
        assert_eq!(ns(), first);
    }
}
