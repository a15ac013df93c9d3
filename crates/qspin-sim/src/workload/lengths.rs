//! Sections of varying lengths, until the time is over: the loads of `qspin bench --random`.

use qspin_core::lock::RawLock;
use serde::{Deserialize, Serialize};

use super::{Station, Work};
use crate::platform::SimPlatform;

/// How lengths vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Not at all.
    #[default]
    Fixed,
    /// Exponentially, with that mean.
    Exponential,
    /// One in a hundred is fifty times as long.
    Tailed,
}

impl Spread {
    /// The factor of one length.
    fn draw(self, p: &SimPlatform) -> f64 {
        let unit = p.random(crate::engine::Random::unit);
        match self {
            Self::Fixed => 1.0,
            // The unit is below 1.
            Self::Exponential => -(1.0 - unit).ln(),
            Self::Tailed if unit < 0.01 => 50.0,
            Self::Tailed => 1.0,
        }
    }
}

/// Critical sections, and work between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// Work inside.
    pub inside_ns: f64,
    /// Work outside.
    pub outside_ns: f64,
    /// How both vary.
    #[serde(default)]
    pub spread: Spread,
    /// Locks; each section acquires one at random.
    #[serde(default = "one")]
    pub locks: u32,
    /// Lines that a section writes; each lock has its own.
    #[serde(default = "one")]
    pub writes: u32,
}

fn one() -> u32 {
    1
}

impl Work for Lengths {
    fn locks(&self) -> u32 {
        self.locks
    }

    fn lines(&self, _: u32) -> usize {
        (self.locks * self.writes) as usize
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        while !p.is_over() {
            let lock = p.random(|random| random.below(self.locks));
            station.section(p, lock, || {
                for line in 0..self.writes {
                    station.count(station.word((lock * self.writes + line) as usize, 0));
                }
                p.work(self.inside_ns * self.spread.draw(p));
            });
            p.work(self.outside_ns * self.spread.draw(p));
        }
    }
}
