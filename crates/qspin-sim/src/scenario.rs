//! What is simulated: a machine, a lock, CPUs, and what they do.

use std::collections::{BTreeMap, BTreeSet};

use qspin_core::tuning::Tuning;
use serde::{Deserialize, Serialize};

use crate::engine::{Random, Time, from_ns};
use crate::hypervisor::{Hypervisor, Pinning};
use crate::lock::Lock;
use crate::machine::Machine;
use crate::workload::Workload;

/// The most processors of a simulated guest: what a tail can name.
pub const MAX_CPUS: u32 = 1 << 13;

/// The largest pause of the lock `backoff`, among the tunables of a scenario: a constant of that lock's type.
pub(crate) const BACKOFF_CAP: &str = "backoff_cap";
/// The values that it may have.
pub(crate) const BACKOFF_CAPS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Which processors the simulated CPUs get.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Placement {
    /// In the order of their numbers: the cores of one socket, then of the next, then the second
    /// threads.
    #[default]
    InOrder,
    /// One per socket in turn; second threads last. A scheduler spreads threads like this.
    Spread,
    /// The threads of a core, then those of the next.
    ThreadsFirst,
    /// On cores drawn at random; second threads last. Threads that are free to move lie like this. Each number
    /// is another draw, the same whatever the seed.
    Scattered(u32),
    /// On these.
    On(Vec<u32>),
}

/// One simulation, apart from its seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The lock.
    pub lock: Lock,
    /// How many CPUs use it.
    pub cpus: u32,
    /// For how long, in nanoseconds, for a workload without an end of its own.
    pub duration_ns: f64,
    /// Simulated nanoseconds without progress after which the run ends as a standstill.
    #[serde(default = "default_watchdog_ns")]
    pub watchdog_ns: f64,
    /// CPUs begin at random moments of this time: if all began at once, the order in which they first meet
    /// would last.
    #[serde(default)]
    pub start_ns: f64,
    /// On which processors the CPUs are.
    #[serde(default)]
    pub placement: Placement,
    /// Where they may run.
    #[serde(default)]
    pub pinning: Pinning,
    /// Tasks that only compute, beside the CPUs.
    #[serde(default)]
    pub hogs: u32,
    /// Where those may run.
    #[serde(default = "anywhere")]
    pub hog_pinning: Pinning,
    /// Whether hogs are dealt out evenly to all processors, however many CPUs are there already; else each
    /// begins where the fewest tasks are.
    #[serde(default)]
    pub hogs_even: bool,
    /// Tunables, by name, that are not at their default. `backoff_cap`, the largest pause of the lock `backoff`, counts
    /// as one here: a power of two up to 1024.
    #[serde(default)]
    pub tuning: BTreeMap<String, u32>,
    /// What the CPUs do.
    pub workload: Workload,
    /// The machine.
    pub machine: Machine,
    /// The hypervisor; none if every CPU has a processor of its own and no lock halts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<Hypervisor>,
}

/// A fifth of a second: some slices of an overcommitted processor.
pub(crate) fn default_watchdog_ns() -> f64 {
    2e8
}

pub(crate) fn anywhere() -> Pinning {
    Pinning::Any
}

impl Scenario {
    /// The scenario that a TOML text describes.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column; or with the scenario.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let scenario: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        scenario.check()?;
        Ok(scenario)
    }

    /// What is impossible about this scenario.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn check(&self) -> Result<(), String> {
        self.machine.check()?;
        if let Some(hypervisor) = &self.hypervisor {
            hypervisor.check()?;
        }
        self.workload.check()?;
        self.tuning()?;
        if !(1..=MAX_CPUS).contains(&self.cpus) {
            return Err(format!("cpus is {}: it must be from 1 to {MAX_CPUS}", self.cpus));
        }
        if self.hogs > MAX_CPUS {
            return Err(format!("hogs is {}: it must be at most {MAX_CPUS}", self.hogs));
        }
        for (name, ns) in [("duration_ns", self.duration_ns), ("watchdog_ns", self.watchdog_ns)] {
            if !(1.0..=1e13).contains(&ns) {
                return Err(format!("{name} is {ns}: it must be from 1 to 1e13"));
            }
        }
        if !(0.0..=1e12).contains(&self.start_ns) {
            return Err(format!("start_ns is {}: it must be from 0 to 1e12", self.start_ns));
        }
        let processors = self.machine.shape.processors();
        let lists = [&self.pinning, &self.hog_pinning].into_iter().filter_map(|it| match it {
            Pinning::To(list) => Some(list),
            Pinning::Own | Pinning::Any => None,
        });
        let places = match &self.placement {
            Placement::On(list) => Some(list),
            _ => None,
        };
        for list in lists.chain(places) {
            if let Some(wrong) = list.iter().find(|&&one| one >= processors) {
                return Err(format!(
                    "there is no processor {wrong}: they are 0 to {}",
                    processors - 1
                ));
            }
            if list.is_empty() {
                return Err("a list of processors must not be empty".to_owned());
            }
        }
        if self.hypervisor.is_none() {
            if self.lock.halts() {
                let name = self.lock.name();
                return Err(format!("the lock {name} halts or yields: that needs a [hypervisor]"));
            }
            let places = self.places();
            let mut each = vec![0; processors as usize];
            for place in places.iter().chain(&self.hog_places()) {
                each[*place as usize] += 1;
            }
            if each.iter().any(|&count| count > 1) {
                return Err("more tasks than processors need a [hypervisor]".to_owned());
            }
        }
        Ok(())
    }

    /// The tunables.
    ///
    /// # Errors
    /// The name or value that does not exist.
    pub fn tuning(&self) -> Result<Tuning, String> {
        let mut tuning = Tuning::DEFAULT;
        for (name, &value) in &self.tuning {
            if name == BACKOFF_CAP {
                if !BACKOFF_CAPS.contains(&value) {
                    return Err(format!("{name} is {value}: it must be one of {BACKOFF_CAPS:?}"));
                }
                continue;
            }
            let Some(tunable) = Tuning::named(name) else {
                return Err(format!("there is no tunable {name}"));
            };
            if !(tunable.min..=tunable.max).contains(&value) {
                let (min, max) = (tunable.min, tunable.max);
                return Err(format!("{name} is {value}: it must be from {min} to {max}"));
            }
            (tunable.set)(&mut tuning, value);
        }
        Ok(tuning)
    }

    /// The processor of each CPU.
    pub(crate) fn places(&self) -> Vec<u32> {
        let shape = &self.machine.shape;
        let processors = shape.processors();
        let mut scattered: Vec<u32> = (0..shape.cores()).collect();
        if let Placement::Scattered(draw) = self.placement {
            // Fisher and Yates.
            let mut random = Random::new(draw.into());
            for left in (1..shape.cores()).rev() {
                scattered.swap(left as usize, random.below(left + 1) as usize);
            }
        }
        let place = |number: u32| {
            let number = number % processors;
            match &self.placement {
                Placement::InOrder => number,
                Placement::Spread => {
                    let (socket, rest) = (number % shape.sockets, number / shape.sockets);
                    let (core, thread) =
                        (rest % shape.cores_per_socket, rest / shape.cores_per_socket);
                    thread * shape.cores() + socket * shape.cores_per_socket + core
                }
                Placement::ThreadsFirst => {
                    let (core, thread) =
                        (number / shape.threads_per_core, number % shape.threads_per_core);
                    thread * shape.cores() + core
                }
                Placement::Scattered(_) => {
                    let (core, thread) = (number % shape.cores(), number / shape.cores());
                    thread * shape.cores() + scattered[core as usize]
                }
                Placement::On(list) => list[number as usize % list.len()],
            }
        };
        let own: Vec<u32> = (0..self.cpus).map(place).collect();
        match &self.pinning {
            Pinning::To(list) => {
                own.iter().enumerate().map(|(cpu, _)| list[cpu % list.len()]).collect()
            }
            Pinning::Own | Pinning::Any => own,
        }
    }

    /// By which factor CPUs are slower, on average, than one that is alone on its socket: `all_cores_factor`, for the
    /// places that they begin at.
    pub(crate) fn slowdown(&self) -> f64 {
        let (shape, most) = (&self.machine.shape, self.machine.costs.all_cores_factor);
        let others = f64::from(shape.cores_per_socket) - 1.0;
        if most == 1.0 || others == 0.0 {
            return 1.0;
        }
        let cores: Vec<u32> = self.places().into_iter().map(|place| shape.core_of(place)).collect();
        let mut busy = vec![0.0; shape.sockets as usize];
        for core in cores.iter().collect::<BTreeSet<_>>() {
            busy[shape.socket_of(*core) as usize] += 1.0;
        }
        let of = |core: &u32| {
            let beside = busy[shape.socket_of(*core) as usize] - 1.0;
            1.0 + (most - 1.0) * beside / others
        };
        cores.iter().map(of).sum::<f64>() / cores.len() as f64
    }

    /// The processor of each hog at the beginning: the least busy ones.
    pub(crate) fn hog_places(&self) -> Vec<u32> {
        let mut load = vec![0_u32; self.machine.shape.processors() as usize];
        if !self.hogs_even {
            for place in self.places() {
                load[place as usize] += 1;
            }
        }
        let mut places = Vec::new();
        for _ in 0..self.hogs {
            let may = |processor: &usize| match &self.hog_pinning {
                Pinning::To(list) => list.contains(&(*processor as u32)),
                Pinning::Own | Pinning::Any => true,
            };
            let free = (0..load.len()).filter(may).min_by_key(|&processor| load[processor]);
            let free = free.unwrap_or(0);
            load[free] += 1;
            places.push(free as u32);
        }
        places
    }

    pub(crate) fn stop_at(&self) -> Time {
        from_ns(self.duration_ns)
    }

    pub(crate) fn watchdog(&self) -> Time {
        from_ns(self.watchdog_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_differ_and_name_each_processor_once() {
        let text = include_str!("../tests/simulator/scenarios/small.toml");
        let mut scenario = Scenario::from_toml(text).unwrap();
        scenario.cpus = scenario.machine.shape.processors();
        let mut orders = Vec::new();
        for placement in [
            Placement::InOrder,
            Placement::Spread,
            Placement::ThreadsFirst,
            Placement::Scattered(1),
            Placement::Scattered(4),
        ] {
            scenario.placement = placement;
            let places = scenario.places();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..scenario.cpus));
            orders.push(places);
        }
        // Two sockets of two cores with two threads each.
        assert_eq!(orders[0][..4], [0, 1, 2, 3]);
        assert_eq!(orders[1][..5], [0, 2, 1, 3, 4]);
        assert_eq!(orders[2][..4], [0, 4, 1, 5]);
        // First threads first, and each number is another draw.
        assert!(orders[3][..4].iter().chain(&orders[4][..4]).all(|&it| it < 4));
        assert_ne!(orders[3], orders[4]);
    }

    #[test]
    fn cpus_are_slower_the_more_cores_of_their_socket_are_busy() {
        let text = include_str!("../tests/simulator/scenarios/small.toml");
        let slow = |cpus: u32, placement, factor: f64| {
            let mut scenario = Scenario::from_toml(text).unwrap();
            (scenario.cpus, scenario.placement) = (cpus, placement);
            scenario.machine.costs.all_cores_factor = factor;
            scenario.slowdown()
        };
        assert_eq!(slow(8, Placement::InOrder, 1.0), 1.0);
        assert_eq!(slow(1, Placement::InOrder, 1.5), 1.0);
        // Two cores of one socket, and one of each.
        assert_eq!(slow(2, Placement::InOrder, 1.5), 1.5);
        assert_eq!(slow(2, Placement::Spread, 1.5), 1.0);
        // Two of three share a socket. A second thread of a core is no busy core more.
        assert_eq!(slow(3, Placement::InOrder, 1.5), (1.5 + 1.5 + 1.0) / 3.0);
        assert_eq!(slow(2, Placement::ThreadsFirst, 1.5), 1.0);
    }

    #[test]
    fn what_is_impossible_is_said() {
        let text = include_str!("../tests/simulator/scenarios/small.toml");
        let wrong = |from: &str, to: &str| {
            assert!(text.contains(from));
            Scenario::from_toml(&text.replace(from, to)).unwrap_err()
        };
        assert!(wrong("cpus = 4", "cpus = 0").contains("cpus is 0"));
        assert!(wrong("cpus = 4", "cpus = 9").contains("[hypervisor]"));
        assert!(wrong("lock = \"native\"", "lock = \"paravirt\"").contains("[hypervisor]"));
        assert!(wrong("lock = \"native\"", "lock = \"magic\"").contains("line 1, column"));
        assert!(wrong("lock = \"native\"", "lock = \"rwlock\"").contains("[hypervisor]"));
        assert!(
            wrong("cpus = 4", "cpus = 4\ntuning = { backoff_cap = 3 }").contains("backoff_cap")
        );
        assert!(wrong("load_hit = 1.5", "load_hit = -1").contains("load_hit"));
        assert!(wrong("sockets = 2", "sockets = 0").contains("sockets"));
        assert!(wrong("cpus = 4", "cpus = 4\ntuning = { nothing = 3 }").contains("nothing"));
        assert!(wrong("cpus = 4", "cpus = 4\nplacement = { on = [8] }").contains("processor 8"));
    }
}
