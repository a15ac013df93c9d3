//! What does each way to release a queued lock cost? The table of `docs/native.md`.
//!
//! `cargo run --release -p qspin --example release_forms`
//!
//! Every form acquires by the same 32-bit compare-exchange. Forms are interleaved: each round
//! times every form once, in tight succession and with about 50 ns of work between a release
//! and the next acquisition; printed is the median of the rounds, net of the work.

use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Instant;

const ROUNDS: usize = 101;
const PAIRS: u32 = 20_000;

static WORD: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
fn acquire() {
    let _ = black_box(&WORD).compare_exchange(0, 1, Acquire, Relaxed);
}

/// A chain of multiplications: work that touches no memory, so that it neither hides in the store
/// buffer nor waits for it.
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

/// Nanoseconds of one pass of `pair`, with `outside` steps of work after it.
#[inline(always)]
fn time(outside: u32, pair: impl Fn()) -> f64 {
    let start = Instant::now();
    for _ in 0..PAIRS {
        pair();
        work(outside);
    }
    start.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

type Form = (&'static str, fn(u32) -> f64);

const FORMS: [Form; 6] = [
    ("32-bit store (the floor; not for a word with a tail)", |outside| {
        time(outside, || {
            acquire();
            WORD.store(0, Release);
        })
    }),
    ("subtraction, `lock sub` (chosen)", |outside| {
        time(outside, || {
            acquire();
            WORD.fetch_sub(1, Release);
        })
    }),
    ("subtraction with its result, `lock xadd`", |outside| {
        time(outside, || {
            acquire();
            black_box(WORD.fetch_sub(1, Release));
        })
    }),
    ("compare-exchange of the whole word", |outside| {
        time(outside, || {
            acquire();
            let _ = WORD.compare_exchange(1, 0, Release, Relaxed);
        })
    }),
    ("exchange", |outside| {
        time(outside, || {
            acquire();
            WORD.swap(0, Release);
        })
    }),
    ("byte store (as Linux; undefined in Rust, here by assembly)", |outside| {
        time(outside, || {
            acquire();
            // SAFETY: one byte of a static that nobody else uses, outside Rust's sight.
            unsafe {
                asm!("mov byte ptr [{}], 0", in(reg) WORD.as_ptr(), options(nostack, preserves_flags));
            }
        })
    }),
];

fn main() {
    // Steps of work that take about 50 ns here. Twice, since chains of different pairs overlap.
    let mut outside = 60;
    for _ in 0..2 {
        let took = median((0..ROUNDS).map(|_| time(outside, || ())).collect());
        outside = (f64::from(outside) * 50.0 / took) as u32;
    }

    let mut tight = vec![Vec::new(); FORMS.len()];
    let mut apart = vec![Vec::new(); FORMS.len()];
    let mut work = Vec::new();
    for _ in 0..ROUNDS {
        for (index, (_, form)) in FORMS.iter().enumerate() {
            tight[index].push(form(0));
            apart[index].push(form(outside));
        }
        work.push(time(outside, || ()));
    }
    let work = median(work);
    let tight: Vec<f64> = tight.into_iter().map(median).collect();
    let apart: Vec<f64> = apart.into_iter().map(|times| median(times) - work).collect();

    println!("| release | tight, ns | ratio | {work:.0} ns apart, ns net | ratio |");
    println!("|---|--:|--:|--:|--:|");
    for (index, (name, _)) in FORMS.iter().enumerate() {
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} |",
            tight[index],
            tight[index] / tight[0],
            apart[index],
            apart[index] / apart[0],
        );
    }
}
