//! The workloads do what their sources say.

use crate::fixtures;
use qspin_core::lock::RawSharedLock;
use qspin_core::locks::queued_rw::QueuedRwLock;
use qspin_sim::platform::{SimPlatform, SimWord};
use qspin_sim::workload::{
    FutexMutex, KernelLockBench, Locktorture, LongDelays, ReadersWriters, Step, SystemCalls,
    Workload,
};
use qspin_sim::{Lock, Outcome, Scenario, simulate};

fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, 1).unwrap_or_else(|failure| panic!("{failure}"))
}

fn torture(cpus: u32, long_delays: LongDelays) -> Scenario {
    let workload = Workload::Locktorture(Locktorture {
        inside_ns: 10.0,
        outside_ns: 20.0,
        short_delay_ns: 2e3,
        long_delay_ns: 1e8,
        long_delays,
    });
    Scenario {
        machine: fixtures::exact(),
        duration_ns: 1e6,
        workload,
        ..fixtures::counting(Lock::Native, cpus, 0)
    }
}

#[test]
fn the_delays_of_lock_torture_are_a_microsecond_divided_by_the_writers() {
    for cpus in [1, 2, 4] {
        let mut scenario = torture(cpus, LongDelays::Averaged);
        scenario.duration_ns *= f64::from(cpus);
        let with = run(&scenario);
        let Workload::Locktorture(torture) = &mut scenario.workload else { unreachable!() };
        (torture.short_delay_ns, torture.long_delay_ns) = (0.0, 0.0);
        let without = run(&scenario);
        let delays = 1000.0 / with.throughput - 1000.0 / without.throughput;
        let expected = 1000.0 / f64::from(cpus);
        assert!((delays / expected - 1.0).abs() < 0.15, "{cpus}: {delays} ns");
    }
}

#[test]
fn the_more_writers_the_less_each_has_and_all_are_served() {
    let outcome = run(&torture(8, LongDelays::Averaged));
    assert!(outcome.sections.iter().all(|&sections| sections > 20));
    assert!(outcome.fairness_factor < 0.55 && outcome.hand_overs > 500);
    assert!(outcome.remote_hand_overs > 0 && outcome.longest_wait_ns > outcome.mean_wait_ns);
}

#[test]
fn a_round_of_the_micro_benchmark_is_its_units() {
    let bench = |critical, non_critical, cpus| {
        let (rounds, unit_ns, overhead_ns) = (400, 5.0, 10.0);
        let workload = Workload::KernelLockBench(KernelLockBench {
            critical,
            non_critical,
            rounds,
            unit_ns,
            overhead_ns,
        });
        let machine = fixtures::exact();
        run(&Scenario { machine, workload, ..fixtures::counting(Lock::Backoff, cpus, 0) })
    };
    let [short, long] = [bench(0, 0, 1), bench(128, 32, 1)].map(|it| 1000.0 / it.throughput);
    assert!((long - short - 160.0 * 5.0).abs() < 1.0, "{short} {long}");
    assert_eq!(bench(4, 4, 4).sections, [100; 4]);
}

/// The benchmark of document 001 on its machine, `times` overcommitted, CPUs pinned.
fn build(lock: Lock, times: u32) -> Outcome {
    let text = include_str!("scenarios/kernel-build.toml");
    let scenario = Scenario::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    run(&Scenario { lock, hogs: 4 * (times - 1), ..scenario })
}

#[test]
fn a_build_takes_longer_by_the_overcommit_and_longest_where_waiters_spin() {
    let alone = build(Lock::Ticket, 1).elapsed_ns;
    for times in [2, 3] {
        let spinning = build(Lock::Ticket, times).elapsed_ns / alone;
        let yielding = build(Lock::Yield, times).elapsed_ns / alone;
        assert!(spinning > f64::from(times) * 0.95, "{times}: {spinning}");
        assert!(yielding < spinning, "{times}: {yielding} {spinning}");
    }
}

#[test]
fn a_loop_of_system_calls_is_its_steps_and_its_lines_cost() {
    let calls = |reads, writes, chain, beside, cpus| {
        let step = |outside_ns, inside_ns| Step {
            outside_ns,
            inside_ns,
            lock: 0,
            reads,
            writes,
            chain,
            beside,
            counts: 0,
        };
        let steps = vec![step(400.0, 50.0), step(300.0, 30.0)];
        // The order of owners is not to matter.
        let mut machine = fixtures::exact();
        machine.costs.other_socket = machine.costs.same_cache;
        let workload = Workload::SystemCalls(SystemCalls { locks: 1, steps });
        let scenario = fixtures::counting(Lock::Native, cpus, 0);
        1000.0 / run(&Scenario { machine, workload, duration_ns: 2e5, ..scenario }).throughput
    };
    // Alone: the work and the lock, and once each line from memory.
    let bare = calls(0, 0, 0.0, 0, 1);
    assert!((780.0..860.0).contains(&bare), "{bare}");
    assert!((0.0..30.0).contains(&(calls(4, 0, 0.0, 0, 1) - bare)));
    // Together: written lines come from another CPU, words beside the lock with the lock.
    let bare = calls(0, 0, 0.0, 0, 8);
    let (read, beside, written) =
        (calls(4, 0, 0.0, 0, 8), calls(0, 0, 0.0, 1, 8), calls(0, 4, 0.0, 0, 8));
    for free in [read, beside] {
        // Which threads meet, and when, changes with every nanosecond: it may be less.
        assert!((0.7 * bare..bare + 40.0).contains(&free), "{free} {bare}");
    }
    // All four lines are under way together: a copy of each, then the right to write it.
    assert!((bare..bare + 4.0 * 80.0).contains(&written), "{written} {bare}");
    // One after the other: each copy of two sections is waited for by itself.
    let chained = calls(0, 0, 4.0, 0, 8);
    assert!(chained > 1.2 * written, "{chained} {written}");
    let some = calls(0, 0, 0.5, 0, 8);
    assert!(some > bare && some < chained, "{bare} {some} {chained}");
}

#[test]
fn steps_that_are_impossible_are_refused() {
    let step = Step {
        outside_ns: 1.0,
        inside_ns: 1.0,
        lock: 1,
        reads: 0,
        writes: 0,
        chain: 0.0,
        beside: 0,
        counts: 0,
    };
    for (steps, wrong) in [
        (vec![], "at least one step"),
        (vec![step.clone()], "no lock 1"),
        (vec![Step { lock: 0, beside: 99, ..step.clone() }], "beside"),
        (vec![Step { lock: 0, chain: 1e12, ..step.clone() }], "chain"),
        (vec![Step { lock: 0, chain: -1.0, ..step }], "chain"),
    ] {
        let workload = Workload::SystemCalls(SystemCalls { locks: 1, steps });
        assert!(workload.check().unwrap_err().contains(wrong));
    }
}

#[test]
fn a_mutex_that_sleeps_in_the_kernel_is_served_to_all_and_none_sleeps_for_ever() {
    let mutex = |cpus| {
        let (outside_ns, inside_ns) = (1500.0, 300.0);
        let (sections, writes, call_ns, bucket_ns) = (2, 1, 150.0, 40.0);
        let workload = Workload::FutexMutex(FutexMutex {
            outside_ns,
            inside_ns,
            sections,
            writes,
            call_ns,
            bucket_ns,
        });
        let scenario = fixtures::counting(Lock::Native, cpus, 0);
        run(&Scenario { workload, duration_ns: 1e6, ..scenario })
    };
    let alone = mutex(1);
    // There is no owner to wait for: the work, and two pairs of operations on a word.
    assert!((1000.0 / alone.throughput - 2100.0).abs() < 150.0, "{}", alone.throughput);
    assert_eq!((alone.halts, alone.kicks), (0, 0));
    for cpus in [2, 8] {
        let outcome = mutex(cpus);
        assert!(outcome.sections.iter().all(|&operations| operations > 5), "{outcome:?}");
        assert!(cpus == 2 || outcome.halts > 10, "{}", outcome.halts);
        // The mutex excludes: two sections of 300 ns are an operation's share of it.
        assert!(1000.0 / outcome.throughput > 600.0);
    }
}

#[test]
fn readers_are_inside_together_and_writers_are_alone() {
    let run = |lock, written| {
        let (inside_ns, outside_ns) = (2000.0, 1000.0);
        let workload = Workload::ReadersWriters(ReadersWriters { inside_ns, outside_ns, written });
        let scenario = fixtures::counting(lock, 8, 0);
        run(&Scenario { workload, duration_ns: 1e6, ..scenario })
    };
    for lock in Lock::ALL.iter().copied().filter(|lock| lock.is_shared()) {
        // Eight inside at once: more sections than one after the other can be.
        let most = 1e6 / 2000.0;
        let read = run(lock, 0.0);
        let name = lock.name();
        assert!(read.sections.iter().sum::<u64>() as f64 > 4.0 * most, "{name}: {read:?}");
        assert_eq!(read.hand_overs, 0, "{name}");
        let written = run(lock, 1.0);
        assert!(written.sections.iter().sum::<u64>() as f64 <= most + 8.0, "{name}: {written:?}");
        assert!(written.hand_overs > 50, "{name}: {written:?}");
    }
    // A lock that excludes has readers that exclude.
    let read = run(Lock::Native, 0.0);
    assert!(read.sections.iter().sum::<u64>() as f64 <= 1e6 / 2000.0 + 8.0);
}

#[test]
fn a_reader_beside_a_writer_is_found() {
    let workload = Workload::ReadersWriters(ReadersWriters {
        inside_ns: 200.0,
        outside_ns: 100.0,
        written: 0.5,
    });
    let scenario =
        Scenario { workload, duration_ns: 1e5, ..fixtures::counting(Lock::QueuedRw, 4, 0) };
    let failure = qspin_sim::simulate_shared_lock::<Open>(&scenario, 1).unwrap_err();
    assert!(matches!(failure, qspin_sim::Failure::Exclusion { .. }), "{failure}");
}

/// Writers exclude each other; readers just come in.
struct Open(QueuedRwLock<SimWord>);

// SAFETY: it does not exclude readers: that is to be found.
unsafe impl RawSharedLock<SimPlatform> for Open {
    fn new() -> Self {
        Self(RawSharedLock::<SimPlatform>::new())
    }
    fn acquire_shared(&self, _: &SimPlatform) {}
    fn try_acquire_shared(&self, _: &SimPlatform) -> bool {
        true
    }
    unsafe fn release_shared(&self, _: &SimPlatform) {}
    fn acquire_exclusive(&self, p: &SimPlatform) {
        self.0.acquire_exclusive(p);
    }
    fn try_acquire_exclusive(&self, p: &SimPlatform) -> bool {
        self.0.try_acquire_exclusive(p)
    }
    unsafe fn release_exclusive(&self, p: &SimPlatform) {
        // SAFETY: the caller's.
        unsafe { self.0.release_exclusive(p) };
    }
    fn is_locked(&self, p: &SimPlatform) -> bool {
        self.0.is_locked(p)
    }
    fn is_locked_exclusive(&self, p: &SimPlatform) -> bool {
        self.0.is_locked_exclusive(p)
    }
}
