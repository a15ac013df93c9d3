//! What the condition variable of `lock_api` does with deadlines and notifications, and what its platform and an
//! observer hear of a wait.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::borrow::ToOwned;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use lock_api::{GuardSend, RawCondvar as _, RawCondvarTimed, RawMutex};

use crate::events::NoEvents;
use crate::lock::Guard;
use crate::locks::mutex::DefaultLock;
use crate::node::{LEVELS, Node, NodeId};
use crate::observer::Observer;
use crate::platform::{CpuId, Platform, StaticPlatform, TimedPlatform, Until};
use crate::raw::{Raw, RawCondvar};
use crate::sleepers::{SleepBucket, SleepPlatform, Sleeper};

/// The platform: CPUs in one thread. It records holders, halts and kicks, and what an observer is told.
struct Stage;

type Lock = Raw<DefaultLock<AtomicU32>, Stage>;

const CPUS: usize = 4;
const NODES: usize = CPUS * LEVELS as usize;
const NOW_NS: u64 = 1000;
/// So late a wait ends by its deadline.
const INSTANT: u64 = 1700;

static NODE: [Node<AtomicU32>; NODES] = [const { Node::<AtomicU32>::UNUSED }; NODES];
static SLEEPER: [Sleeper<AtomicU32, AtomicUsize>; NODES] =
    [const { Sleeper::<AtomicU32, AtomicUsize>::UNUSED }; NODES];
static HINT: [AtomicU32; 1] = [AtomicU32::new(0)];
static BUCKET: [SleepBucket<AtomicU32>; 1] = [SleepBucket::EMPTY];

std::thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static CPU: Cell<u32> = const { Cell::new(0) };
    static NOW: Cell<u64> = const { Cell::new(NOW_NS) };
    static OBSERVED: Cell<bool> = const { Cell::new(false) };
    /// What the others do at the next halt.
    static OTHERS: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

fn note(entry: &str) {
    LOG.with(|log| log.borrow_mut().push(entry.to_owned()));
}

fn index(id: NodeId) -> usize {
    (id.number() - NodeId::FIRST) as usize
}

/// The tests take turns on the one platform.
fn begin() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    OBSERVED.set(false);
    turn
}

fn on_cpu<R>(cpu: u32, run: impl FnOnce() -> R) -> R {
    let before = CPU.replace(cpu);
    let result = run();
    CPU.set(before);
    result
}

fn at_halt(others: impl FnOnce() + 'static) {
    OTHERS.set(Some(Box::new(others)));
}

/// What this returns, and what is recorded meanwhile.
fn run<R>(run: impl FnOnce() -> R) -> (R, Vec<String>) {
    NOW.set(NOW_NS);
    LOG.take();
    (run(), LOG.take())
}

impl StaticPlatform for Stage {
    const PLATFORM: Self = Self;
}

impl TimedPlatform for Stage {
    type Instant = u64;
    fn until(instant: u64) -> Duration {
        Duration::from_nanos(instant - NOW.get())
    }
    fn after(duration: Duration) -> Option<u64> {
        u64::try_from(duration.as_nanos()).ok()?.checked_add(NOW.get())
    }
}

impl Platform for Stage {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;
    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn cpu(&self) -> Option<CpuId> {
        CpuId::new(CPU.get())
    }
    fn node(&self, id: NodeId) -> &Node<AtomicU32> {
        &NODE[index(id)]
    }
    fn now_ns(&self) -> u64 {
        NOW.get()
    }
    fn holder_enter(&self) {
        note("enter");
    }
    fn holder_exit(&self) {
        note("exit");
    }
    fn observer(&self) -> Option<&'static dyn Observer> {
        OBSERVED.get().then_some(&Eye)
    }
    fn halt(&self, _: NodeId) {
        note("halts");
        OTHERS.take().expect("it waits for ever")();
    }
    fn kick(&self, node: NodeId) {
        note(&format!("kick {}", node.cpu().number()));
    }
}

impl SleepPlatform for Stage {
    fn hints(&self) -> &[AtomicU32] {
        &HINT
    }
    fn buckets(&self) -> &[SleepBucket<AtomicU32>] {
        &BUCKET
    }
    fn sleeper(&self, id: NodeId) -> &Sleeper<AtomicU32, AtomicUsize> {
        &SLEEPER[index(id)]
    }
    fn token(&self) -> u32 {
        CPU.get() + 1
    }
    fn asymmetric(&self) -> bool {
        false
    }
    fn light_barrier(&self, _: Ordering) {}
    fn heavy_barrier(&self, _: Ordering) {}
    fn halt_until(&self, _: NodeId, deadline: u64) {
        note(&format!("halts until {deadline}"));
        NOW.set(deadline);
    }
    fn wait_briefly(&self, _: &AtomicU32, _: Until, _: u32) -> bool {
        unreachable!("nothing is in use for a moment")
    }
    fn timed_backoff(&self) {
        unreachable!("each CPU can sleep")
    }
}

struct Eye;

impl Observer for Eye {
    fn waits(&self, _: usize) -> u64 {
        unreachable!("the mutex is free")
    }
    fn has_waited(&self, _: usize, _: u64, _: bool) {}
    fn acquired(&self, _: usize, shared: bool) {
        assert!(!shared);
        note("acquired");
    }
    fn releases(&self, lock: usize) -> [u64; 2] {
        note("releases");
        [lock as u64, 7]
    }
    fn has_released(&self, lock: usize, what: [u64; 2]) {
        assert_eq!(what, [lock as u64, 7]);
        note("has released");
    }
}

#[test]
fn a_wait_ends_at_its_deadline_and_without_one_when_it_is_notified() {
    static CONDITION: RawCondvar<Stage> = RawCondvar::INIT;
    static MUTEX: Lock = Lock::new();
    let _turn = begin();
    for observed in [false, true] {
        OBSERVED.set(observed);
        let wait = |halt: &[&'static str]| {
            let before: &[&str] = if observed { &["exit", "releases"] } else { &["exit"] };
            let seen: &[&str] = if observed { &["has released", "acquired"] } else { &[] };
            [before, halt, seen, &["enter"]].concat()
        };
        let mut guard = MUTEX.lock();
        // SAFETY: locked above.
        let timed = || unsafe { CONDITION.wait_until(&MUTEX, &mut guard, &INSTANT) };
        let (is_over, log) = run(timed);
        assert!(is_over && MUTEX.is_locked());
        assert_eq!(log, wait(&["halts until 1700"]));
        at_halt(|| {
            assert!(!MUTEX.is_locked());
            assert!(on_cpu(0, || CONDITION.wake_one()));
        });
        // SAFETY: the wait before has locked it again.
        let untimed = || unsafe { lock_api::RawCondvar::wait(&CONDITION, &MUTEX, &mut guard) };
        let ((), log) = on_cpu(1, || run(untimed));
        assert!(MUTEX.is_locked());
        assert_eq!(log, wait(&["halts", "kick 1"]));
        // SAFETY: as above.
        unsafe { MUTEX.unlock(guard) };
    }
    let instant = RawCondvar::<Stage>::checked_duration_to_instant(&Duration::from_nanos(5));
    assert_eq!(instant, Some(NOW.get() + 5));
}

static CROWD: RawCondvar<Stage> = RawCondvar::INIT;

/// `cpu` waits, with a mutex of its own: no notification moves it to another's queue.
fn waits(cpu: u32, others: impl FnOnce() + 'static) {
    static MUTEXES: [Lock; CPUS] = [const { Lock::new() }; CPUS];
    let mutex = &MUTEXES[cpu as usize];
    on_cpu(cpu, || {
        let mut guard = mutex.lock();
        at_halt(others);
        // SAFETY: locked above.
        unsafe { lock_api::RawCondvar::wait(&CROWD, mutex, &mut guard) };
        // SAFETY: the wait has locked it again.
        unsafe { mutex.unlock(guard) };
    });
}

/// A method; how many of three it wakes; and how many it reports.
type Notification = (fn() -> usize, usize, usize);

#[test]
fn notifications_wake_one_or_all_and_report_how_many_only_where_they_know_of_them() {
    let _turn = begin();
    let notifications: [Notification; 4] = [
        (|| CROWD.wake_one().into(), 1, 1),
        (|| CROWD.wake_all(), 3, 3),
        // By the rule of `lock_api` these report nothing.
        (|| CROWD.notify_one().into(), 1, 0),
        (|| CROWD.notify_all(), 3, 0),
    ];
    for (notify, wakes, reported) in notifications {
        let notifies = move || {
            let (reports, log) = on_cpu(0, || run(notify));
            assert_eq!(reports, reported);
            assert_eq!(log, ["kick 1", "kick 2", "kick 3"][..wakes]);
            assert_eq!(on_cpu(0, || CROWD.wake_all()), 3 - wakes);
        };
        waits(1, move || waits(2, move || waits(3, notifies)));
    }
}

#[test]
fn a_lock_for_a_notified_waiter_is_held_and_the_first_step_of_locking_takes_a_free_lock() {
    static MUTEX: Lock = Lock::new();
    let _turn = begin();
    assert_eq!(run(|| MUTEX.lock_at_once()), (true, Vec::new()));
    assert!(!MUTEX.lock_at_once() && MUTEX.is_locked());
    // SAFETY: locked above.
    unsafe { MUTEX.unlock(GuardSend::marker()) };
    let (guard, log) = run(|| MUTEX.lock_notified());
    assert_eq!(log, ["enter"]);
    assert!(MUTEX.is_locked());
    // SAFETY: locked above.
    unsafe { MUTEX.unlock(guard) };
}
