//! Shuttle: many schedules of more contexts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::scheduler::Seeded;
use super::{Outcome, Strategy, quietly};
use crate::failure::{Failure, Kind};
use crate::ledger;
use crate::machine::Shuttle;
use crate::scenario::Scenario;
use crate::subject::Family;
use crate::world::execute;

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

/// Steps of one execution; the ledger finds endless loops long before.
const MAX_STEPS: usize = 1_000_000;

/// Explores a scenario.
pub fn explore<F: Family>(scenario: &Arc<Scenario>, plan: ShuttlePlan) -> Outcome {
    let mut config = shuttle::Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(MAX_STEPS);
    config.silence_warnings = true;

    let begun = Arc::new(AtomicU64::new(0));
    let failed = Arc::new(AtomicU64::new(u64::MAX));
    ledger::begin_check();
    let mut failure = None;
    // A failing execution ends without a panic, and the record of it with it; so one execution
    // at a time, which costs shuttle nothing worth saving.
    for number in 0..plan.executions {
        let seed = plan.seed.wrapping_add(number);
        let runner = shuttle::Runner::new(Seeded::new(plan.strategy, seed, 1), config.clone());
        begun.fetch_add(1, Relaxed);
        let scenario = Arc::clone(scenario);
        let result = quietly(|| runner.run(move || execute::<F, Shuttle>(&scenario, None)));
        failure = match (ledger::take_failure(), result) {
            (Some(failure), _) => Some(failure),
            (None, Err(message)) => Some(classify(message)),
            (None, Ok(_)) => None,
        };
        ledger::end();
        if failure.is_some() {
            failed.store(seed, Relaxed);
            break;
        }
    }
    Outcome {
        executions: begun.load(Relaxed),
        seed: failure.is_some().then(|| failed.load(Relaxed)),
        failure,
        coverage: ledger::coverage(),
    }
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
