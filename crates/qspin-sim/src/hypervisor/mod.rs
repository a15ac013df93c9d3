//! What is between a simulated CPU and a processor: a hypervisor and its scheduler, or an operating
//! system and its own.
//!
//! # Model
//! Simulated CPUs are tasks, and so are *hogs*, which do nothing but compute. Each processor has a
//! queue of ready tasks and lets the one run that has had the least time of late. A task runs for
//! its slice; one that wakes may come at once, if it has had less by more than a granularity. The
//! longest queues feed processors that have none, and from time to time the others. A CPU that
//! halts leaves its processor until it is kicked.
//!
//! # Source
//! The structure is that of Linux's fair scheduler of the documents' time (`kernel/sched/fair.c`,
//! Ingo Molnar's design document `sched-design-CFS`) and of KVM (`virt/kvm/kvm_main.c`:
//! `kvm_vcpu_on_spin`, `kvm_vcpu_yield_to`); the remedies are document 001's. Every figure comes
//! from the [`Hypervisor`].
//!
//! # Limits
//! All tasks have one weight. Slices end on time, not at a tick. A CPU that is preempted in the
//! middle of an operation on a word finishes that first. Interrupts do not exist. One virtual
//! machine only.

mod calls;
mod quota;
mod schedule;
mod spread;

use serde::{Deserialize, Serialize};

use crate::engine::{Time, from_ns};

pub(crate) use schedule::Schedule;

/// A hypervisor, as a TOML file describes it. In nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hypervisor {
    /// To put another task on a processor.
    pub switch: f64,
    /// From the decision to halt to being off the processor.
    pub halt: f64,
    /// What a kick costs the kicker.
    pub kick: f64,
    /// From the kick to the halted task being ready.
    pub wake: f64,
    /// A call that yields.
    #[serde(rename = "yield")]
    pub yields: f64,
    /// The time in which each ready task of a processor is to run once.
    pub latency: f64,
    /// The shortest slice.
    pub least_slice: f64,
    /// Slices take between `1 - slice_jitter` and `1 + slice_jitter` of their time, at random: ticks
    /// and interrupts keep processors from marching in step.
    #[serde(default)]
    pub slice_jitter: f64,
    /// How much less time than the running one a waking task must have had to come at once.
    pub wake_granularity: f64,
    /// From one levelling of the queues to the next; 0: never.
    #[serde(default)]
    pub balance: f64,
    /// Whether a processor without a ready task takes one of another's queue.
    #[serde(default)]
    pub pulls: bool,
    /// How long a CPU may spin before the hypervisor steps in (pause-loop exit); 0: for ever.
    #[serde(default)]
    pub pause_loop_window: f64,
    /// What that costs the CPU.
    #[serde(default)]
    pub pause_loop_exit: f64,
    /// How long a CPU that holds a lock may stay although its slice is over: remedy (b) of document
    /// 001; 0: not at all.
    #[serde(default)]
    pub holder_grace: f64,
    /// Whether CPUs see which of them run: remedy (c) of document 001.
    #[serde(default)]
    pub run_status: bool,
    /// What it costs to look.
    #[serde(default)]
    pub run_status_look: f64,
    /// Processor time that all CPUs together may have in a period; 0: as much as there is.
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
    /// On its own: the one where it is placed.
    #[default]
    Own,
    /// On any.
    Any,
    /// On these.
    To(Vec<u32>),
}

/// The prices of a hypervisor, in [`Time`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Calls {
    switch: Time,
    halt: Time,
    kick: Time,
    wake: Time,
    yields: Time,
    latency: Time,
    least_slice: Time,
    slice_jitter: f64,
    wake_granularity: Time,
    balance: Time,
    pulls: bool,
    pause_loop_window: Time,
    pause_loop_exit: Time,
    holder_grace: Time,
    run_status: bool,
    run_status_look: Time,
    quota: Time,
    period: Time,
}

impl Hypervisor {
    /// What is impossible about this hypervisor.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let times = [
            ("switch", self.switch),
            ("halt", self.halt),
            ("kick", self.kick),
            ("wake", self.wake),
            ("yield", self.yields),
            ("latency", self.latency),
            ("least_slice", self.least_slice),
            ("wake_granularity", self.wake_granularity),
            ("balance", self.balance),
            ("pause_loop_window", self.pause_loop_window),
            ("pause_loop_exit", self.pause_loop_exit),
            ("holder_grace", self.holder_grace),
            ("run_status_look", self.run_status_look),
            ("quota", self.quota),
            ("period", self.period),
        ];
        for (name, ns) in times {
            if !(0.0..=1e12).contains(&ns) {
                return Err(format!("hypervisor.{name} is {ns}: it must be from 0 to 1e12 ns"));
            }
        }
        if self.least_slice < 1.0 || self.yields < 1.0 || self.halt < 1.0 {
            let names = "hypervisor.least_slice, .yield and .halt";
            return Err(format!("{names} must be at least 1 ns, or time might stand still"));
        }
        if !(0.0..=1.0).contains(&self.slice_jitter) {
            let jitter = self.slice_jitter;
            return Err(format!("hypervisor.slice_jitter is {jitter}: it must be from 0 to 1"));
        }
        if self.quota > 0.0 && self.period < 1.0 {
            return Err("hypervisor.quota needs a period of at least 1 ns".to_owned());
        }
        Ok(())
    }

    fn calls(&self) -> Calls {
        Calls {
            switch: from_ns(self.switch),
            halt: from_ns(self.halt),
            kick: from_ns(self.kick),
            wake: from_ns(self.wake),
            yields: from_ns(self.yields),
            latency: from_ns(self.latency),
            least_slice: from_ns(self.least_slice),
            slice_jitter: self.slice_jitter,
            wake_granularity: from_ns(self.wake_granularity),
            balance: from_ns(self.balance),
            pulls: self.pulls,
            pause_loop_window: from_ns(self.pause_loop_window),
            pause_loop_exit: from_ns(self.pause_loop_exit),
            holder_grace: from_ns(self.holder_grace),
            run_status: self.run_status,
            run_status_look: from_ns(self.run_status_look),
            quota: from_ns(self.quota),
            period: from_ns(self.period),
        }
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
