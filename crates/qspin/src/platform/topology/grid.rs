//! A regular machine: `NODESxCORESxTHREADS`.
//!
//! CPUs are numbered node by node: first each core's first hardware thread, then each one's second, so that
//! threads are laid on free cores first. A node is one last-level cache; all other nodes are equally far.

use std::ffi::OsStr;

use super::{MAX_CPUS, MAX_NODES, Place, Topology};

/// Distance of another node: the level above "same cache" and "same node".
pub(super) const NEXT_NODE: u32 = 2;

/// The topology of `described`, like `4x18x2`; `None` if it is malformed or too big.
pub(super) fn parse(described: &OsStr) -> Option<Topology> {
    let numbers: Vec<usize> = described.to_str()?.split('x').map(number).collect::<Option<_>>()?;
    let &[nodes, cores, threads] = numbers.as_slice() else { return None };
    let per_node = cores.checked_mul(threads)?;
    let cpus = per_node.checked_mul(nodes)?;
    if nodes > MAX_NODES || cpus > MAX_CPUS {
        return None;
    }
    let rank = |at: usize| if at / nodes == at % nodes { 0 } else { NEXT_NODE };
    Some(Topology {
        nodes: (0..nodes as u32).collect(),
        places: (0..nodes as u32).map(|node| Place { cache: node, node }).collect(),
        place_of: (0..cpus).map(|cpu| (cpu / per_node) as u32).collect(),
        ranks: (0..nodes * nodes).map(rank).collect(),
        laid: Vec::new(),
    })
}

/// A number from 1, of digits alone.
fn number(text: &str) -> Option<usize> {
    // `parse` would also take a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?.filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_make_a_machine() {
        let topology = parse(OsStr::new("4x18x2")).unwrap();
        assert_eq!(topology.cpus().count(), 144);
        assert_eq!((topology.node_of(35), topology.node_of(36), topology.node_of(143)), (0, 1, 3));
        assert_eq!(topology.distances_among(0..144), [0, 2]);
        assert_eq!(topology.distance_of_cpus(0, 35), 0);
        assert_eq!(topology.distance_of_cpus(0, 36), 2);
        assert_eq!(parse(OsStr::new("1x1x1")).unwrap().nodes_among([0]), 1);
        assert!(parse(OsStr::new("1024x8x8")).is_some());
    }

    #[test]
    fn anything_else_makes_none() {
        let wrong = [
            "",
            "x",
            "4",
            "4x18",
            "4x18x2x1",
            "0x1x1",
            "1x0x1",
            "1x1x0",
            "4x18x",
            "-4x1x1",
            "+4x1x1",
            "4 x18x2",
            "4X18X2",
            "1025x1x1",
            "1024x65x1",
            "99999999999999999999x1x1",
            "4294967296x4294967296x1",
        ];
        for wrong in wrong {
            assert_eq!(parse(OsStr::new(wrong)), None, "{wrong}");
        }
    }
}
