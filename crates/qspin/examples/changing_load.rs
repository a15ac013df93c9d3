//! How soon the default mutex is right for a load that has just changed, beside the standard library's.
//!
//! ```text
//! cargo run --release --package qspin --example changing_load -- [PAIRS [SEED] | LOAD LOAD]
//! ```
//! Two threads have a lock in turns; every 100 ms the load changes from one of a pair to the other and back. The pairs are
//! drawn: 20 ns to 20 µs inside, log-uniform, and nothing or 0.1 to 20 times as much outside. Another thread reads what
//! they have done once in a millisecond. For each load it prints what is done in the second half of the 100 ms, in
//! acquisitions a millisecond, and after how many milliseconds the median of 50 changes is within 10 % of that for the
//! first time, and for good.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

/// The two locks take turns, so many times, of so many changes to each load.
const TURNS: usize = 10;
const CHANGES: usize = 5;
const PHASE_MS: usize = 100;
/// From here on what is done is that of the long run.
const SETTLED_MS: usize = PHASE_MS / 2;
const THREADS: usize = 2;
const TICK: Duration = Duration::from_millis(1);

/// A load, in steps of [`work`].
#[derive(Clone, Copy)]
struct Load {
    inside: u64,
    outside: u64,
}

/// Lengths in nanoseconds, drawn with xorshift.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn log_uniform(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.unit())
    }

    /// What is done inside and outside.
    fn load(&mut self) -> [f64; 2] {
        let inside = self.log_uniform(20.0, 20_000.0);
        let times = if self.unit() < 0.25 { 0.0 } else { self.log_uniform(0.1, 20.0) };
        [inside, inside * times]
    }
}

/// So many steps that the compiler cannot leave out.
fn work(steps: u64) {
    for step in 0..steps {
        std::hint::black_box(step);
    }
}

/// The nanoseconds of a step of [`work`].
fn step_ns() -> f64 {
    const STEPS: u64 = 2_000_000;
    let once = || {
        let begin = Instant::now();
        work(STEPS);
        begin.elapsed().as_nanos() as f64 / STEPS as f64
    };
    (0..9).map(|_| once()).fold(f64::INFINITY, f64::min)
}

trait Lock: Sync {
    fn with(&self, section: impl FnOnce());
}

impl Lock for qspin::Mutex<()> {
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock();
        section();
    }
}

impl Lock for std::sync::Mutex<()> {
    fn with(&self, section: impl FnOnce()) {
        let _guard = self.lock().expect("no section panics");
        section();
    }
}

#[derive(Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// Adds what is done in each millisecond after a change to either load, a list for each change.
fn measure(lock: &impl Lock, loads: [Load; 2], rates: &mut [Vec<Vec<f64>>; 2]) {
    let (stops, at) = (AtomicBool::new(false), AtomicUsize::new(0));
    let done: [Done; THREADS] = Default::default();
    std::thread::scope(|scope| {
        for done in &done {
            scope.spawn(|| {
                while !stops.load(Relaxed) {
                    let load = loads[at.load(Relaxed)];
                    lock.with(|| work(load.inside));
                    done.0.store(done.0.load(Relaxed) + 1, Relaxed);
                    work(load.outside);
                }
            });
        }
        let sum = || done.iter().map(|done| done.0.load(Relaxed)).sum::<u64>();
        // The first change to each is that of threads which have just begun.
        for change in 0..2 * (CHANGES + 1) {
            let to = change % 2;
            at.store(to, Relaxed);
            let mut each = Vec::with_capacity(PHASE_MS);
            let begin = Instant::now();
            let (mut when, mut before) = (begin, sum());
            for tick in 1..=PHASE_MS as u32 {
                std::thread::sleep((TICK * tick).saturating_sub(begin.elapsed()));
                let (now, did) = (Instant::now(), sum());
                let took_ms = now.duration_since(when).as_secs_f64() * 1000.0;
                each.push((did - before) as f64 / took_ms);
                (when, before) = (now, did);
            }
            if change >= 2 {
                rates[to].push(each);
            }
        }
        stops.store(true, Relaxed);
    });
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What is done in the long run, and the milliseconds until it is within 10 % of that for the first time, and for good.
fn back(changes: &[Vec<f64>]) -> (f64, usize, usize) {
    let each: Vec<f64> =
        (0..PHASE_MS).map(|ms| median(changes.iter().map(|each| each[ms]).collect())).collect();
    let settled = median(each[SETTLED_MS..].to_vec());
    let is_back = |rate: &f64| *rate >= 0.9 * settled;
    let first = each.iter().position(is_back).unwrap_or(PHASE_MS);
    let last = each[..SETTLED_MS].iter().rposition(|rate| !is_back(rate)).map_or(0, |ms| ms + 1);
    (settled, first, last)
}

/// The pairs of loads that these arguments ask for.
fn pairs(arguments: &[String]) -> Option<Vec<[[f64; 2]; 2]>> {
    let number = |text: &String| text.parse::<u64>().ok().filter(|number| *number > 0);
    // At most a millisecond, so that a bucket is not empty.
    let length = |text: &str| text.parse().ok().filter(|ns| (0.0..=1e6).contains(ns));
    let load = |text: &String| {
        let (inside, outside) = text.split_once('/')?;
        Some([length(inside)?, length(outside)?])
    };
    let drawn = |pairs, seed: u64| {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..16).for_each(|_| _ = dice.unit());
        (0..pairs).map(|_| [dice.load(), dice.load()]).collect()
    };
    match arguments {
        [] => Some(drawn(8, 1)),
        [pairs] => Some(drawn(number(pairs)?, 1)),
        [one, other] if one.contains('/') => Some(vec![[load(one)?, load(other)?]]),
        [pairs, seed] => Some(drawn(number(pairs)?, number(seed)?)),
        _ => None,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(pairs) = pairs(&arguments) else {
        eprintln!(
            "changing_load: give how many pairs of loads and a seed, as in `changing_load 8 1`, or two loads in \
             nanoseconds inside and outside, as in `changing_load 200/50 10000/30000`"
        );
        std::process::exit(2);
    };
    let step_ns = step_ns();
    println!(
        "| to inside, outside | from | mutex: a ms | back after ms | for good | std: a ms | back after ms | for good |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    for drawn in pairs {
        let loads = drawn.map(|[inside, outside]| Load {
            inside: (inside / step_ns) as u64,
            outside: (outside / step_ns) as u64,
        });
        let locks = (qspin::Mutex::new(()), std::sync::Mutex::new(()));
        let (mut ours, mut theirs) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for turn in 0..TURNS {
            for with_ours in [turn % 2 == 0, turn % 2 != 0] {
                if with_ours {
                    measure(&locks.0, loads, &mut ours);
                } else {
                    measure(&locks.1, loads, &mut theirs);
                }
            }
        }
        let name = |[inside, outside]: [f64; 2]| format!("{inside:.0} ns, {outside:.0} ns");
        for to in 0..2 {
            let columns = [&ours[to], &theirs[to]].map(|rates| {
                let (settled, first, last) = back(rates);
                format!("{settled:.0} | {first} | {last}")
            });
            println!("| {} | {} | {} |", name(drawn[to]), name(drawn[1 - to]), columns.join(" | "));
        }
    }
}
