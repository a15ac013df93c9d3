//! A dense number for every thread that waits.
//!
//! # Problem
//! A tail has 16 bits to name a CPU. Threads come and go by the million, so a thread gets a number on demand,
//! the smallest free one, and gives it back when it ends.
//!
//! # Invariants
//! * **CPU-1** A bit of `Numbers` is set while some thread has that number, so no two threads
//!   have the same. What a thread did before it gave a number back happens before whatever the
//!   next one does with it (the bit is cleared with release, set with acquire).
//! * **CPU-2** `NUMBER` of a thread is 0 (none yet), its number plus 1, or `ENDING`. It leaves 0 by
//!   compare-exchange only, since a signal handler may number the thread at any moment.
//! * **CPU-3** A number starts with `nesting` 0 at its node: a thread that was killed in a queue may have left
//!   another value.
//! * **CPU-4** In the child of `fork` the number of a thread that was in a queue is never given out again. The
//!   tail of that queue's lock still names the thread's node, and a newcomer to the lock would write into what
//!   had become another thread's node.
//! * **CPU-5** In the child of `fork` the table of halted waiters is empty. Otherwise a lock made anew at the
//!   address of one that had a halted waiter would find that stale entry. Only a `fork` in a signal handler
//!   that interrupted a wait leaves the table alone.
//!
//! # Limits
//! Where the kernel has no memory for more threads than the first (`nodes.rs`), further threads get no number.
//! A thread whose key destructor has run (it is about to end) has no number any more, and acquires locks
//! without a node. A program that has used up the C library's first 32 thread-specific keys before this library
//! is loaded pays one allocation by the C library when a thread gets its number; in a signal handler that is
//! not async-signal-safe. A child made by a raw `fork` system call, behind the C library's back, inherits all
//! numbers as taken; it still works, with fewer numbers.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use qspin_core::node::NodeId;
use qspin_core::platform::CpuId;

use super::nodes;
use super::system::{load, run_status, threads};

/// A set of numbers below [`CpuId::LIMIT`], given out smallest first.
pub(super) struct Numbers<const WORDS: usize> {
    pub(super) taken: [AtomicU64; WORDS],
    limit: u32,
}

impl<const WORDS: usize> Numbers<WORDS> {
    pub(super) const fn new(limit: u32) -> Self {
        assert!(limit <= WORDS as u32 * 64);
        Self { taken: [const { AtomicU64::new(0) }; WORDS], limit }
    }

    /// Takes the smallest free number. Lock-free, async-signal-safe.
    pub(super) fn take(&self) -> Option<u32> {
        for (index, word) in self.taken.iter().enumerate() {
            let mut seen = word.load(Relaxed);
            loop {
                let bit = (!seen).trailing_zeros();
                let number = index as u32 * 64 + bit;
                if bit == 64 {
                    break;
                }
                if number >= self.limit {
                    return None;
                }
                // CPU-1. ORDERING: Acquire pairs with the Release of `give_back`.
                match word.compare_exchange_weak(seen, seen | 1 << bit, Acquire, Relaxed) {
                    Ok(_) => return Some(number),
                    Err(now) => seen = now,
                }
            }
        }
        None
    }

    fn give_back(&self, number: u32) {
        // CPU-1. ORDERING: Release pairs with the Acquire of `take`.
        self.taken[number as usize / 64].fetch_and(!(1 << (number % 64)), Release);
    }

    pub(super) fn in_use(&self) -> u32 {
        self.taken.iter().map(|word| word.load(Relaxed).count_ones()).sum()
    }
}

pub(super) static NUMBERS: Numbers<{ CpuId::LIMIT.div_ceil(64) as usize }> =
    Numbers::new(CpuId::LIMIT);

/// Value of `NUMBER` of a thread that has given its number back for good.
pub(super) const ENDING: u32 = u32::MAX;

thread_local! {
    // An atomic although no other thread sees it: a signal handler of this thread does (CPU-2).
    // Without a destructor, so that an access is one load relative to the thread pointer.
    pub(super) static NUMBER: AtomicU32 = const { AtomicU32::new(0) };
}

/// The number of this thread; `None` if all are taken, or if the thread is about to end.
#[inline]
#[must_use]
pub fn current() -> Option<CpuId> {
    match NUMBER.with(|number| number.load(Relaxed)) {
        0 => assign(),
        ENDING => None,
        number => CpuId::new(number - 1),
    }
}

/// How many numbers are in use. A number belongs to each live thread of this process that has waited, or has
/// released a lock with a waiter. (The first release of a default lock in a process takes one, too.)
#[must_use]
pub fn in_use() -> u32 {
    NUMBERS.in_use()
}

#[cold]
fn assign() -> Option<CpuId> {
    load::register();
    let taken = NUMBERS.take()?;
    if !CpuId::new(taken).is_some_and(nodes::prepare) {
        NUMBERS.give_back(taken);
        return None;
    }
    let won = NUMBER
        .with(|number| number.compare_exchange(0, taken + 1, Relaxed, Relaxed).map(|_| taken + 1));
    match won {
        Ok(number) => {
            let cpu = CpuId::new(taken)?;
            if let Some(nesting) = nesting_of(taken) {
                // CPU-3: no other thread has this number (CPU-1), and this thread is not in a queue yet.
                nesting.store(0, Relaxed);
            }
            if threads::give_back_at_end(number) {
                run_status::enter(taken);
            }
            Some(cpu)
        }
        Err(number) => {
            // A signal handler came in between and numbered this thread.
            NUMBERS.give_back(taken);
            if number == ENDING { None } else { CpuId::new(number - 1) }
        }
    }
}

/// The destructor of this thread's number: from now on it has none.
pub(super) fn end(number: u32) {
    NUMBER.with(|number| number.store(ENDING, Relaxed));
    run_status::leave(number);
    NUMBERS.give_back(number);
}

pub(super) fn nesting_of(number: u32) -> Option<&'static AtomicU32> {
    let first = NodeId::new(CpuId::new(number)?, 0)?;
    Some(&nodes::node(first).nesting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_reused_smallest_first() {
        let numbers = Numbers::<2>::new(70);
        for expected in 0..70 {
            assert_eq!(numbers.take(), Some(expected));
        }
        assert_eq!(numbers.take(), None);
        numbers.give_back(65);
        numbers.give_back(3);
        assert_eq!(numbers.take(), Some(3));
        assert_eq!(numbers.take(), Some(65));
        assert_eq!(numbers.take(), None);
    }
}
