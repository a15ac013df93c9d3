//! Loads and machines drawn at random: what locks lose where they were not tuned.
//!
//! | what | drawn |
//! |---|---|
//! | processors | log-uniform from 2 to 128; 1, 2 or 4 sockets |
//! | threads | half of the cells log-uniform from 2 to the processors; the others 1 to 4 times as many as those |
//! | pause | log-uniform from 5 to 150 ns |
//! | a line of the same cache | log-uniform from 20 to 300 ns; from another socket, 1.5 to 3 times as long |
//! | critical | in one cell of 8 nothing; else log-uniform from 20 ns to 20 µs |
//! | outside | in one cell of 4 nothing; else critical (20 ns at least) times log-uniform 0.1 to 20 |
//! | lengths | fixed, exponential or tailed |
//! | locks | 1 in half of the cells, 4 or 64 |
//! | lines | 1 to 4 |
//!
//! In every fifth cell, tasks that only compute run beside, at most as many as there are processors.
//!
//! # Invariants
//! * **RANDOM-1** A cell is a function of the seed and its number alone.

use crate::catalog::Named;
use crate::engine::Random;
use crate::hypervisor::{Hypervisor, Pinning};
use crate::lock::Lock;
use crate::machine::{Costs, Machine, Shape};
use crate::scenario::{Placement, Scenario, default_watchdog_ns};
use crate::workload::{Lengths, Spread, Workload};

/// In one cell of this many, tasks that compute run beside.
const DISTURBED: u32 = 5;
/// The least duration of a simulated run: learning takes its time.
const MIN_NS: f64 = 10e6;
/// The same where threads outnumber processors: some time slices.
const MIN_CROWDED_NS: f64 = 30e6;
/// The approximate limit of sections in one run: each costs a microsecond or more of the host's time.
const MAX_SECTIONS: f64 = 300_000.0;

/// Draws cell `number` of `seed`. Its lock is arbitrary: the caller is to choose it.
///
/// # Panics
/// Never: the hypervisor comes with the program.
#[must_use]
pub fn draw(seed: u64, number: u32) -> Scenario {
    let mut dice = Dice(Random::part(seed, number.into()));
    let sockets = [1, 1, 2, 4][dice.0.below(4) as usize];
    let processors = dice.log_uniform(2.0, 128.0).round() as u32;
    let cores_per_socket = processors.div_ceil(sockets).max(1);
    let processors = cores_per_socket * sockets;
    let crowded = dice.0.below(2) == 0;
    let threads = if crowded {
        (f64::from(processors) * dice.log_uniform(1.0, 4.0)).round() as u32
    } else {
        dice.log_uniform(2.0, f64::from(processors.max(2))).round() as u32
    };
    let pause = dice.log_uniform(5.0, 150.0);
    let same_cache = dice.log_uniform(20.0, 300.0);
    let other_socket = same_cache * (1.5 + 1.5 * dice.0.unit());
    let inside_ns = dice.unless_one_in(8, |dice| dice.log_uniform(SHORTEST_NS, 20_000.0));
    let outside_ns =
        dice.unless_one_in(4, |dice| inside_ns.max(SHORTEST_NS) * dice.log_uniform(0.1, 20.0));
    let spread = [Spread::Fixed, Spread::Exponential, Spread::Tailed][dice.0.below(3) as usize];
    let locks = [1, 1, 4, 64][dice.0.below(4) as usize];
    let writes = 1 + dice.0.below(4);
    let hogs = 1 + dice.0.below(processors);
    let hogs = if is_disturbed(number) { hogs } else { 0 };
    let parallel = f64::from(threads.min(processors));
    let by_locks = f64::from(locks) / (inside_ns + same_cache);
    let by_threads = parallel / (inside_ns + outside_ns + SHORTEST_NS);
    let least = if threads + hogs > processors { MIN_CROWDED_NS } else { MIN_NS };
    let duration_ns = (MAX_SECTIONS / by_locks.min(by_threads)).clamp(MIN_NS, least);
    Scenario {
        lock: Lock::Native,
        cpus: threads,
        duration_ns,
        watchdog_ns: 10.0 * default_watchdog_ns(),
        start_ns: 10_000.0,
        placement: Placement::InOrder,
        pinning: Pinning::Any,
        hogs,
        hog_pinning: Pinning::Any,
        hogs_even: false,
        tuning: Default::default(),
        workload: Workload::Lengths(Lengths { inside_ns, outside_ns, spread, locks, writes }),
        machine: Machine {
            name: format!(
                "{processors} processors, {sockets} sockets, pause {pause:.0} ns, line {same_cache:.0} and \
                 {other_socket:.0} ns"
            ),
            source: "drawn at random".to_owned(),
            shape: Shape {
                sockets,
                cores_per_socket,
                threads_per_core: 1,
                cores_per_llc: None,
                hops: Vec::new(),
            },
            costs: Costs {
                // What a load adds to the read-modify-write beside it on a Xeon is 0.1 to 0.3 ns.
                load_hit: 0.2,
                store: 0.5,
                rmw_hit: 7.0,
                fence: 15.0,
                pause,
                clock: 20.0,
                same_cache,
                same_socket: same_cache,
                other_socket,
                further_hop: 0.0,
                memory: 100.0,
                read_occupancy: same_cache / 10.0,
                invalidate: 2.0,
                jitter: 0.1,
                near_bias: 0.0,
                near_to_last_owner: false,
                queued: 1.0,
                store_buffer: 44,
                store_prefetch: true,
                sibling_factor: 1.0,
                all_cores_factor: 1.0,
            },
        },
        hypervisor: Some(Hypervisor::named("linux-bare-metal").expect("it comes with the program")),
    }
}

/// Whether the cell of this number has tasks beside it.
#[must_use]
pub fn is_disturbed(number: u32) -> bool {
    number.is_multiple_of(DISTURBED)
}

/// The shortest length that is not zero.
const SHORTEST_NS: f64 = 20.0;

struct Dice(Random);

impl Dice {
    fn log_uniform(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.unit())
    }

    /// What is not used is drawn all the same, so that it does not shift the draws after it.
    fn unless_one_in(&mut self, count: u32, draw: impl FnOnce(&mut Self) -> f64) -> f64 {
        let (none, ns) = (self.0.below(count) == 0, draw(self));
        if none { 0.0 } else { ns.round() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_1_a_cell_is_a_function_of_seed_and_number_and_is_possible() {
        for seed in [1, 2] {
            for number in 1..=100 {
                let drawn = draw(seed, number);
                assert_eq!(drawn, draw(seed, number));
                assert_eq!(drawn.check(), Ok(()), "cell {number} of seed {seed}");
                assert_eq!(drawn.hogs > 0, is_disturbed(number));
                assert!((2..=128 + 3).contains(&drawn.machine.shape.processors()));
            }
        }
        assert_ne!(draw(1, 1), draw(2, 1));
    }

    #[test]
    fn the_default_mutex_runs_on_drawn_machines_and_the_same_each_time() {
        for number in [3, 5] {
            let scenario = Scenario { lock: Lock::Mutex, duration_ns: 2e6, ..draw(1, number) };
            let [one, other] = [0, 0].map(|seed| crate::simulate(&scenario, seed).unwrap());
            assert_eq!(one.hash, other.hash);
            assert!(one.sections.iter().sum::<u64>() > 0);
        }
    }
}
