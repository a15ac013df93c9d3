//! Running one check of a battery on one lock.

use std::sync::Arc;
use std::time::Duration;

use crate::battery::{Check, Program};
use crate::explore::{LoomLimits, Outcome};
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::trace::Coverage;
use crate::weakening::Weakening;

/// Operations before which an interrupt may come; no section of any lock has as many.
const MAX_OPERATIONS: u32 = 200;

/// The bound of a check, if it is to have at most `preemptions`.
#[must_use]
pub fn bound(check: &Check, preemptions: Option<usize>) -> Option<usize> {
    match (check.preemptions, preemptions) {
        (Some(own), Some(less)) => Some(own.min(less)),
        (own, less) => own.or(less),
    }
}

/// Runs a check under loom, with at most `preemptions` where that is less than its own bound.
#[must_use]
pub fn under_loom(
    subject: &Subject,
    check: &Check,
    weak: Option<Weakening>,
    preemptions: Option<usize>,
    time: Duration,
) -> Outcome {
    let limits = LoomLimits { preemptions: bound(check, preemptions), time };
    match &check.program {
        Program::One(scenario) => subject.loom(scenario, weak, limits),
        Program::EveryOperation(scenario) => {
            at_every_operation(|at| subject.loom(&Arc::new(scenario(at)), weak, limits))
        }
    }
}

/// Runs a scenario under loom once per operation at which the interrupt may come, until there
/// is no such operation any more.
fn at_every_operation(run: impl Fn(u32) -> Outcome) -> Outcome {
    let mut executions = 0;
    let mut coverage = Coverage::default();
    let mut took = Duration::ZERO;
    for at in 0..MAX_OPERATIONS {
        let outcome = run(at);
        executions += outcome.executions;
        took += outcome.took;
        coverage.merge(&outcome.coverage);
        if outcome.failure.is_some() || outcome.coverage.interrupts == 0 {
            return Outcome { executions, coverage, took, ..outcome };
        }
    }
    unreachable!("an execution has a context that takes {MAX_OPERATIONS} steps and more")
}

/// The scenario of this name in the battery of loom.
#[must_use]
pub fn loom_check(subject: &Subject, name: &str) -> Option<Check> {
    let mut all = crate::battery::for_loom(subject.traits());
    all.push(crate::battery::of_waiting_release());
    all.into_iter().find(|check| check.name() == name)
}

/// The scenario of this name in the battery of shuttle.
#[must_use]
pub fn shuttle_scenario(subject: &Subject, name: &str) -> Option<Arc<Scenario>> {
    crate::battery::for_shuttle(subject.traits()).into_iter().find(|check| check.name == name)
}
