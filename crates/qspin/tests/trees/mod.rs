//! Machines that are folders like `/sys/devices/system`: those that people have.

#![allow(dead_code, reason = "each test needs another part")]

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A machine that is written down file by file.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    /// One whose nodes have these CPUs; `cpus` in all.
    pub(crate) fn new(cpus: usize, nodes: &[&str]) -> Self {
        let tree =
            Self(tempfile::tempdir().unwrap()).file("cpu/online", &format!("0-{}", cpus - 1));
        let cpulist = |tree: Self, (node, list): (usize, &&str)| {
            tree.file(&format!("node/node{node}/cpulist"), list)
        };
        nodes.iter().enumerate().fold(tree, cpulist)
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// The firmware's table of distances.
    pub(crate) fn slit(self, table: &[&[u32]]) -> Self {
        let row = |tree: Self, (node, row): (usize, &&[u32])| {
            let mut text = String::new();
            row.iter().for_each(|distance| write!(text, "{distance} ").unwrap());
            tree.file(&format!("node/node{node}/distance"), text.trim())
        };
        table.iter().enumerate().fold(self, row)
    }

    /// The CPUs of `list` share a cache of this level; `index` is its place among the CPU's caches.
    pub(crate) fn cache(mut self, index: u32, level: u32, list: &str) -> Self {
        for cpu in qspin::platform::topology::parse_cpu_list(list).unwrap() {
            let cache = format!("cpu/cpu{cpu}/cache/index{index}");
            self = self
                .file(&format!("{cache}/level"), &level.to_string())
                .file(&format!("{cache}/shared_cpu_list"), list);
        }
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Two sockets of eight core complexes of two cores each; second hardware threads from 32 on.
pub(crate) fn epyc() -> Tree {
    let tree = Tree::new(64, &["0-15,32-47", "16-31,48-63"]).slit(&[&[10, 32], &[32, 10]]);
    (0..16).fold(tree, |tree, complex| {
        let (first, second) = (2 * complex, 32 + 2 * complex);
        (first..first + 2)
            .fold(tree, |tree, core| {
                tree.cache(0, 1, &format!("{core},{}", core + 32))
                    .cache(1, 1, &format!("{core},{}", core + 32))
                    .cache(2, 2, &format!("{core},{}", core + 32))
            })
            .cache(3, 3, &format!("{first}-{},{second}-{}", first + 1, second + 1))
    })
}

/// Four sockets of four CPUs in a row: each farther than the one before.
pub(crate) fn four_sockets() -> Tree {
    let table: [&[u32]; 4] =
        [&[10, 16, 22, 32], &[16, 10, 16, 22], &[22, 16, 10, 16], &[32, 22, 16, 10]];
    let tree = Tree::new(16, &["0-3", "4-7", "8-11", "12-15"]).slit(&table);
    ["0-3", "4-7", "8-11", "12-15"].iter().fold(tree, |tree, list| tree.cache(0, 3, list))
}

/// Two sockets, each cut in two clusters with one cache over both (sub-NUMA clustering).
pub(crate) fn clusters() -> Tree {
    let table: [&[u32]; 4] =
        [&[10, 12, 21, 21], &[12, 10, 21, 21], &[21, 21, 10, 12], &[21, 21, 12, 10]];
    Tree::new(16, &["0-3", "4-7", "8-11", "12-15"])
        .slit(&table)
        .cache(0, 3, "0-7")
        .cache(0, 3, "8-15")
}

/// Three nodes whose way there is not as long as the way back.
pub(crate) fn asymmetric() -> Tree {
    Tree::new(6, &["0-1", "2-3", "4-5"]).slit(&[&[10, 20, 30], &[40, 10, 20], &[20, 30, 10]])
}

/// Four fast cores and four slow ones on one cache, and two slow ones beside it.
pub(crate) fn hybrid() -> Tree {
    let tree = Tree::new(10, &["0-9"]).cache(0, 2, "4-7").cache(0, 2, "8-9");
    (0..4).fold(tree, |tree, core| tree.cache(0, 2, &core.to_string())).cache(1, 3, "0-7")
}
