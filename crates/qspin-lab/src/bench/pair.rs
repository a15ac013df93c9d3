//! What a lock costs when nobody else wants it: a lock and an unlock in a tight loop.

use std::hint::black_box;
use std::time::Instant;

use crate::contender::Contender;

use super::station::Padded;
use super::stats::median;

/// Pairs in a batch: short enough that most batches see no interruption.
const PAIRS: u32 = 1_000;
const BATCHES: usize = 200;

/// Median cost of a pair, ns, over many short batches.
#[inline(never)]
#[must_use]
pub fn pair_ns<C: Contender>() -> f64 {
    let mut lock = Box::new(Padded(C::new()));
    lock.0.settle();
    let lock = black_box(&lock.0);
    let mut batches = [0.0; BATCHES];
    for batch in &mut batches {
        let start = Instant::now();
        for _ in 0..PAIRS {
            let held = lock.lock();
            // SAFETY: `held` was returned by this lock in this thread, one line above.
            unsafe { lock.unlock(held) };
        }
        *batch = start.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS);
    }
    median(&mut batches)
}
