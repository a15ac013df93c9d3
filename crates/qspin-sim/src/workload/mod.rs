//! What simulated CPUs do with their locks.
//!
//! Each workload is described from its published source: its loop, its sections, the lines that it touches. The
//! time for a piece of code that touches no shared line is a figure of the workload, in nanoseconds.

mod futex_mutex;
mod kernel_build;
mod kernel_lock_bench;
mod lengths;
mod locktorture;
mod readers_writers;
mod sections;
mod station;
mod system_calls;

use qspin_core::lock::RawLock;
use serde::{Deserialize, Serialize};

use crate::figures::{self, Range};
use crate::platform::SimPlatform;

pub use futex_mutex::FutexMutex;
pub use kernel_build::KernelBuild;
pub use kernel_lock_bench::KernelLockBench;
pub use lengths::{Lengths, Spread};
pub use locktorture::{Locktorture, LongDelays};
pub use readers_writers::ReadersWriters;
pub use sections::Sections;
pub use station::Station;
pub use system_calls::{Step, SystemCalls};

/// The interface of a workload to the simulator.
pub trait Work {
    /// Locks that it uses.
    fn locks(&self) -> u32 {
        1
    }

    /// Lines of shared data beside them, for this many CPUs.
    fn lines(&self, cpus: u32) -> usize {
        let _ = cpus;
        0
    }

    /// Pieces of work for the CPUs to share.
    fn pieces(&self) -> u64 {
        0
    }

    /// What is impossible about it, beside figures out of their range.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// What one CPU does, from beginning to end.
    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform);

    /// Operations per microsecond, for CPUs that have done these numbers of sections, and were finished at
    /// these times.
    fn throughput(&self, sections: &[u64], finished_ns: &[f64]) -> f64 {
        let last = finished_ns.iter().copied().fold(0.0, f64::max);
        sections.iter().sum::<u64>() as f64 / last * 1000.0
    }
}

/// The ranges of the figures that are not times, or that are counts.
const COUNTS: [(&str, Range); 10] = [
    ("hot", (0.0, 1.0)),
    ("idle", (0.0, 10.0)),
    ("written", (0.0, 1.0)),
    ("locks", (1.0, 65536.0)),
    ("sections", (1.0, 64.0)),
    ("reads", (0.0, 64.0)),
    ("writes", (0.0, 64.0)),
    ("chain", (0.0, 256.0)),
    ("counts", (0.0, 64.0)),
    ("beside", (0.0, Station::<()>::BESIDE as f64)),
];

macro_rules! workloads {
    ($($(#[$doc:meta])* $workload:ident,)*) => {
        /// The workloads.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub enum Workload {
            $($(#[$doc])* $workload($workload),)*
        }

        impl Work for Workload {
            fn locks(&self) -> u32 {
                match self { $(Self::$workload(it) => it.locks(),)* }
            }
            fn lines(&self, cpus: u32) -> usize {
                match self { $(Self::$workload(it) => it.lines(cpus),)* }
            }
            fn pieces(&self) -> u64 {
                match self { $(Self::$workload(it) => it.pieces(),)* }
            }
            fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
                match self { $(Self::$workload(it) => it.run(station, p),)* }
            }
            fn throughput(&self, sections: &[u64], finished_ns: &[f64]) -> f64 {
                match self { $(Self::$workload(it) => it.throughput(sections, finished_ns),)* }
            }
        }

        impl Workload {
            /// What is impossible about this workload.
            ///
            /// # Errors
            /// One line that says what is wrong and what would be right.
            pub fn check(&self) -> Result<(), String> {
                figures::check("workload", self, (0.0, 1e12), &COUNTS)?;
                match self { $(Self::$workload(it) => Work::check(it),)* }
            }
        }
    };
}

workloads! {
    /// Sections of given lengths, counted exactly.
    Sections,
    /// The kernel's lock torture: CNA v15 (document 002).
    Locktorture,
    /// The micro benchmark of document 003.
    KernelLockBench,
    /// A kernel build: document 001.
    KernelBuild,
    /// A mutex that sleeps in the kernel: document 002.
    FutexMutex,
    /// Sections of lengths that vary.
    Lengths,
    /// A loop of system calls, described by its critical sections.
    SystemCalls,
    /// Readers and writers of one lock.
    ReadersWriters,
}
