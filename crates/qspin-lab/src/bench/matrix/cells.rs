//! Which cells a matrix has, and how long each is measured.

use std::time::Duration;

use crate::bench::busy::Pace;
use crate::bench::load::{Holder, Load};
use crate::bench::plan::{Cell, Setting, Variant};
use crate::contender::catalog::Lock;

/// Which matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// What a program may do with a mutex: seven numbers of threads by 22 pairs of lengths;
    /// within an hour.
    Default,
    /// A part of it, in shorter rounds; within five minutes.
    Quick,
    /// Threads that are kept from running: hogs inside and outside the process, a CPU quota, holders
    /// that sleep or yield.
    Disturbed,
    /// Reader-writer locks: from readers only to writers only.
    Rwlock,
}

/// What a run was restricted to.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Numbers of threads, or none for all of the matrix.
    pub threads: Vec<usize>,
    /// The one length of the critical section.
    pub critical: Option<Duration>,
    /// The one length of the work outside.
    pub outside: Option<Duration>,
}

/// A setting with the numbers of threads under which it is measured.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Index of the setting.
    pub setting: usize,
    /// Hogs outside the process.
    pub hogs: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
}

/// How long a matrix takes.
#[derive(Debug, Clone, Copy)]
pub struct Lengthy {
    /// A round.
    pub phase: Duration,
    /// The run that shows how fair a lock is.
    pub fairness: Duration,
    /// The most rounds; as many are measured as the time allows.
    pub rounds: usize,
    /// Everything.
    pub total: Duration,
}

const NS: fn(u64) -> Duration = Duration::from_nanos;

/// Lengths outside beside a critical section, where it has a length: so many times half of it.
const OUTSIDE: [u32; 5] = [0, 1, 2, 4, 8];

/// One section in so many is left by its holder, in the disturbed matrix.
const LEFT: u32 = 64;

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Quick => "quick",
            Self::Disturbed => "disturbed",
            Self::Rwlock => "rwlock",
        }
    }

    /// The lock that is judged.
    pub fn subject(self) -> &'static str {
        if self == Self::Rwlock { "rwlock" } else { "mutex" }
    }

    /// What people would use instead.
    pub fn yardsticks(self) -> &'static [&'static str] {
        match self {
            Self::Rwlock => &["std-rw", "parking_lot-rw", "pthread-rw"],
            _ => &["std", "parking_lot", "pthread", "pthread_adaptive"],
        }
    }

    /// The locks that take part beside these, where the build has it.
    pub fn others(self) -> &'static [&'static str] {
        match self {
            Self::Default => &[
                "tas",
                "backoff",
                "yield",
                "paravirt",
                "pthread_spin",
                "spin",
                "spinning_top",
                "mcslock",
                "usync",
                "tbb_spin",
                "tbb_mutex",
            ],
            Self::Quick => &["tas", "yield", "usync", "mcslock", "tbb_spin", "tbb_mutex"],
            Self::Disturbed | Self::Rwlock => &[],
        }
    }

    /// How long it takes.
    pub fn lengthy(self) -> Lengthy {
        let ms = Duration::from_millis;
        match self {
            Self::Quick => Lengthy {
                phase: ms(40),
                fairness: ms(400),
                rounds: 9,
                total: Duration::from_secs(285),
            },
            _ => Lengthy {
                phase: ms(150),
                fairness: ms(2500),
                rounds: 15,
                total: Duration::from_secs(3500),
            },
        }
    }

    /// Its settings, and where each is measured.
    pub fn scenes(self, limits: &Limits, pace: Pace, seed: u64) -> (Vec<Setting>, Vec<Scene>) {
        let mut made = Made { limits, pace, seed, settings: Vec::new(), scenes: Vec::new() };
        match self {
            Self::Default => {
                let all = [1, 2, 4, 8, 16, 32, 64];
                made.lengths(&[NS(0), NS(50), NS(1000), NS(10_000), NS(100_000)], &OUTSIDE, &all);
            }
            Self::Quick => {
                let all = [1, 2, 8, 32];
                made.lengths(&[NS(0), NS(50), NS(1000), NS(10_000)], &[0, 2, 4], &all);
            }
            Self::Disturbed => made.disturbed(),
            Self::Rwlock => made.readers_and_writers(),
        }
        (made.settings, made.scenes)
    }
}

/// The cells that every lock has in a matrix.
pub fn plan_cells(locks: &[Lock], scenes: &[Scene]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scene in scenes {
        for &threads in &scene.threads {
            cells.extend((0..locks.len()).map(|lock| Cell {
                lock,
                variant: Variant::default(),
                threads,
                setting: scene.setting,
                hogs: scene.hogs,
                shown: true,
            }));
        }
    }
    cells
}

/// Settings as they are put together.
struct Made<'a> {
    limits: &'a Limits,
    pace: Pace,
    seed: u64,
    settings: Vec<Setting>,
    scenes: Vec<Scene>,
}

impl Made<'_> {
    fn add(&mut self, load: &Load, hogs: usize, threads: &[usize]) {
        let threads = match &self.limits.threads[..] {
            [] => threads.to_vec(),
            asked => asked.to_vec(),
        };
        self.scenes.push(Scene { setting: self.settings.len(), hogs, threads });
        self.settings.push(load.setting(self.pace, self.seed));
    }

    /// Pairs of lengths: those of the matrix, or those that were asked for.
    fn pairs(&self, criticals: &[Duration], halves: &[u32]) -> Vec<(Duration, Duration)> {
        let criticals = match self.limits.critical {
            Some(critical) => vec![critical],
            None => criticals.to_vec(),
        };
        let outside = |critical: Duration| match self.limits.outside {
            Some(outside) => vec![outside],
            None if critical.is_zero() => vec![NS(0), NS(100)],
            None => halves.iter().map(|&halves| critical * halves / 2).collect(),
        };
        criticals
            .into_iter()
            .flat_map(|critical| outside(critical).into_iter().map(move |out| (critical, out)))
            .collect()
    }

    fn lengths(&mut self, criticals: &[Duration], halves: &[u32], threads: &[usize]) {
        for (critical, outside) in self.pairs(criticals, halves) {
            self.add(&Load::of(critical, outside), 0, threads);
        }
    }

    fn disturbed(&mut self) {
        const CROWDS: [usize; 3] = [2, 8, 32];
        let criticals = [NS(0), NS(1000), NS(10_000)];
        let pairs: Vec<_> = match (self.limits.critical, self.limits.outside) {
            (None, None) => {
                vec![(NS(0), NS(100)), (NS(1000), NS(2000)), (NS(10_000), NS(0))]
            }
            _ => self.pairs(&criticals, &[0, 4]),
        };
        for (critical, outside) in pairs {
            let plain = Load::of(critical, outside);
            for hogs in [2, 4] {
                self.add(&Load { hogs_inside: hogs, ..plain.clone() }, 0, &CROWDS);
                self.add(&plain, hogs, &CROWDS);
            }
            for cpus in [0.5, 1.0] {
                self.add(&Load { quota: Some(cpus), ..plain.clone() }, 0, &[16]);
            }
            for holder in Holder::ALL {
                self.add(&Load { holder: Some((holder, LEFT)), ..plain.clone() }, 0, &CROWDS);
            }
        }
    }

    fn readers_and_writers(&mut self) {
        for (critical, outside) in self.pairs(&[NS(0), NS(1000)], &[4]) {
            for mix in [(1, 0), (99, 1), (9, 1), (1, 1), (0, 1)] {
                let load = Load { mix: Some(mix), ..Load::of(critical, outside) };
                self.add(&load, 0, &[2, 4, 8, 16, 32]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kind: Kind, limits: &Limits) -> (usize, usize) {
        let (settings, scenes) = kind.scenes(limits, Pace::calibrate(), 1);
        (settings.len(), scenes.iter().map(|scene| scene.threads.len()).sum())
    }

    #[test]
    fn the_default_matrix_is_the_whole_one() {
        assert_eq!(count(Kind::Default, &Limits::default()), (22, 154));
        assert_eq!(count(Kind::Quick, &Limits::default()), (11, 44));
        // Each of three pairs: hogs twice inside and twice outside, two quotas, sleepers, yielders.
        assert_eq!(count(Kind::Disturbed, &Limits::default()), (24, 3 * (4 * 3 + 2 + 2 * 3)));
        assert_eq!(count(Kind::Rwlock, &Limits::default()), (15, 75));
    }

    #[test]
    fn limits_leave_what_was_asked_for() {
        let critical = Some(Duration::from_micros(10));
        let limits = Limits { threads: vec![3, 5], critical, outside: None };
        assert_eq!(count(Kind::Default, &limits), (5, 10));
        let (settings, _) = Kind::Default.scenes(&limits, Pace::calibrate(), 1);
        let outside: Vec<f64> = settings.iter().map(|setting| setting.outside_ns).collect();
        assert_eq!(outside, [0.0, 5000.0, 10_000.0, 20_000.0, 40_000.0]);
        let limits = Limits { outside: Some(Duration::ZERO), ..limits };
        assert_eq!(count(Kind::Default, &limits), (1, 2));
    }

    #[test]
    fn every_setting_of_a_matrix_has_rows_of_its_own() {
        for kind in [Kind::Default, Kind::Quick, Kind::Disturbed, Kind::Rwlock] {
            let (settings, scenes) = kind.scenes(&Limits::default(), Pace::calibrate(), 1);
            let mut keys: Vec<String> = scenes
                .iter()
                .map(|scene| {
                    let setting = &settings[scene.setting];
                    let lengths = (setting.critical_ns, setting.outside_ns);
                    format!("{} {:?} {lengths:?} {}", setting.workload, setting.params, scene.hogs)
                })
                .collect();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), scenes.len(), "{kind:?}");
        }
    }
}
