//! What a scenario file asks for: locks × CPUs on a machine, and what else is varied.
//!
//! The fields of a file are those of a [`Scenario`], except that it lists several locks and numbers of CPUs,
//! and may name machine and hypervisor from the [catalog](crate::catalog). An experiment compares more than
//! locks: `variants` and `loads` are two lists of named changes, and every variant is simulated under every
//! load.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::catalog::Described;
use crate::change::Change;
use crate::hypervisor::{Hypervisor, Pinning};
use crate::lock::Lock;
use crate::machine::Machine;
use crate::scenario::{Placement, Scenario};
use crate::workload::Workload;

/// Locks × CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The file's own description of it.
    pub about: String,
    /// Locks, each once.
    pub locks: Vec<Lock>,
    /// Numbers of CPUs, each once.
    pub cpus: Vec<u32>,
    /// What is compared beside the locks.
    pub variants: Vec<Change>,
    /// The loads under which it is compared.
    pub loads: Vec<Change>,
    /// Everything else.
    pub base: Scenario,
}

/// One scenario of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The name of the variant, if the plan has any.
    pub variant: Option<String>,
    /// The name of the load, if the plan has any.
    pub load: Option<String>,
    /// The scenario to simulate.
    pub scenario: Scenario,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    about: String,
    locks: Vec<Lock>,
    cpus: Vec<u32>,
    duration_ns: f64,
    #[serde(default = "crate::scenario::default_watchdog_ns")]
    watchdog_ns: f64,
    #[serde(default)]
    start_ns: f64,
    #[serde(default)]
    placement: Placement,
    #[serde(default)]
    pinning: Pinning,
    #[serde(default)]
    hogs: u32,
    #[serde(default = "crate::scenario::anywhere")]
    hog_pinning: Pinning,
    #[serde(default)]
    hogs_even: bool,
    #[serde(default)]
    tuning: BTreeMap<String, u32>,
    workload: Workload,
    machine: Described<Machine>,
    #[serde(default)]
    hypervisor: Option<Described<Hypervisor>>,
    #[serde(default)]
    variants: Vec<Change>,
    #[serde(default)]
    loads: Vec<Change>,
}

impl Plan {
    /// The plan that a TOML text describes.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column; or with one of its scenarios.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let (Some(&lock), Some(&cpus)) = (file.locks.first(), file.cpus.first()) else {
            return Err("locks and cpus must name at least one each".to_owned());
        };
        let mut plan = Self {
            about: file.about,
            locks: file.locks,
            cpus: file.cpus,
            variants: file.variants,
            loads: file.loads,
            base: Scenario {
                lock,
                cpus,
                duration_ns: file.duration_ns,
                watchdog_ns: file.watchdog_ns,
                start_ns: file.start_ns,
                placement: file.placement,
                pinning: file.pinning,
                hogs: file.hogs,
                hog_pinning: file.hog_pinning,
                hogs_even: file.hogs_even,
                tuning: file.tuning,
                workload: file.workload,
                machine: file.machine.0,
                hypervisor: file.hypervisor.map(|it| it.0),
            },
        };
        plan.base.machine.name = plan.base.machine.name.trim().to_owned();
        plan.check()?;
        Ok(plan)
    }

    /// What is impossible about one of its scenarios.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn check(&self) -> Result<(), String> {
        for (place, lock) in self.locks.iter().enumerate() {
            if self.locks[..place].contains(lock) {
                return Err(format!("the lock {} is listed twice", lock.name()));
            }
        }
        for (place, cpus) in self.cpus.iter().enumerate() {
            if self.cpus[..place].contains(cpus) {
                return Err(format!("{cpus} CPUs are listed twice"));
            }
        }
        for (kind, changes) in [("variants", &self.variants), ("loads", &self.loads)] {
            for (place, change) in changes.iter().enumerate() {
                if changes[..place].iter().any(|it| it.name == change.name) {
                    return Err(format!("{kind}: `{}` is listed twice", change.name));
                }
                change
                    .check(&self.base)
                    .map_err(|why| format!("{kind}: `{}`: {why}", change.name))?;
            }
        }
        let cells = self.cells();
        if cells.is_empty() {
            return Err("no variant has any of these locks".to_owned());
        }
        cells.iter().try_for_each(Cell::check)
    }

    /// Every scenario of the plan: all loads; in each all numbers of CPUs; with each all variants; of each all
    /// locks.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for load in or_none(&self.loads) {
            for &cpus in &self.cpus {
                for variant in or_none(&self.variants) {
                    for &lock in &self.locks {
                        let changes = load.into_iter().chain(variant);
                        if changes.clone().any(|it| !it.concerns(lock)) {
                            continue;
                        }
                        let mut scenario = Scenario { lock, cpus, ..self.base.clone() };
                        for change in changes {
                            change.apply(&mut scenario);
                        }
                        let name = |it: Option<&Change>| it.map(|it| it.name.clone());
                        cells.push(Cell { variant: name(variant), load: name(load), scenario });
                    }
                }
            }
        }
        cells
    }
}

/// Every change, or no change once.
fn or_none(changes: &[Change]) -> Vec<Option<&Change>> {
    match changes {
        [] => vec![None],
        _ => changes.iter().map(Some).collect(),
    }
}

impl Cell {
    /// What is impossible about it, and in which scenario.
    fn check(&self) -> Result<(), String> {
        let names = self.variant.iter().chain(&self.load);
        let names: String = names.map(|name| format!("`{name}`: ")).collect();
        self.scenario.check().map_err(|why| format!("{names}{why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
locks = ["native", "cna"]
cpus = [2, 8]
duration_ns = 1e5
machine = "oracle-x5-4"
[workload.sections]
count = 10
inside_ns = 20
outside_ns = 50
"#;

    #[test]
    fn a_file_is_locks_times_cpus() {
        let plan = Plan::from_toml(TEXT).unwrap();
        let cells: Vec<_> =
            plan.cells().iter().map(|it| (it.scenario.lock.name(), it.scenario.cpus)).collect();
        assert_eq!(cells, [("native", 2), ("cna", 2), ("native", 8), ("cna", 8)]);
    }

    const CHANGES: &str = r#"
hypervisor = "linux-bare-metal"
[[variants]]
name = "plain"
[[variants]]
name = "spared"
locks = ["cna"]
tuning = { numa_skip_bits = 0 }
hypervisor = { holder_grace = 1e5 }
[[loads]]
name = "alone"
[[loads]]
name = "beside hogs"
hogs = 3
pinning = "any"
workload = { count = 7, inside_ns = 33 }
[workload.sections]"#;

    #[test]
    fn every_variant_is_simulated_under_every_load() {
        let plan = Plan::from_toml(&TEXT.replace("[workload.sections]", CHANGES)).unwrap();
        let cells = plan.cells();
        // Two locks of the first variant and one of the second, at two numbers of CPUs, under two loads.
        assert_eq!(cells.len(), (2 + 1) * 2 * 2);
        let last = cells.last().unwrap();
        assert_eq!(last.variant.as_deref(), Some("spared"));
        assert_eq!(last.load.as_deref(), Some("beside hogs"));
        assert_eq!((last.scenario.lock, last.scenario.hogs), (Lock::Cna, 3));
        assert_eq!(last.scenario.pinning, Pinning::Any);
        let Workload::Sections(sections) = &last.scenario.workload else { unreachable!() };
        assert_eq!((sections.count, sections.inside_ns, sections.outside_ns), (7, 33.0, 50.0));
        assert_eq!(last.scenario.tuning["numa_skip_bits"], 0);
        assert_eq!(last.scenario.hypervisor.as_ref().unwrap().holder_grace, 1e5);
        assert_eq!(cells[0].scenario, Scenario { cpus: 2, ..plan.base.clone() });
    }

    #[test]
    fn a_change_that_is_impossible_is_named() {
        let wrong = |from: &str, to: &str| {
            assert!(CHANGES.contains(from));
            let changes = CHANGES.replace(from, to);
            Plan::from_toml(&TEXT.replace("[workload.sections]", &changes)).unwrap_err()
        };
        assert!(wrong("\"spared\"", "\"plain\"").contains("`plain` is listed twice"));
        assert!(wrong("holder_grace = 1e5", "holder_grave = 1").contains("line 14, column"));
        assert!(wrong("holder_grace = 1e5", "holder_grace = -1").contains("`spared`"));
        assert!(wrong("numa_skip_bits", "skip").contains("`spared`"));
        assert!(wrong("[\"cna\"]", "[]").contains("`spared`"));
        assert!(wrong("inside_ns = 33", "side_ns = 33").contains("no figure side_ns"));
        assert!(wrong("count = 7", "count = 7.5").contains("a whole number"));
        assert!(wrong("hypervisor = \"linux-bare-metal\"", "").contains("[hypervisor]"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_place() {
        let wrong = |from: &str, to: &str| {
            assert!(TEXT.contains(from));
            Plan::from_toml(&TEXT.replace(from, to)).unwrap_err()
        };
        assert!(wrong("cna", "nca").contains("line 2, column"));
        assert!(wrong("oracle-x5-4", "oracle").contains("oracle-x5-8"));
        assert!(wrong("[2, 8]", "[]").contains("at least one"));
        assert!(wrong("[2, 8]", "[2, 2]").contains("twice"));
        assert!(wrong("[2, 8]", "[2, 0]").contains("cpus is 0"));
        assert!(wrong("native", "paravirt").contains("[hypervisor]"));
        assert!(wrong("count = 10", "counts = 10").contains("counts"));
    }
}
