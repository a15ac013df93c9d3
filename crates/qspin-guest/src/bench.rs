//! The measurement: how much gets done, how long the CPUs wait, and how often they halt and kick.
//!
//! All CPUs do the same: work outside, acquire, work inside, release. It is measured from the moment at
//! which the last of them has come, for a given time. A wait that lasts beyond the end counts with the
//! age that it has then.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use qspin_core::events::Event;
use qspin_core::locks::LOCKS;

use crate::contend::{
    BEGAN, CAME, INSIDE, LENGTH_NS, LOCK, MEASURED, Measured, OUTSIDE, SHARED, STRUCK, work,
};
use crate::hardware::clock::now_ns;
use crate::hardware::{cpu, serial};
use crate::histogram::{BUCKETS, percentile};
use crate::locks::{Lock, Place};
use crate::options::Options;
use crate::platform::{Count, events, stolen, sum};
use crate::{team, watch};

static PLACE: Place = Place::EMPTY;
static COUNTING: AtomicBool = AtomicBool::new(false);

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
fn counts() -> [(&'static str, u64); Count::ALL.len() + 1] {
    core::array::from_fn(|index| match Count::ALL.get(index) {
        Some(&(count, name)) => (name, sum(count)),
        None => ("stolen_ns", stolen()),
    })
}

/// Measures what was asked for; nothing can fail but by hanging.
pub fn run(options: &Options) -> u32 {
    let steps = say_pace();
    let steps_of = |ns: u32| (u64::from(ns) * steps / 1_000_000) as u32;
    INSIDE.store(steps_of(options.critical_ns), Relaxed);
    OUTSIDE.store(steps_of(options.outside_ns), Relaxed);
    let ns = u64::from(options.phase_ms) * 1_000_000;
    let locks = || options.numbers();
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

fn say_phase(
    number: u32,
    round: u32,
    ns: u64,
    before: [(&'static str, u64); Count::ALL.len() + 1],
) {
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
        line.text("lock", LOCKS[number as usize].name)
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
        line.text("lock", LOCKS[number as usize].name)
            .number("operations", operations)
            .numbers("events", counts.filter(|(_, count)| *count > 0))
            .end();
    });
}
