//! What a scenario file asks for: locks × CPUs on a machine.
//!
//! The fields of a file are those of a [`Scenario`], but that it lists several locks and numbers of
//! CPUs, and may call machine and hypervisor by the names that they have in the
//! [catalog](crate::catalog).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::catalog::Described;
use crate::hypervisor::{Hypervisor, Pinning};
use crate::machine::Machine;
use crate::scenario::{Lock, Placement, Scenario};
use crate::workload::Workload;

/// Locks × CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the file says about itself.
    pub about: String,
    /// Locks, each once.
    pub locks: Vec<Lock>,
    /// Numbers of CPUs, each once.
    pub cpus: Vec<u32>,
    /// Everything else.
    pub base: Scenario,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    about: String,
    locks: Vec<Lock>,
    cpus: Vec<u32>,
    duration_ns: f64,
    #[serde(default = "crate::scenario::patience")]
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
        self.scenarios().iter().try_for_each(Scenario::check)
    }

    /// Every scenario of it: all locks at the first number of CPUs, then at the next.
    #[must_use]
    pub fn scenarios(&self) -> Vec<Scenario> {
        let cells =
            self.cpus.iter().flat_map(|&cpus| self.locks.iter().map(move |&lock| (lock, cpus)));
        cells.map(|(lock, cpus)| Scenario { lock, cpus, ..self.base.clone() }).collect()
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
        let cells: Vec<_> = plan.scenarios().iter().map(|it| (it.lock.name(), it.cpus)).collect();
        assert_eq!(cells, [("native", 2), ("cna", 2), ("native", 8), ("cna", 8)]);
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
