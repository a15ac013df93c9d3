//! Work that takes a known time: a calibrated loop that touches no memory and reads no clock.

use std::hint::black_box;
use std::time::Instant;

/// Runs `steps` dependent multiplications; the result depends on all of them.
#[inline(always)]
pub fn busy(mut value: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        // A shift between the multiplications: the compiler cannot fold several steps into one.
        value = (value ^ (value >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    value
}

/// How long a step of [`busy`] takes on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    ns_per_step: f64,
}

impl Pace {
    /// Measures it: the best of many short tries, since interruptions only ever add time.
    pub fn calibrate() -> Self {
        const STEPS: u64 = 20_000;
        let mut best = f64::INFINITY;
        let mut value = 1;
        for _ in 0..200 {
            let start = Instant::now();
            value = black_box(busy(value, black_box(STEPS)));
            best = best.min(start.elapsed().as_secs_f64());
        }
        Self { ns_per_step: (best * 1e9 / STEPS as f64).max(0.01) }
    }

    /// How many steps take `ns` nanoseconds.
    pub fn steps(self, ns: u64) -> u64 {
        (ns as f64 / self.ns_per_step).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_work_has_more_steps_and_no_work_none() {
        let pace = Pace { ns_per_step: 2.0 };
        assert_eq!(pace.steps(0), 0);
        assert_eq!(pace.steps(100), 50);
        assert!(Pace::calibrate().steps(1_000_000) > 1000);
    }
}
