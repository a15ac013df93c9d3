//! Where a simulated processor is, and how far it is from another.
//!
//! # Model
//! A processor is a hardware thread of a core; cores of one last-level cache are close, those of one
//! socket less so, and sockets are one or more hops apart. Processors are numbered as Linux numbers
//! them on x86: first the first thread of every core, socket by socket, then the second threads.
//!
//! # Limits
//! A distance between two sockets is the same for all of their cores.

use serde::{Deserialize, Serialize};

/// Sockets, cores and threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Sockets.
    pub sockets: u32,
    /// Cores of a socket.
    pub cores_per_socket: u32,
    /// Hardware threads of a core.
    pub threads_per_core: u32,
    /// Cores that share a last-level cache; all cores of a socket if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_per_llc: Option<u32>,
    /// Hops from each socket to each; one between any two if not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Vec<u32>>,
}

/// How far two cores are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// They are the same core.
    SameCore,
    /// They share a last-level cache.
    SameCache,
    /// They share a socket.
    SameSocket,
    /// They are this many hops apart.
    Hops(u32),
}

impl Shape {
    /// Cores of the machine.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.sockets * self.cores_per_socket
    }

    /// Processors of the machine.
    #[must_use]
    pub fn processors(&self) -> u32 {
        self.cores() * self.threads_per_core
    }

    /// Cores of a last-level cache.
    #[must_use]
    pub fn llc(&self) -> u32 {
        self.cores_per_llc.unwrap_or(self.cores_per_socket)
    }

    /// The core of a processor.
    #[must_use]
    pub fn core_of(&self, processor: u32) -> u32 {
        processor % self.cores()
    }

    /// The socket of a core.
    #[must_use]
    pub fn socket_of(&self, core: u32) -> u32 {
        core / self.cores_per_socket
    }

    /// How far two cores are apart.
    #[inline]
    #[must_use]
    pub fn distance(&self, from: u32, to: u32) -> Distance {
        if from == to {
            return Distance::SameCore;
        }
        let (here, there) = (self.socket_of(from), self.socket_of(to));
        if here != there {
            let row = self.hops.get(here as usize);
            let hops = row.and_then(|row| row.get(there as usize)).copied().unwrap_or(1);
            return Distance::Hops(hops);
        }
        let cache = |core| core % self.cores_per_socket / self.llc();
        if cache(from) == cache(to) { Distance::SameCache } else { Distance::SameSocket }
    }

    /// What is impossible about this shape.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let counts = [
            ("sockets", self.sockets),
            ("cores_per_socket", self.cores_per_socket),
            ("threads_per_core", self.threads_per_core),
            ("cores_per_llc", self.llc()),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| !(1..=1 << 14).contains(count)) {
            return Err(format!("{name} must be from 1 to 16384"));
        }
        let all = u64::from(self.sockets)
            * u64::from(self.cores_per_socket)
            * u64::from(self.threads_per_core);
        if all > 1 << 14 {
            return Err(format!("{all} processors are too many: at most 16384"));
        }
        if !self.cores_per_socket.is_multiple_of(self.llc()) {
            return Err("cores_per_socket must be a multiple of cores_per_llc".to_owned());
        }
        if self.hops.is_empty() {
            return Ok(());
        }
        let sockets = self.sockets as usize;
        if self.hops.len() != sockets || self.hops.iter().any(|row| row.len() != sockets) {
            return Err(format!("hops must have {sockets} rows of {sockets}"));
        }
        for (here, row) in self.hops.iter().enumerate() {
            for (there, &hops) in row.iter().enumerate() {
                if (hops == 0) != (here == there) || hops != self.hops[there][here] || hops > 16 {
                    return Err(format!(
                        "hops between sockets {here} and {there} must be from 1 to 16, the same in \
                         both directions, and 0 from a socket to itself"
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            sockets: 2,
            cores_per_socket: 4,
            threads_per_core: 2,
            cores_per_llc: Some(2),
            hops: Vec::new(),
        }
    }

    #[test]
    fn processors_are_numbered_cores_first() {
        let shape = shape();
        assert_eq!((shape.processors(), shape.cores()), (16, 8));
        assert_eq!(shape.core_of(3), 3);
        assert_eq!(shape.core_of(11), 3);
        assert_eq!(shape.socket_of(shape.core_of(12)), 1);
    }

    #[test]
    fn distances_grow_from_the_core_to_the_other_socket() {
        let mut shape = shape();
        assert_eq!(shape.distance(1, 1), Distance::SameCore);
        assert_eq!(shape.distance(0, 1), Distance::SameCache);
        assert_eq!(shape.distance(1, 2), Distance::SameSocket);
        assert_eq!(shape.distance(3, 4), Distance::Hops(1));
        assert!(Distance::SameSocket < Distance::Hops(1));
        shape.hops = vec![vec![0, 2], vec![2, 0]];
        assert_eq!(shape.check(), Ok(()));
        assert_eq!(shape.distance(0, 4), Distance::Hops(2));
    }

    #[test]
    fn impossible_shapes_are_named() {
        let wrong = |change: fn(&mut Shape)| {
            let mut shape = shape();
            change(&mut shape);
            shape.check().unwrap_err()
        };
        assert!(wrong(|shape| shape.sockets = 0).contains("sockets"));
        assert!(wrong(|shape| shape.cores_per_llc = Some(3)).contains("multiple"));
        assert!(wrong(|shape| shape.sockets = 9999).contains("too many"));
        assert!(wrong(|shape| shape.hops = vec![vec![0, 1]]).contains("rows"));
        assert!(wrong(|shape| shape.hops = vec![vec![0, 1], vec![2, 0]]).contains("directions"));
    }
}
