//! The shape of this machine, from sysfs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use qspin::platform::topology::{parse_cpu_list, sharing_last_cache};
use qspin_sim::machine::Shape;

/// Pairs that are measured at each distance: medians of them differ little from those of all.
const MAX_PAIRS: usize = 6;

/// A CPU, and by what numbers it is one of a socket, a core, a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cpu {
    pub(super) number: usize,
    pub(super) socket: u32,
    /// The first CPU of its core.
    pub(super) core: u32,
    /// The first CPU of its last-level cache.
    pub(super) cache: u32,
}

/// How far two CPUs are apart; the order is that of distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Apart {
    Core,
    Cache,
    Socket,
    Sockets,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "of one core",
            Self::Cache => "of one cache",
            Self::Socket => "of one socket",
            Self::Sockets => "of two sockets",
        })
    }
}

/// The CPUs that a process may use, and the shape that holds them.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) cpus: Vec<Cpu>,
    pub(super) shape: Shape,
    /// What has to be said about it, a sentence without its full stop each.
    pub(super) notes: Vec<String>,
}

/// Looks for `allowed` in `sysfs`. Where that does not say, they are cores of one socket.
pub(super) fn find(allowed: &[usize], sysfs: &Path) -> Found {
    let known = allowed.iter().map(|&number| read(&sysfs.join(format!("cpu{number}")), number));
    if let Some(cpus) = known.collect() {
        return of(cpus, Vec::new());
    }
    // Some that are known and some that are not have no shape together.
    let cpu = |&number: &usize| Cpu { number, socket: 0, core: number as u32, cache: 0 };
    let note = format!(
        "{} does not say where CPUs are: they count as cores of one socket",
        sysfs.display()
    );
    of(allowed.iter().map(cpu).collect(), vec![note])
}

/// The place of a CPU; `None` where sysfs does not say.
fn read(folder: &Path, number: usize) -> Option<Cpu> {
    let text = |name: &str| fs::read_to_string(folder.join("topology").join(name)).ok();
    let socket = text("physical_package_id")?.trim().parse::<i64>().ok()?;
    let siblings = text("thread_siblings_list").or_else(|| text("core_cpus_list"))?;
    let core = parse_cpu_list(siblings.trim())?.into_iter().min()?;
    let socket = u32::try_from(socket).unwrap_or(0);
    let sharing = sharing_last_cache(&folder.join("cache")).ok()?;
    // Without caches, those of a socket share one.
    let cache = sharing.into_iter().min().unwrap_or(u32::MAX - socket);
    Some(Cpu { number, socket, core, cache })
}

/// The smallest regular shape that holds these CPUs.
pub(super) fn of(cpus: Vec<Cpu>, mut notes: Vec<String>) -> Found {
    let mut cores: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
    let mut caches: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    for cpu in &cpus {
        cores.entry(cpu.socket).or_default().insert(cpu.core);
        *threads.entry(cpu.core).or_default() += 1;
        caches.entry((cpu.socket, cpu.cache)).or_default().insert(cpu.core);
    }
    let most = |counts: &mut dyn Iterator<Item = usize>| counts.max().unwrap_or(1) as u32;
    let mut cores_per_socket = most(&mut cores.values().map(BTreeSet::len));
    let llc = most(&mut caches.values().map(BTreeSet::len));
    // A shape has whole caches.
    cores_per_socket = cores_per_socket.next_multiple_of(llc);
    let shape = Shape {
        sockets: cores.len() as u32,
        cores_per_socket,
        threads_per_core: most(&mut threads.values().map(|&count| count as usize)),
        cores_per_llc: (llc < cores_per_socket).then_some(llc),
        hops: Vec::new(),
    };
    if shape.processors() as usize != cpus.len() {
        notes.push(format!(
            "The process may use {} CPUs that are no regular machine: the shape has {}",
            cpus.len(),
            shape.processors()
        ));
    }
    Found { cpus, shape, notes }
}

impl Found {
    /// Some pairs of each distance that there is, the nearest first.
    pub(super) fn pairs(&self) -> Vec<(Apart, Vec<(Cpu, Cpu)>)> {
        let mut all: BTreeMap<Apart, Vec<(Cpu, Cpu)>> = BTreeMap::new();
        for (place, &a) in self.cpus.iter().enumerate() {
            for &b in &self.cpus[place + 1..] {
                all.entry(apart(a, b)).or_default().push((a, b));
            }
        }
        // Evenly from all of them.
        let some = |pairs: Vec<(Cpu, Cpu)>| {
            let step = pairs.len().div_ceil(MAX_PAIRS);
            pairs.into_iter().step_by(step).collect()
        };
        all.into_iter().map(|(apart, pairs)| (apart, some(pairs))).collect()
    }
}

fn apart(a: Cpu, b: Cpu) -> Apart {
    match () {
        () if a.socket != b.socket => Apart::Sockets,
        () if a.core == b.core => Apart::Core,
        () if a.cache == b.cache => Apart::Cache,
        () => Apart::Socket,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sysfs: &Path, cpu: usize, socket: u32, siblings: &str, shared: &str) {
        let folder = sysfs.join(format!("cpu{cpu}"));
        for (name, text) in [
            ("topology/physical_package_id", socket.to_string()),
            ("topology/thread_siblings_list", siblings.to_owned()),
            ("cache/index0/level", "1".to_owned()),
            ("cache/index0/shared_cpu_list", siblings.to_owned()),
            ("cache/index1/level", "3".to_owned()),
            ("cache/index1/shared_cpu_list", shared.to_owned()),
        ] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text + "\n").unwrap();
        }
    }

    /// Two sockets of four cores with two threads, whose caches are shared by two cores each.
    fn sysfs() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for cpu in 0..16 {
            let core = cpu % 8;
            let cache = core / 2 * 2;
            let shared = format!("{cache}-{},{}-{}", cache + 1, cache + 8, cache + 9);
            let siblings = format!("{core},{}", core + 8);
            write(directory.path(), cpu, core as u32 / 4, &siblings, &shared);
        }
        directory
    }

    #[test]
    fn the_shape_is_what_sysfs_says_and_pairs_are_of_every_distance() {
        let directory = sysfs();
        let found = find(&(0..16).collect::<Vec<_>>(), directory.path());
        let Shape { sockets, cores_per_socket, threads_per_core, cores_per_llc, .. } = found.shape;
        assert_eq!((sockets, cores_per_socket, threads_per_core), (2, 4, 2));
        assert_eq!(cores_per_llc, Some(2));
        assert!(found.notes.is_empty());
        let pairs = found.pairs();
        let distances: Vec<Apart> = pairs.iter().map(|(apart, _)| *apart).collect();
        assert_eq!(distances, [Apart::Core, Apart::Cache, Apart::Socket, Apart::Sockets]);
        for (distance, pairs) in pairs {
            assert!((1..=MAX_PAIRS).contains(&pairs.len()), "{distance}: {}", pairs.len());
            assert!(pairs.iter().all(|&(a, b)| a != b && apart(a, b) == distance));
        }
    }

    #[test]
    fn a_part_of_a_machine_has_the_smallest_shape_that_holds_it() {
        let directory = sysfs();
        // Three cores of one socket, of which one has both threads; one of the other.
        let found = find(&[0, 1, 2, 8, 4], directory.path());
        assert_eq!((found.shape.sockets, found.shape.threads_per_core), (2, 2));
        assert_eq!((found.shape.cores_per_socket, found.shape.cores_per_llc), (4, Some(2)));
        assert_eq!(found.shape.check(), Ok(()));
        assert!(found.notes[0].contains("5 CPUs"), "{:?}", found.notes);
    }

    #[test]
    fn where_sysfs_says_nothing_or_nonsense_cpus_are_cores_of_one_socket() {
        let directory = sysfs();
        fs::write(directory.path().join("cpu3/topology/physical_package_id"), "many").unwrap();
        for sysfs in [directory.path(), Path::new("/nowhere")] {
            let found = find(&[1, 3], sysfs);
            assert_eq!((found.shape.processors(), found.shape.sockets), (2, 1));
            assert!(found.notes[0].contains("does not say"));
        }
    }
}
