//! Many simulations, on as many threads as this computer has processors.
//!
//! Which thread runs which does not matter to any of them: they share nothing, and the results come
//! back in the order in which they were asked for. What is asked for twice is simulated once: a table often
//! has several figures of one run.

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
    let same_as: Vec<usize> = jobs
        .iter()
        .enumerate()
        .map(|(number, job)| jobs[..number].iter().position(|it| it == job).unwrap_or(number))
        .collect();
    let next = AtomicUsize::new(0);
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((scenario, seed)) = jobs.get(number) else { return };
                    if same_as[number] != number {
                        continue;
                    }
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
    let mut results: Vec<_> =
        results.into_iter().map(|it| it.into_inner().unwrap_or(None)).collect();
    for (number, &first) in same_as.iter().enumerate().filter(|&(number, &first)| first < number) {
        results[number] = results[first].clone();
        if let Some(result) = &results[number] {
            done(number, result);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_is_asked_for_twice_is_simulated_once_and_told_twice() {
        let text = include_str!("../tests/simulator/scenarios/small.toml");
        let scenario = Scenario::from_toml(text).unwrap();
        let other = Scenario { cpus: scenario.cpus - 1, ..scenario.clone() };
        let jobs = [(scenario.clone(), 1), (other, 1), (scenario.clone(), 2), (scenario, 1)];
        let told = Mutex::new(Vec::new());
        let results = run(&jobs, |number, _| {
            told.lock().unwrap().push(number);
            true
        });
        let hash = |number: usize| results[number].as_ref().unwrap().as_ref().unwrap().hash;
        assert_eq!(hash(0), hash(3));
        assert!(hash(0) != hash(1) && hash(0) != hash(2));
        let mut told = told.into_inner().unwrap();
        told.sort_unstable();
        assert_eq!(told, [0, 1, 2, 3]);
    }
}
