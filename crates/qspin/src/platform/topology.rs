//! Where CPUs are, and how far from each other: nodes, last-level caches, distances.
//!
//! # Problem
//! A lock that prefers waiters near its holder asks two questions on its slow path: where does this thread run,
//! and how far is one place from another? Neither the path of a lock nor the loading of the program may read
//! files or allocate. So the machine is examined when the program first asks ([`in_force`], or
//! [`select::decide`](crate::select::decide)), and locks only look up the result. Before that, locks use what
//! the kernel tells each thread without a file: the number of its node. Nodes are then the places, all at
//! distance 1 from each other.
//!
//! # Source
//! sysfs ([`sysfs`](Topology::read)): `node*/cpulist`, `node*/distance`, `cpu*/cache`. Or what `QSPIN_TOPOLOGY`
//! says: `4x18x2`, which is four nodes of 18 cores of two hardware threads; or a folder with files like
//! sysfs's. With that variable the machine is *fake*: threads are laid on its CPUs by their number, one node
//! after the other, wherever they really run.
//!
//! # Levels of distance
//! | distance | from one CPU to another |
//! |--:|---|
//! | 0 | of the same last-level cache, on the same node |
//! | 1 | of the same node; or of the same cache, where that lies across nodes (sub-NUMA clusters) |
//! | 2, 3 … | of the node at the nearest, next, … distance that the firmware's table (SLIT) has |
//!
//! # What holds where the input is incomplete
//! * No sysfs, no nodes in it, or nonsense: one node, at distance 0 from itself.
//! * A CPU that no node lists, one that was offline when the machine was examined, and one past the end count
//!   as a CPU of the first place, on the lowest node. A cpuset that changes while the program runs needs no
//!   special handling: every CPU of the machine has its place, allowed or not.
//! * Node numbers with holes are kept as names; nodes without CPUs are no places.

mod grid;
mod sysfs;

use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::env::var_os;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use qspin_core::platform::CpuId;

use super::system::{environment, location};
use crate::excerpt::excerpt;
use crate::tuning;

#[doc(hidden)]
pub use sysfs::sharing_last_cache;
pub use sysfs::{SYSFS, parse_cpu_list};

/// The variable that names another topology.
pub const VARIABLE: &str = "QSPIN_TOPOLOGY";

/// How many nodes a topology may have: what Linux can be built for.
const MAX_NODES: usize = 1 << 10;
/// How many CPUs a fake topology may have.
const MAX_CPUS: usize = 1 << 16;

/// A last-level cache, or the part of one that is on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    cache: u32,
    /// Index into `nodes`.
    node: u32,
}

/// A CPU that has no place.
const NOWHERE: u32 = u32::MAX;

/// Where the CPUs of a machine are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Numbers of the nodes that have CPUs, ascending.
    nodes: Vec<u32>,
    places: Vec<Place>,
    /// Index into `places` of each CPU, or [`NOWHERE`].
    place_of: Vec<u32>,
    /// Distance from node to node, both by index.
    ranks: Vec<u32>,
    /// The CPU for each thread number, repeating; empty if threads are where they run.
    laid: Vec<u32>,
}

impl Topology {
    /// One node that holds every CPU: assumed of a machine that shows nothing.
    pub const ONE_NODE: Self = Self {
        nodes: Vec::new(),
        places: Vec::new(),
        place_of: Vec::new(),
        ranks: Vec::new(),
        laid: Vec::new(),
    };

    /// Reads this machine's topology; [`ONE_NODE`](Self::ONE_NODE) where it shows none, or nonsense, or where
    /// the system does not say on which CPU a thread runs.
    #[must_use]
    pub fn of_this_machine() -> Self {
        if !location::IS_KNOWN {
            return Self::ONE_NODE;
        }
        Self::read(Path::new(SYSFS)).unwrap_or(Self::ONE_NODE)
    }

    /// A fake topology as `QSPIN_TOPOLOGY` describes it: `NODESxCORESxTHREADS`, or a folder that
    /// [`find`](Self::find) can read.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right, in one line.
    pub fn fake(described: &OsStr) -> Result<Self, String> {
        let folder = Path::new(described);
        let shown = excerpt(&described.to_string_lossy());
        let mut topology = if described.as_encoded_bytes().contains(&b'/') || folder.is_dir() {
            Self::find(folder).map_err(|why| format!("{VARIABLE}={shown}: {why}"))?
        } else {
            grid::parse(described).ok_or_else(|| {
                format!(
                    "{VARIABLE}={shown} is neither NODESxCORESxTHREADS like 4x18x2 (at most \
                     {MAX_NODES} nodes and {MAX_CPUS} CPUs) nor a folder with files like \
                     those of {SYSFS}"
                )
            })?
        };
        topology.laid = topology.spread();
        Ok(topology)
    }

    /// Parses the value of the environment variable: `None` if it is unset or empty.
    ///
    /// # Errors
    /// As [`fake`](Self::fake).
    pub fn from_value(value: Option<&OsStr>) -> Result<Option<Self>, String> {
        value.filter(|value| !value.is_empty()).map(Self::fake).transpose()
    }

    /// Whether threads are laid on its CPUs by their number.
    #[must_use]
    pub fn is_fake(&self) -> bool {
        !self.laid.is_empty()
    }

    /// The CPUs of the topology.
    pub fn cpus(&self) -> impl Iterator<Item = usize> {
        (0..self.place_of.len()).filter(|&cpu| self.place_of[cpu] != NOWHERE)
    }

    /// The number of the node of CPU `cpu`; the lowest one for a CPU that no node lists.
    #[must_use]
    pub fn node_of(&self, cpu: usize) -> u32 {
        let index = self.places.get(self.place_of(cpu) as usize).map_or(0, |place| place.node);
        self.nodes.get(index as usize).copied().unwrap_or(0)
    }

    /// The place of CPU `cpu`. CPUs of one place are at distance 0. Places are numbered from 0 without holes.
    #[inline]
    #[must_use]
    pub fn place_of(&self, cpu: usize) -> u32 {
        match self.place_of.get(cpu) {
            Some(&place) if place != NOWHERE => place,
            _ => 0,
        }
    }

    /// The distance from one place to another, in levels (see the [module](self)). Unknown places are different
    /// places if their numbers differ.
    #[inline]
    #[must_use]
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        if from == to {
            return 0;
        }
        match (self.places.get(from as usize), self.places.get(to as usize)) {
            (Some(from), Some(to)) if from.cache == to.cache || from.node == to.node => 1,
            (Some(from), Some(to)) => {
                self.ranks[from.node as usize * self.nodes.len() + to.node as usize]
            }
            _ => 1,
        }
    }

    /// 1 from one place to another on a different node, and 0 on the same: the levels of the NUMA order's series.
    #[inline]
    #[must_use]
    pub fn distance_by_node(&self, from: u32, to: u32) -> u32 {
        match (self.places.get(from as usize), self.places.get(to as usize)) {
            (Some(from), Some(to)) => u32::from(from.node != to.node),
            _ => u32::from(from != to),
        }
    }

    /// The distance from the CPU `from` to the CPU `to`.
    #[must_use]
    pub fn distance_of_cpus(&self, from: usize, to: usize) -> u32 {
        self.distance(self.place_of(from), self.place_of(to))
    }

    /// The CPU on which a fake topology lays the thread of this number.
    #[inline]
    #[must_use]
    pub fn cpu_of_thread(&self, thread: CpuId) -> Option<usize> {
        let turn = (thread.number() as usize).checked_rem(self.laid.len())?;
        Some(self.laid[turn] as usize)
    }

    /// How many nodes have at least one of `cpus`.
    pub fn nodes_among(&self, cpus: impl IntoIterator<Item = usize>) -> usize {
        count_different(cpus.into_iter().map(|cpu| self.node_of(cpu)))
    }

    /// How many last-level caches have at least one of `cpus`.
    pub fn caches_among(&self, cpus: impl IntoIterator<Item = usize>) -> usize {
        let place = |cpu| self.places.get(self.place_of(cpu) as usize);
        count_different(cpus.into_iter().map(|cpu| place(cpu).map_or(0, |place| place.cache)))
    }

    /// Every distance that there is between two of `cpus`, ascending.
    pub fn distances_among(&self, cpus: impl IntoIterator<Item = usize>) -> Vec<u32> {
        let mut places: Vec<u32> = cpus.into_iter().map(|cpu| self.place_of(cpu)).collect();
        places.sort_unstable();
        places.dedup();
        let pairs = places.iter().flat_map(|&from| places.iter().map(move |&to| (from, to)));
        let mut all: Vec<u32> = pairs.map(|(from, to)| self.distance(from, to)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The CPUs in the order in which threads are laid on them: one of each node, then the next.
    fn spread(&self) -> Vec<u32> {
        let mut of_node = vec![Vec::new(); self.nodes.len()];
        for cpu in self.cpus() {
            of_node[self.places[self.place_of[cpu] as usize].node as usize].push(cpu as u32);
        }
        let longest = of_node.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .flat_map(|turn| of_node.iter().filter_map(move |cpus| cpus.get(turn)))
            .copied()
            .collect()
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes.len().max(1);
        write!(f, "{nodes} node{}", if nodes == 1 { "" } else { "s" })
    }
}

fn count_different(numbers: impl Iterator<Item = u32>) -> usize {
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

/// Null until the program has asked for a topology, or has put one in force.
static IN_FORCE: AtomicPtr<Topology> = AtomicPtr::new(core::ptr::null_mut());

/// What was found when the program asked.
struct Found {
    topology: Topology,
    /// What is wrong with what the environment says, in one line.
    problem: Option<String>,
}

static FOUND: OnceLock<Found> = OnceLock::new();

/// Examines the environment and the machine.
fn look() -> Found {
    let described = var_os(VARIABLE).filter(|_| environment::counts());
    match Topology::from_value(described.as_deref()) {
        Ok(fake) => {
            Found { topology: fake.unwrap_or_else(Topology::of_this_machine), problem: None }
        }
        Err(problem) => Found { topology: Topology::ONE_NODE, problem: Some(problem) },
    }
}

/// The topology in force, if there is one yet. Async-signal-safe.
#[inline]
fn known() -> Option<&'static Topology> {
    // SAFETY: null, or made by `set` from a `'static` reference and only read through.
    // ORDERING: Acquire pairs with the Release of `set`. (On today's processors it is a plain load.)
    unsafe { IN_FORCE.load(Acquire).as_ref() }
}

/// The topology in force: what `QSPIN_TOPOLOGY` describes, or this machine's, unless the program has put
/// another in force. The first call examines the machine: it reads files and allocates, and is not
/// async-signal-safe. Locks use the topology from then on.
#[must_use]
pub fn in_force() -> &'static Topology {
    known().unwrap_or_else(|| {
        let found = core::ptr::from_ref(&FOUND.get_or_init(look).topology).cast_mut();
        // A topology that the program put in force meanwhile stays. ORDERING: as in `set` and `known`.
        match IN_FORCE.compare_exchange(core::ptr::null_mut(), found, AcqRel, Acquire) {
            // SAFETY: as in `known`.
            Ok(_) => unsafe { &*found },
            // SAFETY: as in `known`.
            Err(other) => unsafe { &*other },
        }
    })
}

/// What was wrong with the environment's topology when it was read.
pub(crate) fn problem() -> Option<&'static str> {
    FOUND.get()?.problem.as_deref()
}

/// Puts another topology in force, at any moment. A thread that is waiting keeps its place in the old topology.
/// Until it is served the order of a queue may be worse, but never wrong.
pub fn set(topology: &'static Topology) {
    IN_FORCE.store(core::ptr::from_ref(topology).cast_mut(), Release);
}

/// The place of the calling thread, whose number is `thread`: where it runs at this moment, or where a fake
/// topology lays it; its node while no topology is in force. Async-signal-safe.
#[inline]
#[must_use]
pub fn place(thread: Option<CpuId>) -> u32 {
    let Some(topology) = known() else { return location::node() };
    if topology.places.len() <= 1 {
        0
    } else if topology.is_fake() {
        thread
            .and_then(|thread| topology.cpu_of_thread(thread))
            .map_or(0, |cpu| topology.place_of(cpu))
    } else {
        topology.place_of(location::cpu())
    }
}

/// The distance between two places, for a lock: see [`place`]. With the tunable `numa_by_node`, whether their nodes
/// differ.
#[inline]
pub(super) fn distance(from: u32, to: u32) -> u32 {
    match known() {
        None => u32::from(from != to),
        Some(topology) if tuning::get().numa_by_node => topology.distance_by_node(from, to),
        Some(topology) => topology.distance(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(number: u32) -> CpuId {
        CpuId::new(number).unwrap()
    }

    #[test]
    fn threads_are_laid_one_node_after_the_other() {
        let topology = Topology::fake(OsStr::new("2x2x1")).unwrap();
        let cpus: Vec<_> = (0..6).map(|n| topology.cpu_of_thread(thread(n)).unwrap()).collect();
        assert_eq!(cpus, [0, 2, 1, 3, 0, 2]);
        let nodes: Vec<_> = cpus.iter().map(|&cpu| topology.node_of(cpu)).collect();
        assert_eq!(nodes, [0, 1, 0, 1, 0, 1]);
        assert!(topology.is_fake());
        assert_eq!(Topology::ONE_NODE.cpu_of_thread(thread(3)), None);
    }

    #[test]
    fn one_node_has_every_cpu_at_distance_0() {
        let one = Topology::ONE_NODE;
        assert_eq!((one.node_of(0), one.node_of(usize::MAX), one.place_of(7)), (0, 0, 0));
        assert_eq!(one.nodes_among(0..64), 1);
        assert_eq!(one.distances_among(0..64), [0]);
        assert_eq!(one.to_string(), "1 node");
    }

    #[test]
    fn places_of_another_topology_are_apart_and_harmless() {
        let topology = Topology::fake(OsStr::new("2x1x1")).unwrap();
        assert_eq!((topology.distance(9, 9), topology.distance(0, 9)), (0, 1));
    }

    #[test]
    fn by_node_there_is_one_level() {
        // Two caches on each of two nodes, and a third node farther away.
        let place = |cache, node| Place { cache, node };
        let topology = Topology {
            nodes: vec![0, 1, 2],
            places: vec![place(0, 0), place(1, 0), place(2, 1), place(3, 2)],
            place_of: vec![0, 1, 2, 3],
            ranks: vec![0, 2, 3, 2, 0, 3, 3, 3, 0],
            laid: Vec::new(),
        };
        let all = |distance: &dyn Fn(u32, u32) -> u32| [1, 2, 3, 9].map(|to| distance(0, to));
        assert_eq!(all(&|from, to| topology.distance(from, to)), [1, 2, 3, 1]);
        assert_eq!(all(&|from, to| topology.distance_by_node(from, to)), [0, 1, 1, 1]);
    }

    #[test]
    fn an_empty_value_is_none() {
        assert_eq!(Topology::from_value(None), Ok(None));
        assert_eq!(Topology::from_value(Some(OsStr::new(""))), Ok(None));
    }

    #[test]
    fn this_thread_has_a_place_in_any_topology() {
        // No other test of this process puts a topology in force.
        let node = place(None);
        assert!(known().is_some() || node == location::node());
        assert_eq!((distance(0, 0), distance(0, 1)), (0, 1));
        let real = place(Some(thread(1)));
        assert!(real == 0 || (real as usize) < in_force().places.len());
        set(Box::leak(Box::new(Topology::fake(OsStr::new("3x2x1")).unwrap())));
        let places: Vec<_> = (0..4).map(|number| place(Some(thread(number)))).collect();
        assert_eq!(places, [0, 1, 2, 0]);
        assert_eq!(place(None), 0, "without a number");
        static ONE_NODE: Topology = Topology::ONE_NODE;
        set(&ONE_NODE);
        assert_eq!(place(Some(thread(2))), 0);
    }
}
