//! Many simulations, on as many threads as this computer has processors.
//!
//! It does not matter which thread runs which simulation: they share nothing, and the results come back in the
//! order in which they were asked for. A simulation that is asked for twice runs once: a table often has
//! several figures of one run.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::simulate::simulate;

/// A scenario and its seed.
pub type Job = (Scenario, u64);

/// The result of a job; none if it was not run to its end.
pub type Ended = Option<Result<Outcome, Failure>>;

/// How often it is checked whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Runs every job, and calls `done` after each with its number and its result; `done` returns whether to go on.
/// A job that was not run is `None`.
pub fn run(jobs: &[Job], done: impl FnMut(usize, &Result<Outcome, Failure>) -> bool) -> Vec<Ended> {
    run_until(jobs, || false, done)
}

/// The same, but as soon as `stopped` is true it returns with the jobs that have ended by then. Jobs in
/// progress, which may take as long as they like, are abandoned: their threads end with the program.
pub fn run_until(
    jobs: &[Job],
    stopped: impl Fn() -> bool,
    mut done: impl FnMut(usize, &Result<Outcome, Failure>) -> bool,
) -> Vec<Ended> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(jobs.len());
    let mut results: Vec<Ended> = jobs.iter().map(|_| None).collect();
    let first = firsts(jobs);
    let distinct: Arc<[usize]> = (0..jobs.len()).filter(|&it| first[it] == it).collect();
    let jobs: Arc<[Job]> = jobs.into();
    let next = Arc::new(AtomicUsize::new(0));
    let (send, receive) = mpsc::channel();
    for _ in 0..threads {
        let (jobs, distinct) = (Arc::clone(&jobs), Arc::clone(&distinct));
        let (next, send) = (Arc::clone(&next), send.clone());
        thread::spawn(move || {
            loop {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                let Some(&number) = distinct.get(turn) else { return };
                let (scenario, seed) = &jobs[number];
                if send.send((number, simulate(scenario, *seed))).is_err() {
                    return;
                }
            }
        });
    }
    drop(send);
    loop {
        match receive.recv_timeout(LOOK) {
            Ok((number, result)) => {
                for same in (number..jobs.len()).filter(|&it| first[it] == number) {
                    if !done(same, &result) {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    results[same] = Some(result.clone());
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stopped() {
            next.store(jobs.len(), Ordering::Relaxed);
            break;
        }
    }
    results
}

/// For each job the first one that is the same.
fn firsts(jobs: &[Job]) -> Vec<usize> {
    // Whole scenarios are compared only if the quick comparisons are equal.
    let mut alike: HashMap<(u64, u32, &str), Vec<usize>> = HashMap::new();
    let of = |(number, job): (usize, &Job)| {
        let (scenario, seed) = job;
        let known = alike.entry((*seed, scenario.cpus, scenario.lock.name())).or_default();
        known.iter().copied().find(|&it| jobs[it] == *job).unwrap_or_else(|| {
            known.push(number);
            number
        })
    };
    jobs.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_stopped_run_has_what_has_ended_and_does_not_wait_for_the_rest() {
        let text = include_str!("../tests/simulator/scenarios/small.toml");
        let quick = Scenario::from_toml(text).unwrap();
        let mut endless = quick.clone();
        let crate::workload::Workload::Sections(sections) = &mut endless.workload else {
            unreachable!("the file says so")
        };
        sections.count = u64::MAX >> 1;
        let jobs = [(quick.clone(), 1), (endless, 1), (quick, 2)];
        let mut ended = 0;
        let stop = AtomicUsize::new(0);
        let results = run_until(
            &jobs,
            || stop.load(Ordering::Relaxed) > 0,
            |number, result| {
                assert!(number == 0 || number == 2, "one never ends");
                ended += usize::from(result.is_ok());
                // On one processor the third is never begun.
                stop.store(1, Ordering::Relaxed);
                true
            },
        );
        assert!(matches!(results[..], [Some(Ok(_)), None, _]), "{ended}");
    }

    #[test]
    fn results_are_in_the_order_of_the_jobs_and_a_failure_may_end_the_rest() {
        let text = include_str!("../tests/simulator/scenarios/small.toml");
        let scenario = Scenario::from_toml(text).unwrap();
        let jobs: Vec<Job> = (0..8).map(|seed| (scenario.clone(), seed)).collect();
        let all = run(&jobs, |_, _| true);
        for (seed, result) in all.iter().enumerate() {
            assert_eq!(result.as_ref().unwrap().as_ref().unwrap().seed, seed as u64);
        }
        let mut doomed = jobs;
        doomed[0].0.watchdog_ns = 1.0;
        let some = run(&doomed, |_, result| result.is_ok());
        assert!(matches!(some[0], Some(Err(Failure::Standstill { .. }))));
    }

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
