//! One wait for a lock, which is measured or not.
//!
//! A look at the clock costs as much as an acquisition, and the second one keeps the others waiting. So the first 64
//! waits of a lock are measured, then one in 16 of each thread, which counts for all of these; and those of 20 ms and
//! more always are, by a clock that costs little and ticks in milliseconds.

use super::is_on;
use crate::deadline::{coarse_ns, now_ns};
use crate::thread;

/// So many waits of a lock are measured each.
pub(super) const FIRST_WAITS: u64 = 64;
/// Later one in so many.
const SAMPLE: u32 = 16;
/// Waits of this length are always measured: two ticks of the slowest clock.
const LONG_NS: u64 = 20_000_000;

/// A wait that may be measured.
pub(crate) struct Wait {
    /// When it began; 0 if that is not measured.
    since: u64,
    coarse: u64,
    /// How many waits it stands for.
    weight: u32,
}

impl Wait {
    /// It begins, and is one of the first of its lock, or comes after many.
    pub(super) fn begin(after_many: bool) -> Self {
        if !is_on() {
            return Self { since: 0, coarse: 0, weight: 0 };
        }
        let weight = if !after_many {
            1
        } else if thread::tick().is_multiple_of(SAMPLE) {
            SAMPLE
        } else {
            0
        };
        Self { since: if weight > 0 { now_ns() } else { 0 }, coarse: coarse_ns(), weight }
    }

    /// It is over: how long it took, in nanoseconds, and how many waits that stands for; if it was measured.
    #[inline]
    pub(super) fn end(&self) -> Option<(u64, u32)> {
        let coarse = coarse_ns().saturating_sub(self.coarse);
        if coarse >= LONG_NS {
            // A long one stands for itself alone, since each of them is here.
            let exact = if self.weight > 0 { now_ns().saturating_sub(self.since) } else { coarse };
            return Some((exact, 1));
        }
        (self.weight > 0).then(|| (now_ns().saturating_sub(self.since), self.weight))
    }
}
