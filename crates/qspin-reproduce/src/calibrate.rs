//! The search for constants.
//!
//! # Model
//! The error of a set of constants is the mean square of ln(simulated / published) over the study's
//! calibrated cells; the scale, where there is one, is the one that makes the mean of the logarithms
//! zero. A third of the evaluations are random points of the knobs' box, by the seed; the rest step
//! from the best so far, each knob by a random part of a step that shrinks. The first evaluation is
//! where the knobs start. Nothing else is ever looked at, and the same seed finds the same constants.

use std::collections::BTreeMap;

use super::{Calibrated, CellPlan, Constants, Role, Study, cells};
use crate::published;
use qspin_sim::batch::{self, Job};
use qspin_sim::engine::Random;

/// After an evaluation: how many there were, and the best error so far.
pub type Progress<'a> = &'a (dyn Fn(u32, f64) -> bool + Sync);

/// Searches for the constants of a study, with those of the others as they are in `constants`. `None`
/// if `progress` says to stop before the first evaluation is done.
///
/// # Errors
/// A scenario that is impossible, or whose lock fails.
pub fn calibrate(
    study: &Study,
    constants: &Constants,
    evaluations: u32,
    seed: u64,
    progress: Progress<'_>,
) -> Result<Option<Calibrated>, String> {
    let mut random = Random::new(seed);
    let knobs = &study.knobs;
    let mut best: Option<(f64, Vec<f64>, Calibrated)> = None;
    // Without a constant there is only the scale to find.
    let evaluations = if knobs.is_empty() { 1 } else { evaluations.max(1) };
    for number in 0..evaluations {
        let point: Vec<f64> = match &best {
            None => knobs.iter().map(|knob| knob.place(knob.start)).collect(),
            Some(_) if number <= evaluations / 3 => knobs.iter().map(|_| random.unit()).collect(),
            Some((_, from, _)) => {
                let left = f64::from(evaluations - number) / f64::from(evaluations);
                let step = 0.25 * left;
                let moved = |&at: &f64| (at + step * (2.0 * random.unit() - 1.0)).clamp(0.0, 1.0);
                from.iter().map(moved).collect()
            }
        };
        let values: BTreeMap<String, f64> = knobs
            .iter()
            .zip(&point)
            .map(|(knob, &at)| (knob.name.clone(), rounded(knob.at(at))))
            .collect();
        let mut found = Calibrated { values, seed, scale: 1.0, ..Calibrated::default() };
        let error = evaluate(study, constants, &mut found)?;
        if best.as_ref().is_none_or(|(least, ..)| error < *least) {
            found.search = format!(
                "{evaluations} evaluations: random points, then shrinking steps from the best"
            );
            best = Some((error, point, found));
        }
        if !progress(number + 1, best.as_ref().map_or(error, |it| it.0)) {
            break;
        }
    }
    Ok(best.map(|(_, _, found)| found))
}

/// Four digits: more would pretend.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let digits = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * digits).round() / digits
}

/// The error of these constants; fills in what follows from them.
fn evaluate(study: &Study, constants: &Constants, found: &mut Calibrated) -> Result<f64, String> {
    let mut with = constants.clone();
    with.0.insert(study.name.clone(), found.clone());
    let mut plans: Vec<(CellPlan, f64, String)> = Vec::new();
    for name in &study.tables {
        let table = published::table(name).map_err(|error| error.to_string())?;
        for plan in cells(&table, &with)?.into_iter().filter(|it| it.role == Role::Calibrated) {
            let row = &table.rows[plan.row];
            let Some(figure) = row.cells[plan.column] else { continue };
            let cell = format!("{name}: {}, {}", table.row_name(row), table.columns[plan.column]);
            plans.push((plan, figure, cell));
        }
    }
    let jobs: Vec<Job> = plans
        .iter()
        .flat_map(|(plan, ..)| plan.scenarios.iter().map(|it| (it.clone(), found.seed)))
        .collect();
    let mut results = batch::run(&jobs, |_, _| true).into_iter();
    // Of each cell the logarithm of simulated over published, and whether the scale applies.
    let mut logs = Vec::new();
    for (plan, figure, cell) in &plans {
        let of_cell = results.by_ref().take(plan.scenarios.len()).flatten().collect();
        let value = plan.value(of_cell).map_err(|failure| format!("{cell}: {failure}"))?;
        let log = value.filter(|value| *value > 0.0).map_or(5.0, |value| (value / figure).ln());
        logs.push((log, plan.scaled));
    }
    let scaled: Vec<f64> = logs.iter().filter(|log| log.1).map(|log| log.0).collect();
    let shift = if study.scaled && !scaled.is_empty() {
        scaled.iter().sum::<f64>() / scaled.len() as f64
    } else {
        0.0
    };
    let errors = logs.iter().map(|&(log, scaled)| if scaled { log - shift } else { log });
    let errors: Vec<f64> = errors.collect();
    let count = errors.len().max(1) as f64;
    found.scale = rounded((-shift).exp());
    found.cells = plans.into_iter().map(|plan| plan.2).collect();
    found.error = rounded(errors.iter().map(|log| (log.exp() - 1.0).abs()).sum::<f64>() / count);
    Ok(errors.iter().map(|log| log * log).sum::<f64>() / count)
}
