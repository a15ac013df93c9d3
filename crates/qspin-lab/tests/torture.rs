//! Torture, in short: good locks hold, and each way not to be one is seen.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use assert_cmd::Command;
use qspin::events::NoEvents;
use qspin::platform::Threads;
use qspin_core::locks::queued::{ParavirtLock, ParavirtQueuedLock, ParavirtStealingLock};
use qspin_core::node::{Node, NodeId};
use qspin_core::platform::{Budget, CpuId, Platform, StaticPlatform, Until};
use qspin_core::tuning::Tuning;
use qspin_core::waiting::Bucket;
use qspin_lab::bench::affinity::{Pin, Placement, allowed_cpus};
use qspin_lab::bench::busy::Pace;
use qspin_lab::bench::interrupt::Interrupt;
use qspin_lab::bench::torture::{Outcome, TIMEOUT, Torment, Violation, seen, torture};
use qspin_lab::contender::catalog::{Engine, Lock, locks};
use qspin_lab::contender::{Contender, Raw};

/// One torture at a time: what is left of a lock that stalled sleeps, but the others would share
/// the CPUs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn torment(time: Duration, timeout: Duration) -> Torment {
    let cpus = allowed_cpus();
    Torment {
        threads: (4 * cpus.len()).min(16),
        placement: Placement::new(Pin::B, cpus),
        time,
        timeout,
        seed: 7,
        pace: Pace::calibrate(),
    }
}

/// Tortures a lock of the catalog.
fn tortured(lock: &Lock, seconds: f64) -> Outcome {
    let Engine::Mutex(engine) = lock.engine else { panic!("{} does not exclude", lock.name) };
    let torment = torment(Duration::from_secs_f64(seconds), TIMEOUT);
    (engine.torture)(&torment, &Interrupt::never()).unwrap()
}

/// What a broken lock is seen to do in so many seconds or in the end, with a second's timeout.
fn caught<C: Contender>(seconds: u64) -> Vec<Violation> {
    let torment = torment(Duration::from_secs(seconds), Duration::from_secs(1));
    torture::<C>(&torment, &Interrupt::never()).unwrap().wrong
}

#[test]
fn the_queued_spinlock_and_its_paravirt_forms_hold() {
    let _alone = alone();
    let names = ["native", "paravirt", "paravirt-stealing", "paravirt-queued"];
    let mut all = Outcome::default();
    for lock in locks().iter().filter(|lock| names.contains(&lock.name)) {
        let outcome = tortured(lock, 1.5);
        assert_eq!(seen(&outcome), "", "{}", lock.name);
        assert!(outcome.acquisitions > 0, "{}: {outcome:?}", lock.name);
        // Each thread lives for less than a third of a second.
        assert!(outcome.born > 16, "{}: {outcome:?}", lock.name);
        all.in_handlers += outcome.in_handlers;
        all.sleeps += outcome.sleeps;
        all.by_trying += outcome.by_trying;
        all.deepest = all.deepest.max(outcome.deepest);
    }
    assert!(all.in_handlers > 0 && all.sleeps > 0 && all.by_trying > 0, "{all:?}");
    assert!(all.deepest > 2, "{all:?}");
}

#[test]
fn every_other_lock_that_excludes_can_be_tortured() {
    let _alone = alone();
    for lock in locks().iter().filter(|lock| !lock.is_rw() && lock.name != "empty") {
        let outcome = tortured(lock, 0.2);
        assert_eq!(seen(&outcome), "", "{}", lock.name);
        assert!(outcome.acquisitions > 0, "{}", lock.name);
        if outcome.in_handlers > 0 {
            assert!(outcome.signals >= outcome.in_handlers, "{}: {outcome:?}", lock.name);
        }
    }
}

/// A lock that admits a thread that does not hold it, once in a thousand times.
struct Leaky(Mutex<()>, AtomicU32);

impl Contender for Leaky {
    type Held<'a> = Option<MutexGuard<'a, ()>>;

    fn new() -> Self {
        Self(Mutex::new(()), AtomicU32::new(0))
    }

    fn lock(&self) -> Self::Held<'_> {
        let leaks = self.1.fetch_add(1, Ordering::Relaxed) % 1000 == 999;
        (!leaks).then(|| self.0.lock().unwrap())
    }

    unsafe fn unlock<'a>(&'a self, held: Self::Held<'a>) {
        drop(held);
    }
}

#[test]
fn two_inside_are_seen() {
    let _alone = alone();
    let wrong = caught::<Leaky>(60);
    assert!(matches!(wrong[0], Violation::TwoInside { level: 0, .. }), "{wrong:?}");
}

/// A platform that loses one kick in `EVERY`.
struct LosesKicks<const EVERY: u32>;

impl<const EVERY: u32> LosesKicks<EVERY> {
    const THREADS: Threads<NoEvents> = Threads::NEW;
}

impl<const EVERY: u32> Platform for LosesKicks<EVERY> {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;

    fn events(&self) -> &NoEvents {
        &NoEvents
    }

    fn tuning(&self) -> &Tuning {
        qspin::tuning::get()
    }

    fn cpu(&self) -> Option<CpuId> {
        Self::THREADS.cpu()
    }

    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        // The nodes are a static table: they do not belong to the value that lends them.
        const { &Self::THREADS }.node(id)
    }

    fn wait_until(&self, word: &AtomicU32, until: Until, budget: Budget, order: Ordering) -> u32 {
        Self::THREADS.wait_until(word, until, budget, order)
    }

    fn relax(&self, pauses: u32) {
        Self::THREADS.relax(pauses);
    }

    fn fence(&self, order: Ordering) {
        Self::THREADS.fence(order);
    }

    fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
        const { &Self::THREADS }.hash()
    }

    fn halt(&self, me: NodeId) {
        Self::THREADS.halt(me);
    }

    fn kick(&self, node: NodeId) {
        static KICKS: AtomicU32 = AtomicU32::new(0);
        if !KICKS.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY) {
            Self::THREADS.kick(node);
        }
    }

    fn yield_cpu(&self) {
        Self::THREADS.yield_cpu();
    }
}

impl<const EVERY: u32> StaticPlatform for LosesKicks<EVERY> {
    const PLATFORM: Self = Self;
}

type Unkicked<L, const EVERY: u32> = Raw<qspin_core::raw::Raw<L, LosesKicks<EVERY>>>;

#[test]
fn lost_kicks_are_a_stall() {
    let _alone = alone();
    for wrong in [
        caught::<Unkicked<ParavirtQueuedLock<AtomicU32>, 20>>(60),
        // Where newcomers may steal, one of them may go on for ever past a head that sleeps; but in
        // the end all must get out.
        caught::<Unkicked<ParavirtStealingLock<AtomicU32>, 1>>(3),
        caught::<Unkicked<ParavirtLock<AtomicU32>, 1>>(3),
    ] {
        assert!(matches!(wrong[..], [Violation::Stall(_)]), "{wrong:?}");
    }
}

/// A lock that has enough after a thousand times: a thread that comes then waits for ever.
struct Tired(AtomicBool, AtomicU64);

impl Contender for Tired {
    type Held<'a> = ();

    fn new() -> Self {
        Self(AtomicBool::new(false), AtomicU64::new(0))
    }

    fn lock(&self) {
        let tired = || self.1.load(Ordering::Relaxed) >= 1000;
        while tired() || self.0.swap(true, Ordering::Acquire) {
            thread::sleep(if tired() { Duration::from_secs(3600) } else { Duration::ZERO });
        }
        self.1.fetch_add(1, Ordering::Relaxed);
    }

    unsafe fn unlock(&self, (): ()) {
        self.0.store(false, Ordering::Release);
    }
}

#[test]
fn a_standstill_is_a_stall_and_says_where() {
    let _alone = alone();
    let wrong = caught::<Tired>(60);
    let [Violation::Stall(stall)] = &wrong[..] else { panic!("{wrong:?}") };
    assert_eq!((stall.level, stall.queue.inside), (0, 0));
    assert!(stall.queue.acquired >= 1000 && stall.queue.wait > 0 && !stall.ending, "{stall}");
}

fn bench(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_qspin"))
        .args(["bench", "--workload", "torture"])
        .args(args)
        .timeout(Duration::from_secs(120))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_command_shows_a_line_a_lock() {
    let _alone = alone();
    let locks = ["paravirt", "std", "floor"];
    let args = ["--locks", "paravirt,std,floor", "--threads", "3,5", "--seconds", "0.2"];
    let output = bench(&[&args[..], &["--seed", "11", "--overcommit", "2x"]].concat());
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    assert!(shown.contains("seed 11"), "{shown}");
    for lock in locks {
        for threads in ["3", "5"] {
            let of = |line: &&str| line.split_whitespace().eq_start(lock, threads);
            let line =
                shown.lines().find(of).unwrap_or_else(|| panic!("{lock} {threads}: {shown}"));
            assert!(line.trim_end().ends_with("held"), "{line}");
        }
    }
}

/// Whether the words of a table's line begin with these two cells.
trait Cells {
    fn eq_start(self, one: &str, other: &str) -> bool;
}

impl<'a, I: Iterator<Item = &'a str>> Cells for I {
    fn eq_start(self, one: &str, other: &str) -> bool {
        let mut cells = self.filter(|word| *word != "|");
        cells.next() == Some(one) && cells.next() == Some(other)
    }
}

#[test]
fn a_lock_that_does_not_exclude_fails_with_one_line() {
    let _alone = alone();
    let output = bench(&["--locks", "std,empty,native", "--seconds", "2", "--seed", "7"]);
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{shown}{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for part in ["empty with ", "seed 7", "two inside", "wrong count"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(shown.contains("FAILED") && shown.contains("std"), "{shown}");
}

#[test]
fn what_says_nothing_to_torture_is_refused() {
    for option in [["--critical", "1us"], ["--rounds", "3"], ["--out", "x"], ["--report", "x"]] {
        let output = bench(&option);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(option[0]) && said.contains("torture"), "{said}");
    }
    assert!(text(&bench(&["--ratio", "9:1"]).stderr).contains("--ratio says nothing"));
    assert!(text(&bench(&["--locks", "queued-rw"]).stderr).contains("reader-writer"));
}
