//! Loom: all schedules, up to a number of preemptions, and all values a load may return.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Outcome, quietly};
use crate::failure::{Failure, Kind};
use crate::machine::{Loom, Machine};
use crate::trace::{self, Role, Touched};

/// How far loom goes.
#[derive(Debug, Clone, Copy)]
pub struct LoomLimits {
    /// Preemptions per execution; `None` for all.
    pub preemptions: Option<usize>,
    /// The time after which the check is undecided.
    pub time: Duration,
}

/// Branches of one execution. Loom panics beyond; the trace finds deadlocks and endless loops
/// long before.
const MAX_BRANCHES: usize = 5_000;

/// Explores what `execute` does once, with so many threads.
pub fn explore(
    threads: usize,
    limits: LoomLimits,
    execute: impl Fn() + Send + Sync + 'static,
) -> Outcome {
    let mut builder = loom::model::Builder::new();
    builder.max_threads = threads;
    builder.max_branches = MAX_BRANCHES;
    builder.preemption_bound = limits.preemptions;
    // Loom's own limits end a run without a word; this crate's own says "undecided".
    builder.max_duration = None;
    builder.max_permutations = None;

    let executions = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    trace::begin_check();
    let result = {
        let executions = Arc::clone(&executions);
        quietly(|| {
            builder.check(move || {
                if begun.elapsed() > limits.time {
                    let message = format!("no answer after {:?}", limits.time);
                    Loom::abandon(Failure::new(Kind::Undecided, message));
                }
                executions.fetch_add(1, Relaxed);
                execute();
            });
        })
    };
    let touched = trace::touched();
    let failure = match (trace::take_failure(), result) {
        (Some(failure), _) => Some(failure),
        (None, Err(message)) => Some(classify(message, touched)),
        (None, Ok(())) => None,
    };
    trace::end();
    Outcome {
        executions: executions.load(Relaxed),
        failure,
        seed: None,
        coverage: trace::coverage(),
        took: begun.elapsed(),
    }
}

/// What loom itself complained about.
fn classify(message: String, touched: Option<Touched>) -> Failure {
    let kind = if message.contains("Causality violation") {
        match touched {
            Some(Touched::Data) => Kind::DataRace,
            Some(Touched::Word(Role::Lock { .. })) => Kind::Freed,
            Some(Touched::Word(_)) => Kind::NodeLife,
            None => Kind::Crash,
        }
    } else if message.contains("deadlock; threads") {
        Kind::Deadlock
    } else if message.contains("maximum number of branches") {
        Kind::Livelock
    } else {
        Kind::Crash
    };
    Failure { kind, message }
}
