//! The waiters that a notification wakes and moves: CONDVAR-2, -3, -4 and -6.

use core::sync::atomic::{AtomicU32, AtomicUsize};

use super::*;
use crate::lock::ConstLock;
use crate::platform::Platform;
use crate::scripted::Scripted;
use crate::site::Site;

type Cond = Condition<AtomicU32, AtomicUsize>;
type Lock = DefaultLock<AtomicU32>;

const WAITER: u32 = 1;
const OTHER: u32 = 2;
const NOTIFIER: u32 = 3;

fn unlocked() -> Lock {
    Lock::UNLOCKED
}

/// `cpu` waits, with the mutex that the condition knows, for ever.
fn waits(condition: &Cond, p: &Scripted, cpu: u32) {
    condition.waiters.fetch_add(1, Relaxed);
    p.sleeps(cpu, 0, p.address(&condition.waiters), TAG, End::Last);
}

#[test]
fn the_first_waiter_is_woken_and_the_others_wait_for_the_mutex_behind_its_sleepers() {
    let (condition, lock) = (&Cond::new(), &unlocked());
    let p = Scripted::new(1);
    condition.know(lock.address(&p));
    p.sleeps(7, 0, lock.address(&p), mutex::TAG, End::Last);
    for cpu in [4, 5, 6] {
        waits(condition, &p, cpu);
    }
    assert_eq!(condition.notify_all(&p), 3);
    assert_eq!(p.kicked(), [4]);
    assert_eq!(condition.notify_all(&p), 0, "none is counted again");
    assert!(!condition.notify_one(&p));
    for next in [7, 5, 6] {
        // As the one that was woken before, which takes its count back.
        lock.acquire_woken(&p);
        // SAFETY: acquired just above.
        unsafe { lock.release(&p) };
        assert_eq!(p.kicked(), [next]);
    }
}

#[test]
fn waiters_are_notified_one_after_the_other_in_order() {
    let (condition, lock) = (&Cond::new(), &unlocked());
    let p = Scripted::new(1);
    condition.know(lock.address(&p));
    for cpu in [5, 4, 6] {
        waits(condition, &p, cpu);
    }
    for cpu in [5, 4, 6] {
        assert!(condition.notify_one(&p));
        assert_eq!(p.kicked(), [cpu]);
    }
    assert!(!condition.notify_one(&p));
}

#[test]
fn with_more_than_one_mutex_all_waiters_are_woken() {
    let (condition, locks) = (&Cond::new(), &[unlocked(), unlocked()]);
    let p = Scripted::new(1);
    // The first one again does not make it the only one.
    for lock in [&locks[0], &locks[1], &locks[0]] {
        condition.know(lock.address(&p));
    }
    for cpu in [4, 5, 6] {
        waits(condition, &p, cpu);
    }
    assert_eq!(condition.notify_all(&p), 3);
    assert_eq!(p.kicked(), [4, 5, 6]);
}

#[test]
fn if_another_mutex_becomes_known_meanwhile_all_waiters_are_woken() {
    let (condition, locks) = (&Cond::new(), &[unlocked(), unlocked()]);
    let p = Scripted::new(1);
    condition.know(locks[0].address(&p));
    for cpu in [4, 5, 6] {
        waits(condition, &p, cpu);
    }
    // The notification is about to take the first waiter out.
    p.at_site(Site::SleepBucketLock, OTHER, |p| condition.know(locks[1].address(p)));
    assert_eq!(condition.notify_all(&p), 3);
    let mut kicked = p.kicked();
    kicked.sort_unstable();
    assert_eq!(kicked, [4, 5, 6]);
}

#[test]
fn a_waiter_that_was_moved_and_whose_deadline_passes_was_notified() {
    for is_notified in [true, false] {
        let (condition, lock) = (&Cond::new(), &unlocked());
        let p = Scripted::new(1);
        condition.know(lock.address(&p));
        waits(condition, &p, OTHER);
        p.at_halt(NOTIFIER, move |p| {
            assert!(!RawLock::is_locked(lock, p));
            if is_notified {
                assert_eq!(condition.notify_all(p), 2);
                assert_eq!(p.kicked(), [OTHER]);
            }
            p.pass(100);
        });
        let deadline = p.after(100);
        p.on_cpu(WAITER, |p| {
            lock.acquire(p);
            // SAFETY: acquired just above.
            assert_eq!(unsafe { condition.wait_until(p, lock, deadline) }, is_notified);
        });
        assert!(lock.is_locked(&p));
        assert_eq!(condition.waiters.load(Relaxed), 1, "the other one, which never looks");
        assert_eq!(condition.notify_all(&p), u32::from(!is_notified));
    }
}

#[test]
fn a_waiter_that_a_release_of_the_mutex_wakes_takes_its_count_back() {
    let (condition, lock) = (&Cond::new(), &unlocked());
    let p = Scripted::new(1);
    condition.know(lock.address(&p));
    waits(condition, &p, OTHER);
    p.at_halt(NOTIFIER, |p| {
        lock.acquire(p);
        assert_eq!(condition.notify_all(p), 2);
        assert_eq!(p.kicked(), [OTHER]);
        // SAFETY: acquired just above.
        unsafe { lock.release(p) };
        assert_eq!(p.kicked(), [WAITER]);
    });
    p.on_cpu(WAITER, |p| {
        lock.acquire(p);
        // SAFETY: acquired just above.
        assert!(unsafe { condition.wait_until(p, lock, NEVER) });
    });
    // A release looks for sleepers again.
    p.sleeps(4, 0, lock.address(&p), mutex::TAG, End::Last);
    // SAFETY: acquired by the wait.
    p.on_cpu(WAITER, |p| unsafe { lock.release(p) });
    assert_eq!(p.kicked(), [4]);
}

#[test]
fn a_wait_without_a_node_ends_after_a_moment_and_as_notified_unless_its_deadline_has_passed() {
    let (condition, lock) = (&Cond::new(), &unlocked());
    let p = Scripted::new(1);
    p.uses_up_nodes(WAITER);
    let begin = p.after(0);
    for (deadline, passes, is_notified) in
        [(100, 99, true), (200, 101, false), (300, 101, false), (NEVER, 100, true)]
    {
        p.at_halt(NOTIFIER, move |p| {
            assert!(lock.try_acquire(p), "the waiter lets others have the lock");
            // SAFETY: acquired just above.
            unsafe { lock.release(p) };
            p.pass(passes);
        });
        p.on_cpu(WAITER, |p| {
            lock.acquire(p);
            let deadline = begin.saturating_add(deadline);
            // SAFETY: acquired just above.
            assert_eq!(unsafe { condition.wait_until(p, lock, deadline) }, is_notified);
            assert!(lock.is_locked(p));
            // SAFETY: acquired by the wait.
            unsafe { lock.release(p) };
        });
    }
}
