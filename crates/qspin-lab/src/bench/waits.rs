//! How long acquisitions waited.

use hdrhistogram::Histogram;

use crate::row::WaitNs;

/// Two significant digits: steps of 1 %, in few enough buckets to stay in the cache.
const DIGITS: u8 = 2;
/// Nothing measured here lasts longer: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Waits of a thread, or of many.
#[derive(Debug, Clone)]
pub struct Waits {
    histogram: Histogram<u64>,
    unfinished: u64,
    worst_thread_p999: u64,
}

impl Default for Waits {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .unwrap_or_else(|_| unreachable!("the bounds are constants that fit"));
        Self { histogram, unfinished: 0, worst_thread_p999: 0 }
    }
}

impl Waits {
    /// Counts a wait that ended with the lock.
    #[inline(always)]
    pub fn ended(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
    }

    /// Counts a wait that had not ended when the measurement did, with its age.
    pub fn unfinished(&mut self, ns: u64) {
        self.ended(ns);
        self.unfinished += 1;
    }

    /// How many waits ended with the lock.
    pub fn served(&self) -> u64 {
        self.histogram.len() - self.unfinished
    }

    /// Adds one thread's waits of one round.
    pub fn add_thread(&mut self, thread: &Self) {
        // Both have the same bounds, so nothing can fall outside.
        let _ = self.histogram.add(&thread.histogram);
        self.unfinished += thread.unfinished;
        self.worst_thread_p999 =
            self.worst_thread_p999.max(thread.histogram.value_at_quantile(0.999));
    }

    /// Adds a round, in which each thread was added.
    pub fn add_round(&mut self, round: &Self) {
        let _ = self.histogram.add(&round.histogram);
        self.unfinished += round.unfinished;
        self.worst_thread_p999 = self.worst_thread_p999.max(round.worst_thread_p999);
    }

    /// The row's figures; `None` when no thread waited or acquired at all.
    pub fn summary(&self) -> Option<WaitNs> {
        if self.histogram.is_empty() {
            return None;
        }
        let at = |quantile| self.histogram.value_at_quantile(quantile) as f64;
        Some(WaitNs {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: self.histogram.max() as f64,
            worst_thread_p999: self.worst_thread_p999 as f64,
            samples: self.histogram.len(),
            unfinished: self.unfinished,
        })
    }
}

/// One histogram a class out of one a thread and class.
pub(super) fn merge(threads: &[Vec<Waits>]) -> Vec<Waits> {
    let mut classes: Vec<Waits> = Vec::new();
    for thread in threads {
        classes.resize_with(thread.len(), Waits::default);
        for (all, waits) in classes.iter_mut().zip(thread) {
            all.add_thread(waits);
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starved_thread_shows_in_the_worst_threads_figure_and_as_unfinished() {
        let mut served = Waits::default();
        for _ in 0..100_000 {
            served.ended(100);
        }
        let mut starved = Waits::default();
        starved.unfinished(20_000_000);
        let mut all = Waits::default();
        all.add_thread(&served);
        all.add_thread(&starved);
        let summary = all.summary().expect("waits were recorded");
        assert_eq!(summary.p50, 100.0);
        assert_eq!(summary.p999, 100.0);
        assert!(summary.worst_thread_p999 > 19_000_000.0);
        assert!(summary.max > 19_000_000.0);
        assert_eq!(summary.samples, 100_001);
        assert_eq!(summary.unfinished, 1);
        assert_eq!((served.served(), starved.served()), (100_000, 0));
        assert_eq!(Waits::default().summary(), None);
    }
}
