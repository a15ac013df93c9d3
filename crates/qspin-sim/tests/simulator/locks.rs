//! Every lock of the family excludes in the simulator, alone and when its CPUs are taken away.

use crate::fixtures;

use qspin_core::locks::queued::{NativeLock, ParavirtLock};
use qspin_core::locks::ticket::TicketLock;
use qspin_sim::platform::SimWord;
use qspin_sim::workload::{Sections, Workload};
use qspin_sim::{Lock, Pinning, Scenario, simulate, simulate_audited};

fn sections_of(scenario: &Scenario, seed: u64) -> u64 {
    let outcome = simulate(scenario, seed).unwrap_or_else(|failure| {
        panic!("{} with {} CPUs, seed {seed}: {failure}", scenario.lock.name(), scenario.cpus)
    });
    outcome.sections.iter().sum()
}

#[test]
fn every_lock_excludes_and_counts_exactly() {
    for &lock in Lock::ALL {
        for cpus in [1, 2, 3, 8] {
            for seed in 0..5 {
                let scenario = fixtures::counting(lock, cpus, 100);
                assert_eq!(sections_of(&scenario, seed), u64::from(cpus) * 100);
            }
        }
    }
}

#[test]
fn every_lock_excludes_where_cpus_are_preempted() {
    for &lock in Lock::ALL {
        for (cpus, hogs) in [(4, 8), (12, 0)] {
            for pinning in [Pinning::Own, Pinning::Any, Pinning::To(vec![1, 2])] {
                let scenario = Scenario { hogs, pinning, ..fixtures::counting(lock, cpus, 60) };
                for seed in 0..3 {
                    assert_eq!(sections_of(&scenario, seed), u64::from(cpus) * 60);
                }
            }
        }
    }
}

#[test]
fn several_locks_that_share_lines_with_their_data_count_exactly() {
    for &lock in Lock::ALL {
        let sections =
            Sections { count: 80, inside_ns: 10.0, outside_ns: 30.0, locks: 3, beside: true };
        let workload = Workload::Sections(sections);
        let scenario = Scenario { workload, ..fixtures::counting(lock, 8, 0) };
        assert_eq!(sections_of(&scenario, 1), 640);
    }
}

#[test]
fn no_watcher_is_ever_without_a_copy_or_a_read() {
    let scenario = |lock, hogs| Scenario { hogs, ..fixtures::counting(lock, 8, 40) };
    for seed in 0..3 {
        for hogs in [0, 8] {
            let native = simulate_audited::<NativeLock<SimWord>>;
            native(&scenario(Lock::Native, hogs), seed).unwrap();
            let ticket = simulate_audited::<TicketLock<SimWord>>;
            ticket(&scenario(Lock::Ticket, hogs), seed).unwrap();
            let paravirt = simulate_audited::<ParavirtLock<SimWord>>;
            paravirt(&scenario(Lock::Paravirt, hogs), seed).unwrap();
        }
    }
}

#[test]
fn no_lock_starves_its_own_release_where_many_watch() {
    for &lock in Lock::ALL {
        let mut scenario = fixtures::counting(lock, 48, 5);
        scenario.machine.shape.cores_per_socket = 24;
        scenario.watchdog_ns = 1e7;
        assert_eq!(sections_of(&scenario, 1), 48 * 5);
    }
}

#[test]
fn near_waiters_first_keeps_the_lock_on_its_socket_and_the_threshold_bounds_it() {
    let remote = |lock, threshold: u32| {
        let mut scenario = fixtures::counting(lock, 8, 300);
        scenario.start_ns = 1e4;
        scenario.tuning.insert("numa_threshold_ns".to_owned(), threshold);
        let outcome = simulate(&scenario, 1).unwrap();
        outcome.remote_hand_overs as f64 / outcome.hand_overs as f64
    };
    let native = remote(Lock::Native, 1_000_000);
    let often = remote(Lock::Cna, 2000);
    let seldom = remote(Lock::Cna, 1_000_000);
    // First come, first served changes sockets where the order in which they came does.
    assert!(seldom < often / 4.0 && seldom < native / 4.0, "{seldom} {often} {native}");
}
