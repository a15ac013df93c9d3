//! What does each way to release a queued lock cost? The table of `docs/notes/algorithms.md`.
//!
//! `cargo run --release -p qspin --example release_forms`
//!
//! Every form acquires by the same 32-bit compare-exchange. Forms are interleaved: each round
//! times every form once, in tight succession and with 50 ns of work between a release and the
//! next acquisition. Printed is the fastest round: nothing is random in an uncontended pair, so
//! whatever makes a round slower is not the lock.

use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Instant;

const ROUNDS: usize = 500;
const PAIRS: u32 = 1000;

/// Alone on its cache lines.
#[repr(align(128))]
struct Alone(AtomicU32);

static ALONE: Alone = Alone(AtomicU32::new(0));
static WORD: &AtomicU32 = &ALONE.0;

#[inline(always)]
fn acquire() {
    let _ = black_box(WORD).compare_exchange(0, 1, Acquire, Relaxed);
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
            // SAFETY: one byte of a static that no other thread uses, outside Rust's sight.
            unsafe {
                asm!("mov byte ptr [{}], 0", in(reg) WORD.as_ptr(), options(nostack, preserves_flags));
            }
        })
    }),
];

fn main() {
    // The chain is as long as 50 ns take, measured on a long one.
    let step = (0..ROUNDS).map(|_| time(1000, || ())).fold(f64::INFINITY, f64::min) / 1000.0;
    let outside = (50.0 / step) as u32;

    let mut tight = [f64::INFINITY; FORMS.len()];
    let mut apart = tight;
    for _ in 0..ROUNDS {
        for (index, (_, form)) in FORMS.iter().enumerate() {
            tight[index] = tight[index].min(form(0));
            apart[index] = apart[index].min(form(outside));
        }
    }

    println!("| release | tight, ns | over the floor | 50 ns apart, ns | over the floor |");
    println!("|---|--:|--:|--:|--:|");
    for (index, (name, _)) in FORMS.iter().enumerate() {
        println!(
            "| {name} | {:.2} | × {:.2} | {:.2} | + {:.2} ns |",
            tight[index],
            tight[index] / tight[0],
            apart[index],
            apart[index] - apart[0],
        );
    }
}
