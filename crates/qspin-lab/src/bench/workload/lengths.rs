//! The default workload: a critical section and a pause of given lengths, and a number of shared
//! cache lines written under the lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bench::busy::busy;
use crate::bench::station::count;

use super::Work;

/// Lengths, in steps of [`busy`].
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// Steps under the lock.
    pub critical: u64,
    /// Steps between two acquisitions.
    pub outside: u64,
    /// Shared cache lines written under the lock, at least one.
    pub lines: usize,
}

/// One cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// The cache lines that one lock protects; a critical section counts itself in each.
#[derive(Debug)]
pub struct Lines(Box<[Line]>);

impl Lines {
    /// Fresh ones: so many, at least one.
    pub fn new(lines: usize) -> Self {
        Self((0..lines.max(1)).map(|_| Line::default()).collect())
    }

    /// Writes them all.
    #[inline(always)]
    pub fn write(&self) {
        for line in &self.0 {
            count(&line.0);
        }
    }

    /// How many critical sections have counted themselves.
    pub fn counted(&self) -> u64 {
        // All lines were counted alike; one that differs shows the overlap as well.
        let counts = self.0.iter().map(|line| line.0.load(Ordering::Relaxed));
        let (mut least, mut most) = (u64::MAX, 0);
        for count in counts {
            least = least.min(count);
            most = most.max(count);
        }
        if least == most { most } else { u64::MAX }
    }
}

impl Work for Lengths {
    type Shared = Lines;
    type Local = u64;

    fn shared(&self) -> Lines {
        Lines::new(self.lines)
    }

    fn local(&self, index: usize, _: usize) -> u64 {
        index as u64 + 1
    }

    #[inline(always)]
    fn critical(&self, shared: &Lines, local: &mut u64) {
        shared.write();
        *local = busy(*local, self.critical);
    }

    #[inline(always)]
    fn outside(&self, local: &mut u64) {
        *local = busy(*local, self.outside);
    }

    fn counted(&self, shared: &Lines) -> u64 {
        shared.counted()
    }
}
