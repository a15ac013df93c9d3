//! How well a simulation that has seen no measurement says what was measured.
//!
//! A cell is a load with as many threads; each lock of it is a *point*: its measured throughput and the simulated one.
//! Three questions, since a model may answer one and not another: how far off is a figure, is the order of the locks
//! right, and is a lock that is chosen by the simulation alone chosen well?

use std::collections::BTreeMap;

use qspin_reproduce::spearman;

/// A choice is a good one if it has this share of the best measured throughput of its cell.
pub const GOOD: f64 = 0.95;

/// One lock in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<'a> {
    /// The number of the cell.
    pub cell: usize,
    /// The lock.
    pub lock: &'a str,
    /// Throughput, as it was measured.
    pub measured: f64,
    /// The same, simulated.
    pub simulated: f64,
}

impl Point<'_> {
    /// The simulated figure over the measured one.
    pub fn ratio(&self) -> f64 {
        self.simulated / self.measured
    }

    fn error(&self) -> f64 {
        (self.ratio() - 1.0).abs()
    }
}

/// What many points say.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Points.
    pub points: usize,
    /// Cells, of which only those with two locks or more have an order and a choice.
    pub cells: usize,
    /// Mean of the errors: simulated over measured, less 1, without sign.
    pub mean_error: f64,
    /// Half of the errors are no larger.
    pub median_error: f64,
    /// Spearman's rank correlation of all points.
    pub rank_of_all: Option<f64>,
    /// Mean over the cells of the rank correlation of their locks.
    pub rank_in_cells: Option<f64>,
    /// Share of the cells in which the lock that the simulation puts first is a good choice.
    pub chosen: Option<f64>,
    /// The lock that is a good choice in most cells, if one lock were taken in all, and in which share it is one.
    pub constant: Option<(String, f64)>,
    /// The same share for a lock that is drawn.
    pub drawn: Option<f64>,
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Judges points; none if there are none. Figures must be positive.
pub fn score(points: &[Point<'_>]) -> Option<Score> {
    let mut errors: Vec<f64> = points.iter().map(Point::error).collect();
    let mean_error = mean(&errors)?;
    errors.sort_by(f64::total_cmp);
    let pair = |point: &Point<'_>| (point.measured, point.simulated);
    let mut cells: BTreeMap<usize, Vec<&Point<'_>>> = BTreeMap::new();
    for point in points {
        cells.entry(point.cell).or_default().push(point);
    }
    let (mut ranks, mut chosen, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
    // In how many cells each lock is a good choice, and in how many it takes part.
    let mut constant: BTreeMap<&str, usize> = BTreeMap::new();
    for of_cell in cells.values().filter(|of_cell| of_cell.len() > 1) {
        let pairs: Vec<(f64, f64)> = of_cell.iter().map(|point| pair(point)).collect();
        ranks.extend(spearman(&pairs));
        let best = pairs.iter().map(|it| it.0).fold(0.0, f64::max);
        let good = |point: &Point<'_>| point.measured >= GOOD * best;
        let first = of_cell.iter().max_by(|a, b| a.simulated.total_cmp(&b.simulated));
        chosen.extend(first.map(|first| f64::from(u8::from(good(first)))));
        let shares = of_cell.iter().filter(|point| good(point)).count() as f64;
        drawn.push(shares / of_cell.len() as f64);
        for point in of_cell {
            *constant.entry(point.lock).or_default() += usize::from(good(point));
        }
    }
    // Of locks that are as good the first by name.
    let constant = constant.into_iter().rev().max_by_key(|(_, good)| *good);
    let constant = constant.filter(|_| !chosen.is_empty());
    Some(Score {
        points: points.len(),
        cells: cells.len(),
        mean_error,
        median_error: errors[(errors.len() - 1) / 2],
        rank_of_all: spearman(&points.iter().map(pair).collect::<Vec<_>>()),
        rank_in_cells: mean(&ranks),
        constant: constant.map(|(lock, good)| (lock.to_owned(), good as f64 / chosen.len() as f64)),
        chosen: mean(&chosen),
        drawn: mean(&drawn),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[(usize, &'static str, f64, f64)]) -> Vec<Point<'static>> {
        let point = |&(cell, lock, measured, simulated)| Point { cell, lock, measured, simulated };
        of.iter().map(point).collect()
    }

    #[test]
    fn a_model_may_be_far_off_and_choose_well() {
        let twice = points(&[
            (0, "a", 1.0, 2.0),
            (0, "b", 2.0, 4.0),
            (0, "c", 3.0, 6.0),
            (1, "a", 5.0, 10.0),
            (1, "b", 4.0, 8.0),
            (1, "c", 3.0, 6.0),
        ]);
        let found = score(&twice).unwrap();
        assert_eq!((found.points, found.cells), (6, 2));
        assert_eq!((found.mean_error, found.median_error), (1.0, 1.0));
        assert_eq!((found.rank_in_cells, found.chosen), (Some(1.0), Some(1.0)));
        // One lock in all cells is good in one of two, and so is the best of them.
        assert_eq!(found.constant, Some(("a".to_owned(), 0.5)));
        assert!((found.drawn.unwrap() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_model_may_be_near_and_choose_badly() {
        let near = points(&[(7, "a", 1.00, 1.05), (7, "b", 1.10, 1.04), (8, "a", 1.0, 1.0)]);
        let found = score(&near).unwrap();
        assert!(found.mean_error < 0.04, "{found:?}");
        // A cell of one lock has no choice; two points have no rank correlation.
        assert_eq!((found.cells, found.chosen, found.rank_in_cells), (2, Some(0.0), None));
        assert_eq!(found.constant, Some(("b".to_owned(), 1.0)));
    }

    #[test]
    fn within_a_twentieth_of_the_best_is_a_good_choice() {
        let at = |second: f64| points(&[(0, "a", 1.0, 1.0), (0, "b", second, 2.0)]);
        assert_eq!(score(&at(0.951)).unwrap().chosen, Some(1.0));
        assert_eq!(score(&at(0.949)).unwrap().chosen, Some(0.0));
    }

    #[test]
    fn nothing_has_no_score() {
        assert_eq!(score(&[]), None);
    }
}
