//! Fair releases: a waiter comes before the thread that releases and comes back at once.

use std::fs;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use qspin::{Mutex, MutexGuard};

use super::is_alone;

/// How often a thread is looked at in a row, a millisecond apart, until it is said to sleep on the lock. An emulator
/// has locks of its own, on which it sleeps for a moment.
const LOOKS: u32 = 5;

/// Waits until the thread sleeps, and goes on sleeping.
fn until_asleep(thread: &AtomicI32) {
    let begun = Instant::now();
    let mut asleep = 0;
    while asleep < LOOKS {
        let stat = match thread.load(Relaxed) {
            0 => String::new(),
            id => fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap(),
        };
        // The state follows the name, which is in brackets.
        let sleeps = stat.rsplit(')').next().unwrap().starts_with(" S");
        asleep = if sleeps { asleep + 1 } else { 0 };
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not go to sleep");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Alone: where another thread has the bucket of the sleepers locked, and is not running, the release wakes all of
/// them and hands the lock off to none.
#[test]
fn a_fair_release_hands_the_lock_off() {
    if !is_alone("fair::a_fair_release_hands_the_lock_off") {
        return;
    }
    let lock = Mutex::new(0_u32);
    for round in 0..60 {
        let mut held = lock.lock();
        let waiter = AtomicI32::new(0);
        thread::scope(|scope| {
            let (lock, waiter) = (&lock, &waiter);
            scope.spawn(move || {
                // SAFETY: asks for a number.
                waiter.store(unsafe { libc::gettid() }, Relaxed);
                *lock.lock() += 1;
            });
            until_asleep(waiter);
            // Either way the waiter is next.
            if round % 2 == 0 {
                MutexGuard::unlock_fair(held);
                held = lock.lock();
            } else {
                MutexGuard::bump(&mut held);
            }
            assert_eq!(*held, round + 1, "the waiter was passed");
            drop(held);
        });
    }
}

/// No thread waits, or the waiter gives up: then the lock is free for all.
#[test]
fn a_fair_release_without_a_waiter_leaves_the_lock_free() {
    let lock = Mutex::new(());
    MutexGuard::unlock_fair(lock.lock());
    assert!(lock.try_lock().is_some());
    for _ in 0..60 {
        let held = lock.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| lock.try_lock_for(Duration::from_millis(1)).is_some());
            thread::sleep(Duration::from_millis(1));
            // It gives up just now, or gets the lock.
            MutexGuard::unlock_fair(held);
            drop(lock.lock());
            let _ = waiter.join().unwrap();
        });
        assert!(lock.try_lock().is_some());
    }
}
