//! Scenarios that several tests use.

use qspin_sim::hypervisor::Hypervisor;
use qspin_sim::workload::{Sections, Workload};
use qspin_sim::{Lock, Machine, Scenario};

/// Two sockets of two cores with two threads; round figures.
pub(crate) fn small() -> Scenario {
    Scenario::from_toml(include_str!("scenarios/small.toml")).expect("it is valid")
}

/// The same machine, whose figures do not vary.
pub(crate) fn exact() -> Machine {
    let mut machine = small().machine;
    machine.costs.jitter = 0.0;
    machine.costs.near_bias = 0.0;
    machine
}

/// A hypervisor with slices that are short enough for short tests.
pub(crate) fn hypervisor() -> Hypervisor {
    Hypervisor {
        switch: 500.0,
        halt: 700.0,
        kick: 900.0,
        wake: 2000.0,
        yields: 600.0,
        directed_yield: true,
        latency: 60_000.0,
        least_slice: 10_000.0,
        slice_jitter: 0.1,
        wake_granularity: 5000.0,
        balance: 100_000.0,
        pulls: true,
        pause_loop_window: 0.0,
        pause_loop_exit: 0.0,
        holder_grace: 0.0,
        run_status: false,
        run_status_look: 0.0,
        quota: 0.0,
        period: 0.0,
    }
}

/// `lock` on `cpus` CPUs that count in `sections` each, with a hypervisor.
pub(crate) fn counting(lock: Lock, cpus: u32, count: u64) -> Scenario {
    let (inside_ns, outside_ns) = (20.0, 100.0);
    let sections = Sections { count, inside_ns, outside_ns, locks: 1, beside: false };
    Scenario {
        lock,
        cpus,
        workload: Workload::Sections(sections),
        hypervisor: Some(hypervisor()),
        watchdog_ns: 1e8,
        ..small()
    }
}

/// The half of a lock that the workloads here do not use: an attempt is refused, which any lock may do at any
/// time.
macro_rules! refuses_who_tries {
    () => {
        fn try_acquire(&self, _: &qspin_sim::platform::SimPlatform) -> bool {
            false
        }
    };
}
pub(crate) use refuses_who_tries;
