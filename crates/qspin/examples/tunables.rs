//! What is each tunable's default worth? The evidence beside the numbers in
//! `qspin_core::tuning`.
//!
//! `cargo run --release -p qspin --example tunables`
//!
//! Each tunable is set to several values, all else at its default, and all of them are measured
//! in turn, round after round. Printed is the median throughput over that of the default, and the
//! 95 % interval of the median of the ratios that the rounds gave.

use std::arch::asm;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use lock_api::RawMutex;
use qspin::events::NoEvents;
use qspin::platform::{StaticTuning, Threads};
use qspin_core::queued::NativeLock;
use qspin_core::raw::Raw;
use qspin_core::simple::SimpleLock;
use qspin_core::tuning::Tuning;
use qspin_core::yielding::YieldLock;

const ROUNDS: usize = 41;
const PHASE: Duration = Duration::from_millis(20);

/// Threads, steps inside, steps outside.
type Load = (usize, u32, u32);
type Run = fn(Load) -> f64;

/// A tuning whose field number `FIELD` has the value `VALUE`.
struct With<const FIELD: u32, const VALUE: u32>;

const OWNER: u32 = 0;
const PAUSES: u32 = 4;
const PENDING: u32 = 1;
const SIMPLE: u32 = 2;
const YIELD: u32 = 3;

impl<const FIELD: u32, const VALUE: u32> StaticTuning for With<FIELD, VALUE> {
    const TUNING: &'static Tuning = &{
        let mut tuning = Tuning::DEFAULT;
        match FIELD {
            OWNER => tuning.owner_looks = VALUE,
            PAUSES => tuning.owner_pauses = VALUE,
            PENDING => tuning.pending_looks = VALUE,
            SIMPLE => tuning.simple_looks = VALUE,
            _ => tuning.yield_looks = VALUE,
        }
        tuning
    };
}

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
    thread::scope(|scope| {
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
    operations.into_inner() as f64 / PHASE.as_secs_f64()
}

macro_rules! values {
    ($lock:ident, $field:ident: $($value:literal)*) => {
        [$((
            $value,
            run::<Raw<$lock<AtomicU32>, Threads<NoEvents, With<$field, $value>>>> as Run,
        )),*]
    };
}

fn compare(name: &str, default: u32, loads: &[Load], values: &[(u32, Run)]) {
    let reference = values.iter().position(|(value, _)| *value == default).expect("the default");
    println!("\n| {name} | threads | steps inside, outside | over the default | 95 % interval |");
    println!("|--:|--:|---|--:|---|");
    for load in loads {
        let mut ratios = vec![Vec::new(); values.len()];
        for _ in 0..ROUNDS {
            let round: Vec<f64> = values.iter().map(|(_, run)| run(*load)).collect();
            for (index, ratios) in ratios.iter_mut().enumerate() {
                ratios.push(round[index] / round[reference]);
            }
        }
        for ((value, _), mut ratios) in values.iter().zip(ratios) {
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

fn main() {
    let default = Tuning::DEFAULT;
    let two = [(2, 0, 0), (2, 300, 300), (2, 3000, 3000)];
    compare("owner_looks", default.owner_looks, &two, &values!(NativeLock, OWNER: 0 1 2 4 6 8));
    compare("owner_pauses", default.owner_pauses, &two, &values!(NativeLock, PAUSES: 1 2 4 8));
    compare(
        "pending_looks",
        default.pending_looks,
        &two,
        &values!(NativeLock, PENDING: 1 16 64 512 4096),
    );
    let crowd = [(2, 300, 300), (8, 300, 300), (8, 3000, 3000)];
    compare(
        "simple_looks",
        default.simple_looks,
        &crowd,
        &values!(SimpleLock, SIMPLE: 1 16 64 256 1024),
    );
    compare(
        "yield_looks",
        default.yield_looks,
        &crowd,
        &values!(YieldLock, YIELD: 1 16 64 256 1024),
    );
}
