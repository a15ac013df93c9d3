//! Each method of `lock_api` calls the one method of a lock that is its counterpart. The locks' methods are so alike
//! that a wrong one would compile, and mostly work.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, AtomicUsize};
use core::time::Duration;
use std::borrow::ToOwned;
use std::format;
use std::string::String;
use std::vec::Vec;

use lock_api::{
    GuardSend, RawMutex, RawMutexFair, RawMutexTimed, RawRwLock, RawRwLockDowngrade, RawRwLockFair,
    RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair,
    RawRwLockUpgradeTimed,
};

use crate::events::NoEvents;
use crate::lock::{
    ConstLock, Guard, RawFairLock, RawFairSharedLock, RawLock, RawSharedLock, RawTimedLock,
    RawTimedSharedLock, RawUpgradableLock,
};
use crate::node::{Node, NodeId};
use crate::observer::Observer;
use crate::platform::{CpuId, Platform, StaticPlatform, TimedPlatform};
use crate::raw::Raw;
use crate::sleepers::NEVER;

/// What the lock answers, and whether an observer looks.
#[derive(Clone, Copy)]
struct Scene {
    observed: bool,
    /// An attempt succeeds, and the lock is locked.
    at_once: bool,
    /// A wait succeeds.
    at_last: bool,
}

std::thread_local! {
    static SCENE: Cell<Scene> =
        const { Cell::new(Scene { observed: false, at_once: true, at_last: true }) };
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(entry: &str) {
    LOG.with(|log| log.borrow_mut().push(entry.to_owned()));
}

fn note_until(method: &str, deadline: u64) {
    let until = if deadline == NEVER { "never".to_owned() } else { format!("{deadline}") };
    note(&format!("{method} {until}"));
}

/// A lock that only records which of its methods are called.
struct Recorder;

type Lock = Raw<Recorder, Desk>;

static LOCK: Lock = Raw::new();

fn at_once(method: &str) -> bool {
    note(method);
    SCENE.get().at_once
}

fn until(method: &str, deadline: u64) -> bool {
    note_until(method, deadline);
    SCENE.get().at_last
}

impl ConstLock for Recorder {
    const UNLOCKED: Self = Self;
    type Guard = GuardSend;
}

// SAFETY: it excludes none, but there is nothing that it would have to protect.
unsafe impl RawLock<Desk> for Recorder {
    fn new() -> Self {
        Self
    }
    fn acquire(&self, _: &Desk) {
        note("acquire");
    }
    fn try_acquire(&self, _: &Desk) -> bool {
        at_once("try_acquire")
    }
    unsafe fn release(&self, _: &Desk) {
        note("release");
    }
    fn is_locked(&self, _: &Desk) -> bool {
        at_once("RawLock::is_locked")
    }
}

impl RawTimedLock<Desk> for Recorder {
    fn acquire_until(&self, _: &Desk, deadline: u64) -> bool {
        until("acquire_until", deadline)
    }
}

impl RawFairLock<Desk> for Recorder {
    unsafe fn release_fair(&self, _: &Desk) {
        note("release_fair");
    }
}

// SAFETY: as above.
unsafe impl RawSharedLock<Desk> for Recorder {
    fn new() -> Self {
        Self
    }
    fn acquire_shared(&self, _: &Desk) {
        note("acquire_shared");
    }
    fn try_acquire_shared(&self, _: &Desk) -> bool {
        at_once("try_acquire_shared")
    }
    unsafe fn release_shared(&self, _: &Desk) {
        note("release_shared");
    }
    fn acquire_exclusive(&self, _: &Desk) {
        note("acquire_exclusive");
    }
    fn try_acquire_exclusive(&self, _: &Desk) -> bool {
        at_once("try_acquire_exclusive")
    }
    unsafe fn release_exclusive(&self, _: &Desk) {
        note("release_exclusive");
    }
    fn is_locked(&self, _: &Desk) -> bool {
        at_once("RawSharedLock::is_locked")
    }
    fn is_locked_exclusive(&self, _: &Desk) -> bool {
        at_once("is_locked_exclusive")
    }
}

impl RawTimedSharedLock<Desk> for Recorder {
    fn acquire_shared_until(&self, _: &Desk, deadline: u64) -> bool {
        until("acquire_shared_until", deadline)
    }
    fn acquire_exclusive_until(&self, _: &Desk, deadline: u64) -> bool {
        until("acquire_exclusive_until", deadline)
    }
}

impl RawFairSharedLock<Desk> for Recorder {
    unsafe fn release_shared_fair(&self, _: &Desk) {
        note("release_shared_fair");
    }
    unsafe fn release_exclusive_fair(&self, _: &Desk) {
        note("release_exclusive_fair");
    }
    unsafe fn release_upgradable_fair(&self, _: &Desk) {
        note("release_upgradable_fair");
    }
}

// SAFETY: as above.
unsafe impl RawUpgradableLock<Desk> for Recorder {
    fn acquire_upgradable_until(&self, _: &Desk, deadline: u64) -> bool {
        until("acquire_upgradable_until", deadline)
    }
    fn try_acquire_upgradable(&self, _: &Desk) -> bool {
        at_once("try_acquire_upgradable")
    }
    unsafe fn release_upgradable(&self, _: &Desk) {
        note("release_upgradable");
    }
    unsafe fn upgrade_until(&self, _: &Desk, deadline: u64) -> bool {
        until("upgrade_until", deadline)
    }
    unsafe fn try_upgrade(&self, _: &Desk) -> bool {
        at_once("try_upgrade")
    }
    unsafe fn downgrade_upgradable(&self, _: &Desk) {
        note("downgrade_upgradable");
    }
    unsafe fn downgrade(&self, _: &Desk) {
        note("downgrade");
    }
    unsafe fn downgrade_to_upgradable(&self, _: &Desk) {
        note("downgrade_to_upgradable");
    }
}

/// The platform: it records holders and what an observer is told.
struct Desk;

const NOW_NS: u64 = 1000;
const TIMEOUT: Duration = Duration::from_nanos(500);
const INSTANT: u64 = 1700;

impl StaticPlatform for Desk {
    const PLATFORM: Self = Self;
}

impl TimedPlatform for Desk {
    type Instant = u64;
    fn until(instant: u64) -> Duration {
        Duration::from_nanos(instant - NOW_NS)
    }
    fn after(_: Duration) -> Option<u64> {
        None
    }
}

impl Platform for Desk {
    type Word = AtomicU32;
    type Address = AtomicUsize;
    type Events = NoEvents;
    fn events(&self) -> &NoEvents {
        &NoEvents
    }
    fn cpu(&self) -> Option<CpuId> {
        None
    }
    fn node(&self, _: NodeId) -> &Node<AtomicU32> {
        unreachable!("a context without a number has no node")
    }
    fn now_ns(&self) -> u64 {
        NOW_NS
    }
    fn holder_enter(&self) {
        note("enter");
    }
    fn holder_exit(&self) {
        note("exit");
    }
    fn observer(&self) -> Option<&'static dyn Observer> {
        SCENE.get().observed.then_some(&Eye)
    }
}

struct Eye;

impl Eye {
    const SINCE: u64 = 7;
    const RELEASES: [u64; 2] = [8, 9];
}

impl Observer for Eye {
    fn waits(&self, lock: usize) -> u64 {
        assert_eq!(lock, LOCK.address());
        note("waits");
        Self::SINCE
    }
    fn has_waited(&self, lock: usize, since: u64, acquired: bool) {
        assert_eq!((lock, since), (LOCK.address(), Self::SINCE));
        note(if acquired { "has waited" } else { "has given up" });
    }
    fn acquired(&self, lock: usize, shared: bool) {
        assert_eq!(lock, LOCK.address());
        note(acquired(shared));
    }
    fn releases(&self, lock: usize) -> [u64; 2] {
        assert_eq!(lock, LOCK.address());
        note("releases");
        Self::RELEASES
    }
    fn has_released(&self, lock: usize, what: [u64; 2]) {
        assert_eq!((lock, what), (LOCK.address(), Self::RELEASES));
        note("has released");
    }
}

fn acquired(shared: bool) -> &'static str {
    if shared { "acquired to read" } else { "acquired" }
}

fn has(_: GuardSend) -> bool {
    true
}

fn listed(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|&entry| entry.to_owned()).collect()
}

/// The result of a method, and what it records, in a scene: observed, with attempts and with waits that succeed.
fn run<R>(scene: (bool, bool, bool), method: impl FnOnce() -> R) -> (R, Vec<String>) {
    let (observed, at_once, at_last) = scene;
    SCENE.set(Scene { observed, at_once, at_last });
    LOG.take();
    (method(), LOG.take())
}

/// A method that may wait; its counterparts, which are the attempt, for an observer, and the wait; and whether it
/// reads.
type Waits = (fn() -> bool, &'static str, &'static str, bool);

/// A method that does not wait; its counterpart; and whether it reads.
type Attempts = (fn(&Lock) -> Option<GuardSend>, &'static str, bool);

/// Methods of one type, each with its counterpart.
type Table<M, const N: usize> = [(M, &'static str); N];

#[test]
fn each_method_that_waits_calls_its_counterpart_with_its_deadline() {
    const FREE: &str = "try_acquire";
    const SHARED: &str = "try_acquire_shared";
    const EXCLUSIVE: &str = "try_acquire_exclusive";
    const UPGRADABLE: &str = "try_acquire_upgradable";
    // These do not give up.
    let unbounded: [Waits; 4] = [
        (|| has(LOCK.lock()), FREE, "acquire", false),
        (|| has(LOCK.lock_shared()), SHARED, "acquire_shared", true),
        (|| has(LOCK.lock_exclusive()), EXCLUSIVE, "acquire_exclusive", false),
        (|| has(LOCK.lock_upgradable()), UPGRADABLE, "acquire_upgradable_until never", true),
    ];
    let timed: [Waits; 8] = [
        (|| LOCK.try_lock_for(TIMEOUT).is_some(), FREE, "acquire_until 1500", false),
        (|| LOCK.try_lock_until(INSTANT).is_some(), FREE, "acquire_until 1700", false),
        (|| LOCK.try_lock_shared_for(TIMEOUT).is_some(), SHARED, "acquire_shared_until 1500", true),
        (
            || LOCK.try_lock_shared_until(INSTANT).is_some(),
            SHARED,
            "acquire_shared_until 1700",
            true,
        ),
        (
            || LOCK.try_lock_exclusive_for(TIMEOUT).is_some(),
            EXCLUSIVE,
            "acquire_exclusive_until 1500",
            false,
        ),
        (
            || LOCK.try_lock_exclusive_until(INSTANT).is_some(),
            EXCLUSIVE,
            "acquire_exclusive_until 1700",
            false,
        ),
        (
            || LOCK.try_lock_upgradable_for(TIMEOUT).is_some(),
            UPGRADABLE,
            "acquire_upgradable_until 1500",
            true,
        ),
        (
            || LOCK.try_lock_upgradable_until(INSTANT).is_some(),
            UPGRADABLE,
            "acquire_upgradable_until 1700",
            true,
        ),
    ];
    for (method, attempt, wait, shared) in unbounded.into_iter().chain(timed) {
        let seen = acquired(shared);
        let (taken, log) = run((false, false, true), method);
        assert_eq!((taken, log), (true, listed(&[wait, "enter"])));
        let (taken, log) = run((true, true, false), method);
        assert_eq!((taken, log), (true, listed(&[attempt, seen, "enter"])));
        let (taken, log) = run((true, false, true), method);
        let waited = [attempt, "waits", wait, "has waited", seen, "enter"];
        assert_eq!((taken, log), (true, listed(&waited)));
    }
    for (method, attempt, wait, _) in timed {
        assert_eq!(run((false, true, false), method), (false, listed(&[wait])));
        let waited = [attempt, "waits", wait, "has given up"];
        assert_eq!(run((true, false, false), method), (false, listed(&waited)));
    }
}

#[test]
fn each_method_that_does_not_wait_calls_its_counterpart() {
    let attempts: [Attempts; 4] = [
        (Lock::try_lock, "try_acquire", false),
        (Lock::try_lock_shared, "try_acquire_shared", true),
        (Lock::try_lock_exclusive, "try_acquire_exclusive", false),
        (Lock::try_lock_upgradable, "try_acquire_upgradable", true),
    ];
    for (method, attempt, shared) in attempts {
        let method = || method(&LOCK).is_some();
        assert_eq!(run((false, true, false), method), (true, listed(&[attempt, "enter"])));
        let observed = [attempt, acquired(shared), "enter"];
        assert_eq!(run((true, true, false), method), (true, listed(&observed)));
        for observed in [false, true] {
            assert_eq!(run((observed, false, true), method), (false, listed(&[attempt])));
        }
    }
    let questions: Table<fn(&Lock) -> bool, 3> = [
        (<Lock as RawMutex>::is_locked, "RawLock::is_locked"),
        (<Lock as RawRwLock>::is_locked, "RawSharedLock::is_locked"),
        (Lock::is_locked_exclusive, "is_locked_exclusive"),
    ];
    for (method, question) in questions {
        for answer in [false, true] {
            let (result, log) = run((true, answer, !answer), || method(&LOCK));
            assert_eq!((result, log), (answer, listed(&[question])));
        }
    }
}

#[test]
fn each_method_that_releases_calls_its_counterpart() {
    let releases: Table<unsafe fn(&Lock, GuardSend), 8> = [
        (Lock::unlock, "release"),
        (Lock::unlock_fair, "release_fair"),
        (Lock::unlock_shared, "release_shared"),
        (Lock::unlock_shared_fair, "release_shared_fair"),
        (Lock::unlock_exclusive, "release_exclusive"),
        (Lock::unlock_exclusive_fair, "release_exclusive_fair"),
        (Lock::unlock_upgradable, "release_upgradable"),
        (Lock::unlock_upgradable_fair, "release_upgradable_fair"),
    ];
    for (method, release) in releases {
        // SAFETY: the lock protects nothing; it may as well be held.
        let method = || unsafe { method(&LOCK, GuardSend::marker()) };
        assert_eq!(run((false, true, true), method).1, listed(&[release, "exit"]));
        let observed = ["releases", release, "has released", "exit"];
        assert_eq!(run((true, true, true), method).1, listed(&observed));
    }
}

/// The holder goes on holding the lock, and an observer is told nothing.
#[test]
fn each_method_by_which_a_holder_changes_sides_calls_its_counterpart() {
    let always: Table<unsafe fn(&Lock, GuardSend) -> GuardSend, 4> = [
        (Lock::upgrade, "upgrade_until never"),
        (Lock::downgrade, "downgrade"),
        (Lock::downgrade_upgradable, "downgrade_upgradable"),
        (Lock::downgrade_to_upgradable, "downgrade_to_upgradable"),
    ];
    let perhaps: Table<fn(GuardSend) -> Result<GuardSend, GuardSend>, 3> = [
        // SAFETY: the lock protects nothing; it may as well be held.
        (|guard| unsafe { LOCK.try_upgrade(guard) }, "try_upgrade"),
        // SAFETY: as above.
        (|guard| unsafe { LOCK.try_upgrade_for(guard, TIMEOUT) }, "upgrade_until 1500"),
        // SAFETY: as above.
        (|guard| unsafe { LOCK.try_upgrade_until(guard, INSTANT) }, "upgrade_until 1700"),
    ];
    for observed in [false, true] {
        for (method, change) in always {
            // SAFETY: as above.
            let method = || has(unsafe { method(&LOCK, GuardSend::marker()) });
            assert_eq!(run((observed, true, true), method), (true, listed(&[change])));
        }
        for (method, change) in perhaps {
            for succeeds in [false, true] {
                let method = || method(GuardSend::marker()).is_ok();
                let result = run((observed, succeeds, succeeds), method);
                assert_eq!(result, (succeeds, listed(&[change])));
            }
        }
    }
}
