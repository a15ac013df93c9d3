//! What it takes to load a line that another CPU has just written.
//!
//! One thread writes some lines, and says so; the other one, on another CPU, then loads them one after the
//! other: each tells which is next, in an order that no prefetcher guesses, so that the loads cannot
//! overlap. That is the distance of the simulator's model, neither a round trip nor a storm.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use crate::bench::affinity::{Pin, Placement};

/// Lines of a round: they and their neighbours fit into the smallest cache.
pub(super) const LINES: usize = 96;
/// From one to the next in memory: beyond the neighbour that a prefetcher would bring along.
const STRIDE: usize = 256 / 4;
/// A CPU that has not answered by then will not.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Polls before a waiter lets another thread run: on a busy machine the other one may need this very CPU.
const LOOKS: u32 = 20_000;

/// Lines, each of which names the next.
pub(super) struct Chain(Box<[AtomicU32]>);

impl Chain {
    pub(super) fn new() -> Self {
        // One more stride, so that no line is beside something else.
        let words = (0..(LINES + 1) * STRIDE).map(|_| AtomicU32::new(0));
        let chain = Self(words.collect());
        chain.write();
        chain
    }

    /// Writes every line: the calling CPU has them then, and no other.
    pub(super) fn write(&self) {
        // 37 has no common divisor with the number of lines, so this goes round all of them.
        let mut at = 0;
        for _ in 0..LINES {
            let next = (at + 37) % LINES;
            self.0[at * STRIDE].store((next * STRIDE) as u32, Ordering::Relaxed);
            at = next;
        }
    }

    /// Loads every line, one after the other, and says how long each took, in nanoseconds.
    pub(super) fn walk(&self) -> f64 {
        let begin = Instant::now();
        let mut at = 0;
        for _ in 0..LINES {
            at = self.0[at].load(Ordering::Relaxed) as usize;
        }
        std::hint::black_box(at);
        begin.elapsed().as_secs_f64() * 1e9 / LINES as f64
    }

    /// Where the lines are.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn lines(&self) -> impl Iterator<Item = *const AtomicU32> + '_ {
        (0..LINES).map(|line| std::ptr::from_ref(&self.0[line * STRIDE]))
    }
}

/// Whose turn it is: an even number is the writer's. Alone in its line.
#[repr(align(256))]
struct Turn(AtomicU64);

impl Turn {
    /// Waits for `number`; false if it does not come.
    fn wait(&self, number: u64, since: Instant) -> bool {
        let mut looks = 0_u32;
        // ORDERING: Acquire pairs with the Release of the other thread, whose turn it was.
        while self.0.load(Ordering::Acquire) != number {
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                if since.elapsed() > TIMEOUT {
                    return false;
                }
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }
}

/// Nanoseconds for a line from CPU `from` to CPU `to`: the median of so many rounds.
pub(super) fn between(from: usize, to: usize, rounds: u32) -> anyhow::Result<f64> {
    let chain = Chain::new();
    let turn = Turn(AtomicU64::new(0));
    let since = Instant::now();
    let pinned = |cpu: usize| Placement::new(Pin::A, vec![cpu]).settle(0);
    let mut times = thread::scope(|scope| {
        let writer = || {
            pinned(from);
            for round in 0..u64::from(rounds) {
                if !turn.wait(2 * round, since) {
                    return;
                }
                chain.write();
                // ORDERING: Release pairs with the Acquire of `wait`: the lines are written.
                turn.0.store(2 * round + 1, Ordering::Release);
            }
        };
        let reader = || {
            pinned(to);
            let mut times = Vec::new();
            for round in 0..u64::from(rounds) {
                if !turn.wait(2 * round + 1, since) {
                    break;
                }
                times.push(chain.walk());
                // ORDERING: Release pairs with the Acquire of `wait`: the lines are read.
                turn.0.store(2 * round + 2, Ordering::Release);
            }
            times
        };
        let cannot = |why: std::io::Error| anyhow!("cannot make a thread: {why}");
        let reader = thread::Builder::new().spawn_scoped(scope, reader).map_err(cannot)?;
        thread::Builder::new().spawn_scoped(scope, writer).map_err(cannot)?;
        reader.join().map_err(|_| anyhow!("the measuring thread failed"))
    })?;
    if times.len() < rounds as usize {
        bail!(
            "CPU {from} and CPU {to} did not answer each other for {} s: are they online?",
            TIMEOUT.as_secs()
        );
    }
    Ok(crate::bench::stats::median(&mut times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_chain_goes_through_all_of_its_lines_and_back_to_the_first() {
        let chain = Chain::new();
        let mut seen = BTreeSet::new();
        let mut at = 0;
        while seen.insert(at) {
            at = chain.0[at].load(Ordering::Relaxed) as usize;
        }
        assert_eq!((seen.len(), at), (LINES, 0));
        assert!(chain.walk() > 0.0);
    }
}
