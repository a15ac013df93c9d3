//! Many simulations, on as many threads as this computer has processors.
//!
//! Which thread runs which does not matter to any of them: they share nothing, and the results come
//! back in the order in which they were asked for.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::simulate::simulate;

/// A scenario and its seed.
pub type Job = (Scenario, u64);

/// Runs every job, and calls `done` after each with its number and how it ended; `done` says whether
/// to go on. What was not run is `None`.
pub fn run(
    jobs: &[Job],
    done: impl Fn(usize, &Result<Outcome, Failure>) -> bool + Sync,
) -> Vec<Option<Result<Outcome, Failure>>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(jobs.len());
    let next = AtomicUsize::new(0);
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((scenario, seed)) = jobs.get(number) else { return };
                    let result = simulate(scenario, *seed);
                    let goes_on = done(number, &result);
                    if let Ok(mut place) = results[number].lock() {
                        *place = Some(result);
                    }
                    if !goes_on {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    results.into_iter().map(|it| it.into_inner().unwrap_or(None)).collect()
}
