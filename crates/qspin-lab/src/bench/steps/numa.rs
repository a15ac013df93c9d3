//! The steps of the NUMA-aware lock.
//!
//! The order is that of document 002's patches. The first two, which make room for another order in
//! the slow path, are code and no switch: the line of the native lock has them. Nor has the fifth, by
//! which urgent waiters are never moved, a switch; it is in every line of `cna`. What came after the
//! series, here, follows: waiters that halt.

use qspin::tuning::Tuning;

use super::{Step, step};

/// The tunables that the steps set.
pub(super) const SETS: [&str; 2] = ["numa_threshold_ns", "numa_skip_bits"];

/// The longest threshold that can be set: longer than a phase, unless the user asks for long ones.
const NEVER: u32 = 1 << 30;
const MILLISECOND: u32 = 1_000_000;

/// All steps in their order.
pub(super) fn steps() -> Vec<Step> {
    vec![
        step("0-native", "0 native", "native", |_, _| {}),
        step("3-two-queues", "3 two queues", "cna", |tuning, _| {
            (tuning.numa_threshold_ns, tuning.numa_skip_bits) = (NEVER, 0);
        }),
        step("4-flush-10ms", "4 flush after 10 ms", "cna", |tuning, _| {
            tuning.numa_threshold_ns = 10 * MILLISECOND;
        }),
        step("4b-flush-1ms", "4' flush after 1 ms", "cna", |tuning, _| {
            tuning.numa_threshold_ns = MILLISECOND;
        }),
        step("6-shuffle-reduction", "6 shuffle reduction: cna", "cna", |tuning, _| {
            tuning.numa_skip_bits = Tuning::DEFAULT.numa_skip_bits;
        }),
        step("7-halting", "7 halting: cna-paravirt", "cna-paravirt", |_, _| {}),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{Series, steps, tuning};
    use super::*;
    use crate::tune::away_from_default;

    #[test]
    fn the_first_step_is_the_lock_that_the_series_begins_with_and_the_last_ones_are_the_defaults() {
        let steps = steps(Series::Numa);
        assert_eq!((steps[0].lock, steps[0].counting), ("native", false));
        assert!(away_from_default(&tuning(&steps[..1], Tuning::DEFAULT, 8)).is_empty());
        let queues = tuning(&steps[..2], Tuning::DEFAULT, 8);
        let threshold = Tuning::named("numa_threshold_ns").unwrap();
        assert_eq!((queues.numa_threshold_ns, queues.numa_skip_bits), (threshold.max, 0));
        for last in [steps.len() - 1, steps.len()] {
            assert!(away_from_default(&tuning(&steps[..last], Tuning::DEFAULT, 8)).is_empty());
        }
    }
}
