//! What a CPU does while it is measured: work outside, acquire, work inside, release; and what it writes down.

use core::hint::black_box;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use qspin_core::lock::RawLock;
use qspin_core::platform::Platform;

use crate::hardware::clock::now_ns;
use crate::hardware::cpu::{self, MAX};
use crate::histogram::{BUCKETS, bucket};
use crate::platform::{Guest, GuestEvents, SHARED_PAGE, ring, settings};

/// The lock that is measured.
pub(crate) static LOCK: AtomicU32 = AtomicU32::new(0);
/// Steps of work inside and outside.
pub(crate) static INSIDE: AtomicU32 = AtomicU32::new(0);
pub(crate) static OUTSIDE: AtomicU32 = AtomicU32::new(0);
pub(crate) static LENGTH_NS: AtomicU64 = AtomicU64::new(0);
/// CPUs that have come.
pub(crate) static CAME: AtomicU32 = AtomicU32::new(0);
/// When all had come; 0 before.
pub(crate) static BEGAN: AtomicU64 = AtomicU64::new(0);
/// What a critical section writes: how many there were before it.
pub(crate) static SHARED: AtomicU64 = AtomicU64::new(0);

/// How often the host was asked to stop a CPU.
pub(crate) static STRUCK: AtomicU64 = AtomicU64::new(0);

/// What one CPU has measured.
#[repr(align(128))]
pub(crate) struct Measured {
    pub(crate) operations: AtomicU64,
    pub(crate) unfinished: AtomicU64,
    pub(crate) longest: AtomicU64,
    pub(crate) waits: [AtomicU32; BUCKETS],
}

pub(crate) static MEASURED: [Measured; MAX] = [const {
    Measured {
        operations: AtomicU64::new(0),
        unfinished: AtomicU64::new(0),
        longest: AtomicU64::new(0),
        waits: [const { AtomicU32::new(0) }; BUCKETS],
    }
}; MAX];

impl Measured {
    pub(crate) fn forget(&self) {
        for word in [&self.operations, &self.unfinished, &self.longest] {
            word.store(0, Relaxed);
        }
        for count in &self.waits {
            count.store(0, Relaxed);
        }
    }

    fn add_wait(&self, ns: u64) {
        let count = &self.waits[bucket(ns)];
        // Its CPU alone writes.
        count.store(count.load(Relaxed).saturating_add(1), Relaxed);
        self.longest.store(self.longest.load(Relaxed).max(ns), Relaxed);
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, u64)> + Clone + '_ {
        let counts = self.waits.iter().enumerate();
        counts.map(|(bucket, count)| (bucket, count.load(Relaxed).into()))
    }
}

/// Work that takes time and touches nothing.
#[inline(never)]
pub(crate) fn work(steps: u32) {
    let mut value = 1_u64;
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    black_box(value);
}

/// One CPU's part.
pub fn contend<L: RawLock<Guest<E>>, E: GuestEvents>(lock: &L, cpu: u32) {
    let platform = Guest::<E>::NEW;
    let mine = &MEASURED[cpu as usize];
    let state = &cpu::this().waits[0];
    let waits = LOCK.load(Relaxed) + 1;
    let (inside, outside) = (INSIDE.load(Relaxed), OUTSIDE.load(Relaxed));
    let length = LENGTH_NS.load(Relaxed);
    let plan = settings().preempt;
    let all = cpu::online().count() as u32;
    // ORDERING: AcqRel: the last to come has seen all others come.
    if CAME.fetch_add(1, AcqRel) + 1 == all {
        BEGAN.store(now_ns(), Release);
    }
    loop {
        work(outside);
        let asked = now_ns();
        state.store(waits, Relaxed);
        if plan.is_some() {
            SHARED_PAGE.waits(cpu, asked);
        }
        lock.acquire(&platform);
        state.store(waits | cpu::HOLDS, Relaxed);
        let got = now_ns();
        // What the lock protects: changed by a load and a store.
        let number = SHARED.load(Relaxed);
        SHARED.store(number + 1, Relaxed);
        if let Some(plan) = plan {
            platform.holder_enter();
            SHARED_PAGE.holds(cpu);
            if plan.strikes(number) {
                STRUCK.store(STRUCK.load(Relaxed) + 1, Relaxed);
                SHARED_PAGE.ask(ring);
            }
        }
        work(inside);
        if plan.is_some() {
            SHARED_PAGE.releases();
        }
        // SAFETY: acquired above.
        unsafe { lock.release(&platform) };
        state.store(0, Relaxed);
        if plan.is_some() {
            platform.holder_exit();
        }
        let began = BEGAN.load(Acquire);
        if began == 0 {
            continue;
        }
        let end = began + length;
        if got >= end {
            if asked < end {
                mine.unfinished.store(1, Relaxed);
                mine.add_wait(end - asked.max(began));
            }
            return;
        }
        if got >= began {
            mine.operations.store(mine.operations.load(Relaxed) + 1, Relaxed);
            mine.add_wait(got - asked.max(began));
        }
    }
}
