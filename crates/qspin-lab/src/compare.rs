//! Does A differ from B? The one place that decides it, for every table, sentence and page.
//!
//! The measurements are interleaved: a round measures every contender once. So the rounds are
//! *paired*: what disturbed a round disturbed both, and the ratio of one round knows less noise
//! than the two throughputs. What is compared is the median of the rounds' ratios with its 95 %
//! interval, by the bootstrap.
//!
//! Where only medians with intervals are at hand (rows of earlier versions, scores of a file), the
//! ratio's interval is that of the extremes: from the lower end of one over the upper end of the
//! other to the reverse. It lies around 1 where the two intervals overlap. This is wider than the
//! paired interval, so it finds fewer differences.
//!
//! # Invariants
//! * **COMPARE-1** A difference is clear where the interval leaves 1 out *and* the medians are
//!   [`SMALLEST`] apart: a sure difference of a hundredth is no reason to choose.
//! * **COMPARE-2** Fewer than [`FEWEST_ROUNDS`] rounds tell nothing apart.
//! * **COMPARE-3** A is better than B exactly when B is worse than A.

use qspin_table::number::plural;

use crate::bench::stats::{bootstrap, middle};
use crate::row::{Interval, Row};

/// The smallest difference that counts, as a share of the better one.
pub const SMALLEST: f64 = 0.02;

/// The fewest rounds that have a 95 % interval: the whole range of n rounds covers the median with
/// 1 − 2^(1−n), 0.94 with five and 0.97 with six.
pub const FEWEST_ROUNDS: usize = 6;

/// How one figure, of which more is better, stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Clearly more.
    Better,
    /// Clearly less.
    Worse,
    /// No clear difference.
    Level,
    /// From so few rounds nothing follows.
    TooFewRounds,
}

impl Outcome {
    /// Whether one of the two is better.
    pub fn is_clear(self) -> bool {
        matches!(self, Self::Better | Self::Worse)
    }

    /// What stands beside a ratio in a table, whose legend says what it means.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Better => "",
            Self::Worse => "▼",
            Self::Level => "≈",
            Self::TooFewRounds => "?",
        }
    }
}

/// What is known of one of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample<'a> {
    /// Its figure in each round.
    Rounds(&'a [f64]),
    /// The median of so many rounds, with its interval.
    Summary(Interval, u32),
}

impl Sample<'_> {
    /// How many rounds are behind it.
    pub fn rounds(self) -> usize {
        match self {
            Self::Rounds(rounds) => rounds.len(),
            Self::Summary(_, rounds) => rounds as usize,
        }
    }

    fn median(self) -> f64 {
        match self {
            Self::Rounds(rounds) => middle(&mut rounds.to_vec(), f64::midpoint),
            Self::Summary(interval, _) => interval.median,
        }
    }

    fn summary(self) -> Interval {
        match self {
            Self::Rounds(rounds) => bootstrap(rounds, f64::midpoint),
            Self::Summary(interval, _) => interval,
        }
    }
}

/// The throughput of a row.
impl<'a> From<&'a Row> for Sample<'a> {
    fn from(row: &'a Row) -> Self {
        if !row.round_ops_per_s.is_empty() && row.round_ops_per_s.len() == row.rounds as usize {
            Self::Rounds(&row.round_ops_per_s)
        } else {
            Self::Summary(row.ops_per_s, row.rounds)
        }
    }
}

/// One beside another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The one over the other, with its 95 % interval; not finite where the other stood still.
    pub ratio: Interval,
    /// What follows.
    pub outcome: Outcome,
}

/// How `own` stands to `other`; both are from one run, and more is better.
pub fn compare<'a>(own: impl Into<Sample<'a>>, other: impl Into<Sample<'a>>) -> Comparison {
    let (own, other) = (own.into(), other.into());
    let ratio = match (own, other) {
        (Sample::Rounds(own), Sample::Rounds(other)) if own.len() == other.len() => {
            paired(own, other)
        }
        _ => {
            let (own, other) = (own.summary(), other.summary());
            Interval {
                median: over(own.median, other.median),
                lo: over(own.lo, other.hi),
                hi: over(own.hi, other.lo),
            }
        }
    };
    Comparison { ratio, outcome: judge(ratio, own.rounds().min(other.rounds())) }
}

/// The same of rows of two runs: their rounds met different moments and do not pair, so the medians are compared
/// with their intervals.
pub fn compare_runs(own: &Row, other: &Row) -> Comparison {
    let summary = |row: &Row| Sample::Summary(row.ops_per_s, row.rounds);
    compare(summary(own), summary(other))
}

/// The ratio of [`compare`] alone, without its interval.
pub fn ratio<'a>(own: impl Into<Sample<'a>>, other: impl Into<Sample<'a>>) -> f64 {
    match (own.into(), other.into()) {
        (Sample::Rounds(own), Sample::Rounds(other)) if own.len() == other.len() => {
            middle(&mut ratios(own, other), mean)
        }
        (own, other) => over(own.median(), other.median()),
    }
}

/// The median of the ratios round by round, with its interval.
fn paired(own: &[f64], other: &[f64]) -> Interval {
    bootstrap(&ratios(own, other), mean)
}

fn ratios(own: &[f64], other: &[f64]) -> Vec<f64> {
    own.iter().zip(other).map(|(own, other)| over(*own, *other)).collect()
}

/// Between two ratios lies their geometric mean, so that the ratio of B to A is the inverse of that of A to B
/// (COMPARE-3).
fn mean(one: f64, other: f64) -> f64 {
    if one == other { one } else { one.sqrt() * other.sqrt() }
}

/// Two that stood still are level.
fn over(own: f64, other: f64) -> f64 {
    if own == other { 1.0 } else { own / other }
}

fn judge(ratio: Interval, rounds: usize) -> Outcome {
    if is_too_few(rounds) {
        Outcome::TooFewRounds
    } else if ratio.lo > 1.0 && 1.0 / ratio.median < 1.0 - SMALLEST {
        Outcome::Better
    } else if ratio.hi < 1.0 && ratio.median < 1.0 - SMALLEST {
        Outcome::Worse
    } else {
        Outcome::Level
    }
}

/// Whether so many rounds have no interval.
pub fn is_too_few(rounds: usize) -> bool {
    rounds < FEWEST_ROUNDS
}

/// `2 rounds are too few to tell locks apart: it takes at least 6`; none where they are enough.
pub fn too_few(rounds: usize, to: &str) -> Option<String> {
    is_too_few(rounds).then(|| {
        let are = if rounds == 1 { "is" } else { "are" };
        let rounds = plural(rounds as f64, "round");
        format!("{rounds} {are} too few {to}: it takes at least {FEWEST_ROUNDS}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rounds(own: &[f64], other: &[f64]) -> Comparison {
        compare(Sample::Rounds(own), Sample::Rounds(other))
    }

    fn of_summaries(own: Interval, other: Interval, rounds: u32) -> Outcome {
        compare(Sample::Summary(own, rounds), Sample::Summary(other, rounds)).outcome
    }

    /// One in a hundred to either side.
    fn about(median: f64) -> Interval {
        Interval { median, lo: median * 0.99, hi: median * 1.01 }
    }

    #[test]
    fn a_difference_is_clear_where_intervals_and_medians_are_apart() {
        assert_eq!(of_summaries(about(2e6), about(1e6), 9), Outcome::Better);
        assert_eq!(of_summaries(about(1e6), about(2e6), 9), Outcome::Worse);
        assert_eq!(of_summaries(about(1e6), about(1e6), 9), Outcome::Level);
        let narrow = |median| Interval { median, lo: median, hi: median };
        assert_eq!(of_summaries(narrow(1e6), narrow(1.01e6), 9), Outcome::Level);
        assert_eq!(of_summaries(narrow(1e6), narrow(1.05e6), 9), Outcome::Worse);
        assert_eq!(of_summaries(about(2e6), about(1e6), 5), Outcome::TooFewRounds);
    }

    #[test]
    fn rounds_are_compared_with_what_met_the_same_moment() {
        // The machine halves its speed in every other round; one is a tenth better in each.
        let other = [1000.0, 500.0, 1010.0, 495.0, 990.0, 505.0];
        let own = other.map(|rate| rate * 1.1);
        let found = of_rounds(&own, &other);
        assert_eq!(found.outcome, Outcome::Better);
        assert!((found.ratio.median - 1.1).abs() < 1e-12, "{found:?}");
        assert_eq!(ratio(Sample::Rounds(&own), Sample::Rounds(&other)), found.ratio.median);
        // The medians and their intervals alone do not tell it.
        let summary = |rounds: &[f64]| bootstrap(rounds, f64::midpoint);
        assert_eq!(of_summaries(summary(&own), summary(&other), 6), Outcome::Level);
    }

    #[test]
    fn the_smallest_effect_and_the_fewest_rounds_hold_for_pairs_too() {
        let ones = [1.0; 6];
        assert_eq!(of_rounds(&[1.01; 6], &ones).outcome, Outcome::Level);
        assert_eq!(of_rounds(&[0.99; 6], &ones).outcome, Outcome::Level);
        assert_eq!(of_rounds(&[1.03; 6], &ones).outcome, Outcome::Better);
        assert_eq!(of_rounds(&[0.97; 6], &ones).outcome, Outcome::Worse);
        assert_eq!(of_rounds(&[2.0; 5], &ones[..5]).outcome, Outcome::TooFewRounds);
        assert_eq!(of_rounds(&[], &[]).outcome, Outcome::TooFewRounds);
        let wild = [1.2, 0.9, 1.1, 0.95, 1.3, 0.8];
        assert_eq!(of_rounds(&wild, &ones).outcome, Outcome::Level);
    }

    #[test]
    fn the_other_way_round_is_the_inverse() {
        let (one, other) = ([3.0, 5.0, 4.0, 8.0, 7.0, 2.0], [2.0, 4.5, 4.1, 5.0, 6.0, 1.9]);
        let (there, back) = (of_rounds(&one, &other), of_rounds(&other, &one));
        for (there, back) in [
            (there.ratio.median, back.ratio.median),
            (there.ratio.lo, back.ratio.hi),
            (there.ratio.hi, back.ratio.lo),
        ] {
            assert!((there * back - 1.0).abs() < 1e-12, "{there} and {back}");
        }
        assert_eq!((there.outcome, back.outcome), (Outcome::Better, Outcome::Worse));
    }

    #[test]
    fn a_lock_that_stands_still_is_worse_and_two_that_do_are_level() {
        assert_eq!(of_rounds(&[0.0; 6], &[9.0; 6]).outcome, Outcome::Worse);
        assert_eq!(of_rounds(&[9.0; 6], &[0.0; 6]).outcome, Outcome::Better);
        assert_eq!(of_rounds(&[0.0; 6], &[0.0; 6]).outcome, Outcome::Level);
    }

    #[test]
    fn rounds_that_do_not_pair_are_compared_by_their_medians() {
        let own = compare(Sample::Rounds(&[3.0; 6]), Sample::Rounds(&[1.0; 7]));
        assert_eq!((own.ratio.median, own.outcome), (3.0, Outcome::Better));
        let own = compare(Sample::Rounds(&[3.0; 6]), Sample::Summary(about(1.0), 9));
        assert_eq!((own.ratio.median, own.outcome), (3.0, Outcome::Better));
    }

    #[test]
    fn too_few_rounds_say_how_many_it_takes() {
        assert_eq!(too_few(6, "to say"), None);
        assert_eq!(
            too_few(1, "to say").unwrap(),
            "1 round is too few to say: it takes at least 6."
        );
        assert_eq!(
            too_few(5, "to say").unwrap(),
            "5 rounds are too few to say: it takes at least 6."
        );
    }
}
