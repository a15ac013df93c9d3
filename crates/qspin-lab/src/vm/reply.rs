//! What the guest says, a JSON object a line.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A line of the guest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "guest", rename_all = "lowercase")]
pub enum Reply {
    /// It has booted, and taken its first lock.
    Ready(Ready),
    /// How fast work is done.
    Pace {
        /// Steps of work in a millisecond.
        steps_a_ms: u64,
    },
    /// A lock was measured for a phase.
    Phase(Phase),
    /// What a lock counted, in a phase of its own.
    Events(Events),
    /// A test is done.
    Result(Outcome),
    /// Everything is done.
    End {
        /// Nothing has failed.
        ok: bool,
        /// How many tests have.
        failed: u64,
        /// Milliseconds since the guest's first instruction.
        ms: u64,
    },
    /// Something does not end.
    Hang(Hang),
    /// A processor met a fault.
    Fault {
        /// Its number.
        vector: u64,
        /// Where.
        at: u64,
    },
    /// The guest panicked.
    Panic {
        /// The source file.
        file: String,
        /// Its line.
        line: u64,
    },
    /// The guest does not do what it was asked for.
    Usage {
        /// Why not.
        why: String,
        /// What it is about.
        what: String,
    },
}

/// What the guest has found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Ready {
    /// Its version.
    pub version: String,
    /// CPUs that have come.
    pub vcpus: u32,
    /// `xapic` or `x2apic`.
    pub apic: String,
    /// How halted CPUs are kicked: `vector`, `nmi` or `hypercall`.
    pub kick: String,
    /// It runs on KVM.
    pub kvm: bool,
    /// Where its shared page is, on which it says which CPU owns the lock and which wait.
    pub shared_page: u64,
    /// Microseconds from its first instruction to its first lock.
    pub first_lock_us: u64,
}

/// What was measured of one lock in one round.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Phase {
    /// The lock.
    pub lock: String,
    /// How long.
    pub ns: u64,
    /// Acquisitions of each CPU.
    pub operations: Vec<u64>,
    /// How often it asked that a CPU be stopped.
    #[serde(default)]
    pub struck: u64,
    /// Waits that lasted beyond the end.
    pub unfinished: u64,
    /// The longest wait.
    pub longest_ns: u64,
    /// The bucket of the 99.9th percentile of the CPU for which it is largest.
    pub worst_cpu_p999: usize,
    /// Halts and kicks, by their kind.
    pub platform: BTreeMap<String, u64>,
    /// Waits, by bucket.
    pub waits: Vec<(usize, u64)>,
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Events {
    /// The lock.
    pub lock: String,
    /// Acquisitions meanwhile.
    pub operations: u64,
    /// The events.
    pub events: BTreeMap<String, u64>,
}

/// What a test has found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Outcome {
    /// The test.
    pub test: String,
    /// What of it.
    pub detail: String,
    /// The lock.
    pub lock: String,
    /// Everything was as it should be.
    pub ok: bool,
    /// What was counted.
    pub counted: u64,
    /// What should have been.
    pub expected: u64,
}

/// What each CPU waits for when nothing ends any more.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hang {
    /// The test, or `bench`.
    pub test: String,
    /// The waiters and the owner.
    pub waits: Vec<Wait>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Wait {
    /// The CPU.
    pub cpu: u32,
    /// As a task, in an interrupt, in a nested one, in an NMI.
    pub level: String,
    /// The lock.
    pub lock: String,
    /// It holds the lock, and does not wait for it.
    pub holds: bool,
}

impl Hang {
    /// In words: `CPU 1 waits for native (task), CPU 0 holds it (task)`.
    #[must_use]
    pub fn words(&self) -> String {
        if self.waits.is_empty() {
            return "no CPU is at a lock".to_owned();
        }
        let words = self.waits.iter().map(|wait| {
            let does = if wait.holds { "holds" } else { "waits for" };
            format!("CPU {} {does} {} ({})", wait.cpu, wait.lock, wait.level)
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The reply in a line; `None` for a line that is none (a firmware's).
#[must_use]
pub fn parse(line: &str) -> Option<Reply> {
    // Firmware may leave control sequences before the first line.
    serde_json::from_str(&line[line.find('{')?..]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hang_is_told_in_words() {
        let line = r#"{"guest":"hang","test":"halts","waits":[{"cpu":0,"level":"task","lock":"native","holds":true},{"cpu":1,"level":"NMI","lock":"native","holds":false}]}"#;
        let Some(Reply::Hang(hang)) = parse(line) else { panic!("it is a hang") };
        assert_eq!(hang.words(), "CPU 0 holds native (task), CPU 1 waits for native (NMI)");
    }

    #[test]
    fn what_is_no_reply_is_passed_over() {
        for line in ["", "SeaBIOS", "{", "{\"guest\":\"else\"}", "{\"guest\":\"phase\"}"] {
            assert_eq!(parse(line), None, "{line}");
        }
        let end = parse("\u{1b}[2J{\"guest\":\"end\",\"ok\":true,\"failed\":0,\"ms\":5}");
        assert_eq!(end, Some(Reply::End { ok: true, failed: 0, ms: 5 }));
    }
}
