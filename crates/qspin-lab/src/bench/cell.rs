//! One measurement: a lock, a number of threads, a workload.
//!
//! All threads do nothing but operate until the controller says otherwise. The controller sleeps,
//! so that it takes no CPU from them, and opens three phases:
//!
//! 1. *warm-up*, until every thread has come to the lock at least once;
//! 2. *throughput*: no clock runs in the loop; each thread publishes its own counter by a plain
//!    store to a cache line of its own, and the controller reads all counters, the clock and the
//!    threads' CPU times at both ends;
//! 3. *waits*: every acquisition is timed into the thread's own histogram.
//!
//! No thread is waited for between phases. A wait that has not ended when the phase does counts
//! with its age, so a thread that is never served is seen; then each thread finishes the
//! operation it is in, and the counter under the lock must equal the sum of all operations.

use std::hint::black_box;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quanta::Clock;

use super::affinity::Placement;
use super::interrupt::Interrupt;
use super::station::{Padded, Station, Tally};
use super::waits::Waits;

/// Under which conditions a cell is measured.
pub struct Conditions<'a> {
    /// How many threads.
    pub threads: usize,
    /// On which CPUs they run.
    pub placement: &'a Placement,
    /// How long the throughput phase lasts.
    pub phase: Duration,
    /// How long the wait phase lasts; zero where there is none.
    pub waits: Duration,
    /// The clock of the waits.
    pub clock: &'a Clock,
    /// Ends the measurement early.
    pub interrupt: &'a Interrupt,
}

/// What one measurement found.
#[derive(Debug)]
pub struct Measured {
    /// Length of the throughput phase by the controller's clock.
    pub elapsed: Duration,
    /// Operations of each thread in the throughput phase.
    pub operations: Vec<u64>,
    /// Operations of all threads from the first to the last, warm-up and wait phase included.
    pub all_operations: u64,
    /// CPU time of all threads in the throughput phase, ns.
    pub cpu_ns: u64,
    /// Waits of each thread in the wait phase, a histogram a class of operations.
    pub waits: Vec<Vec<Waits>>,
}

/// Why a cell was not measured.
#[derive(Debug)]
pub enum Spoiled {
    /// The user asked to stop.
    Interrupted,
    /// The machine made fewer threads than asked for.
    Threads {
        /// How many it made.
        made: usize,
        /// Why it made no more.
        why: std::io::Error,
    },
    /// A thread died, or the lock let two threads in.
    Broken(String),
}

const WARM_UP: u32 = 0;
const THROUGHPUT: u32 = 1;
const WAITS: u32 = 2;
const STOP: u32 = 3;

/// What the controller tells the threads; they only read it, so each has its own copy in cache.
struct Control {
    phase: AtomicU32,
    /// When the wait phase began, by the clock of the waits.
    waits_from: AtomicU64,
    /// When it ended.
    waits_until: AtomicU64,
}

/// What a thread tells the controller.
#[derive(Default)]
struct Slot {
    /// Twice the acquisitions, and one more while it waits.
    progress: AtomicU64,
    /// The clock of the thread's CPU time.
    cpu_clock: AtomicI32,
}

impl Control {
    /// The phase may be seen late, never wrong: what comes with it is read after a fence.
    #[inline(always)]
    fn phase(&self) -> u32 {
        self.phase.load(Ordering::Relaxed)
    }
}

/// Holds the threads back until all are made, or sends them home.
#[derive(Default)]
struct Gate {
    opened: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    fn open(&self, go: bool) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.changed.notify_all();
    }

    fn pass(&self) -> bool {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(go) = *opened {
                return go;
            }
            opened = self.changed.wait(opened).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A kernel stack and a guard page cost more than this much of a thread's own stack.
pub const STACK: usize = 256 * 1024;

/// A [`Station`] without its type: what is around the loops that are measured is compiled once, not for each lock under
/// each workload.
trait Stage: Sync {
    /// What thread `index` of `threads` does; nothing if the gate sends it home.
    fn act(&self, index: usize, threads: usize, post: &Post<'_>) -> Option<Finished>;

    /// Sleeps for `length`, changing the load on the way where it changes; whether it was interrupted.
    fn sleep_through(&self, length: Duration, interrupt: &Interrupt) -> bool;

    /// [`Station::verify`].
    fn verify(&self, found: Tally, operations: u64) -> Result<(), String>;
}

/// Where a thread hears of the controller, and the controller of it.
struct Post<'a> {
    gate: &'a Gate,
    control: &'a Control,
    slot: &'a Slot,
    clock: &'a Clock,
}

impl<S: Station> Stage for S {
    fn act(&self, index: usize, threads: usize, post: &Post<'_>) -> Option<Finished> {
        let local = self.local(index, threads);
        let waits = S::CLASSES.iter().map(|_| Waits::default()).collect();
        post.gate.pass().then(|| operate(self, local, waits, post))
    }

    fn sleep_through(&self, length: Duration, interrupt: &Interrupt) -> bool {
        let Some(period) = self.changes_every() else {
            return interrupt.sleep(length);
        };
        let began = Instant::now();
        let mut until = Duration::ZERO;
        while until < length {
            until = (until + period).min(length);
            if interrupt.sleep(until.saturating_sub(began.elapsed())) {
                return true;
            }
            self.change();
        }
        false
    }

    fn verify(&self, found: Tally, operations: u64) -> Result<(), String> {
        Station::verify(self, found, operations)
    }
}

/// Measures `station` under `conditions`.
pub fn measure(station: &impl Station, conditions: &Conditions<'_>) -> Result<Measured, Spoiled> {
    measure_on(station, conditions)
}

fn measure_on(stage: &dyn Stage, conditions: &Conditions<'_>) -> Result<Measured, Spoiled> {
    let control = Padded(Control {
        phase: AtomicU32::new(WARM_UP),
        waits_from: AtomicU64::new(0),
        waits_until: AtomicU64::new(0),
    });
    let slots: Vec<Padded<Slot>> = (0..conditions.threads).map(|_| Padded::default()).collect();
    let gate = Gate::default();
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(conditions.threads);
        for (index, slot) in slots.iter().enumerate() {
            let post =
                Post { gate: &gate, control: &control.0, slot: &slot.0, clock: conditions.clock };
            let body = move || {
                conditions.placement.settle(index);
                post.slot.cpu_clock.store(own_cpu_clock(), Ordering::Relaxed);
                stage.act(index, conditions.threads, &post)
            };
            match thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body) {
                Ok(handle) => handles.push(handle),
                Err(why) => {
                    gate.open(false);
                    let made = handles.len();
                    return Err(Spoiled::Threads { made, why });
                }
            }
        }
        gate.open(true);
        let sampled = preside(stage, &control.0, &slots, conditions);
        // Whatever happened, the threads must end.
        // ORDERING: Release pairs with the Acquire fences of the threads.
        control.0.phase.store(STOP, Ordering::Release);
        let mut results = Vec::with_capacity(handles.len());
        for handle in handles {
            results.push(handle.join());
        }
        let results: Option<Vec<_>> = results.into_iter().map(|r| r.ok().flatten()).collect();
        let Some(results) = results else {
            return Err(Spoiled::Broken("a measuring thread died".to_owned()));
        };
        let operations = results.iter().map(|result| result.operations).sum();
        let found = results.iter().map(|result| result.found).sum();
        let waits = results.into_iter().map(|result| result.waits).collect();
        stage.verify(found, operations).map_err(Spoiled::Broken)?;
        let (start, end) = sampled.ok_or(Spoiled::Interrupted)?;
        Ok(Measured {
            elapsed: end.at - start.at,
            all_operations: operations,
            operations: differences(&end.operations, &start.operations),
            cpu_ns: end.cpu_ns.saturating_sub(start.cpu_ns),
            waits,
        })
    })
}

fn differences(end: &[u64], start: &[u64]) -> Vec<u64> {
    end.iter().zip(start).map(|(end, start)| end - start).collect()
}

/// What a thread brings home.
struct Finished {
    found: Tally,
    operations: u64,
    waits: Vec<Waits>,
}

/// What each thread does: the loops that are measured.
#[inline(never)]
fn operate<S: Station>(
    station: &S,
    mut local: S::Local,
    mut waits: Vec<Waits>,
    &Post { control, slot, clock, .. }: &Post<'_>,
) -> Finished {
    let mut progress = 0_u64;
    let mut late = None;
    while control.phase() <= THROUGHPUT {
        let class = station.class(&local);
        progress += 1;
        slot.progress.store(progress, Ordering::Relaxed);
        station.operate(&mut local, || {
            progress += 1;
            slot.progress.store(progress, Ordering::Relaxed);
            if control.phase() > THROUGHPUT {
                // This wait began without a clock, before the phase that counts waits.
                late = Some((class, now_in_between(clock)));
            }
        });
    }
    // ORDERING: Acquire pairs with the Release of `preside`: what it wrote before the new phase is visible.
    fence(Ordering::Acquire);
    if let Some((class, acquired)) = late {
        let since = control.waits_from.load(Ordering::Relaxed);
        record(&mut waits[class], control, clock, since, acquired);
    }
    while control.phase() == WAITS {
        let class = station.class(&local);
        progress += 1;
        let since = now(clock);
        let mut acquired = since;
        station.operate(&mut local, || {
            acquired = now(clock);
            progress += 1;
        });
        record(&mut waits[class], control, clock, since, acquired);
    }
    black_box(&mut local);
    Finished { found: S::tally(local), operations: progress / 2, waits }
}

/// The time once everything before it is done: a processor that reads the clock ahead of the
/// work before it would count the work as waiting.
#[inline(always)]
fn now(clock: &Clock) -> u64 {
    // SAFETY: every processor of its kind has this instruction, and all it does is to wait.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("isb", options(nostack, preserves_flags));
    }
    // Elsewhere the clock is a call.
    clock.raw()
}

#[cold]
#[inline(never)]
fn now_in_between(clock: &Clock) -> u64 {
    now(clock)
}

/// Counts a wait; one that outlasted the phase counts with the age that it had at its end.
#[inline(always)]
fn record(waits: &mut Waits, control: &Control, clock: &Clock, since: u64, acquired: u64) {
    if control.phase() == WAITS {
        waits.ended(clock.delta_as_nanos(since, acquired));
    } else {
        record_last(waits, control, clock, since, acquired);
    }
}

#[cold]
#[inline(never)]
fn record_last(waits: &mut Waits, control: &Control, clock: &Clock, since: u64, acquired: u64) {
    // ORDERING: Acquire pairs with the Release of `preside`, which wrote when the waits are over.
    fence(Ordering::Acquire);
    let until = control.waits_until.load(Ordering::Relaxed);
    if until == 0 || since == 0 {
        // Stopped before the wait phase: there is nothing to count it in.
    } else if acquired <= until {
        waits.ended(clock.delta_as_nanos(since, acquired));
    } else if since < until {
        waits.unfinished(clock.delta_as_nanos(since, until));
    }
}

/// The counters of all threads at one moment.
struct Sample {
    at: Instant,
    operations: Vec<u64>,
    cpu_ns: u64,
}

/// Takes the threads through the phases; `None` when interrupted.
fn preside(
    stage: &dyn Stage,
    control: &Control,
    slots: &[Padded<Slot>],
    conditions: &Conditions<'_>,
) -> Option<(Sample, Sample)> {
    let Conditions { phase, waits, clock, interrupt, .. } = conditions;
    await_all(slots, conditions)?;
    if interrupt.sleep(*phase / 10) {
        return None;
    }
    let start = sample(slots);
    // ORDERING: Release, as each store of the phase here, pairs with the Acquire fences of the threads.
    control.phase.store(THROUGHPUT, Ordering::Release);
    if stage.sleep_through(*phase, interrupt) {
        return None;
    }
    let end = sample(slots);
    if waits.is_zero() {
        control.phase.store(STOP, Ordering::Release);
        return Some((start, end));
    }
    control.waits_from.store(clock.raw(), Ordering::Relaxed);
    control.phase.store(WAITS, Ordering::Release);
    if stage.sleep_through(*waits, interrupt) {
        return None;
    }
    control.waits_until.store(clock.raw(), Ordering::Relaxed);
    control.phase.store(STOP, Ordering::Release);
    Some((start, end))
}

/// Waits until each thread has come to the lock, but not for ever: with many more threads than
/// CPUs that takes a time slice each.
fn await_all(slots: &[Padded<Slot>], conditions: &Conditions<'_>) -> Option<()> {
    const STEP: Duration = Duration::from_micros(500);
    let turns = conditions.threads.div_ceil(conditions.placement.cpus()) as u32;
    let timeout = Instant::now() + Duration::from_millis(10) * turns.min(100);
    let missing = || slots.iter().any(|slot| slot.0.progress.load(Ordering::Relaxed) == 0);
    while missing() && Instant::now() < timeout {
        if conditions.interrupt.sleep(STEP) {
            return None;
        }
    }
    Some(())
}

/// Reads all counters; again when the controller was interrupted in between.
fn sample(slots: &[Padded<Slot>]) -> Sample {
    const TRIES: usize = 5;
    let mut tries = 0;
    loop {
        tries += 1;
        let before = Instant::now();
        let operations =
            slots.iter().map(|slot| slot.0.progress.load(Ordering::Relaxed) / 2).collect();
        let took = before.elapsed();
        if took < Duration::from_micros(50) || tries == TRIES {
            return Sample {
                at: before + took / 2,
                operations,
                cpu_ns: slots.iter().map(|slot| cpu_ns(&slot.0)).sum(),
            };
        }
    }
}

/// The id of the calling thread's CPU-time clock, which others may read.
fn own_cpu_clock() -> libc::clockid_t {
    let mut id = 0;
    // SAFETY: the calling thread exists and `id` may be written.
    let code = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) };
    if code == 0 { id } else { libc::CLOCK_THREAD_CPUTIME_ID }
}

/// CPU time that the thread of `slot` has used.
fn cpu_ns(slot: &Slot) -> u64 {
    let clock = slot.cpu_clock.load(Ordering::Relaxed);
    // The thread has not begun: zero would be the clock of the day.
    if clock == 0 {
        return 0;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` may be written; an unknown clock is reported, not acted on.
    let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if code != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::affinity::{Pin, allowed_cpus};
    use crate::bench::rw_station::{Mix, RwStation};
    use crate::bench::station::MutexStation;
    use crate::bench::workload::lengths::Lengths;
    use crate::bench::workload::varied::{Pair, Spread, Varied};
    use crate::contender::baseline::Empty;
    use crate::contender::rust_peers::{Std, StdRw};

    const WORK: Lengths = Lengths { critical: 50, outside: 50, lines: 2 };

    const RW: Varied = Varied {
        lengths: Pair { critical: 500, outside: 0 },
        then: None,
        spread: Spread::Fixed,
        locks: 1,
        lines: 1,
        leaving: None,
        seed: 1,
    };

    fn with<T>(threads: usize, check: impl FnOnce(&Conditions<'_>) -> T) -> T {
        check(&Conditions {
            threads,
            placement: &Placement::new(Pin::B, allowed_cpus()),
            phase: Duration::from_millis(30),
            waits: Duration::from_millis(30),
            clock: &Clock::new(),
            interrupt: &Interrupt::never(),
        })
    }

    #[test]
    fn every_thread_is_counted_and_every_class_has_its_waits() {
        let measured = with(3, |conditions| {
            measure(&MutexStation::<Std, _>::new(WORK), conditions).expect("std excludes")
        });
        assert_eq!(measured.operations.len(), 3);
        assert!(measured.all_operations >= measured.operations.iter().sum());
        assert!(measured.elapsed >= Duration::from_millis(30));
        assert!(measured.waits.iter().all(|classes| classes.len() == 1));
        let mix = Mix { readers: 1, writers: 1, work: RW };
        let measured = with(2, |conditions| {
            measure(&RwStation::<StdRw>::new(mix), conditions).expect("std excludes")
        });
        assert!(measured.waits.iter().all(|classes| classes.len() == 2));
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_caught() {
        if allowed_cpus().len() < 2 {
            return;
        }
        let caught = |result: &Result<Measured, Spoiled>| matches!(result, Err(Spoiled::Broken(_)));
        // Threads that share a CPU by chance may miss each other; not so many times in a row.
        let mix = Mix { readers: 1, writers: 1, work: RW };
        let mutex = (0..100)
            .any(|_| with(2, |at| caught(&measure(&MutexStation::<Empty, _>::new(WORK), at))));
        let rw =
            (0..100).any(|_| with(2, |at| caught(&measure(&RwStation::<Empty>::new(mix), at))));
        assert!(mutex && rw);
    }

    #[test]
    fn an_interrupt_ends_a_cell() {
        let interrupt = Interrupt::never();
        interrupt.raise();
        let spoiled = with(2, |at| {
            let at = Conditions { interrupt: &interrupt, ..*at };
            measure(&MutexStation::<Std, _>::new(WORK), &at)
        });
        assert!(matches!(spoiled, Err(Spoiled::Interrupted)));
    }
}
