//! How fair a lock is, in a run of its own: rounds that are long enough for a throughput are too
//! short to see every thread have its turns, where threads outnumber CPUs.

use std::time::Duration;

use super::found::{Fair, Found};
use super::plan::{Fairness, Plan};
use super::stand::Stand;
use super::waits::{Waits, merge};

/// One run for each cell whose lock has one, after all rounds.
/// Fails when a lock fails, or the machine cannot make the threads.
pub(super) fn run(plan: &Plan, found: &mut Found, stand: &mut Stand<'_>) -> anyhow::Result<()> {
    let Some(fairness) = &plan.fairness else { return Ok(()) };
    // Not an order of the rounds.
    let mut order = plan.by_cells(!plan.seed);
    order.retain(|&index| has_one(plan, index));
    stand.expect(order.len());
    for index in order {
        let cell = plan.cells[index];
        stand.say("fairness of ", cell);
        let job = plan.settings[cell.setting].job;
        let phases = (Duration::ZERO, fairness.length);
        let Some(measured) = stand.measure(cell, job, phases, cell.variant.counting)? else {
            found.partial = true;
            return Ok(());
        };
        let served = |classes: &Vec<Waits>| classes.iter().map(Waits::served).sum();
        found.cells[index].fair = Some(Fair {
            seconds: fairness.length.as_secs_f64(),
            served: measured.waits.iter().map(served).collect(),
            waits: merge(&measured.waits),
        });
    }
    Ok(())
}

/// Whether a cell's lock has a run of its own: one thread shares with no other.
pub fn has_one(plan: &Plan, cell: usize) -> bool {
    let named =
        |fairness: &Fairness| fairness.locks.contains(&plan.locks[plan.cells[cell].lock].name);
    let cell = &plan.cells[cell];
    cell.shown && cell.threads > 1 && plan.fairness.as_ref().is_some_and(named)
}
