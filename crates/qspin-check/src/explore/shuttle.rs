//! Shuttle: many schedules of more contexts.

use std::sync::Arc;
use std::time::Instant;

use super::scheduler::Seeded;
use super::{Outcome, Strategy, quietly};
use crate::failure::{Failure, Kind};
use crate::trace;

/// Which schedules shuttle runs.
#[derive(Debug, Clone, Copy)]
pub struct ShuttlePlan {
    /// How a schedule is made of its seed.
    pub strategy: Strategy,
    /// The seed of the first execution; each further one has the next.
    pub seed: u64,
    /// How many.
    pub executions: u64,
}

/// Steps of one execution; the trace finds endless loops long before.
const MAX_STEPS: usize = 1_000_000;

/// Explores what `execute` does once.
pub fn explore(plan: ShuttlePlan, execute: impl Fn() + Send + Sync + 'static) -> Outcome {
    let mut config = shuttle::Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(MAX_STEPS);
    config.silence_warnings = true;

    let execute = Arc::new(execute);
    let (mut executions, begun) = (0, Instant::now());
    let mut failed = None;
    trace::begin_check();
    let mut failure = None;
    // A failing execution ends without a panic, and the record of it with it; so one execution
    // at a time, which costs shuttle nothing worth saving.
    for number in 0..plan.executions {
        let seed = plan.seed.wrapping_add(number);
        let runner = shuttle::Runner::new(Seeded::new(plan.strategy, seed, 1), config.clone());
        executions += 1;
        let execute = Arc::clone(&execute);
        let result = quietly(|| runner.run(move || execute()));
        failure = match (trace::take_failure(), result) {
            (Some(failure), _) => Some(failure),
            (None, Err(message)) => Some(classify(message)),
            (None, Ok(_)) => None,
        };
        trace::end();
        if failure.is_some() {
            failed = Some(seed);
            break;
        }
    }
    let (seed, coverage, took) = (failed, trace::coverage(), begun.elapsed());
    Outcome { executions, failure, seed, coverage, took }
}

fn classify(message: String) -> Failure {
    let kind = if message.contains("exceeded max_steps") {
        Kind::Livelock
    } else if message.starts_with("deadlock!") {
        Kind::Deadlock
    } else {
        Kind::Crash
    };
    Failure { kind, message }
}
