//! What a lock costs when no other thread wants it: a lock and an unlock in a tight loop.

use std::hint::black_box;
use std::time::Instant;

use crate::contender::Contender;

use super::station::Padded;

/// Pairs in a batch: short enough that many batches see no interruption.
const PAIRS: u32 = 1_000;
const BATCHES: usize = 200;

/// Cost of a pair, ns, in the fastest of many short batches: nothing is random in an uncontended
/// lock, so whatever makes a batch slower (an interrupt, a busy sibling thread) is not the lock.
#[inline(never)]
pub fn pair_ns<C: Contender>() -> f64 {
    let mut lock = Box::new(Padded(C::new()));
    lock.0.settle();
    let lock = black_box(&lock.0);
    let mut fastest = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..PAIRS {
            let held = lock.lock();
            // SAFETY: `held` was returned by this lock in this thread, one line above.
            unsafe { lock.unlock(held) };
        }
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    fastest * 1e9 / f64::from(PAIRS)
}
