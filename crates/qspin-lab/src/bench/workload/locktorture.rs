//! Linux's locktorture at v5.12: mostly empty critical sections, now and then a delay of 2 µs
//! (once in 4N acquisitions of N writers), very rarely one of 100 ms (once in 200000N).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bench::busy::busy;
use crate::bench::station::count;

use super::Work;

/// The short delay, in nanoseconds.
pub const SHORT_NS: u64 = 2_000;
/// One acquisition in this many times the number of writers has the short delay.
pub const SHORT_ONE_IN: u64 = 4;
/// The long delay, in nanoseconds.
pub const LONG_NS: u64 = 100_000_000;
/// One acquisition in this many times the number of writers has the long delay.
pub const LONG_ONE_IN: u64 = 200_000;

/// The delays in steps of [`busy`].
#[derive(Debug, Clone, Copy)]
pub struct Locktorture {
    /// Steps of the short delay.
    pub short: u64,
    /// Steps of the long delay.
    pub long: u64,
    /// Seed of the threads' dice.
    pub seed: u64,
}

/// A writer's dice.
pub struct Writer {
    random: fastrand::Rng,
    writers: u64,
    value: u64,
}

impl Work for Locktorture {
    type Shared = AtomicU64;
    type Local = Writer;

    fn shared(&self) -> AtomicU64 {
        AtomicU64::new(0)
    }

    fn local(&self, index: usize, threads: usize) -> Writer {
        Writer {
            random: fastrand::Rng::with_seed(self.seed ^ (index as u64 + 1)),
            writers: threads as u64,
            value: index as u64 + 1,
        }
    }

    #[inline(always)]
    fn critical(&self, shared: &AtomicU64, writer: &mut Writer) {
        count(shared);
        if writer.random.u64(..).is_multiple_of(writer.writers * LONG_ONE_IN) {
            writer.value = busy(writer.value, self.long);
        }
        if writer.random.u64(..).is_multiple_of(writer.writers * SHORT_ONE_IN) {
            writer.value = busy(writer.value, self.short);
        }
    }

    #[inline(always)]
    fn outside(&self, writer: &mut Writer) {
        std::hint::black_box(&writer.value);
    }

    fn counted(&self, shared: &AtomicU64) -> u64 {
        shared.load(Ordering::Relaxed)
    }
}

/// The line that locktorture prints about its writers: totals of all threads, and `???` where one
/// of them did more than twice as much as another.
pub fn summary(writes: &[u64]) -> String {
    let total: u64 = writes.iter().sum();
    let most = writes.iter().copied().max().unwrap_or(0);
    let least = writes.iter().copied().min().unwrap_or(0);
    let mark = if most / 2 > least { "???" } else { "" };
    format!("Writes:  Total: {total}  Max/Min: {most}/{least} {mark}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_marks_where_a_writer_did_more_than_twice_as_much() {
        assert_eq!(summary(&[10, 5]), "Writes:  Total: 15  Max/Min: 10/5");
        assert_eq!(summary(&[12, 5]), "Writes:  Total: 17  Max/Min: 12/5 ???");
        assert_eq!(summary(&[3, 0]), "Writes:  Total: 3  Max/Min: 3/0 ???");
        assert_eq!(summary(&[1, 0]), "Writes:  Total: 1  Max/Min: 1/0");
    }
}
