//! The machine card: what one must know about the machine to believe the figures.

use super::Run;
use super::number::{digits, duration, plural};

/// A topology that was made up, with the words that say so.
#[must_use]
pub fn made_up(topology: &str) -> String {
    format!("{topology}, as QSPIN_TOPOLOGY says, not this machine's")
}

/// Name and value, in the order of a card.
#[must_use]
pub(super) fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let machine = &run.machine;
    let mut facts = vec![("CPU", machine.cpu.clone()), ("CPUs", machine.cpus.to_string())];
    if let Some(quota) = machine.quota_cpus {
        facts.push(("quota", plural(quota, "CPU")));
    }
    facts.push(("NUMA nodes", machine.numa_nodes.to_string()));
    if let Some(topology) = &machine.topology {
        facts.push(("topology", made_up(topology)));
    }
    facts.push(("hypervisor", machine.hypervisor.clone()));
    facts.push(("kernel", machine.kernel.clone()));
    facts.push(("governor", machine.governor.clone().unwrap_or_else(|| "not told".to_owned())));
    facts.push(("load before", digits(machine.load)));
    if let Some(floor) = machine.floor_ns {
        facts.push(("uncontended floor", duration(floor)));
    }
    facts.push(("started", machine.started.clone()));
    facts.push(("seed", machine.seed.to_string()));
    facts.push(("version", machine.version.clone()));
    facts.push(("command", machine.command.join(" ")));
    facts.push(("file", run.source.clone()));
    facts
}
