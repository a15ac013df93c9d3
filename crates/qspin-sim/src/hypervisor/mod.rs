//! The layer between a simulated CPU and a processor: a hypervisor and its scheduler, or an operating system
//! and its own.
//!
//! # Model
//! Simulated CPUs are tasks, and so are *hogs*, which only compute. Each processor has a queue of ready tasks,
//! and runs the one that has had the least time of late. A task runs for its slice; a waking task may preempt
//! at once if it has had less time by more than a granularity. The longest queues feed processors that have
//! none, and from time to time the others. A CPU that halts leaves its processor until it is kicked.
//!
//! # Source
//! The structure is that of Linux's fair scheduler of the documents' time (`kernel/sched/fair.c`, Ingo Molnar's
//! design document `sched-design-CFS`) and of KVM (`virt/kvm/kvm_main.c`: `kvm_vcpu_on_spin`,
//! `kvm_vcpu_yield_to`); the remedies are document 001's. Every figure comes from the [`Hypervisor`].
//!
//! # Limits
//! All tasks have one weight. Slices end on time, not at a tick. A CPU that is preempted in the middle of an
//! operation on a word finishes that operation first. Interrupts do not exist. There is one virtual machine
//! only.

mod calls;
mod quota;
mod schedule;
mod spread;

use serde::{Deserialize, Serialize};

use crate::engine::{Time, from_ns, in_time};
use crate::figures;

pub(crate) use schedule::Schedule;

/// A hypervisor, as a TOML file describes it. In nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hypervisor {
    /// The time to switch a processor to another task.
    pub switch: f64,
    /// From the decision to halt to being off the processor.
    pub halt: f64,
    /// What a kick costs the kicker.
    pub kick: f64,
    /// From the kick to the halted task being ready.
    pub wake: f64,
    /// The cost of a call that yields.
    #[serde(rename = "yield")]
    pub yields: f64,
    /// Whether a CPU can yield to another in particular, as virtual CPUs of POWER and KVM can; where it can not, such
    /// a yield is one to any task, as that of threads on Linux.
    #[serde(default)]
    pub directed_yield: bool,
    /// The time in which each ready task of a processor is to run once.
    pub latency: f64,
    /// The shortest slice.
    pub least_slice: f64,
    /// Slices take between `1 - slice_jitter` and `1 + slice_jitter` of their time, at random: ticks and
    /// interrupts keep processors out of step.
    #[serde(default)]
    pub slice_jitter: f64,
    /// How much less time than the running task a waking task must have had to preempt it at once.
    pub wake_granularity: f64,
    /// The time between two levellings of the queues; 0: never.
    #[serde(default)]
    pub balance: f64,
    /// Whether a processor without a ready task takes one from another's queue.
    #[serde(default)]
    pub pulls: bool,
    /// How long a CPU may spin before the hypervisor steps in (pause-loop exit); 0: for ever.
    #[serde(default)]
    pub pause_loop_window: f64,
    /// What such an exit costs the CPU.
    #[serde(default)]
    pub pause_loop_exit: f64,
    /// How long a CPU that holds a lock may stay on its processor although its slice is over: remedy (b) of
    /// document 001; 0: not at all.
    #[serde(default)]
    pub holder_grace: f64,
    /// Whether CPUs see which of them are running: remedy (c) of document 001.
    #[serde(default)]
    pub run_status: bool,
    /// What it costs to check that.
    #[serde(default)]
    pub run_status_look: f64,
    /// Processor time that all CPUs together may have in a period; 0: no limit.
    #[serde(default)]
    pub quota: f64,
    /// The period of the quota.
    #[serde(default)]
    pub period: f64,
}

/// On which processors a task may run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pinning {
    /// On its own processor: the one where it is placed.
    #[default]
    Own,
    /// On any.
    Any,
    /// On these.
    To(Vec<u32>),
}

in_time! {
    Calls of Hypervisor as it {
        switch halt kick wake yields latency least_slice wake_granularity balance pause_loop_window
        pause_loop_exit holder_grace run_status_look quota period;
        slice_jitter: f64 = it.slice_jitter,
        pulls: bool = it.pulls,
        directed_yield: bool = it.directed_yield,
        run_status: bool = it.run_status,
    }
}

impl Hypervisor {
    /// What is impossible about this hypervisor.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn check(&self) -> Result<(), String> {
        // Without these, simulated time might stand still.
        let passes = (1.0, 1e12);
        let named = [
            ("least_slice", passes),
            ("yield", passes),
            ("halt", passes),
            ("slice_jitter", (0.0, 1.0)),
        ];
        figures::check("hypervisor", self, (0.0, 1e12), &named)?;
        if self.quota > 0.0 && self.period < 1.0 {
            return Err("hypervisor.quota needs a period of at least 1 ns".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hypervisors_that_come_with_the_crate_are_possible() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/hypervisors");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let hypervisor: Hypervisor = toml::from_str(&text).unwrap();
            assert_eq!(hypervisor.check(), Ok(()), "{}", path.display());
        }
    }
}
