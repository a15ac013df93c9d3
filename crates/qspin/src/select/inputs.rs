//! Everything that the choice depends on, gathered.

use std::ffi::OsStr;
use std::path::Path;

use super::cpuid::{self, Cpuid, Hypervisor, Processor, Recorded};
use super::hints::Hints;
use crate::platform::process;
use crate::platform::quota::{self, Quota};
use crate::platform::topology::Topology;

/// A number of threads, and whether it is known beforehand or counted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The program, or the person running it, said so.
    Said(u32),
    /// The number of threads at this moment: there may be more later.
    Now(u32),
    /// The number is not known.
    Unknown,
}

/// What says that the CPUs are dedicated to this program, or that they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedicated {
    /// The program, or the person running it.
    Said(bool),
    /// The hypervisor: `KVM_HINTS_REALTIME`.
    ByHypervisor,
    /// The hypervisor says so, but it has given more of the CPUs' time than [`DOUBT`] to other machines: they
    /// are not.
    Doubted,
    /// Nothing says so.
    Unknown,
}

/// The share of stolen time above which a hypervisor's hint is not believed. A native lock whose holder is
/// stopped loses far more than a paravirt lock on CPUs that are dedicated after all. A little time is stolen of
/// dedicated CPUs, too, while a machine starts.
pub const DOUBT: f64 = 0.01;

/// Everything that the choice depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Inputs {
    /// The hints: [`Hints::lock`] overrides all else.
    pub hints: Hints,
    /// The CPUs on which the process may run; never empty.
    pub cpus: Vec<usize>,
    /// The limit of CPU time, if there is one.
    pub quota: Option<Quota>,
    /// The threads.
    pub threads: Threads,
    /// The hypervisor, if there is one.
    pub hypervisor: Option<Hypervisor>,
    /// Share of the CPUs' time since boot that the hypervisor has given to other machines.
    pub stolen: Option<f64>,
    /// Whether the CPUs belong to this program alone.
    pub dedicated: Dedicated,
    /// Whether a waiter can halt and be kicked.
    pub can_halt: bool,
    /// How many NUMA nodes the CPUs are on.
    pub nodes: usize,
    /// How many last-level caches they have.
    pub caches: usize,
    /// The distances among them, in levels (see [`crate::platform::topology`]).
    pub distances: Vec<u32>,
    /// Whether the topology is fake: then nodes are the fake machine's.
    pub fake_topology: bool,
    /// What was malformed, one line each. It counts as missing.
    pub problems: Vec<String>,
}

impl Inputs {
    /// The inputs of this process at this moment, on the topology in force, which may be fake.
    #[must_use]
    pub fn of_this_process(hints: Hints, topology: &Topology) -> Self {
        let mut cpus = process::allowed_cpus();
        if cpus.is_empty() {
            cpus = process::listed_cpus(Path::new("/")).ok().flatten().unwrap_or_default();
        }
        Self::gather(Path::new("/"), &Processor, cpus, hints, topology, Vec::new())
    }

    /// The inputs of another machine, or another process, from files in a folder: `proc/self/status`,
    /// `proc/self/cgroup`, `proc/stat`, `sys/…` as they are there, and in `cpuid` what the command `cpuid -1
    /// -r` prints there. What is missing is not known. `described` is a fake topology instead of the one in the
    /// folder.
    ///
    /// # Errors
    /// There is no such folder, or it has neither `proc` nor `sys`.
    pub fn of_folder(root: &Path, hints: Hints, described: Option<&OsStr>) -> Result<Self, String> {
        if !["proc", "sys"].iter().any(|inside| root.join(inside).is_dir()) {
            return Err(format!(
                "{} is not a folder with `proc` or `sys` in it, like /",
                root.display()
            ));
        }
        let mut problems = Vec::new();
        let mut trouble = |problem: String| problems.push(problem);
        let topology = match Topology::from_value(described) {
            Ok(Some(fake)) => fake,
            Ok(None) => match Topology::read(&root.join("sys/devices/system")) {
                Ok(found) => found,
                Err(error) => {
                    if error.kind() != std::io::ErrorKind::NotFound {
                        trouble(error.to_string());
                    }
                    Topology::ONE_NODE
                }
            },
            Err(wrong) => {
                trouble(wrong);
                Topology::ONE_NODE
            }
        };
        let file = root.join("cpuid");
        let cpuid = match std::fs::read_to_string(&file).ok().map(|text| Recorded::parse(&text)) {
            Some(Ok(recorded)) => recorded,
            Some(Err(wrong)) => {
                trouble(format!("{}: {wrong}", file.display()));
                Recorded::default()
            }
            None => Recorded::default(),
        };
        let known: Vec<usize> = topology.cpus().collect();
        let cpus = match process::listed_cpus(root) {
            // The list may allow CPUs that are offline.
            Ok(Some(listed)) if topology.is_fake() || known.is_empty() => listed,
            Ok(Some(listed)) => {
                listed.into_iter().filter(|cpu| known.binary_search(cpu).is_ok()).collect()
            }
            Ok(None) => known,
            Err(wrong) => {
                trouble(wrong);
                known
            }
        };
        Ok(Self::gather(root, &cpuid, cpus, hints, &topology, problems))
    }

    fn gather(
        root: &Path,
        cpuid: &dyn Cpuid,
        mut cpus: Vec<usize>,
        hints: Hints,
        topology: &Topology,
        mut problems: Vec<String>,
    ) -> Self {
        if cpus.is_empty() {
            cpus.push(0);
        }
        let quota = quota::quota(root, &mut |problem| problems.push(problem));
        let mut heard = |answer: Result<Option<f64>, String>| {
            answer.unwrap_or_else(|problem| {
                problems.push(problem);
                None
            })
        };
        let stolen = heard(process::stolen(root));
        let now = heard(process::threads(root).map(|threads| threads.map(f64::from)));
        let hypervisor = hypervisor(root, cpuid, stolen);
        let by_hypervisor = hypervisor.as_ref().is_some_and(|found| found.dedicated);
        // A fake machine's nodes are all in use: threads are laid on all of it.
        let on: Vec<usize> =
            if topology.is_fake() { topology.cpus().collect() } else { cpus.clone() };
        Self {
            hints,
            quota,
            threads: match (hints.threads, now) {
                (Some(said), _) => Threads::Said(said),
                (None, Some(now)) => Threads::Now(now as u32),
                (None, None) => Threads::Unknown,
            },
            hypervisor,
            stolen,
            dedicated: match hints.dedicated {
                Some(said) => Dedicated::Said(said),
                None if by_hypervisor && stolen.is_some_and(|share| share >= DOUBT) => {
                    Dedicated::Doubted
                }
                None if by_hypervisor => Dedicated::ByHypervisor,
                None => Dedicated::Unknown,
            },
            can_halt: hints.can_halt.unwrap_or(true),
            nodes: topology.nodes_among(on.iter().copied()),
            caches: topology.caches_among(on.iter().copied()),
            distances: topology.distances_among(on.iter().copied()),
            fake_topology: topology.is_fake(),
            problems,
            cpus,
        }
    }

    /// How much CPU time there is, in CPUs: that of the allowed CPUs, within the quota.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        let cpus = self.cpus.len() as f64;
        self.quota.as_ref().map_or(cpus, |quota| quota.cpus.min(cpus))
    }

    /// Whether the quota allows less time than the CPUs have.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.capacity() < self.cpus.len() as f64
    }

    /// Whether there are, or will be, more threads than CPUs.
    #[must_use]
    pub fn has_more_threads_than_cpus(&self) -> bool {
        match self.threads {
            Threads::Said(threads) | Threads::Now(threads) => threads as usize > self.cpus.len(),
            Threads::Unknown => false,
        }
    }

    /// Whether all threads must share one CPU: there is one CPU, and it was not said that there is one thread.
    #[must_use]
    pub fn has_one_cpu(&self) -> bool {
        self.cpus.len() == 1 && !matches!(self.threads, Threads::Said(0 | 1))
    }

    /// Whether the CPUs belong to this program alone.
    #[must_use]
    pub fn is_dedicated(&self) -> bool {
        matches!(self.dedicated, Dedicated::Said(true) | Dedicated::ByHypervisor)
    }
}

/// The hypervisor: by CPUID, by the names of the machine, or because it steals time.
pub(super) fn hypervisor(
    root: &Path,
    cpuid: &dyn Cpuid,
    stolen: Option<f64>,
) -> Option<Hypervisor> {
    let hidden = |name: &str, source| Hypervisor {
        name: name.to_owned(),
        source,
        pv_unhalt: None,
        dedicated: false,
    };
    cpuid::hypervisor(cpuid)
        .or_else(|| process::hypervisor_by_name(root).map(|name| hidden(name, "its name in sysfs")))
        .or_else(|| stolen.filter(|&share| share > 0.0).map(|_| hidden("unknown", "stolen time")))
}
