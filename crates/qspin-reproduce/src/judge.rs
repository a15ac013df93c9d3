//! How far a simulated table is from the published one.
//!
//! Errors are fractions: simulated / published - 1, without sign. A table's *ratio* is new over old, as
//! its head says. The null model says that every ratio is 1.

use serde::Serialize;

use super::{CellPlan, Role};
use crate::published::{Ratio, Table};

/// A published figure beside the simulated one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// What names the row.
    pub row: String,
    /// The column.
    pub column: String,
    /// What the document prints; none where it only says which way.
    pub published: Option<f64>,
    /// What it says in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// What the simulation gives; none where it is not simulated, or has no such figure.
    pub simulated: Option<f64>,
    /// `calibrated`, `predicted` or `given`.
    pub role: &'static str,
    /// Of the simulated figure.
    pub error: Option<f64>,
    /// Whether what is said in words is true of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
}

/// Errors of several cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Cells that were simulated.
    #[serde(rename = "simulated_cells")]
    pub cells: usize,
    /// Mean error of the ratios of new to old; none where the table compares nothing.
    pub ratio_mae: Option<f64>,
    /// Mean error of the figures.
    pub value_mae: Option<f64>,
    /// Mean error of the ratios if there were no difference anywhere.
    pub null_mae: Option<f64>,
    /// Spearman's rank correlation of the ratios, or of the figures of a table without.
    pub rank_correlation: Option<f64>,
    /// The largest error of a figure.
    pub max_cell_error: Option<f64>,
    /// Statements in words.
    #[serde(skip_serializing_if = "is_zero")]
    pub claims: usize,
    /// Those of them that are true of the simulation.
    #[serde(skip_serializing_if = "is_zero")]
    pub claims_agreed: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A table and its errors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Its name.
    pub table: String,
    /// The unit of the figures.
    pub unit: String,
    /// Every published figure.
    pub cells: Vec<Cell>,
    /// Errors of all cells that were simulated.
    #[serde(flatten)]
    pub all: Summary,
    /// Errors of those to which nothing was fitted.
    pub predicted: Summary,
}

/// Puts the simulated figures beside the published ones. `simulated` has one for each of `plans`, scale
/// and all.
#[must_use]
pub fn judge(table: &Table, plans: &[CellPlan], simulated: &[Option<f64>]) -> Verdict {
    let find = |row: usize, column: usize| {
        let at = plans.iter().position(|plan| (plan.row, plan.column) == (row, column));
        at.map(|at| (&plans[at], simulated[at]))
    };
    // What is gained in percent is a surplus over 1.
    let as_ratio = |figure: f64| match table.ratio {
        Ratio::Percent => 1.0 + figure / 100.0,
        _ => figure,
    };
    let (mut cells, mut claims) = (Vec::new(), (0, 0));
    // Published, simulated, and whether something was fitted to it.
    let (mut values, mut ratios) = (Vec::new(), Vec::new());
    for (row, published) in table.rows.iter().enumerate() {
        for &column in &table.values {
            let found = find(row, column);
            let claim = found.and_then(|(plan, _)| plan.claim.as_ref());
            // A number beside a statement without one is no result: how many clients there were.
            let figure = match claim {
                Some(claim) if table.ratio == Ratio::None => claim.figure,
                Some(claim) => claim.figure.or(published.cells[column]),
                None => published.cells[column],
            };
            if figure.is_none() && claim.is_none() {
                continue;
            }
            let here = found.and_then(|(_, figure)| figure);
            let role = found.map_or(Role::Predicted, |(plan, _)| plan.role);
            let pair = figure.zip(here).filter(|_| role != Role::Given);
            let pair = pair.map(|(it, here)| (as_ratio(it), as_ratio(here)));
            values.extend(pair.map(|(it, here)| (it, here, role == Role::Calibrated)));
            let agrees = claim.zip(here).map(|(claim, here)| claim.agrees(here));
            claims.0 += usize::from(agrees.is_some());
            claims.1 += usize::from(agrees == Some(true));
            let stated = claim.and_then(|claim| claim.column.as_ref());
            cells.push(Cell {
                row: table.row_name(published),
                column: stated.unwrap_or(&table.columns[column]).clone(),
                published: figure,
                claim: claim.map(|claim| claim.words.clone()),
                simulated: here,
                role: role.name(),
                error: pair.map(|(it, here)| error(it, here)),
                agrees,
            });
        }
        let Ratio::Columns(quotients) = &table.ratio else { continue };
        for it in quotients {
            let printed = published.cells[it.new].zip(published.cells[it.old]);
            let ours = find(row, it.new).zip(find(row, it.old));
            if let Some(((new, old), ((plan, Some(our_new)), (other, Some(our_old))))) =
                printed.zip(ours)
            {
                let fitted = [plan, other].iter().all(|plan| plan.role == Role::Calibrated);
                ratios.push((new / old, our_new / our_old, fitted));
            }
        }
    }
    if matches!(table.ratio, Ratio::Cells | Ratio::Percent) {
        ratios.clone_from(&values);
    }
    let unfitted =
        |all: &[(f64, f64, bool)]| all.iter().copied().filter(|cell| !cell.2).collect::<Vec<_>>();
    let mut all = summary(&values, &ratios);
    (all.claims, all.claims_agreed) = claims;
    Verdict {
        table: table.name.clone(),
        unit: table.comments.get("unit").cloned().unwrap_or_default(),
        cells,
        predicted: summary(&unfitted(&values), &unfitted(&ratios)),
        all,
    }
}

fn error(published: f64, simulated: f64) -> f64 {
    (simulated / published - 1.0).abs()
}

fn summary(values: &[(f64, f64, bool)], ratios: &[(f64, f64, bool)]) -> Summary {
    let errors =
        |of: &[(f64, f64, bool)]| of.iter().map(|it| error(it.0, it.1)).collect::<Vec<_>>();
    let null: Vec<f64> = ratios.iter().map(|it| error(it.0, 1.0)).collect();
    let of_values = errors(values);
    Summary {
        cells: values.len(),
        ratio_mae: mean(&errors(ratios)),
        value_mae: mean(&of_values),
        null_mae: mean(&null),
        rank_correlation: rank_correlation(if ratios.len() > 2 { ratios } else { values }),
        max_cell_error: of_values.into_iter().reduce(f64::max),
        claims: 0,
        claims_agreed: 0,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn rank_correlation(pairs: &[(f64, f64, bool)]) -> Option<f64> {
    spearman(&pairs.iter().map(|&(one, other, _)| (one, other)).collect::<Vec<_>>())
}

/// Spearman's rank correlation of pairs; none of fewer than three, or where one side is all alike.
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let ours = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let theirs = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>()
    };
    let spread = (product(&ours, &ours) * product(&theirs, &theirs)).sqrt();
    (spread > 0.0).then(|| product(&ours, &theirs) / spread)
}

/// Ranks from 0; those that are alike share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|&&other| other < value).count() as f64;
    let alike = |value: f64| values.iter().filter(|&&other| other == value).count() as f64;
    values.iter().map(|&value| below(value) + (alike(value) - 1.0) / 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(f64, f64)]) -> Vec<(f64, f64, bool)> {
        pairs.iter().map(|&(a, b)| (a, b, false)).collect()
    }

    #[test]
    fn ranks_are_correlated_as_spearman_says() {
        let same = rank_correlation(&pairs(&[(1.0, 10.0), (2.0, 20.0), (3.0, 90.0)]));
        assert!((same.unwrap() - 1.0).abs() < 1e-12);
        let other = rank_correlation(&pairs(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]));
        assert!((other.unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(rank_correlation(&pairs(&[(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)])), None);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [1.5, 0.0, 1.5]);
    }

    #[test]
    fn errors_are_fractions_beside_the_null_model() {
        let values = pairs(&[(10.0, 11.0), (20.0, 15.0)]);
        let it = summary(&values, &pairs(&[(2.0, 1.0)]));
        assert!((it.value_mae.unwrap() - 0.175).abs() < 1e-12);
        assert_eq!((it.ratio_mae, it.null_mae), (Some(0.5), Some(0.5)));
        assert_eq!(it.max_cell_error, Some(0.25));
    }
}
