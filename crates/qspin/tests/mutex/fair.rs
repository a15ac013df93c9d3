//! Fair releases: a waiter comes before the thread that releases and comes back at once.

use std::fs;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use qspin::{Mutex, MutexGuard};

/// Waits until the thread sleeps; it has nothing to sleep for but a lock.
fn until_asleep(thread: &AtomicI32) {
    let begun = Instant::now();
    loop {
        let stat = match thread.load(Relaxed) {
            0 => String::new(),
            id => fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap(),
        };
        // The state follows the name, which is in brackets.
        if stat.rsplit(')').next().unwrap().starts_with(" S") {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not go to sleep");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_fair_release_is_for_who_waits() {
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
            // Either way the one that waits is next.
            if round % 2 == 0 {
                MutexGuard::unlock_fair(held);
                held = lock.lock();
            } else {
                MutexGuard::bump(&mut held);
            }
            assert_eq!(*held, round + 1, "the one that waited was passed");
            drop(held);
        });
    }
}

/// No thread waits, or those that do give up: then the lock is free for all.
#[test]
fn a_fair_release_reserves_the_lock_for_nobody_else() {
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
