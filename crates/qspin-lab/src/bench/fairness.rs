//! How fair a lock is, in a run of its own: rounds that are long enough for a throughput are too
//! short to see every thread have its turns, where threads outnumber CPUs.

use std::time::Duration;

use indicatif::ProgressBar;
use quanta::Clock;

use super::interrupt::Interrupt;
use super::plan::Plan;
use super::session::{Found, measure, merge};
use super::surroundings::Surroundings;
use super::waits::Waits;

/// What the run of a cell has shown.
#[derive(Debug)]
pub struct Fair {
    /// How long it was to last, s.
    pub seconds: f64,
    /// How often each thread got the lock.
    pub served: Vec<u64>,
    /// The waits, by class of operation; those in progress at the end count with their age.
    pub waits: Vec<Waits>,
}

/// One run for each cell whose lock has one, after all rounds.
///
/// # Errors
///
/// When a lock fails, or the machine cannot make the threads.
pub(super) fn run(
    plan: &Plan,
    found: &mut Found,
    clock: &Clock,
    interrupt: &Interrupt,
    around: &mut Surroundings,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let Some(fairness) = &plan.fairness else { return Ok(()) };
    // Not an order of the rounds.
    let mut order = plan.by_cells(!plan.seed);
    order.retain(|&index| has_one(plan, index));
    bar.reset();
    bar.set_length(order.len() as u64);
    for index in order {
        let cell = plan.cells[index];
        bar.set_message(format!("fairness of {} × {}", plan.short_name(cell), cell.threads));
        around.arrange(plan, cell)?;
        let job = plan.settings[cell.setting].job;
        let phases = (Duration::ZERO, fairness.length);
        let Some(measured) = measure(plan, cell, job, phases, clock, interrupt)? else {
            found.partial = true;
            return Ok(());
        };
        let served = |classes: &Vec<Waits>| classes.iter().map(Waits::served).sum();
        found.cells[index].fair = Some(Fair {
            seconds: fairness.length.as_secs_f64(),
            served: measured.waits.iter().map(served).collect(),
            waits: merge(&measured.waits),
        });
        bar.inc(1);
    }
    Ok(())
}

/// Whether a cell's lock has a run of its own.
#[must_use]
pub fn has_one(plan: &Plan, cell: usize) -> bool {
    let named = |fairness: &super::plan::Fairness| {
        fairness.locks.contains(&plan.locks[plan.cells[cell].lock].name)
    };
    plan.cells[cell].shown && plan.fairness.as_ref().is_some_and(named)
}
