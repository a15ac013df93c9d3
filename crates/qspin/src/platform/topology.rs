//! Which NUMA node a CPU belongs to, from sysfs.

use std::fs;
use std::io;
use std::path::Path;

/// Where Linux shows its NUMA nodes.
pub const SYSFS_NODES: &str = "/sys/devices/system/node";

/// The NUMA node of each CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Node of CPU `i`; `None` for a CPU that no node lists.
    node_of: Vec<Option<u32>>,
}

impl Topology {
    /// Reads the nodes of this machine. A machine (or container) that shows none has one node,
    /// 0, to which every CPU belongs.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::read(Path::new(SYSFS_NODES)).unwrap_or(Self { node_of: Vec::new() })
    }

    /// Reads the nodes from `nodes`, a folder like [`SYSFS_NODES`] with `node0/cpulist` and so
    /// on. Node numbers may have holes, nodes may have no CPU, CPUs may have no node.
    ///
    /// # Errors
    /// The folder cannot be read, or a list of CPUs is malformed.
    pub fn read(nodes: &Path) -> io::Result<Self> {
        let mut node_of = Vec::new();
        for entry in fs::read_dir(nodes)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(node) = name
                .to_str()
                .and_then(|name| name.strip_prefix("node"))
                .and_then(|number| number.parse::<u32>().ok())
            else {
                continue;
            };
            let path = entry.path().join("cpulist");
            let list = fs::read_to_string(&path)?;
            let cpus = parse_cpu_list(list.trim()).ok_or_else(|| {
                let message = format!(
                    "{}: `{}` is not a list of CPUs like `0-3,8`",
                    path.display(),
                    list.trim()
                );
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?;
            for cpu in cpus {
                let cpu = cpu as usize;
                if node_of.len() <= cpu {
                    node_of.resize(cpu + 1, None);
                }
                node_of[cpu] = Some(node);
            }
        }
        Ok(Self { node_of })
    }

    /// The node of CPU `cpu`; 0 for one that no node lists.
    #[must_use]
    pub fn node_of(&self, cpu: usize) -> u32 {
        self.node_of.get(cpu).copied().flatten().unwrap_or(0)
    }

    /// How many nodes have at least one of `cpus`.
    pub fn nodes_among(&self, cpus: impl IntoIterator<Item = usize>) -> usize {
        let mut nodes: Vec<u32> = cpus.into_iter().map(|cpu| self.node_of(cpu)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

/// CPUs of a kernel list like `0-3,8,10-11`; the empty list is one, too.
#[must_use]
pub fn parse_cpu_list(list: &str) -> Option<Vec<u32>> {
    /// More CPUs than any kernel is built for: a guard against a list that fills the memory.
    const MOST: u32 = 1 << 20;
    let mut cpus = Vec::new();
    for range in list.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(nodes: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (node, cpus) in nodes {
            fs::create_dir(root.path().join(node)).unwrap();
            fs::write(root.path().join(node).join("cpulist"), format!("{cpus}\n")).unwrap();
        }
        root
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_cpu_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list(""), Some(vec![]));
        for bad in ["x", "3-1", "1-", "-", "0-4294967295", "1 2"] {
            assert_eq!(parse_cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn nodes_with_holes_and_without_cpus() {
        let root = tree(&[("node0", "0-1"), ("node2", "4-5"), ("node7", ""), ("power", "9")]);
        let topology = Topology::read(root.path()).unwrap();
        assert_eq!(topology.node_of(1), 0);
        assert_eq!(topology.node_of(4), 2);
        assert_eq!(topology.node_of(2), 0, "a CPU without a node");
        assert_eq!(topology.node_of(999), 0, "a CPU past the end");
        assert_eq!(topology.nodes_among([0, 1, 4, 5]), 2);
    }

    #[test]
    fn a_malformed_list_says_where_and_what() {
        let root = tree(&[("node0", "zero")]);
        let error = Topology::read(root.path()).unwrap_err().to_string();
        assert!(error.contains("cpulist") && error.contains("zero"), "{error}");
    }

    #[test]
    fn a_machine_without_sysfs_has_one_node() {
        assert!(Topology::read(Path::new("/nonexistent")).is_err());
        let none = Topology { node_of: Vec::new() };
        assert_eq!(none.nodes_among(0..64), 1);
    }
}
