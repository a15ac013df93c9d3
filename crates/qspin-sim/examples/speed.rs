//! How many simulated operations a second does this computer simulate, on one core?
//!
//! `cargo run --release -p qspin-sim --example speed` prints it for lock torture with 142 CPUs, the
//! greatest cell of document 002, and how much memory 4096 CPUs take. The name of a lock after `--`
//! limits it to that.

use qspin_sim::workload::{Locktorture, LongDelays, Workload};
use qspin_sim::{Failure, Hypervisor, Lock, Machine, Outcome, Placement, Scenario, simulate};

fn scenario(lock: Lock, cpus: u32, duration_ns: f64) -> Scenario {
    let machine = Machine::from_toml(include_str!("../machines/oracle-x5-4.toml"));
    let machine = machine.unwrap_or_else(|error| panic!("{error}"));
    let hypervisor: Result<Hypervisor, _> =
        toml::from_str(include_str!("../hypervisors/linux-bare-metal.toml"));
    Scenario {
        lock,
        cpus,
        duration_ns,
        watchdog_ns: 1e8,
        start_ns: 1e4,
        placement: Placement::Spread,
        pinning: Default::default(),
        hogs: 0,
        hog_pinning: Default::default(),
        hogs_even: false,
        tuning: Default::default(),
        workload: Workload::Locktorture(Locktorture {
            inside_ns: 10.0,
            outside_ns: 20.0,
            short_delay_ns: 2e3,
            long_delay_ns: 1e8,
            long_delays: LongDelays::Averaged,
        }),
        machine,
        hypervisor: Some(hypervisor.unwrap_or_else(|error| panic!("{error}"))),
    }
}

/// Seconds that this thread has had of a processor: other programs may use the computer, too.
fn seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = times.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e9
}

/// Kibibytes of memory that this process has.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// What 4096 CPUs take of this computer's memory. Before anything else runs: memory that is given
/// back stays with the process.
fn memory() {
    let before = resident_kib();
    let mut big = scenario(Lock::Native, 4096, 1e5);
    big.machine.shape.sockets = 64;
    big.machine.shape.cores_per_socket = 32;
    match simulate(&big, 1) {
        Ok(outcome) => println!(
            "4096 CPUs ran {} sections in {:.1} KiB of memory a CPU, stacks and all",
            outcome.sections.iter().sum::<u64>(),
            (resident_kib() - before) as f64 / 4096.0
        ),
        Err(failure) => println!("4096 CPUs: {failure}"),
    }
}

/// Operations that each lock is measured with: some locks do a hundred times as many in a microsecond as
/// others, as their waiters look at the lock again and again.
const OPERATIONS: f64 = 5e6;

/// How much simulated time takes so many operations, from a run that is not timed.
fn long_enough(lock: Lock) -> Result<f64, Failure> {
    let short = 1e6;
    let operations = simulate(&scenario(lock, 142, short), 1)?.operations as f64;
    Ok(short * (OPERATIONS / operations).clamp(1.0, 100.0))
}

/// The outcome of one lock, and how long it took.
fn measure(lock: Lock) -> Result<(Outcome, f64), Failure> {
    let scenario = scenario(lock, 142, long_enough(lock)?);
    let start = seconds();
    let outcome = simulate(&scenario, 1)?;
    Ok((outcome, seconds() - start))
}

fn main() {
    let only = std::env::args().nth(1);
    if only.is_none() {
        memory();
    }
    println!("SIMULATED lock torture on 142 CPUs of four sockets, one core of this computer");
    println!(
        "lock                  ops/us  million operations/s  events  switches per operation  hash"
    );
    for &lock in Lock::ALL {
        if only.as_ref().is_some_and(|only| only != lock.name()) {
            continue;
        }
        match measure(lock) {
            Ok((outcome, seconds)) => {
                let operations = outcome.operations as f64;
                println!(
                    "{:20} {:7.3} {:21.2} {:7.2} {:9.2}  {:016x}",
                    lock.name(),
                    outcome.throughput,
                    operations / seconds / 1e6,
                    outcome.engine_events as f64 / operations,
                    outcome.switches as f64 / operations,
                    outcome.hash,
                );
            }
            Err(failure) => println!("{:20} {failure}", lock.name()),
        }
    }
}
