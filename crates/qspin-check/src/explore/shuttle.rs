//! Shuttle: many schedules of more contexts.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
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

    let begun = Instant::now();
    trace::begin_check();
    let executions = Arc::new(AtomicU64::new(0));
    let schedules = Seeded::new(plan.strategy, plan.seed, plan.executions, Arc::clone(&executions));
    // One run for all, which reuses the stacks of the contexts. It ends after a failure, whose record is still there.
    let result = quietly(|| shuttle::Runner::new(schedules, config).run(execute));
    let failure = match (trace::take_failure(), result) {
        (Some(failure), _) => Some(failure),
        (None, Err(message)) => Some(classify(message)),
        (None, Ok(_)) => None,
    };
    trace::end();
    let executions = executions.load(Relaxed);
    let seed = failure.is_some().then(|| plan.seed.wrapping_add(executions - 1));
    Outcome { executions, failure, seed, coverage: trace::coverage(), took: begun.elapsed() }
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
