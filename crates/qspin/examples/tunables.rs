//! What is each tunable's default worth? The evidence beside the numbers in
//! `qspin_core::tuning`.
//!
//! `cargo run --release -p qspin --example tunables`
//!
//! Each tunable is set to several values, all else at its default, and all of them are measured
//! in turn, round after round. Printed is the median throughput over that of the default, and the
//! 95 % interval of the median of the ratios that the rounds gave.
//!
//! `-- queue_polls head_polls` measures these two alone. Those of the NUMA order move nothing on a machine with one
//! node, unless `QSPIN_TOPOLOGY=2x1x1` makes up two.

use std::arch::asm;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use lock_api::RawMutex;
use qspin::platform::topology;
use qspin::tuning::{self, Tunable, Tuning};

const ROUNDS: usize = 41;
const PHASE: Duration = Duration::from_millis(20);

/// Threads, steps inside, steps outside.
type Load = (usize, u32, u32);

/// A tunable, the lock that shows its effect, under which loads, and the values to compare.
struct Experiment {
    tunable: &'static str,
    run: fn(Load) -> f64,
    loads: &'static [Load],
    values: &'static [u32],
}

/// As many threads as CPUs have: where the fast and the pending path matter.
const TWO: &[Load] = &[(2, 0, 0), (2, 300, 300), (2, 3000, 3000)];
/// More threads than CPUs, waiters that spin.
const CROWD: &[Load] = &[(2, 300, 300), (8, 300, 300), (8, 3000, 3000)];
/// More threads than CPUs, waiters that halt: 1 µs inside, nothing and 2 µs outside.
const HALTING: &[Load] = &[(8, 1000, 0), (8, 1000, 2000), (32, 1000, 0), (32, 1000, 2000)];

macro_rules! experiments {
    ($($lock:ident $loads:ident $tunable:ident: $($value:literal)*;)*) => {
        &[$(Experiment {
            tunable: stringify!($tunable),
            run: run::<qspin::$lock::RawMutex>,
            loads: $loads,
            values: &[$($value),*],
        }),*]
    };
}

const EXPERIMENTS: &[Experiment] = experiments! {
    native TWO owner_polls: 0 1 2 4 6 8;
    native TWO owner_pauses: 1 2 4 8;
    native TWO pending_polls: 1 16 64 512 4096;
    simple CROWD simple_polls: 1 16 64 256 1024;
    yielding CROWD yield_polls: 1 16 64 256 1024;
    backoff TWO backoff_cap: 1 4 16 64 256 1024;
    simple CROWD heed_preempted: 0 1;
    paravirt_queued HALTING heed_preempted: 0 1;
    paravirt_queued HALTING queue_yields: 0 1 4;
    paravirt_queued HALTING adaptive: 0 1 2 3;
    cna CROWD numa_threshold_ns: 1000 100000 1000000 10000000;
    cna CROWD numa_skip_bits: 0 4 7 10;
    paravirt HALTING queue_polls: 1 16 64 256 1024 32768;
    paravirt HALTING head_polls: 1 64 256 1024 32768;
    paravirt_queued HALTING pending_wait_polls: 1 256 1024 4096;
    paravirt_stealing HALTING steal_polls: 0 16 64 256;
    paravirt HALTING cull_polls: 0 8 32 128 512;
    paravirt HALTING awake_polls: 64 256 1024 4096 16384;
    paravirt HALTING forbid_polls: 1 8 64 256 1024;
    paravirt HALTING rotate_turns: 8 64 512 4096;
    paravirt HALTING rotate_us: 100 500 2000 10000;
    paravirt HALTING yield_turns: 0 1 8 32 256;
};

/// A chain of multiplications: as long in every copy of the loop that the compiler makes, which
/// work that goes through memory is not.
#[inline(always)]
fn work(steps: u32) {
    let mut product = 1u64;
    for _ in 0..steps {
        // SAFETY: one instruction on a register.
        unsafe {
            asm!("imul {0}, {0}", inout(reg) product, options(nomem, nostack, pure));
        }
    }
    black_box(product);
}

/// Alone on its cache lines.
#[repr(align(128))]
struct Alone<T>(T);

/// Operations a second of all threads.
fn run<R: RawMutex + Sync>((threads, inside, outside): Load) -> f64 {
    let (lock, stop) = (Box::new(Alone(R::INIT)), Box::new(Alone(AtomicBool::new(false))));
    let (lock, stop) = (&lock.0, &stop.0);
    let (operations, start) = (AtomicU64::new(0), Barrier::new(threads + 1));
    let elapsed = thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                let mut count = 0;
                while !stop.load(Relaxed) {
                    let held = lock.lock();
                    work(inside);
                    // SAFETY: locked two lines above.
                    unsafe { lock.unlock(held) };
                    work(outside);
                    count += 1;
                }
                operations.fetch_add(count, Relaxed);
            });
        }
        start.wait();
        let began = Instant::now();
        thread::sleep(PHASE);
        stop.store(true, Relaxed);
        began.elapsed()
    });
    operations.into_inner() as f64 / elapsed.as_secs_f64()
}

/// Measures with other tunables in force.
fn run_with(tuning: &'static Tuning, experiment: &Experiment, load: Load) -> f64 {
    tuning::set(tuning);
    let operations = (experiment.run)(load);
    tuning::set(&Tuning::DEFAULT);
    operations
}

fn compare(experiment: &Experiment, tunable: &Tunable) {
    let default = (tunable.get)(&Tuning::DEFAULT);
    // The default is measured as the others are, in its place among them.
    let mut values = experiment.values.to_vec();
    if let Err(place) = values.binary_search(&default) {
        values.insert(place, default);
    }
    let tunings: Vec<&'static Tuning> = values
        .iter()
        .map(|value| {
            let mut tuning = Tuning::DEFAULT;
            (tunable.set)(&mut tuning, *value);
            &*Box::leak(Box::new(tuning))
        })
        .collect();
    let reference = values.binary_search(&default).expect("the default is among the values");
    println!(
        "\n| {} | threads | steps inside, outside | over the default | 95 % interval |",
        tunable.name
    );
    println!("|--:|--:|---|--:|---|");
    for load in experiment.loads {
        let mut ratios = vec![Vec::new(); values.len()];
        for _ in 0..ROUNDS {
            let round: Vec<f64> =
                tunings.iter().map(|tuning| run_with(tuning, experiment, *load)).collect();
            for (index, ratios) in ratios.iter_mut().enumerate() {
                ratios.push(round[index] / round[reference]);
            }
        }
        for (value, mut ratios) in values.iter().zip(ratios) {
            ratios.sort_by(f64::total_cmp);
            // Order statistics that enclose the median with 95 %: n/2 -+ 0.98 sqrt(n).
            let spread = (0.98 * (ROUNDS as f64).sqrt()).ceil() as usize;
            let middle = ROUNDS / 2;
            println!(
                "| {value}{} | {} | {}, {} | {:.2} | {:.2} – {:.2} |",
                if *value == default { " (default)" } else { "" },
                load.0,
                load.1,
                load.2,
                ratios[middle],
                ratios[middle - spread],
                ratios[middle + spread],
            );
        }
    }
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let known = |name: &String| EXPERIMENTS.iter().any(|experiment| experiment.tunable == name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names: Vec<_> = EXPERIMENTS.iter().map(|experiment| experiment.tunable).collect();
        eprintln!("tunables: no experiment for '{unknown}'; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    // The order goes by caches and distances from now on.
    let _ = topology::in_force();
    for experiment in EXPERIMENTS {
        if wanted.is_empty() || wanted.iter().any(|name| name == experiment.tunable) {
            let tunable = Tuning::named(experiment.tunable);
            compare(experiment, tunable.expect("an experiment names a tunable"));
        }
    }
    ExitCode::SUCCESS
}
