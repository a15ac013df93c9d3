//! This machine, as the simulator describes machines: its shape from sysfs, its transfers measured.
//!
//! # What is measured
//! Between two pinned threads: what a load takes of a line that the other one has just written, for some
//! pairs of CPUs of every distance. Alone: a hit, a store, a read-modify-write, a fence, a pause, a look
//! at the clock, a load from memory. Each figure is a median of many rounds.
//!
//! # What is not
//! How lines are served of which many ask at once (`near_bias`, `queued`, `invalidate`,
//! `read_occupancy`), how transfers vary, and the store buffer: these are the figures of the Haswell-EX of
//! document 000, and the description says so. `qspin calibrate` fits such figures to tables.
//!
//! # Limits
//! The simulator's machines are regular: where a process may use some CPUs of a machine only, the shape is
//! the smallest regular one that holds them, and the description says so.

use std::fmt::Write;
use std::path::Path;

use qspin::platform::topology::SYSFS;
use qspin_sim::catalog::Named;
use qspin_sim::machine::Costs;
use qspin_sim::{Hypervisor, Machine};

use super::shape::{self, Apart, Found};
use super::{alone, card, transfers};
use crate::bench::affinity::allowed_cpus;
use crate::failure::Failure;

/// Rounds for a first impression, and for a description that is kept.
const QUICK: u32 = 15;
/// Rounds of a measurement that is written down.
pub const THOROUGH: u32 = 101;
/// The machine whose figures stand where nothing is measured.
const LIKE: &str = "haswell-ex";
/// The hypervisor of threads on this machine: none, so an operating system.
const SYSTEM: &str = "linux-bare-metal";

/// What was found about this machine.
#[derive(Debug)]
pub struct Measured {
    /// It, described.
    pub machine: Machine,
    /// A line for each pair of CPUs that was measured.
    pub pairs: Vec<String>,
}

/// This machine, after a measurement of a second or so.
pub fn described() -> Result<Machine, Failure> {
    Ok(measure(QUICK)?.machine)
}

/// What runs threads here, as the simulator has it.
/// Fails when the description that comes with the simulator is broken.
pub fn system() -> anyhow::Result<Hypervisor> {
    Hypervisor::named(SYSTEM).map_err(|why| anyhow::anyhow!(why))
}

/// Measures this machine, in so many rounds.
pub fn measure(rounds: u32) -> Result<Measured, Failure> {
    measure_among(&allowed_cpus(), &Path::new(SYSFS).join("cpu"), rounds)
}

fn measure_among(allowed: &[usize], sysfs: &Path, rounds: u32) -> Result<Measured, Failure> {
    if let [only] = allowed {
        return Err(Failure::usage(format!(
            "no transfer between CPUs can be measured: this process may use CPU {only} only; let it use \
             two or more (taskset, cpuset), or name a machine that is described"
        )));
    }
    let found = shape::find(allowed, sysfs);
    let like = Machine::named(LIKE).map_err(|why| anyhow::anyhow!(why))?;
    let alone = alone::measure(rounds);
    let mut pairs = Vec::new();
    let mut medians = Vec::new();
    for (apart, chosen) in found.pairs() {
        let mut times = Vec::new();
        for (a, b) in chosen {
            let ns = transfers::between(a.number, b.number, rounds)?;
            pairs.push(format!("CPU {} to CPU {}, {apart}: {ns:.1} ns", a.number, b.number));
            times.push(ns);
        }
        medians.push((apart, crate::bench::stats::median(&mut times)));
    }
    let costs = costs(&like.costs, &alone, &medians);
    let machine = Machine {
        name: format!("{}, measured", card::cpu_model()),
        source: source(&found, &medians, alone.memory.is_some()),
        shape: found.shape.clone(),
        costs,
    };
    machine.check().map_err(|why| anyhow::anyhow!("what was measured is impossible: {why}"))?;
    Ok(Measured { machine, pairs })
}

/// The costs: what was measured, and the rest from another machine.
fn costs(like: &Costs, alone: &alone::Alone, medians: &[(Apart, f64)]) -> Costs {
    let of = |wanted: Apart| medians.iter().find(|(apart, _)| *apart == wanted).map(|(_, ns)| *ns);
    // Two that share a core share its cache: no distance of the model is between them.
    let distances = [Apart::Cache, Apart::Socket, Apart::Sockets];
    let nearest = distances.into_iter().find_map(of).unwrap_or(like.same_socket);
    let same_cache = of(Apart::Cache).unwrap_or(nearest);
    let same_socket = of(Apart::Socket).unwrap_or(same_cache);
    let other_socket = of(Apart::Sockets).unwrap_or(same_socket);
    let at_least = |ns: f64| rounded(ns.max(0.1));
    Costs {
        load_hit: at_least(alone.load_hit),
        store: at_least(alone.store),
        rmw_hit: at_least(alone.rmw_hit),
        fence: at_least(alone.fence),
        pause: at_least(alone.pause),
        clock: rounded(alone.clock),
        same_cache: rounded(same_cache),
        same_socket: rounded(same_socket),
        other_socket: rounded(other_socket),
        further_hop: 0.0,
        memory: rounded(alone.memory.unwrap_or(like.memory)),
        ..like.clone()
    }
}

/// A tenth of a nanosecond is all that repeats.
fn rounded(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Where the figures come from, in the description itself.
fn source(found: &Found, medians: &[(Apart, f64)], memory: bool) -> String {
    let measured: Vec<String> = medians.iter().map(|(apart, _)| apart.to_string()).collect();
    let mut text = format!(
        "Measured by `qspin calibrate --measure`: hits, fence, pause, clock; transfers of lines between CPUs \
         {}. ",
        measured.join(", ")
    );
    for note in &found.notes {
        let _ = write!(text, "{note}. ");
    }
    if !memory {
        let _ = write!(text, "Memory: not measured on this processor, as {LIKE}. ");
    }
    let _ = write!(
        text,
        "Not measured, as {LIKE}: distances that this machine does not have, read_occupancy, invalidate, \
         jitter, near_bias, queued, store_buffer, store_prefetch, sibling_factor."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone() -> alone::Alone {
        alone::Alone {
            load_hit: 1.23,
            store: 0.01,
            rmw_hit: 5.0,
            fence: 8.0,
            pause: 40.0,
            clock: 20.0,
            memory: None,
        }
    }

    #[test]
    fn what_is_not_measured_is_that_of_the_next_nearer_distance_or_of_another_machine() {
        let like = Machine::named(LIKE).unwrap().costs;
        let two = costs(&like, &alone(), &[(Apart::Core, 2.0), (Apart::Sockets, 150.04)]);
        assert_eq!((two.same_cache, two.same_socket, two.other_socket), (150.0, 150.0, 150.0));
        let one = costs(&like, &alone(), &[(Apart::Cache, 30.0), (Apart::Socket, 60.0)]);
        assert_eq!((one.same_cache, one.same_socket, one.other_socket), (30.0, 60.0, 60.0));
        assert_eq!((one.load_hit, one.store, one.memory), (1.2, 0.1, like.memory));
        assert_eq!((one.queued, one.store_buffer), (like.queued, like.store_buffer));
    }

    #[test]
    fn one_cpu_is_refused_by_a_line_that_says_what_would_be_right() {
        let wrong = measure_among(&[7], Path::new("/nowhere"), 1).unwrap_err();
        assert!(
            wrong.line().contains("CPU 7 only") && wrong.line().contains("taskset"),
            "{wrong:?}"
        );
        assert_eq!(wrong.exit_code(), 2);
    }

    #[test]
    fn this_machine_is_possible_also_without_sysfs() {
        let allowed = allowed_cpus();
        if allowed.len() < 2 {
            return;
        }
        for sysfs in ["/sys/devices/system/cpu", "/nowhere"] {
            let measured = measure_among(&allowed[..2], Path::new(sysfs), 3).unwrap();
            assert_eq!(measured.machine.check(), Ok(()));
            assert!(!measured.pairs.is_empty());
            let unknown = measured.machine.source.contains("does not say");
            assert_eq!(unknown, sysfs == "/nowhere", "{}", measured.machine.source);
            assert!(measured.machine.shape.processors() >= 2);
            assert!(measured.machine.costs.same_cache > 0.0);
            // What is written is what would be read.
            let text = toml::to_string(&measured.machine).unwrap();
            assert_eq!(Machine::from_toml(&text).unwrap(), measured.machine);
        }
    }

    #[test]
    fn the_source_names_what_was_not_measured() {
        let found = shape::find(&[0, 1], Path::new("/nowhere"));
        let text = source(&found, &[(Apart::Cache, 30.0)], true);
        assert!(text.contains("of one cache") && text.contains("near_bias"), "{text}");
    }
}
