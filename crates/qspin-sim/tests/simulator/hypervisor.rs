//! Which virtual CPUs run where, and what a lock can do about it.

use crate::fixtures;
use qspin_sim::catalog::Named;
use qspin_sim::hypervisor::Hypervisor;
use qspin_sim::workload::{KernelBuild, Sections, Workload};
use qspin_sim::{Lock, Outcome, Pinning, Placement, Scenario, simulate};

fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, 1).unwrap_or_else(|failure| panic!("{failure}"))
}

/// One CPU that only works, beside `hogs` on its processor.
fn worker(hogs: u32, work_ns: f64) -> Scenario {
    let (inside_ns, outside_ns) = (work_ns, 0.0);
    let sections = Sections { count: 20, inside_ns, outside_ns, locks: 1, beside: false };
    Scenario {
        hogs,
        hog_pinning: Pinning::To(vec![0]),
        workload: Workload::Sections(sections),
        ..fixtures::counting(Lock::Native, 1, 0)
    }
}

#[test]
fn hogs_take_their_share_of_a_processor() {
    let alone = run(&worker(0, 50_000.0)).elapsed_ns;
    for hogs in [1, 2, 3] {
        let outcome = run(&worker(hogs, 50_000.0));
        let times = outcome.elapsed_ns / alone;
        let fair = f64::from(hogs) + 1.0;
        assert!((times / fair - 1.0).abs() < 0.1, "{hogs} hogs: {times} times as long");
        let stolen = outcome.stolen_ns / outcome.elapsed_ns;
        assert!((stolen - (1.0 - 1.0 / fair)).abs() < 0.1, "{hogs} hogs: {stolen} stolen");
        assert!(outcome.preemptions > 5);
    }
}

#[test]
fn an_idle_processor_takes_over_any_task_that_may_run_there() {
    let pinned = Scenario { placement: Placement::On(vec![0]), ..worker(1, 50_000.0) };
    let free = Scenario { pinning: Pinning::Any, ..pinned.clone() };
    let alone = run(&worker(0, 50_000.0)).elapsed_ns;
    assert!(run(&pinned).elapsed_ns > 1.8 * alone);
    assert!(run(&free).elapsed_ns < 1.2 * alone);
}

#[test]
fn a_quota_limits_the_time_of_all_cpus_together() {
    let mut scenario = worker(0, 50_000.0);
    scenario.hypervisor =
        Some(Hypervisor { quota: 30_000.0, period: 100_000.0, ..fixtures::hypervisor() });
    let alone = run(&worker(0, 50_000.0)).elapsed_ns;
    let times = run(&scenario).elapsed_ns / alone;
    assert!((times / (1.0 / 0.3) - 1.0).abs() < 0.1, "{times} times as long");
    // Two CPUs share it, which rarely want the same lock.
    let (count, inside_ns, outside_ns) = (20, 50_000.0, 0.0);
    let sections = Sections { count, inside_ns, outside_ns, locks: 64, beside: false };
    scenario.workload = Workload::Sections(sections);
    scenario.cpus = 2;
    scenario.pinning = Pinning::Own;
    let shared = run(&scenario).elapsed_ns / alone;
    assert!((shared / (2.0 / 0.3) - 1.0).abs() < 0.15, "{shared} times as long");
}

#[test]
fn a_tiny_quota_is_slow_and_no_standstill() {
    for (cpus, quota) in [(8, 200_000.0), (24, 50_000.0)] {
        for lock in [Lock::Tas, Lock::Ticket, Lock::Cna, Lock::Yield] {
            let hypervisor = Hypervisor {
                quota,
                period: 500_000.0,
                // A slice is longer than what the quota leaves of a period.
                latency: 6e6,
                least_slice: 750_000.0,
                ..fixtures::hypervisor()
            };
            let mut scenario = fixtures::counting(lock, cpus, 20);
            scenario.hypervisor = Some(hypervisor);
            scenario.pinning = Pinning::Any;
            scenario.hogs = 4;
            let outcome = run(&scenario);
            assert_eq!(outcome.sections, vec![20; cpus as usize], "{}", lock.name());
        }
    }
}

/// A guest of 4 CPUs on 4 processors beside hogs, whose locks are held for long.
fn guest(lock: Lock, change: impl FnOnce(&mut Hypervisor)) -> Scenario {
    let mut hypervisor = fixtures::hypervisor();
    change(&mut hypervisor);
    let build = KernelBuild {
        pieces: 4000,
        outside_ns: 3000.0,
        inside_ns: 500.0,
        locks: 8,
        hot: 0.3,
        idle: 0.0,
        idle_ns: 5e7,
    };
    let mut scenario = Scenario {
        hogs: 4,
        hog_pinning: Pinning::Own,
        workload: Workload::KernelBuild(build),
        hypervisor: Some(hypervisor),
        ..fixtures::counting(lock, 4, 0)
    };
    scenario.machine.shape.threads_per_core = 1;
    scenario
}

#[test]
fn waiters_that_halt_leave_their_time_to_others() {
    let ticket = run(&guest(Lock::Ticket, |_| {}));
    let paravirt = run(&guest(Lock::Paravirt, |_| {}));
    assert_eq!((ticket.halts, ticket.kicks), (0, 0));
    assert!(paravirt.halts > 0 && paravirt.kicks >= paravirt.halts.min(1));
    assert!(paravirt.mean_wake_ns.unwrap() >= fixtures::hypervisor().wake);
    assert!(paravirt.spun_ns < ticket.spun_ns / 2.0, "{} {}", paravirt.spun_ns, ticket.spun_ns);
    assert!(paravirt.elapsed_ns < ticket.elapsed_ns);
}

#[test]
fn a_holder_that_is_spared_makes_others_wait_less() {
    let plain = run(&guest(Lock::Ticket, |_| {}));
    let spared = run(&guest(Lock::Ticket, |it| it.holder_grace = 20_000.0));
    assert!(spared.spun_ns < plain.spun_ns, "{} {}", spared.spun_ns, plain.spun_ns);
}

#[test]
fn the_hypervisor_steps_in_where_a_cpu_spins() {
    let plain = run(&guest(Lock::Ticket, |_| {}));
    let exits = run(&guest(Lock::Ticket, |it| {
        it.pause_loop_window = 1500.0;
        it.pause_loop_exit = 1000.0;
    }));
    assert_eq!(plain.pause_loop_exits, 0);
    assert!(exits.pause_loop_exits > 0);
    assert!(exits.spun_ns < plain.spun_ns, "{} {}", exits.spun_ns, plain.spun_ns);
}

#[test]
fn a_yield_to_the_owner_brings_it_back_where_yields_are_directed() {
    let with = |directed| {
        let slices = |it: &mut Hypervisor| (it.latency, it.directed_yield) = (1e6, directed);
        let mut scenario = guest(Lock::Simple, slices);
        let (count, inside_ns, outside_ns) = (500, 2000.0, 2000.0);
        let sections = Sections { count, inside_ns, outside_ns, locks: 1, beside: false };
        scenario.workload = Workload::Sections(sections);
        run(&scenario)
    };
    let (directed, undirected) = (with(true), with(false));
    assert!(directed.yields > 0 && undirected.yields > 0);
    let [fast, slow] = [directed, undirected].map(|it| it.elapsed_ns);
    assert!(1.1 * fast < slow, "{fast} {slow}");
}

#[test]
fn threads_on_linux_yield_to_no_thread_in_particular() {
    for (name, directed) in [("linux-bare-metal", false), ("kvm-dedicated", true)] {
        assert_eq!(Hypervisor::named(name).unwrap().directed_yield, directed, "{name}");
    }
}

#[test]
fn run_status_is_seen_where_it_is_shown() {
    let heeds = |lock, shown| {
        let mut scenario = guest(lock, |it| it.run_status = shown);
        scenario.tuning.insert("heed_preempted".to_owned(), 1);
        run(&scenario)
    };
    let (hidden, shown) = (heeds(Lock::Simple, false), heeds(Lock::Simple, true));
    assert!(shown.spun_ns < hidden.spun_ns, "{} {}", shown.spun_ns, hidden.spun_ns);
}

#[test]
fn a_waiter_that_looks_again_and_again_sees_the_one_before_preempted_later() {
    let early = |adaptive, heeds| {
        let mut scenario = guest(Lock::ParavirtQueued, |it| it.run_status = true);
        let tuning = [("adaptive", adaptive), ("heed_preempted", heeds), ("check_polls", 16)];
        scenario.tuning.extend(tuning.map(|(name, value)| (name.to_owned(), value)));
        run(&scenario).events.get("wait_early_count").copied().unwrap_or(0)
    };
    let (none, once) = (early(0, 0), early(0, 1));
    assert!(none == 0 && once > 0, "{none} {once}");
    let (states, again) = (early(3, 0), early(3, 1));
    assert!(again > states && again > once, "{again} {states} {once}");
}
