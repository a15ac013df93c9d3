//! What machine this is: the figures of a lock mean nothing without it.

use std::fs;
use std::path::Path;

use qspin::platform::topology::{self, Topology};
use qspin::select;

use crate::bench::affinity::allowed_cpus;
use crate::row::{Machine, SCHEMA};

/// Looks at the machine. `seed` and `started` belong to the run that is about to begin.
pub fn describe(seed: u64) -> Machine {
    let cpus = allowed_cpus();
    let mut machine = Machine {
        schema: SCHEMA,
        kind: "machine".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line(),
        seed,
        started: jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
        cpu: cpu_model(),
        cpus: cpus.len() as u32,
        numa_nodes: Topology::of_this_machine().nodes_among(cpus.iter().copied()).max(1) as u32,
        topology: made_up(),
        hypervisor: hypervisor(),
        quota_cpus: quota_cpus(),
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load: read("/proc/loadavg")
            .and_then(|text| text.split(' ').next()?.parse().ok())
            .unwrap_or(0.0),
        warnings: Vec::new(),
        floor_ns: None,
        order: Vec::new(),
        shard: None,
    };
    machine.warnings = warnings(&machine);
    machine
}

/// The command line with the program by its name: where it lies is private.
fn command_line() -> Vec<String> {
    // A name that is no UTF-8 is shown as well as it can be: it is no reason to fail.
    let mut command: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = command.first_mut() {
        "qspin".clone_into(program);
    }
    command
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What its processors call themselves.
pub(super) fn cpu_model() -> String {
    let text = read("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    });
    named.unwrap_or_else(|| "unknown".to_owned())
}

/// The longest description of a topology that is shown.
const SHOWN: usize = 80;

/// The topology that is in force instead of this machine's, as the environment describes it.
pub fn made_up() -> Option<String> {
    let described = std::env::var_os(topology::VARIABLE).filter(|_| topology::in_force().is_fake());
    let described = described?.to_string_lossy().replace(char::is_control, " ");
    let mut shown: String = described.chars().take(SHOWN).collect();
    if shown.len() < described.len() {
        shown.push('…');
    }
    Some(shown)
}

fn hypervisor() -> String {
    select::hypervisor(&select::Processor).map_or_else(|| "none".to_owned(), |found| found.name)
}

/// The tightest quota of this process's control groups, in CPUs. A malformed one limits nothing.
fn quota_cpus() -> Option<f64> {
    select::quota(Path::new("/"), &mut |_| ()).map(|quota| quota.cpus)
}

/// What makes the figures less trustworthy, one sentence each.
fn warnings(machine: &Machine) -> Vec<String> {
    let mut warnings = Vec::new();
    if machine.topology.is_some() {
        warnings.push(
            "The topology is made up: which hand-over is local is as QSPIN_TOPOLOGY says, and what \
             it costs is as on this machine."
                .to_owned(),
        );
    }
    if std::env::var_os("QSPIN_TUNE").is_some_and(|tunables| !tunables.is_empty()) {
        warnings
            .push("QSPIN_TUNE does not count here: `--tune` tunes what is measured.".to_owned());
    }
    if machine.load > 0.3 * f64::from(machine.cpus) {
        warnings.push(format!(
            "Other programs were busy before the run (load {:.2}): they take CPU time from the \
             measurement.",
            machine.load
        ));
    }
    if machine.hypervisor != "none" {
        warnings.push(format!(
            "This is a virtual machine ({}): its CPUs may be taken away at any moment.",
            machine.hypervisor
        ));
    }
    if let Some(governor) = machine.governor.as_deref().filter(|g| *g != "performance") {
        warnings.push(format!(
            "The frequency governor is `{governor}`: figures vary with the clock; `performance` \
             is steadier."
        ));
    }
    if let Some(quota) = machine.quota_cpus.filter(|quota| *quota < f64::from(machine.cpus)) {
        warnings.push(format!(
            "A control group allows {quota:.2} of {} CPUs: threads are stopped when the quota is \
             used up.",
            machine.cpus
        ));
    }
    warnings
}

/// What the CPUs have done since the machine started, and what this process and the children that
/// it has waited for have done, in clock ticks.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    all: f64,
    stolen: f64,
    busy: f64,
    own: f64,
}

impl Ticks {
    /// As of now; `None` where the kernel does not tell.
    pub fn now() -> Option<Self> {
        let text = read("/proc/stat")?;
        let fields: Vec<f64> = text
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|field| field.parse().ok())
            .collect();
        let &[user, nice, system, idle, iowait, irq, softirq, stolen] = fields.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        Some(Self { all: busy + idle + iowait + stolen, stolen, busy, own: own_ticks() })
    }

    /// What disturbed the measurement since `before`, one sentence each.
    pub fn disturbances_since(self, before: Self) -> Vec<String> {
        let all = (self.all - before.all).max(1.0);
        let stolen = (self.stolen - before.stolen) / all;
        let others = ((self.busy - before.busy) - (self.own - before.own)) / all;
        let mut found = Vec::new();
        if stolen > 0.01 {
            found.push(format!(
                "The hypervisor gave {stolen:.2} of the CPUs' time to others during the run."
            ));
        }
        if others > 0.05 {
            found.push(format!(
                "Other programs used {others:.2} of the CPUs' time during the run: locks met threads \
                 that were not running also where there are as many CPUs as threads."
            ));
        }
        found
    }
}

/// CPU time of this process and its dead children, in ticks.
fn own_ticks() -> f64 {
    // SAFETY: asks for a number, nothing else.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let seconds = |who| {
        // SAFETY: usage is plain numbers; all zero is none.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the usage may be written; a failure leaves it as it is.
        unsafe { libc::getrusage(who, &raw mut usage) };
        let time = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    (seconds(libc::RUSAGE_SELF) + seconds(libc::RUSAGE_CHILDREN)) * per_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_busy_beside_us() {
        let before = Ticks { all: 1000.0, stolen: 0.0, busy: 100.0, own: 50.0 };
        let quiet = Ticks { all: 2000.0, stolen: 5.0, busy: 600.0, own: 540.0 };
        assert!(quiet.disturbances_since(before).is_empty());
        let loud = Ticks { all: 2000.0, stolen: 100.0, busy: 900.0, own: 540.0 };
        let found = loud.disturbances_since(before);
        assert!(found[0].contains("0.10") && found[1].contains("0.31"), "{found:?}");
        assert!(Ticks::now().is_some());
    }

    #[test]
    fn a_machine_has_cpus_and_warns_of_what_it_found() {
        let mut machine = describe(7);
        assert!(machine.cpus >= 1 && machine.numa_nodes >= 1);
        assert_eq!(machine.command[0], "qspin");
        (machine.load, machine.quota_cpus) = (64.0, Some(0.5));
        (machine.governor, machine.hypervisor) = (Some("powersave".into()), "KVM".into());
        (machine.cpus, machine.topology) = (4, Some("2x4x1".into()));
        assert_eq!(warnings(&machine).len(), 5);
        assert!(warnings(&machine)[0].contains("made up"));
    }
}
