//! The measurement: how much gets done, how long who waits, and how often one halts and kicks.
//!
//! All CPUs do the same: work outside, acquire, work inside, release. It is measured from the moment at
//! which the last of them has come, for a given time. A wait that lasts beyond the end counts with the
//! age that it has then.

use core::hint::black_box;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use qspin_core::events::Event;
use qspin_core::lock::RawLock;
use qspin_core::platform::Platform;

use crate::hardware::clock::now_ns;
use crate::hardware::cpu::{self, MOST};
use crate::hardware::serial;
use crate::histogram::{BUCKETS, bucket, percentile};
use crate::locks::{Lock, Place};
use crate::options::{LOCKS, Options};
use crate::platform::{BOARD, Counts, Guest, GuestEvents, events, ring, settings, stolen, sum};
use crate::{team, watch};

static PLACE: Place = Place::EMPTY;
/// The lock that is measured.
static LOCK: AtomicU32 = AtomicU32::new(0);
static COUNTING: AtomicBool = AtomicBool::new(false);
/// Steps of work inside and outside.
static INSIDE: AtomicU32 = AtomicU32::new(0);
static OUTSIDE: AtomicU32 = AtomicU32::new(0);
static LENGTH_NS: AtomicU64 = AtomicU64::new(0);
/// CPUs that have come.
static CAME: AtomicU32 = AtomicU32::new(0);
/// When all had come; 0 before.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// What a critical section writes: how many there were before it.
static SHARED: AtomicU64 = AtomicU64::new(0);

/// How often the host was asked to stop a CPU.
static STRUCK: AtomicU64 = AtomicU64::new(0);

/// What one CPU has measured.
#[repr(align(128))]
struct Measured {
    operations: AtomicU64,
    unfinished: AtomicU64,
    longest: AtomicU64,
    waits: [AtomicU32; BUCKETS],
}

static MEASURED: [Measured; MOST] = [const {
    Measured {
        operations: AtomicU64::new(0),
        unfinished: AtomicU64::new(0),
        longest: AtomicU64::new(0),
        waits: [const { AtomicU32::new(0) }; BUCKETS],
    }
}; MOST];

impl Measured {
    fn forget(&self) {
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

    fn counts(&self) -> impl Iterator<Item = (usize, u64)> + Clone + '_ {
        let counts = self.waits.iter().enumerate();
        counts.map(|(bucket, count)| (bucket, count.load(Relaxed).into()))
    }
}

/// Work that takes time and touches nothing.
#[inline(never)]
fn work(steps: u32) {
    let mut value = 1_u64;
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    black_box(value);
}

/// Steps of work in a millisecond, as this CPU does them when nothing keeps it.
fn steps_a_ms() -> u64 {
    const STEPS: u32 = 2_000;
    let mut best = u64::MAX;
    for _ in 0..20 {
        let start = now_ns();
        work(STEPS);
        best = best.min(now_ns() - start);
    }
    u64::from(STEPS) * 1_000_000 / best.max(1)
}

/// Writes down how fast this machine is: a hypervisor that executes a guest instruction by instruction
/// is a hundred times slower than one that emulates it in a better way.
pub fn say_pace() -> u64 {
    let steps = steps_a_ms();
    serial::line("pace", |line| line.number("steps_a_ms", steps).end());
    steps
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
            BOARD.waits(cpu, asked);
        }
        lock.acquire(&platform);
        state.store(waits | cpu::HOLDS, Relaxed);
        let got = now_ns();
        // What the lock protects: changed by a load and a store.
        let number = SHARED.load(Relaxed);
        SHARED.store(number + 1, Relaxed);
        if let Some(plan) = plan {
            platform.holder_enter();
            BOARD.holds(cpu);
            if plan.strikes(number) {
                STRUCK.store(STRUCK.load(Relaxed) + 1, Relaxed);
                BOARD.ask(ring);
            }
        }
        work(inside);
        if plan.is_some() {
            BOARD.releases();
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

fn part(cpu: u32) {
    // SAFETY: made before the work was given.
    let lock = unsafe { Lock::in_place(LOCK.load(Relaxed), &PLACE) };
    lock.measure(COUNTING.load(Relaxed), cpu);
}

fn phase(number: u32, counting: bool, ns: u64) {
    // SAFETY: no work is being done.
    unsafe { Lock::make(number, &PLACE) };
    LOCK.store(number, Relaxed);
    COUNTING.store(counting, Relaxed);
    LENGTH_NS.store(ns, Relaxed);
    CAME.store(0, Relaxed);
    BEGAN.store(0, Relaxed);
    SHARED.store(0, Relaxed);
    STRUCK.store(0, Relaxed);
    MEASURED.iter().for_each(Measured::forget);
    // All that wait at the end still have to get the lock, one after the other.
    watch::limit(ns / 1_000_000 + 60_000, 0);
    team::run(part);
    watch::end();
}

/// The figures of the platform that a row has, by name.
fn counts() -> [(&'static str, u64); 12] {
    let of = |of: fn(&Counts) -> &AtomicU64| sum(of);
    [
        ("halts_on", of(|counts| &counts.halts_on)),
        ("halts_off", of(|counts| &counts.halts_off)),
        ("halts_in_nmi", of(|counts| &counts.halts_in_nmi)),
        ("kicks_unsent", of(|counts| &counts.kicks_unsent)),
        ("kicks_vector", of(|counts| &counts.kicks_vector)),
        ("kicks_nmi", of(|counts| &counts.kicks_nmi)),
        ("kicks_hypercall", of(|counts| &counts.kicks_hypercall)),
        ("yields", of(|counts| &counts.yields)),
        ("yields_hypercall", of(|counts| &counts.yields_hypercall)),
        ("seen_preempted", of(|counts| &counts.seen_preempted)),
        ("seen_stopped", of(|counts| &counts.seen_stopped)),
        ("stolen_ns", stolen()),
    ]
}

/// Measures what was asked for; nothing can fail but by hanging.
pub fn run(options: &Options) -> u32 {
    let steps = say_pace();
    let steps_of = |ns: u32| (u64::from(ns) * steps / 1_000_000) as u32;
    INSIDE.store(steps_of(options.critical_ns), Relaxed);
    OUTSIDE.store(steps_of(options.outside_ns), Relaxed);
    let ns = u64::from(options.phase_ms) * 1_000_000;
    let locks = || (0..LOCKS.len() as u32).filter(|number| options.locks & 1 << number != 0);
    let count = locks().count().max(1);
    for round in 0..options.rounds {
        // Each round in another order.
        for turn in 0..count {
            let number = locks().nth((turn + round as usize) % count).unwrap_or(0);
            let before = counts();
            phase(number, false, ns);
            say_phase(number, round, ns, before);
        }
    }
    for number in locks() {
        let before = Event::ALL.map(events);
        phase(number, true, (ns / 5).min(500_000_000));
        say_events(number, before);
    }
    0
}

fn say_phase(number: u32, round: u32, ns: u64, before: [(&'static str, u64); 12]) {
    let team = || MEASURED.iter().take(cpu::online().count());
    let sum =
        |of: fn(&Measured) -> &AtomicU64| team().map(|cpu| of(cpu).load(Relaxed)).sum::<u64>();
    let longest = team().map(|cpu| cpu.longest.load(Relaxed)).max().unwrap_or(0);
    let worst = team().filter_map(|cpu| percentile(cpu.counts(), 999)).max().unwrap_or(0);
    let waits = (0..BUCKETS).filter_map(|bucket| {
        let count = team().map(|cpu| u64::from(cpu.waits[bucket].load(Relaxed))).sum::<u64>();
        (count > 0).then_some((bucket as u64, count))
    });
    let now = counts();
    let platform =
        (0..now.len()).map(|index| (now[index].0, now[index].1.saturating_sub(before[index].1)));
    serial::line("phase", |line| {
        line.text("lock", LOCKS[number as usize])
            .number("round", round)
            .number("ns", ns)
            .list("operations", team().map(|cpu| cpu.operations.load(Relaxed)))
            .number("acquisitions", SHARED.load(Relaxed))
            .number("struck", STRUCK.load(Relaxed))
            .number("unfinished", sum(|cpu| &cpu.unfinished))
            .number("longest_ns", longest)
            .number("worst_cpu_p999", worst as u64)
            .numbers("platform", platform)
            .pairs("waits", waits)
            .end();
    });
}

fn say_events(number: u32, before: [u64; Event::ALL.len()]) {
    let operations: u64 = MEASURED.iter().map(|cpu| cpu.operations.load(Relaxed)).sum();
    let counts = Event::ALL.iter().enumerate();
    let counts = counts.map(|(index, event)| (event.name(), events(*event) - before[index]));
    serial::line("events", |line| {
        line.text("lock", LOCKS[number as usize])
            .number("operations", operations)
            .numbers("events", counts.filter(|(_, count)| *count > 0))
            .end();
    });
}
