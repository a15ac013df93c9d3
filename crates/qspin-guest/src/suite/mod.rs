//! The tests that run in the guest: exact counts, and no CPU that waits for ever.
//!
//! Each test writes one line a result. A test that does not end in its time ends the guest, with a
//! line that says which CPU waits for which lock ([`crate::watch`]).

mod exclusion;
mod halts;
mod hotplug;
mod nesting;
mod rwlock;
mod storm;

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use qspin_core::locks::{LOCKS, Waits};

use crate::hardware::clock::{self, now_ns};
use crate::hardware::cpu::{self, MAX};
use crate::hardware::serial;
use crate::locks::{Lock, Place};
use crate::options::{Options, TESTS};
use crate::processors::Start;
use crate::watch::within;
use crate::{team, watch};

/// Milliseconds in which a test of one lock must end, beside the phases that it was given.
const LIMIT_MS: u64 = 60_000;

/// The places of the locks of the levels: task, interrupt, nested interrupt, NMI.
static PLACES: [Place; 4] = [const { Place::EMPTY }; 4];

/// What a lock protects: changed by plain loads and stores. Two words on lines of their own.
struct Shared([Line; 2]);

#[repr(align(128))]
struct Line(UnsafeCell<u64>);

// SAFETY: only the owner of the lock touches it; that is what is tested.
unsafe impl Sync for Line {}

impl Shared {
    #[allow(clippy::declare_interior_mutable_const)]
    const NEW: Self = Self([const { Line(UnsafeCell::new(0)) }; 2]);

    /// Adds one, by the holder.
    fn add(&self) {
        for Line(word) in &self.0 {
            // SAFETY: the caller holds the lock. Volatile: each is a load and a store.
            unsafe { word.get().write_volatile(word.get().read_volatile() + 1) };
        }
    }

    /// What both words are; `None` if they differ.
    fn get(&self) -> Option<u64> {
        // SAFETY: the caller holds the lock, or no CPU does any more.
        let [one, other] =
            [0, 1].map(|index: usize| unsafe { self.0[index].0.get().read_volatile() });
        (one == other).then_some(one)
    }

    /// Begins anew.
    fn clear(&self) {
        for Line(word) in &self.0 {
            // SAFETY: no CPU uses it.
            unsafe { word.get().write_volatile(0) };
        }
    }
}

/// What each level's lock protects.
static SHARED: [Shared; 4] = [const { Shared::NEW }; 4];

/// Most CPUs that test a lock whose waiters spin. Where they are more than the host has CPUs, each hand-over
/// takes as long as the host takes to run the right one: with 64 on two CPUs a tenth of a second, and a
/// round of all on all four levels a minute.
const CREW: u32 = 16;

/// Whether this CPU tests the present lock. Those that do not halt are tested by the first two and the last
/// ones, which have the largest numbers of nodes.
fn takes_part(cpu: u32) -> bool {
    halts(LOCK.load(Relaxed)) || is_of_crew(cpu, cpu::online().count() as u32)
}

/// Whether waiters of this lock halt.
fn halts(number: u32) -> bool {
    LOCKS[number as usize].waits == Waits::Halts
}

fn is_of_crew(cpu: u32, all: u32) -> bool {
    all <= CREW || cpu < 2 || cpu + CREW >= all + 2
}

/// How often each CPU has added one, by level.
#[repr(align(128))]
struct Mine([AtomicU64; 4]);

static MINE: [Mine; MAX] = [const { Mine([const { AtomicU64::new(0) }; 4]) }; MAX];

/// Counts what was added, for this CPU.
fn count(level: usize) {
    MINE[cpu::this().number() as usize].0[level].fetch_add(1, Relaxed);
}

/// How often `level` was added to, by all.
fn counted(level: usize) -> u64 {
    MINE.iter().map(|mine| mine.0[level].load(Relaxed)).sum()
}

/// Before a test.
fn clear() {
    SHARED.iter().for_each(Shared::clear);
    MINE.iter().flat_map(|mine| &mine.0).for_each(|count| count.store(0, Relaxed));
}

/// The number of the present lock, and when the work with it ends.
static LOCK: AtomicU32 = AtomicU32::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Makes a lock for each level, to be worked with for so long. All CPUs wait for work, and no handler comes.
fn make(number: u32, ms: u32) {
    for place in &PLACES {
        // SAFETY: no CPU uses the place.
        unsafe { Lock::make(number, place) };
    }
    LOCK.store(number, Relaxed);
    END.store(now_ns() + u64::from(ms) * 1_000_000, Relaxed);
}

/// The lock of a level.
fn lock(level: usize) -> Lock {
    // SAFETY: made at the beginning of the test, as long as work or handlers run.
    unsafe { Lock::in_place(LOCK.load(Relaxed), &PLACES[level]) }
}

/// One acquisition at `level`, counted.
fn once(level: usize) {
    lock(level).acquire();
    // SAFETY: acquired above.
    unsafe { done(level) };
}

/// What is done at `level` once its lock is acquired, up to its release.
///
/// # Safety
/// This context holds the lock.
unsafe fn done(level: usize) {
    SHARED[level].add();
    // SAFETY: the caller's promise.
    unsafe { lock(level).release() };
    count(level);
}

/// Whether the work has lasted long enough.
fn is_over() -> bool {
    now_ns() > END.load(Relaxed)
}

/// Waits until no handler comes any more: what was sent last may still be on its way when the work has ended. One more
/// work on each CPU, with pauses.
fn is_quiet() -> bool {
    within(20_000, || {
        let all = || (0..4).map(counted).sum::<u64>();
        let before = all();
        team::run(|_| clock::pause(5_000_000));
        all() == before
    })
}

/// A generator of numbers that look random: Marsaglia's xorshift, one a CPU and test.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % u64::from(limit.max(1))) as u32
    }
}

/// What a test has found.
struct Outcome {
    ok: bool,
    counted: u64,
    expected: u64,
}

impl Outcome {
    /// That what was counted under the lock of `level` is what the CPUs have counted for themselves.
    fn exact(level: usize) -> Self {
        let expected = counted(level);
        let counted = SHARED[level].get().unwrap_or(u64::MAX);
        Self { ok: counted == expected && expected > 0, counted, expected }
    }
}

/// The tests as they run.
struct Suite {
    options: Options,
    failed: u32,
}

impl Suite {
    /// Runs one test of one lock, and writes its line.
    fn check(&mut self, test: u32, lock: u32, detail: &str, run: impl FnOnce() -> Outcome) {
        clear();
        watch::limit(LIMIT_MS + u64::from(self.options.phase_ms) * 4, test + 1);
        let start = now_ns();
        let Outcome { ok, counted, expected } = run();
        watch::end();
        self.failed += u32::from(!ok);
        serial::line("result", |line| {
            line.text("test", TESTS[test as usize])
                .text("detail", detail)
                .text("lock", LOCKS[lock as usize].name)
                .number("vcpus", cpu::online().count() as u64)
                .flag("ok", ok)
                .number("counted", counted)
                .number("expected", expected)
                .number("ms", (now_ns() - start) / 1_000_000)
                .end();
        });
    }

    fn has(&self, test: u32) -> bool {
        self.options.tests & 1 << test != 0
    }
}

/// Runs the tests that were asked for; returns how many results are wrong.
pub fn run(options: &Options, start: Start) -> u32 {
    let mut suite = Suite { options: *options, failed: 0 };
    let locks = || options.numbers();
    if options.hang > 0 {
        halts::hang(&mut suite, locks().next().unwrap_or(0));
    }
    let tests: [fn(&mut Suite, u32); 5] =
        [exclusion::test, nesting::test, halts::test, storm::test, rwlock::test];
    for (number, test) in tests.iter().enumerate() {
        if suite.has(number as u32) {
            locks().for_each(|lock| test(&mut suite, lock));
        }
    }
    if suite.has(5) {
        hotplug::test(&mut suite, locks().next().unwrap_or(0), start);
    }
    suite.failed
}

/// What every NMI does: most of them are kicks and want nothing.
pub fn on_nmi() {
    watch::look();
    if cpu::this().nmi_work.swap(0, Relaxed) != 0 {
        nesting::in_nmi();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crew_is_the_first_and_the_last() {
        let crew = |all| (0..all).filter(move |cpu| is_of_crew(*cpu, all));
        assert_eq!((crew(1).count(), crew(16).count(), crew(17).count()), (1, 16, 16));
        let large: std::vec::Vec<_> = crew(64).collect();
        assert_eq!((large.len(), large[0], large[1], large[2], large[15]), (16, 0, 1, 50, 63));
    }
}
