//! The same seed gives the same run, whatever else this computer does.

use std::collections::BTreeSet;
use std::thread;

use crate::fixtures;
use qspin_sim::{Lock, Outcome, Scenario, simulate};

fn scenario(lock: Lock) -> Scenario {
    Scenario { hogs: 4, ..fixtures::counting(lock, 8, 60) }
}

fn run(lock: Lock, seed: u64) -> Outcome {
    simulate(&scenario(lock), seed).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_outcome_also_beside_other_seeds() {
    for lock in [Lock::Native, Lock::Paravirt, Lock::Cna, Lock::Backoff, Lock::Simple] {
        let alone: Vec<Outcome> = (0..4).map(|seed| run(lock, seed)).collect();
        let together = thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|number| (number % 4, scope.spawn(move || run(lock, number % 4))))
                .collect();
            let join = |(seed, thread): (u64, thread::ScopedJoinHandle<'_, Outcome>)| {
                (seed, thread.join().unwrap())
            };
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        for (seed, outcome) in together {
            assert_eq!(outcome, alone[seed as usize], "{} seed {seed}", lock.name());
        }
        let hashes: BTreeSet<u64> = alone.iter().map(|outcome| outcome.hash).collect();
        assert_eq!(hashes.len(), 4, "different seeds, different runs");
    }
}

#[test]
fn the_hash_tells_a_run_from_one_with_another_cost() {
    let scenario = scenario(Lock::Native);
    let mut other = scenario.clone();
    other.machine.costs.same_cache += 1.0;
    assert_ne!(simulate(&scenario, 1).unwrap().hash, simulate(&other, 1).unwrap().hash);
}

#[test]
fn a_simulation_can_run_after_one_that_failed_on_the_same_thread() {
    let mut doomed = scenario(Lock::Native);
    doomed.watchdog_ns = 1.0;
    assert!(simulate(&doomed, 1).is_err());
    assert_eq!(run(Lock::Native, 1), run(Lock::Native, 1));
}
