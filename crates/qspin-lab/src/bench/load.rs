//! A load: what the threads do and what stands around them, as options say it.
//!
//! It becomes a [`Setting`], which is measured and named in rows; and options again, so that whatever was
//! measured can be asked for once more.

pub mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::quantity::show_duration;

use super::busy::Pace;
use super::engine::MutexWork;
use super::plan::{Beside, Job, Setting};
use super::rw_station::Mix;
use super::workload::lengths::Lengths;
use super::workload::varied::{Leave, Leaving, Pair, Spread, Varied};

/// How long a holder sleeps, ns: what a disk or a neighbour in the network needs.
const SLEEP_NS: u32 = 100_000;

/// What a holder does that leaves its CPU in one section of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// It sleeps for 100 µs.
    Sleeps,
    /// It yields.
    Yields,
}

impl Holder {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sleeps, Self::Yields];

    /// Its name in options and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleeps => "sleeps",
            Self::Yields => "yields",
        }
    }

    fn leave(self) -> Leave {
        match self {
            Self::Sleeps => Leave::Sleep(SLEEP_NS),
            Self::Yields => Leave::Yield,
        }
    }
}

/// Two lengths: under the lock, and between two acquisitions.
pub type Lasting = (Duration, Duration);

/// What the threads do.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Length of the critical section.
    pub critical: Duration,
    /// Length of the work between two.
    pub outside: Duration,
    /// How lengths vary.
    pub lengths: Spread,
    /// How many locks the threads take.
    pub locks: u32,
    /// Shared cache lines written in a critical section.
    pub lines: u32,
    /// Holders that leave their CPU, in one section of so many.
    pub holder: Option<(Holder, u32)>,
    /// The lengths to which the load changes, and back.
    pub then: Option<Lasting>,
    /// Reads and writes in so many operations, of reader-writer locks.
    pub mix: Option<(u32, u32)>,
    /// Threads of this process that spin beside the others.
    pub hogs_inside: usize,
    /// So many CPUs' time is all that the process may use.
    pub quota: Option<f64>,
}

impl Load {
    /// Sections and pauses of these lengths, and nothing else.
    pub fn of(critical: Duration, outside: Duration) -> Self {
        Self {
            critical,
            outside,
            lengths: Spread::Fixed,
            locks: 1,
            lines: 1,
            holder: None,
            then: None,
            mix: None,
            hogs_inside: 0,
            quota: None,
        }
    }

    /// Whether one pair of lengths describes the sections, and one lock is all.
    fn is_plain(&self) -> bool {
        self.lengths == Spread::Fixed
            && self.locks == 1
            && self.holder.is_none()
            && self.then.is_none()
    }

    /// As it is measured: lengths in steps of calibrated work, and what rows say of it.
    pub fn setting(&self, pace: Pace, seed: u64) -> Setting {
        let steps = |time: Duration| pace.steps(time.as_nanos() as u64);
        let pair = |critical, outside| Pair { critical: steps(critical), outside: steps(outside) };
        let lengths = pair(self.critical, self.outside);
        let varied = Varied {
            lengths,
            then: self.then.map(|(critical, outside)| pair(critical, outside)),
            spread: self.lengths,
            locks: self.locks,
            lines: self.lines as usize,
            leaving: self.holder.map(|(holder, one_in)| Leaving { how: holder.leave(), one_in }),
            seed,
        };
        let Pair { critical, outside } = lengths;
        let (workload, job) = match self.mix {
            Some((readers, writers)) => ("rw", Job::Rw(Mix { readers, writers, work: varied })),
            // A loop that looks nothing up costs less.
            None if self.is_plain() => {
                let lines = self.lines as usize;
                ("lengths", Job::Mutex(MutexWork::Lengths(Lengths { critical, outside, lines })))
            }
            None => ("lengths", Job::Mutex(MutexWork::Varied(varied))),
        };
        Setting {
            workload,
            params: self.params(),
            critical_ns: self.critical.as_nanos() as f64,
            outside_ns: self.outside.as_nanos() as f64,
            lines: self.lines,
            job,
            beside: Beside { hogs: self.hogs_inside, quota_cpus: self.quota },
        }
    }

    /// What tells it from a plain load of the same lengths.
    fn params(&self) -> BTreeMap<String, serde_json::Value> {
        let mut params = BTreeMap::new();
        let mut add = |name: &str, value: serde_json::Value| params.insert(name.to_owned(), value);
        if let Some((readers, writers)) = self.mix {
            add("readers", readers.into());
            add("writers", writers.into());
        }
        if self.lengths != Spread::Fixed {
            add("lengths", self.lengths.name().into());
        }
        if self.locks != 1 {
            add("locks", self.locks.into());
        }
        if let Some((holder, one_in)) = self.holder {
            add("holder", holder.name().into());
            add("one_in", one_in.into());
        }
        if let Some((critical, outside)) = self.then {
            add("then_critical_ns", (critical.as_nanos() as u64).into());
            add("then_outside_ns", (outside.as_nanos() as u64).into());
        }
        if self.hogs_inside > 0 {
            add("hogs_inside", self.hogs_inside.into());
        }
        if let Some(cpus) = self.quota {
            add("quota", cpus.into());
        }
        params
    }

    /// The options of `qspin bench` that ask for it.
    pub fn options(&self) -> String {
        let mut options = Vec::new();
        if let Some((readers, writers)) = self.mix {
            options.push(format!("--workload rw --ratio {readers}:{writers}"));
        }
        options.push(format!(
            "--critical {} --outside {}",
            show_duration(self.critical),
            show_duration(self.outside)
        ));
        if self.lengths != Spread::Fixed {
            options.push(format!("--lengths {}", self.lengths.name()));
        }
        if self.locks != 1 {
            options.push(format!("--lock-count {}", self.locks));
        }
        if self.lines != 1 {
            options.push(format!("--lines {}", self.lines));
        }
        if let Some((holder, one_in)) = self.holder {
            options.push(format!("--holder {}/{one_in}", holder.name()));
        }
        if let Some((critical, outside)) = self.then {
            options.push(format!(
                "--phases {}/{}",
                show_duration(critical),
                show_duration(outside)
            ));
        }
        if self.hogs_inside > 0 {
            options.push(format!("--hogs-inside {}", self.hogs_inside));
        }
        if let Some(cpus) = self.quota {
            options.push(format!("--quota {cpus}"));
        }
        options.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: fn(u64) -> Duration = Duration::from_nanos;

    #[test]
    fn a_plain_load_has_the_plain_loop_and_says_no_more_than_its_lengths() {
        let load = Load { lines: 2, ..Load::of(NS(100), NS(1500)) };
        let setting = load.setting(Pace::calibrate(), 1);
        assert!(matches!(setting.job, Job::Mutex(MutexWork::Lengths(Lengths { lines: 2, .. }))));
        assert!(setting.params.is_empty());
        assert_eq!(load.options(), "--critical 100ns --outside 1500ns --lines 2");
    }

    #[test]
    fn what_is_not_plain_is_in_the_row_and_in_the_options() {
        let load = Load {
            lengths: Spread::Tailed,
            locks: 4,
            holder: Some((Holder::Yields, 64)),
            then: Some((NS(5), NS(6))),
            hogs_inside: 3,
            quota: Some(0.5),
            ..Load::of(NS(100), NS(0))
        };
        let setting = load.setting(Pace::calibrate(), 1);
        assert!(matches!(setting.job, Job::Mutex(MutexWork::Varied(Varied { locks: 4, .. }))));
        assert_eq!(
            serde_json::to_string(&setting.params).unwrap(),
            r#"{"hogs_inside":3,"holder":"yields","lengths":"tailed","locks":4,"one_in":64,"#
                .to_owned()
                + r#""quota":0.5,"then_critical_ns":5,"then_outside_ns":6}"#
        );
        assert_eq!(
            load.options(),
            "--critical 100ns --outside 0ns --lengths tailed --lock-count 4 --holder yields/64 \
             --phases 5ns/6ns --hogs-inside 3 --quota 0.5"
        );
        let mixed = Load { mix: Some((9, 1)), ..Load::of(NS(1), NS(2)) };
        assert!(matches!(mixed.setting(Pace::calibrate(), 1).job, Job::Rw(_)));
        assert_eq!(mixed.options(), "--workload rw --ratio 9:1 --critical 1ns --outside 2ns");
    }
}
