//! The row format: JSON Lines, one row a lock × threads × workload, after one machine row.
//!
//! Other tools read these rows (`qspin report`, and later the guest and the simulator write
//! them), so fields may be added and none removed or renamed while `schema` stays 1.
//! Errors and ratios are fractions, never percent. Times are nanoseconds.

use std::collections::BTreeMap;

use qspin_reproduce::shard::Shard;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tune;

/// The version of the row format that this program writes.
pub const SCHEMA: u32 = 1;

/// A median and its 95 % bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Median over the rounds.
    pub median: f64,
    /// Lower end of the 95 % interval of the median.
    pub lo: f64,
    /// Upper end of the 95 % interval of the median.
    pub hi: f64,
}

/// A mean and how the rounds spread around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean over the rounds.
    pub mean: f64,
    /// Standard deviation of the rounds (of a sample: n − 1); a single round has none.
    pub std_dev: Option<f64>,
}

/// How long acquisitions waited, in nanoseconds; waits still in progress at the end count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WaitNs {
    /// Median wait of all threads' acquisitions.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest wait seen.
    pub max: f64,
    /// The 99.9th percentile of the thread for which it is largest.
    pub worst_thread_p999: f64,
    /// Waits behind these figures.
    #[serde(default)]
    pub samples: u64,
    /// How many of them had not ended when the measurement did; they count with their age.
    #[serde(default)]
    pub unfinished: u64,
}

/// How evenly the lock was shared among the threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Operations of the busiest thread over those of the idlest; `None` when the idlest had none,
    /// also where no lock had any.
    pub max_min: Option<f64>,
    /// Dice's fairness factor: share of the operations done by the busier half of the threads;
    /// 0.5 is perfectly fair, 1 is starvation or standstill. One thread alone has 0.5 by
    /// definition.
    pub factor: f64,
}

/// One measured point: a lock at a number of threads under a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Version of the format, [`SCHEMA`].
    pub schema: u32,
    /// What measured: `bench` (threads), `vm` (a guest), `simulate` (a simulated machine).
    pub kind: String,
    /// `lengths`, `locktorture`, `kernel-lock-bench`, `rw`, …
    pub workload: String,
    /// What the workload adds to the key: readers, topology, quota, step.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    /// Name of the lock, as `qspin locks` lists it.
    pub lock: String,
    /// What was tuned away from its default.
    #[serde(default, deserialize_with = "tune::by_todays_names")]
    pub tune: BTreeMap<String, Value>,
    /// Threads (vCPUs in a guest).
    pub threads: u32,
    /// Length of the critical section, ns.
    pub critical_ns: f64,
    /// Length of the work between two critical sections, ns.
    pub outside_ns: f64,
    /// Shared cache lines written in the critical section.
    pub lines: u32,
    /// Pinning scenario: `A` each thread its CPU, `B` none, `C` all on half of the CPUs.
    pub pin: String,
    /// Spinning processes beside the threads.
    pub hogs: u32,
    /// Finished rounds behind the medians.
    pub rounds: u32,
    /// Acquisitions a second, all threads together.
    pub ops_per_s: Interval,
    /// The same of each round, in their order: rows of one run are compared round by round.
    /// Absent in rows of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_ops_per_s: Vec<f64>,
    /// Wall time over the operations of all threads, ns; absent where a round had none.
    #[serde(default)]
    pub op_ns: Option<Spread>,
    /// Waiting time an acquisition; absent where it was not measured.
    pub wait_ns: Option<WaitNs>,
    /// Waits by kind of operation (`read`, `write`), where there is more than one.
    #[serde(default)]
    pub wait_ns_by: BTreeMap<String, WaitNs>,
    /// The run was interrupted before all rounds were done.
    #[serde(default)]
    pub partial: bool,
    /// How evenly the lock was shared.
    pub fairness: Fairness,
    /// Length of the run of its own from which fairness and waits are; absent where they are the
    /// rounds'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness_s: Option<f64>,
    /// CPU time of all threads an operation, ns.
    pub cpu_ns_per_op: Option<f64>,
    /// Time an operation beyond the work itself (critical and outside), ns.
    pub overhead_ns_per_op: Option<f64>,
    /// A lock and an unlock by one thread in a tight loop, ns; in rows of one thread.
    #[serde(default)]
    pub uncontended_ns: Option<Interval>,
    /// `uncontended_ns` over the same of `cmpxchg32` and a 32-bit store, round by round.
    #[serde(default)]
    pub floor_ratio: Option<Interval>,
    /// Event counters, where the lock counts. Counted in a measurement of their own after the
    /// rounds, so that counting slows none of the other figures.
    #[serde(default)]
    pub events: BTreeMap<String, u64>,
    /// Acquisitions during which `events` were counted.
    #[serde(default)]
    pub events_ops: Option<u64>,
    /// Share of the counted hand-overs that stayed local, where the lock counts them.
    #[serde(default)]
    pub locality: Option<f64>,
    /// What a guest's platform did in the measured rounds: halts and kicks, by their kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub platform: BTreeMap<String, u64>,
}

/// The machine on which the rows after it were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Version of the format, [`SCHEMA`].
    pub schema: u32,
    /// Always `machine`.
    pub kind: String,
    /// Version of qspin.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Seed of the contenders' order.
    pub seed: u64,
    /// When the run started, RFC 3339 in UTC; `SIMULATED` where nothing depends on that.
    pub started: String,
    /// Model name of the CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: u32,
    /// NUMA nodes with at least one of those CPUs.
    pub numa_nodes: u32,
    /// The made-up topology that was in force instead, as `QSPIN_TOPOLOGY` says it.
    #[serde(default)]
    pub topology: Option<String>,
    /// Hypervisor, `none` on bare metal.
    pub hypervisor: String,
    /// CPUs' worth of cgroup quota, where there is one.
    pub quota_cpus: Option<f64>,
    /// Release of the kernel.
    pub kernel: String,
    /// Frequency governor, where the kernel says.
    pub governor: Option<String>,
    /// Load average over a minute, before the run.
    pub load: f64,
    /// What makes the figures less trustworthy, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Uncontended floor: `cmpxchg32` and a 32-bit store, ns a pair, where it was measured.
    #[serde(default)]
    pub floor_ns: Option<f64>,
    /// In which order each round measured: `lock@threads`, separated by blanks, a round a string.
    #[serde(default)]
    pub order: Vec<String>,
    /// Which part of a sweep the rows are, where they are not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

/// A run as JSON Lines: the machine, then its rows, one a line.
/// Fails when a figure is no number, which JSON cannot say.
pub fn to_json_lines(machine: &Machine, rows: &[Row]) -> anyhow::Result<String> {
    let mut text = serde_json::to_string(machine)? + "\n";
    for row in rows {
        text += &(serde_json::to_string(row)? + "\n");
    }
    Ok(text)
}

/// The part of a row that tells it from every other row of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

impl Row {
    /// kind, workload, params, lock, tune, threads, lengths, pin and hogs: the key of a row.
    pub fn key(&self) -> Key {
        Key(format!("{}|{}|{}", self.lock, self.threads, self.setting()))
    }

    /// The key without lock and threads: rows that agree in it belong into one chart.
    pub fn setting(&self) -> String {
        format!("{}|{:?}", self.load(), self.tune)
    }

    /// What the threads do and what stands around them, however the lock is tuned: rows that agree in
    /// it and in their threads are a cell.
    pub fn load(&self) -> String {
        format!(
            "{}|{}|{:?}|{}|{}|{}|{}|{}",
            self.kind,
            self.workload,
            self.params,
            self.critical_ns,
            self.outside_ns,
            self.lines,
            self.pin,
            self.hogs
        )
    }
}
