//! What operations cost on a CPU whose cache has what they need.
//!
//! A lock tests what it has loaded, and a processor that predicts the outcome does not wait for the load: what such a load
//! costs is what it adds to the read-modify-write that it stands beside, and not how long it takes.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

use super::transfers::Chain;
use crate::bench::stats::median;

/// Operations of a round.
const TIMES: u32 = 4096;
/// Loads beside one read-modify-write.
const LOADS: usize = 8;

/// Nanoseconds of each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Alone {
    pub(super) load_hit: f64,
    pub(super) store: f64,
    pub(super) rmw_hit: f64,
    pub(super) fence: f64,
    pub(super) pause: f64,
    pub(super) clock: f64,
    /// Where lines can be driven out of the caches.
    pub(super) memory: Option<f64>,
}

/// Measures all of them, in so many rounds.
pub(super) fn measure(rounds: u32) -> Alone {
    let word = AtomicU64::new(0);
    let chain = Chain::new();
    chain.walk();
    let rmw = || {
        // ORDERING: pairs with nothing: its cost is measured, as that of the fence below.
        black_box(word.fetch_add(1, Ordering::AcqRel));
    };
    let rmw_hit = each(rounds, rmw);
    Alone {
        load_hit: ((with_loads(rounds, rmw) - rmw_hit) / LOADS as f64).max(0.0),
        store: each(rounds, || word.store(black_box(1), Ordering::Relaxed)),
        rmw_hit,
        fence: each(rounds, || {
            fence(Ordering::SeqCst);
            // Of fences in a row without anything between them the compiler leaves one.
            black_box(word.load(Ordering::Relaxed));
        }),
        pause: each(rounds, std::hint::spin_loop),
        clock: each(rounds, || {
            black_box(Instant::now());
        }),
        memory: from_memory(&chain, rounds),
    }
}

/// The median of so many measurements.
fn many(rounds: u32, measure: impl Fn() -> f64) -> f64 {
    median(&mut (0..rounds.max(1)).map(|_| measure()).collect::<Vec<f64>>())
}

/// What one of many in a row takes.
fn each(rounds: u32, one: impl Fn()) -> f64 {
    many(rounds, || {
        let begin = Instant::now();
        for _ in 0..TIMES {
            one();
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    })
}

/// What `one` and some loads take whose outcome is tested and always the same.
fn with_loads(rounds: u32, one: impl Fn()) -> f64 {
    let lines = [const { Line(AtomicU64::new(0)) }; LOADS];
    each(rounds, || {
        one();
        for Line(word) in black_box(&lines) {
            if word.load(Ordering::Relaxed) != 0 {
                unlikely();
            }
        }
    })
}

/// A word alone in its line.
#[repr(align(64))]
struct Line(AtomicU64);

#[cold]
fn unlikely() {
    black_box(());
}

#[cfg(target_arch = "x86_64")]
fn from_memory(chain: &Chain, rounds: u32) -> Option<f64> {
    Some(many(rounds, || {
        for line in chain.lines() {
            // SAFETY: every x86-64 processor has the instruction, and the line is the chain's.
            unsafe { core::arch::x86_64::_mm_clflush(line.cast()) };
        }
        // ORDERING: pairs with nothing: the lines are flushed before the walk begins.
        fence(Ordering::SeqCst);
        chain.walk()
    }))
}

#[cfg(not(target_arch = "x86_64"))]
fn from_memory(_: &Chain, _: u32) -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_takes_some_time_and_memory_more_than_a_hit() {
        let alone = measure(9);
        for ns in [alone.rmw_hit, alone.fence, alone.pause, alone.clock] {
            assert!(ns > 0.0 && ns.is_finite(), "{alone:?}");
        }
        assert!(alone.fence > alone.store, "of many fences one is left: {alone:?}");
        if let Some(memory) = alone.memory {
            assert!(memory > alone.load_hit && alone.load_hit.is_finite(), "{alone:?}");
        }
    }
}
