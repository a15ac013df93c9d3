//! The topology that Linux shows, and files like it in a folder.
//!
//! As few files are read as possible, since this runs at the start of a program: two of each node, and the
//! caches of one CPU of each last-level cache.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::grid::NEXT_NODE;
use super::{MAX_NODES, NOWHERE, Place, Topology};
use crate::excerpt;

/// Where Linux shows its CPUs (`cpu`) and NUMA nodes (`node`).
pub const SYSFS: &str = "/sys/devices/system";

/// A CPU whose last-level cache is not known.
const UNKNOWN: u32 = u32::MAX;

impl Topology {
    /// Reads a folder like [`SYSFS`]: `node/node0/cpulist`, `node/node0/distance`, `cpu/online` and
    /// `cpu/cpu0/cache/index3/shared_cpu_list`, and so on. Any of them may be missing, but not all.
    ///
    /// Node numbers may have holes, nodes may have no CPU, CPUs may have no node and be offline;
    /// without `distance` all nodes are equally far; without caches each node is one.
    ///
    /// # Errors
    /// The folder has none of these files, or one is malformed.
    pub fn read(system: &Path) -> io::Result<Self> {
        let online = optional(&system.join("cpu/online"))?
            .map(|(path, text)| {
                let cpus = cpus_of(&path, &text)?;
                if cpus.is_empty() {
                    Err(malformed(&path, &text, "a list of CPUs"))
                } else {
                    Ok(cpus)
                }
            })
            .transpose()?;
        let nodes = nodes(&system.join("node"))?;
        if online.is_none() && nodes.is_empty() {
            let message = "there is no cpu/online and no node/node0/cpulist in it";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        let mut cpus = Cpus::default();
        for (index, (path, text)) in nodes.values().enumerate() {
            for cpu in cpus_of(path, text)? {
                if let Some(other) = cpus.add(cpu, index as u32) {
                    let other = nodes.keys().nth(other as usize).copied().unwrap_or(0);
                    let what = format!("of one node alone: node{other} lists CPU {cpu}, too");
                    return Err(malformed(path, text, &what));
                }
            }
        }
        if let Some(online) = online {
            cpus.retain(&online, nodes.is_empty());
        }
        if cpus.0.is_empty() {
            let message = format!("{}: no node lists a CPU that is online", system.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        cpus.read_caches(&system.join("cpu"))?;
        let mut topology = cpus.places();
        let rows: Vec<(u32, &Path)> = nodes.iter().map(|(n, (path, _))| (*n, &**path)).collect();
        topology.ranks = ranks(&rows, &topology.nodes)?;
        // Indices have become numbers.
        let number = |index: &u32| rows.get(*index as usize).map_or(0, |(number, _)| *number);
        topology.nodes = topology.nodes.iter().map(number).collect();
        Ok(topology)
    }

    /// Reads the topology in `folder`, which is like [`SYSFS`], or like `/sys`, or like `/`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn find(folder: &Path) -> io::Result<Self> {
        let places = ["sys/devices/system", "devices/system"].map(|inside| folder.join(inside));
        let found = places.iter().find(|inside| inside.is_dir());
        Self::read(found.map_or(folder, |inside| inside))
    }
}

type File = (std::path::PathBuf, String);

/// The nodes in the order of their numbers, with their lists of CPUs.
fn nodes(folder: &Path) -> io::Result<BTreeMap<u32, File>> {
    let mut nodes = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(nodes),
        Err(error) => return Err(in_file(folder, &error)),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        let Some(number) = number.and_then(|number| number.parse::<u32>().ok()) else {
            continue;
        };
        let path = entry.path().join("cpulist");
        let text = text_of(&path).map_err(|error| in_file(&path, &error))?;
        nodes.insert(number, (path, text));
        if nodes.len() > MAX_NODES {
            let message = format!("{}: more than {MAX_NODES} nodes", folder.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
    Ok(nodes)
}

/// What is known of each CPU: the index of its node, and a CPU of its cache.
#[derive(Default)]
struct Cpus(BTreeMap<u32, (u32, u32)>);

impl Cpus {
    /// Puts `cpu` on a node. Returns the node on which it already is.
    fn add(&mut self, cpu: u32, node: u32) -> Option<u32> {
        self.0.insert(cpu, (node, UNKNOWN)).map(|(node, _)| node).filter(|&other| other != node)
    }

    /// Only online CPUs count. Without nodes they are all on one.
    fn retain(&mut self, online: &[u32], without_nodes: bool) {
        if without_nodes {
            self.0 = online.iter().map(|&cpu| (cpu, (0, UNKNOWN))).collect();
        } else {
            self.0.retain(|cpu, _| online.binary_search(cpu).is_ok());
        }
    }

    fn read_caches(&mut self, folder: &Path) -> io::Result<()> {
        let cpus: Vec<u32> = self.0.keys().copied().collect();
        for cpu in cpus {
            if self.0[&cpu].1 != UNKNOWN {
                continue;
            }
            for sharing in sharing_last_cache(&folder.join(format!("cpu{cpu}/cache")))? {
                if let Some((_, cache)) = self.0.get_mut(&sharing)
                    && *cache == UNKNOWN
                {
                    *cache = cpu;
                }
            }
        }
        Ok(())
    }

    /// Numbers caches and places from 0. Here nodes are still indices of those that have CPUs.
    fn places(&self) -> Topology {
        let mut topology = Topology::ONE_NODE;
        topology.nodes = self.0.values().map(|(node, _)| *node).collect();
        topology.nodes.sort_unstable();
        topology.nodes.dedup();
        // One of its CPUs identifies a cache. If no cache is known, the node is one.
        let mut caches: Vec<(u32, u32)> = Vec::new();
        let length = self.0.last_key_value().map_or(0, |(&cpu, _)| cpu as usize + 1);
        topology.place_of = vec![NOWHERE; length];
        // The lowest node's CPUs first: a CPU without a place counts as one of the first place.
        let mut cpus: Vec<_> = self.0.iter().collect();
        cpus.sort_by_key(|(cpu, (node, _))| (*node, **cpu));
        for (&cpu, &(node, cache)) in cpus {
            let name = if cache == UNKNOWN { (UNKNOWN, node) } else { (cache, 0) };
            let cache = position(&mut caches, name);
            let node = topology.nodes.binary_search(&node).unwrap_or(0) as u32;
            topology.place_of[cpu as usize] = position(&mut topology.places, Place { cache, node });
        }
        topology
    }
}

/// The index of `item`, which is added if it is missing.
fn position<T: PartialEq>(items: &mut Vec<T>, item: T) -> u32 {
    // The item was mostly added last.
    let index = items.iter().rposition(|other| *other == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    });
    index as u32
}

/// The CPUs that share the cache of the highest level that this folder shows; none if it shows none.
#[doc(hidden)]
pub fn sharing_last_cache(folder: &Path) -> io::Result<Vec<u32>> {
    let mut last = (0, Vec::new());
    for index in 0.. {
        let folder = folder.join(format!("index{index}"));
        let Some((path, text)) = optional(&folder.join("level"))? else { break };
        let level: u32 =
            text.trim().parse().map_err(|_| malformed(&path, &text, "the level of a cache"))?;
        if level > last.0
            && let Some((path, text)) = optional(&folder.join("shared_cpu_list"))?
        {
            last = (level, cpus_of(&path, &text)?);
        }
    }
    Ok(last.1)
}

/// Ranks of distance among `wanted`, indices into `rows`: 0 for a node itself, then, from [`NEXT_NODE`] on, one
/// more for each distance between two different nodes. A missing row makes all of them worthless, since the
/// remaining rows are on another scale: then all nodes are equally far.
fn ranks(rows: &[(u32, &Path)], wanted: &[u32]) -> io::Result<Vec<u32>> {
    let mut table = Vec::new();
    for &from in wanted {
        // Without nodes in sysfs there is one, and no file.
        let file = rows.get(from as usize).map(|(_, list)| list.with_file_name("distance"));
        let found = file.map(|file| optional(&file)).transpose()?.flatten();
        let Some((path, text)) = found else {
            let each = wanted.iter().flat_map(|from| wanted.iter().map(move |to| (from, to)));
            return Ok(each.map(|(from, to)| if from == to { 0 } else { NEXT_NODE }).collect());
        };
        let row: Option<Vec<u32>> = text.split_whitespace().map(|n| n.parse().ok()).collect();
        let row = row
            .filter(|row| row.len() == rows.len())
            .ok_or_else(|| malformed(&path, &text, &format!("{} distances", rows.len())))?;
        table.extend(wanted.iter().map(|&to| row[to as usize]));
    }
    let own = |at: usize| at / wanted.len() == at % wanted.len();
    let mut far: Vec<u32> =
        table.iter().enumerate().filter(|(at, _)| !own(*at)).map(|(_, &d)| d).collect();
    far.sort_unstable();
    far.dedup();
    let rank = |(at, distance): (usize, &u32)| {
        if own(at) { 0 } else { NEXT_NODE + far.binary_search(distance).unwrap_or(0) as u32 }
    };
    Ok(table.iter().enumerate().map(rank).collect())
}

/// The text of a file. A pipe or a device may never end, and would hold up the program.
fn text_of(path: &Path) -> io::Result<String> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    fs::read_to_string(path)
}

/// A file that may be missing.
fn optional(path: &Path) -> io::Result<Option<File>> {
    match text_of(path) {
        Ok(text) => Ok(Some((path.to_owned(), text))),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(in_file(path, &error)),
    }
}

fn cpus_of(path: &Path, text: &str) -> io::Result<Vec<u32>> {
    let mut cpus = parse_cpu_list(text.trim())
        .ok_or_else(|| malformed(path, text, "a list of CPUs like `0-3,8`"))?;
    cpus.sort_unstable();
    Ok(cpus)
}

fn malformed(path: &Path, text: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, excerpt::malformed(path, text, what))
}

fn in_file(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The CPUs of a kernel list like `0-3,8,10-11`; the empty list is one, too.
#[must_use]
pub fn parse_cpu_list(list: &str) -> Option<Vec<u32>> {
    /// More CPUs than any kernel is built for: a guard against a list that fills the memory.
    const MAX: u32 = 1 << 20;
    let mut cpus = Vec::new();
    for range in list.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last >= MAX || cpus.len() > MAX as usize {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        root
    }

    fn read(files: &[(&str, &str)]) -> Topology {
        Topology::read(tree(files).path()).unwrap()
    }

    fn refused(files: &[(&str, &str)]) -> String {
        Topology::read(tree(files).path()).unwrap_err().to_string()
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_cpu_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list(""), Some(vec![]));
        let long = ["0-1048575"; 9].join(",");
        for bad in ["x", "3-1", "1-", "-", "0-4294967295", "1 2", &long] {
            assert_eq!(parse_cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn nodes_with_holes_and_without_cpus() {
        let topology = read(&[
            ("node/node0/cpulist", "0-1"),
            ("node/node2/cpulist", "4-5"),
            ("node/node7/cpulist", ""),
            ("node/power/cpulist", "9"),
        ]);
        assert_eq!(topology.node_of(1), 0);
        assert_eq!(topology.node_of(4), 2);
        assert_eq!(topology.node_of(2), 0, "a CPU without a node");
        assert_eq!(topology.node_of(999), 0, "a CPU past the end");
        assert_eq!(topology.nodes_among([0, 1, 4, 5]), 2);
        assert_eq!(topology.to_string(), "2 nodes");
        assert_eq!(topology.distances_among(0..6), [0, 2]);
    }

    #[test]
    fn a_cpu_without_a_node_is_as_one_of_the_lowest() {
        let files =
            [("node/node5/cpulist", "0"), ("node/node3/cpulist", "1"), ("cpu/online", "0-2")];
        let topology = read(&files);
        assert_eq!((topology.node_of(0), topology.node_of(1), topology.node_of(2)), (5, 3, 3));
        assert_eq!(topology.distance_of_cpus(1, 2), 0);
        assert_eq!(topology.distance_of_cpus(0, 2), 2);
        assert_eq!(topology.cpus().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn what_is_offline_has_no_place() {
        let topology = read(&[
            ("cpu/online", "0-1,3"),
            ("node/node0/cpulist", "0-1"),
            ("node/node1/cpulist", "2-3"),
        ]);
        assert_eq!(topology.cpus().collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(topology.node_of(2), 0);
        assert_eq!(topology.node_of(3), 1);
    }

    #[test]
    fn caches_make_places_within_a_node_and_across_nodes() {
        let topology = read(&[
            ("cpu/online", "0-5"),
            ("node/node0/cpulist", "0-3"),
            ("node/node1/cpulist", "4-5"),
            ("cpu/cpu0/cache/index0/level", "1"),
            ("cpu/cpu0/cache/index0/shared_cpu_list", "0"),
            ("cpu/cpu0/cache/index1/level", "3"),
            ("cpu/cpu0/cache/index1/shared_cpu_list", "0-1"),
            ("cpu/cpu2/cache/index0/level", "3"),
            ("cpu/cpu2/cache/index0/shared_cpu_list", "2,4"),
        ]);
        assert_eq!(topology.caches_among(0..6), 4, "3 and 5 show none: one of their nodes' each");
        assert_eq!(topology.distance_of_cpus(0, 1), 0);
        assert_eq!(topology.distance_of_cpus(0, 2), 1, "same node");
        assert_eq!(topology.distance_of_cpus(2, 4), 1, "one cache across nodes");
        assert_eq!(topology.distance_of_cpus(3, 5), 2);
        assert_eq!(topology.distance_of_cpus(2, 3), 1);
    }

    #[test]
    fn distances_are_ranked_as_the_firmware_s_table_says() {
        let line = |n: usize| ["10 20 30 20", "20 10 20 30", "30 20 10 20", "20 30 20 10"][n];
        let topology = read(&[
            ("node/node0/cpulist", "0"),
            ("node/node0/distance", line(0)),
            ("node/node1/cpulist", "1"),
            ("node/node1/distance", line(1)),
            ("node/node4/cpulist", "2"),
            ("node/node4/distance", line(2)),
            ("node/node6/cpulist", "3"),
            ("node/node6/distance", line(3)),
        ]);
        let from = |cpu| (0..4).map(|to| topology.distance_of_cpus(cpu, to)).collect::<Vec<_>>();
        assert_eq!(from(0), [0, 2, 3, 2]);
        assert_eq!(from(2), [3, 2, 0, 2]);
    }

    #[test]
    fn a_table_with_a_row_missing_is_none() {
        let topology = read(&[
            ("node/node0/cpulist", "0"),
            ("node/node0/distance", "10 20 30"),
            ("node/node1/cpulist", "1"),
            ("node/node2/cpulist", "2"),
            ("node/node2/distance", "30 20 10"),
        ]);
        for cpu in 0..3 {
            let to = |other| if other == cpu { 0 } else { 2 };
            let found: Vec<_> = (0..3).map(|other| topology.distance_of_cpus(cpu, other)).collect();
            assert_eq!(found, (0..3).map(to).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nodes_that_have_memory_alone_have_columns_and_no_rank() {
        let topology = read(&[
            ("node/node0/cpulist", "0"),
            ("node/node0/distance", "10 17 21"),
            ("node/node1/cpulist", ""),
            ("node/node1/distance", "17 10 28"),
            ("node/node2/cpulist", "1"),
            ("node/node2/distance", "21 28 10"),
        ]);
        assert_eq!(topology.distances_among(0..2), [0, 2]);
    }

    #[test]
    fn without_nodes_there_is_one() {
        let topology = read(&[("cpu/online", "0-3")]);
        assert_eq!(topology.nodes_among(0..4), 1);
        assert_eq!(topology.distances_among(0..4), [0]);
        assert_eq!(topology.cpus().count(), 4);
    }

    #[test]
    fn what_is_malformed_says_where_and_what() {
        let long = "9".repeat(5000);
        /// Files, and what is said of them.
        type Malformed<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
        let wrong: [Malformed<'_>; 8] = [
            (&[("node/node0/cpulist", "zero")], &["node0/cpulist", "`zero`", "0-3,8"]),
            (&[("cpu/online", "0-")], &["cpu/online", "`0-`"]),
            (&[("cpu/online", "")], &["cpu/online", "list of CPUs"]),
            (&[("node/node1/cpulist", ""), ("node/node0/x", "")], &["node0/cpulist"]),
            (
                &[("node/node0/cpulist", "0-1"), ("node/node4/cpulist", "1-2")],
                &["node4/cpulist", "node0 lists CPU 1, too"],
            ),
            (
                &[("node/node0/cpulist", "0"), ("node/node0/distance", "10 20")],
                &["node0/distance", "1 distances"],
            ),
            (&[("node/node0/cpulist", "0"), ("node/node0/distance", &long)], &["node0/distance"]),
            (
                &[("cpu/online", "0"), ("cpu/cpu0/cache/index0/level", "three")],
                &["index0/level", "`three`"],
            ),
        ];
        for (files, said) in wrong {
            let refused = refused(files);
            assert!(said.iter().all(|part| refused.contains(part)), "{refused}");
            assert!(refused.len() < 300, "{refused}");
        }
    }

    #[test]
    fn a_folder_without_any_of_it_is_refused() {
        assert!(Topology::read(Path::new("/nonexistent")).is_err());
        assert!(refused(&[("hello", "")]).contains("no cpu/online and no node/node0/cpulist"));
        let offline = [("cpu/online", "7"), ("node/node0/cpulist", "0-3")];
        assert!(refused(&offline).contains("no node lists a CPU that is online"));
    }

    #[test]
    fn a_tree_is_found_from_its_root_too() {
        for above in ["", "devices/system/", "sys/devices/system/"] {
            let tree = tree(&[(&format!("{above}node/node3/cpulist"), "0")]);
            assert_eq!(Topology::find(tree.path()).unwrap().node_of(0), 3, "{above}");
        }
    }
}
