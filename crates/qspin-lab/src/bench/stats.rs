//! Medians, their intervals, and fairness.

use crate::row::{Fairness, Interval, Spread};

/// The median; sorts `values`. Zero of nothing.
pub fn median(values: &mut [f64]) -> f64 {
    middle(values, f64::midpoint)
}

/// The median; of two in the middle, what is `between` them. Sorts `values`; zero of nothing.
pub fn middle(values: &mut [f64], between: impl Fn(f64, f64) -> f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) {
        between(values[half - 1], values[half])
    } else {
        values[half]
    }
}

/// Resamplings of the bootstrap.
const RESAMPLES: usize = 2_000;

/// The median and its 95 % interval.
pub fn interval(values: &[f64]) -> Interval {
    bootstrap(values, f64::midpoint)
}

/// The median and its 95 % interval by the percentile bootstrap: the medians of many samples
/// drawn from `values` with replacement. The seed is fixed: the same values have the same interval.
pub fn bootstrap(values: &[f64], between: impl Fn(f64, f64) -> f64) -> Interval {
    let mut random = fastrand::Rng::with_seed(0x7173_7069_6e00);
    let mut drawn = values.to_vec();
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for value in &mut drawn {
                *value = values[random.usize(..values.len())];
            }
            middle(&mut drawn, &between)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    // Rounded outwards.
    let tail = RESAMPLES * 25 / 1000;
    Interval {
        median: middle(&mut values.to_vec(), between),
        lo: medians[tail],
        hi: medians[RESAMPLES - 1 - tail],
    }
}

/// The mean and the standard deviation of a sample; `None` where a value is no number, or there
/// is none.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let std_dev = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    mean.is_finite().then_some(Spread { mean, std_dev })
}

/// Dice's fairness factor of one round: the share of the operations done by the busier half of
/// the threads. The middle one of an odd number counts half to each side. Where no thread was
/// served at all the factor is 1, the worst: standing still is not fairness.
pub fn dice_factor(operations: &[u64]) -> f64 {
    let total: u64 = operations.iter().sum();
    if total == 0 {
        return 1.0;
    }
    let mut sorted = operations.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let half = sorted.len() / 2;
    let mut busier = sorted[..half].iter().sum::<u64>() as f64;
    if !sorted.len().is_multiple_of(2) {
        busier += sorted[half] as f64 / 2.0;
    }
    busier / total as f64
}

/// Fairness over rounds: medians of the rounds' figures.
pub fn fairness(rounds: &[Vec<u64>]) -> Fairness {
    let mut factors: Vec<f64> = rounds.iter().map(|round| dice_factor(round)).collect();
    let mut ratios: Vec<f64> = rounds
        .iter()
        .map(|round| {
            let most = round.iter().copied().max().unwrap_or(0);
            let least = round.iter().copied().min().unwrap_or(0);
            // Infinite where a thread, or all of them, was never served.
            if least == 0 { f64::INFINITY } else { most as f64 / least as f64 }
        })
        .collect();
    let ratio = median(&mut ratios);
    Fairness { max_min: ratio.is_finite().then_some(ratio), factor: median(&mut factors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn an_interval_holds_its_median_and_is_reproducible() {
        let values = [10.0, 11.0, 9.0, 10.5, 30.0, 10.1, 9.9, 10.2, 10.3];
        let found = interval(&values);
        assert_eq!(found.median, 10.2);
        assert!(found.lo <= found.median && found.median <= found.hi);
        assert!(found.lo >= 9.0 && found.hi <= 30.0);
        assert_eq!(found, interval(&values));
        let one = interval(&[5.0]);
        assert_eq!((one.lo, one.median, one.hi), (5.0, 5.0, 5.0));
    }

    #[test]
    fn a_spread_is_that_of_a_sample() {
        let spread = |values: &[f64]| spread(values).map(|found| (found.mean, found.std_dev));
        assert_eq!(spread(&[1.0, 3.0]), Some((2.0, Some(2.0_f64.sqrt()))));
        assert_eq!(spread(&[5.0]), Some((5.0, None)));
        assert_eq!(spread(&[5.0, f64::INFINITY]), None);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn dices_factor_is_one_half_when_fair_and_one_when_starving() {
        assert_eq!(dice_factor(&[7]), 0.5);
        assert_eq!(dice_factor(&[10, 10, 10]), 0.5);
        assert_eq!(dice_factor(&[10, 10, 0, 0]), 1.0);
        assert_eq!(dice_factor(&[0, 30, 10, 20]), 50.0 / 60.0);
        assert_eq!(dice_factor(&[0, 0]), 1.0);
    }

    #[test]
    fn a_thread_without_operations_has_no_ratio() {
        let starving = fairness(&[vec![5, 0], vec![6, 0], vec![5, 5]]);
        assert_eq!(starving.max_min, None);
        let fair = fairness(&[vec![10, 5], vec![5, 5], vec![20, 5]]);
        assert_eq!(fair.max_min, Some(2.0));
        let standstill = fairness(&[vec![0, 0], vec![0, 0]]);
        assert_eq!((standstill.max_min, standstill.factor), (None, 1.0));
    }
}
