//! A mutex of user space that sleeps in the kernel: the fourth table of CNA v15 (document 002).
//!
//! # Source
//! leveldb's `readrandom` (`benchmarks/db_bench.cc`, `db/db_impl.cc`, `DBImpl::Get`), described, not copied.
//! Each of N threads, for ever: acquires the database's mutex, notes what there is to read from, and releases
//! it; searches; acquires the mutex again, gives back what it has noted, and releases it.
//!
//! The mutex is glibc's (`nptl/pthread_mutex_lock.c`, `lowlevellock.c`): a word that is 0, 1 (held) or 2 (held,
//! and there may be a sleeper). A thread that does not acquire it in one compare-exchange swaps in 2, and
//! sleeps in the kernel as long as it finds 2. The release swaps in 0, and, if it was 2, wakes one thread.
//!
//! The kernel (Linux 5.12, `kernel/futex.c`) keeps the sleepers of a mutex in a bucket, under a spinlock. To
//! sleep: lock the bucket, read the word again, join the list, unlock, sleep. To wake: lock the bucket, take
//! the first thread off the list, unlock, wake it. That spinlock is what the table measures, and it is the
//! scenario's lock here; the mutex is part of the workload.
//!
//! # Limits
//! Only this mutex uses the bucket. Wake-ups cost what the hypervisor's kicks do.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::lock::RawLock;
use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, Platform};
use serde::{Deserialize, Serialize};

use super::{Station, Work};
use crate::platform::{SimPlatform, SimWord};

/// Threads that meet at a mutex.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FutexMutex {
    /// Work of an operation outside the mutex: the search.
    pub outside_ns: f64,
    /// Work under the mutex, each time.
    pub inside_ns: f64,
    /// How often an operation acquires the mutex. Source: 2.
    #[serde(default = "two")]
    pub sections: u32,
    /// Lines that the mutex protects and each section writes.
    #[serde(default)]
    pub writes: u32,
    /// The time to enter and leave the kernel, on the way to the bucket.
    pub call_ns: f64,
    /// Work under the bucket's lock.
    pub bucket_ns: f64,
}

fn two() -> u32 {
    2
}

/// The word that is the mutex.
const MUTEX: usize = 0;
/// What the mutex protects.
const PROTECTED: usize = 1;
/// The level at which threads sleep: the bucket's lock never sleeps.
const LEVEL: u32 = 3;

impl FutexMutex {
    fn lock<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        let mutex = station.word(MUTEX, 0);
        // ORDERING: each Acquire pairs with the Release of `unlock`, as in the library that is simulated.
        if mutex.compare_exchange(0, 1, Acquire).is_ok() {
            return;
        }
        if mutex.load(Relaxed) == 2 {
            self.sleep(station, p, mutex);
        }
        while mutex.swap(2, Acquire) != 0 {
            self.sleep(station, p, mutex);
        }
    }

    /// Sleeps as long as the mutex is 2.
    fn sleep<L: RawLock<SimPlatform>>(
        &self,
        station: &Station<L>,
        p: &SimPlatform,
        mutex: &SimWord,
    ) {
        p.work(self.call_ns);
        let mut lines_up = false;
        station.section(p, 0, || {
            if mutex.load(Relaxed) == 2 {
                station.count(station.beside(0, 0));
                p.work(self.bucket_ns);
                station.sleepers.borrow_mut().push_back(p.number());
                lines_up = true;
            }
        });
        let me = p.cpu().and_then(|cpu| NodeId::new(cpu, LEVEL));
        if let Some(me) = me.filter(|_| lines_up) {
            // One kick for each thread that is taken off the list: none is lost, none is too many.
            p.halt(me);
        }
    }

    fn unlock<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        // ORDERING: Release pairs with the Acquires of `lock`.
        if station.word(MUTEX, 0).swap(0, Release) != 2 {
            return;
        }
        p.work(self.call_ns);
        // A bucket without sleepers is not locked; checking that is a read of its line.
        station.beside(0, 0).load(Relaxed);
        if station.sleepers.borrow().is_empty() {
            return;
        }
        let mut first = None;
        station.section(p, 0, || {
            first = station.sleepers.borrow_mut().pop_front();
            if first.is_some() {
                station.count(station.beside(0, 0));
                p.work(self.bucket_ns);
            }
        });
        let sleeper = first.and_then(qspin_core::platform::CpuId::new);
        if let Some(node) = sleeper.and_then(|cpu| NodeId::new(cpu, LEVEL)) {
            p.kick(node);
        }
    }
}

impl Work for FutexMutex {
    fn lines(&self, _: u32) -> usize {
        PROTECTED + self.writes as usize
    }

    fn run<L: RawLock<SimPlatform>>(&self, station: &Station<L>, p: &SimPlatform) {
        while !p.is_over() {
            for _ in 0..self.sections {
                self.lock(station, p);
                let protected = |line: u32| station.word(PROTECTED + line as usize, 0);
                p.load_together((0..self.writes).map(protected));
                for line in 0..self.writes {
                    station.count(protected(line));
                }
                p.work(self.inside_ns);
                self.unlock(station, p);
                p.work(self.outside_ns / f64::from(self.sections));
            }
            p.did_one();
        }
        // Threads that were asleep when the time was over: lets the last ones pass.
        while let Some(sleeper) = { station.sleepers.borrow_mut().pop_front() } {
            let cpu = qspin_core::platform::CpuId::new(sleeper);
            if let Some(node) = cpu.and_then(|cpu| NodeId::new(cpu, LEVEL)) {
                p.kick(node);
            }
        }
    }
}
