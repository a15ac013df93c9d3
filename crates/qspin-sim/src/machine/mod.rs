//! The simulated machine: its shape, and what its caches cost.
//!
//! # Model
//! A directory-like protocol over 64-byte lines: a line has an owner, or sharers, or is in memory only. Cores
//! own lines, not hardware threads: siblings hit in each other's copies. The cost of an operation depends on
//! where the line is:
//!
//! | operation | hit | miss |
//! |---|---|---|
//! | load | `load_hit` | the distance to the owner or the nearest sharer, or `memory` |
//! | read-modify-write | `rmw_hit`, in the owner | the same, or the farthest sharer that must lose its copy, with `invalidate` for each of them; then `rmw_hit` |
//! | store | `store`, in the owner | `store`, into the buffer; the line comes meanwhile |
//!
//! A failing compare-exchange costs as much as a successful one: on x86 it takes the line as well.
//!
//! # Source
//! The structure is that of published measurements of x86 machines (David, Guerraoui, Trigonakis,
//! "Everything you always wanted to know about synchronization but were afraid to ask", SOSP 2013;
//! Molka et al., "Cache coherence protocol and memory performance of the Intel Haswell-EP
//! architecture", ICPP 2015). Every figure comes from the [`Machine`]; there is none in the code.
//!
//! # Limits
//! Total store order: other cores see a processor's stores late and in order, and nothing else is reordered. So
//! a missing acquire or release is not noticed (the model checkers notice it). Caches are as big as need be.
//! Lines share no bandwidth. Hardware threads of a core do not slow each other down, except by the machine's
//! factor for that.

mod line;
mod memory;
mod topology;
mod transfer;

use serde::{Deserialize, Serialize};

use crate::engine::{Time, from_ns, in_time};
use crate::figures;

pub(crate) use line::Line;
pub(crate) use memory::{Memory, Padded, WORDS};
pub use topology::{Distance, Shape};
pub(crate) use transfer::Request;

/// A machine, as a TOML file describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Where the figures come from.
    #[serde(default)]
    pub source: String,
    /// Sockets, cores, threads.
    pub shape: Shape,
    /// What operations cost.
    pub costs: Costs,
}

/// What operations cost, in nanoseconds unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A load from the core's own cache: what it delays the core by. Where the outcome is predicted, as in a lock's path
    /// without contention, that is less than the time until the value is there.
    pub load_hit: f64,
    /// A store, as long as the store buffer has room.
    pub store: f64,
    /// A read-modify-write of a line that the core owns.
    pub rmw_hit: f64,
    /// A full fence with an empty store buffer.
    pub fence: f64,
    /// A pause instruction.
    pub pause: f64,
    /// Reading the clock.
    pub clock: f64,
    /// A line from a core of the same last-level cache.
    pub same_cache: f64,
    /// A line from another core of the socket.
    pub same_socket: f64,
    /// A line from a socket one hop away.
    pub other_socket: f64,
    /// What each further hop adds.
    pub further_hop: f64,
    /// A line that no cache has.
    pub memory: f64,
    /// How long a line is busy with one read; apart from this, reads overlap.
    pub read_occupancy: f64,
    /// What each copy adds that an ownership transfer has to invalidate.
    pub invalidate: f64,
    /// Transfers take between `1 - jitter` and `1 + jitter` of their time, at random.
    #[serde(default)]
    pub jitter: f64,
    /// How often the waiting request nearest to the owner is served instead of the oldest one: 0 to 1.
    #[serde(default)]
    pub near_bias: f64,
    /// Whether that is the nearest to the core that owned the line last, also where others share it by now; that core's own
    /// request then comes last. Else the nearest to the lowest-numbered of those that share it.
    #[serde(default, skip_serializing_if = "is_off")]
    pub near_to_last_owner: bool,
    /// What is left of the cost of a transfer that has had to wait for the line: 0 to 1. Of the three legs of a
    /// request (to the directory, to the owner, back) it has already made the first.
    #[serde(default = "one")]
    pub queued: f64,
    /// How many stores the store buffer holds.
    pub store_buffer: u32,
    /// Whether a store requests its line at once, although others are before it in the buffer.
    pub store_prefetch: bool,
    /// The factor by which work takes longer while the core's other hardware thread works as well.
    #[serde(default = "one")]
    pub sibling_factor: f64,
    /// The factor by which all of this but memory, and work, takes longer while every core of the socket is busy: fewer
    /// run at a higher clock. In proportion to the busy cores beyond the first.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub all_cores_factor: f64,
}

impl Costs {
    /// The costs while everything takes longer by this factor.
    pub(crate) fn times(&self, factor: f64) -> Self {
        let mut all = self.clone();
        for cost in [
            &mut all.load_hit,
            &mut all.store,
            &mut all.rmw_hit,
            &mut all.fence,
            &mut all.pause,
            &mut all.clock,
            &mut all.same_cache,
            &mut all.same_socket,
            &mut all.other_socket,
            &mut all.further_hop,
            &mut all.read_occupancy,
            &mut all.invalidate,
        ] {
            *cost *= factor;
        }
        all
    }
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(factor: &f64) -> bool {
    *factor == 1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_off(switch: &bool) -> bool {
    !switch
}

in_time! {
    Prices of Costs as costs {
        load_hit store rmw_hit fence pause clock memory read_occupancy invalidate;
        // In 65536ths, as the next two.
        jitter: u64 = (costs.jitter * 65536.0) as u64,
        near_bias: u32 = (costs.near_bias * 65536.0) as u32,
        queued: u64 = (costs.queued * 65536.0) as u64,
        store_buffer: usize = costs.store_buffer as usize,
        store_prefetch: bool = costs.store_prefetch,
        near_to_last_owner: bool = costs.near_to_last_owner,
        sibling_factor: f64 = costs.sibling_factor,
    }
}

/// The cost of bringing a line from one core to another, looked up instead of computed: it is needed several
/// times per operation.
#[derive(Debug, Clone)]
pub(crate) struct Distances {
    /// Socket and last-level cache of each core; caches are numbered through all sockets.
    places: Vec<(u16, u16)>,
    sockets: usize,
    /// Between two sockets, or two caches of one.
    between: Vec<Time>,
    same_core: Time,
    same_cache: Time,
}

impl Distances {
    #[inline]
    pub(crate) fn over(&self, from: u16, to: u16) -> Time {
        if from == to {
            return self.same_core;
        }
        let (here, there) = (self.places[usize::from(from)], self.places[usize::from(to)]);
        if here.1 == there.1 {
            return self.same_cache;
        }
        self.between[usize::from(here.0) * self.sockets + usize::from(there.0)]
    }
}

impl Machine {
    /// The machine that a TOML text describes.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column; or with the machine.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let machine: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        machine.check()?;
        Ok(machine)
    }

    /// What is impossible about this machine.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn check(&self) -> Result<(), String> {
        self.shape.check()?;
        // Time must pass in every loop.
        let passes = (0.001, 1e6);
        let named = [
            ("load_hit", passes),
            ("store", passes),
            ("rmw_hit", passes),
            ("fence", passes),
            ("pause", passes),
            ("jitter", (0.0, 1.0)),
            ("near_bias", (0.0, 1.0)),
            ("queued", (0.0, 1.0)),
            ("sibling_factor", (1.0, 16.0)),
            ("all_cores_factor", (1.0, 16.0)),
            ("store_buffer", (1.0, 1024.0)),
        ];
        figures::check("costs", &self.costs, (0.0, 1e6), &named)
    }

    /// The costs of transfers, with these costs.
    pub(crate) fn distances(&self, costs: &Costs) -> Distances {
        let shape = &self.shape;
        let place = |core| {
            let socket = shape.socket_of(core);
            (socket as u16, (core / shape.llc()) as u16)
        };
        let between = |here: u32, there: u32| {
            let first = |socket| socket * shape.cores_per_socket;
            match shape.distance(first(here), first(there)) {
                Distance::Hops(hops) => {
                    costs.other_socket + costs.further_hop * f64::from(hops.saturating_sub(1))
                }
                Distance::SameCore | Distance::SameCache | Distance::SameSocket => {
                    costs.same_socket
                }
            }
        };
        let sockets = 0..shape.sockets;
        Distances {
            places: (0..shape.cores()).map(place).collect(),
            sockets: shape.sockets as usize,
            between: sockets
                .clone()
                .flat_map(|here| sockets.clone().map(move |there| (here, there)))
                .map(|(here, there)| from_ns(between(here, there)))
                .collect(),
            same_core: from_ns(costs.load_hit),
            same_cache: from_ns(costs.same_cache),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_that_come_with_the_crate_are_possible() {
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/machines")).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let machine = Machine::from_toml(&text);
            assert!(machine.is_ok_and(|it| !it.source.is_empty()), "{}", path.display());
        }
    }
}
