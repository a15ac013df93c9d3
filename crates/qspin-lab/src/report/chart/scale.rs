//! From a value to a place on an axis, and where the ticks are.

/// A scale between two values, linear or logarithmic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear {
        /// The value at 0.
        lo: f64,
        /// The value at 1.
        hi: f64,
    },
    /// Equal ratios are equally long.
    Log {
        /// The value at 0, more than zero.
        lo: f64,
        /// The value at 1.
        hi: f64,
    },
}

/// From this ratio of the largest to the smallest value on, a linear axis would hide the small.
const SPAN_OF_LOG: f64 = 20.0;

/// A tick of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// Whether the tick has a number beside it; the others are faint lines only.
    pub major: bool,
}

impl Scale {
    /// A scale from zero over all values, or a logarithmic one where they span decades.
    #[must_use]
    pub fn fit(values: impl Iterator<Item = f64> + Clone) -> Self {
        let hi = values.clone().fold(0.0, f64::max);
        let lo = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        if hi <= 0.0 {
            return Self::Linear { lo: 0.0, hi: 1.0 };
        }
        if hi / lo >= SPAN_OF_LOG {
            return Self::log(lo, hi);
        }
        Self::Linear { lo: 0.0, hi: hi * 1.06 }
    }

    /// A logarithmic scale with a little air at both ends.
    #[must_use]
    pub fn log(lo: f64, hi: f64) -> Self {
        // A span of less than a factor of four would show no labelled tick.
        let stretch = (4.0 / (hi / lo)).max(1.0).sqrt();
        Self::Log { lo: lo / 1.25 / stretch, hi: hi * 1.25 * stretch }
    }

    /// Whether equal ratios are equally long.
    #[must_use]
    pub fn is_log(&self) -> bool {
        matches!(self, Self::Log { .. })
    }

    /// The place of a value between 0 and 1; what lies outside is put to the end.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let place = match *self {
            Self::Linear { lo, hi } => (value - lo) / (hi - lo),
            // Zero has no logarithm: it lies at the bottom.
            Self::Log { lo, hi } => (value.max(lo) / lo).ln() / (hi / lo).ln(),
        };
        place.clamp(0.0, 1.0)
    }

    /// The ticks inside the scale, ascending.
    #[must_use]
    pub fn ticks(&self) -> Vec<Tick> {
        match *self {
            Self::Linear { lo, hi } => linear_ticks(lo, hi),
            Self::Log { lo, hi } => log_ticks(lo, hi),
        }
    }
}

/// About five round steps: 1, 2 or 5 times a power of ten.
fn linear_ticks(lo: f64, hi: f64) -> Vec<Tick> {
    let rough = (hi - lo) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let first = (lo / step).ceil() as i64;
    let last = (hi / step).floor() as i64;
    (first..=last).map(|n| Tick { value: n as f64 * step, major: true }).collect()
}

/// Powers of ten have numbers; 2 and 5 have them too where there are few powers.
fn log_ticks(lo: f64, hi: f64) -> Vec<Tick> {
    let few = (hi / lo).log10() < 2.5;
    let first = lo.log10().floor() as i32;
    let last = hi.log10().ceil() as i32;
    let mut ticks = Vec::new();
    for power in first..=last {
        for digit in 1..10 {
            let value = f64::from(digit) * 10_f64.powi(power);
            if (lo..=hi).contains(&value) {
                ticks.push(Tick { value, major: digit == 1 || few && matches!(digit, 2 | 5) });
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapse_makes_the_axis_logarithmic() {
        assert!(Scale::fit([1.0, 19.0].into_iter()) == Scale::Linear { lo: 0.0, hi: 19.0 * 1.06 });
        assert!(Scale::fit([1.0, 40.0].into_iter()).is_log());
    }

    #[test]
    fn zero_and_nothing_have_a_place() {
        let scale = Scale::fit([0.0, 1.0, 1000.0].into_iter());
        assert!(scale.is_log());
        assert!(scale.place(0.0).abs() < 1e-9);
        let empty = Scale::fit(std::iter::empty());
        assert!(empty.place(0.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let linear: Vec<f64> =
            Scale::Linear { lo: 0.0, hi: 5.3e6 }.ticks().iter().map(|tick| tick.value).collect();
        assert_eq!(linear, [0.0, 2e6, 4e6]);
        let scale = Scale::log(0.03, 5.0);
        let major: Vec<f64> =
            scale.ticks().iter().filter(|tick| tick.major).map(|tick| tick.value).collect();
        assert_eq!(major.len(), 7, "{major:?}");
        assert!(scale.ticks().iter().all(|tick| {
            let place = scale.place(tick.value);
            place > 0.0 && place < 1.0
        }));
    }
}
