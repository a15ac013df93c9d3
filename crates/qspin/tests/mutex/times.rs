//! Deadlines: in the past, of no length, beyond the end of time, and while others come and go.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use qspin::Mutex;

use super::Random;

#[test]
fn a_deadline_that_has_passed_allows_one_attempt() {
    let lock = Mutex::new(0);
    let past = Instant::now();
    thread::sleep(Duration::from_millis(1));
    assert!(lock.try_lock_for(Duration::ZERO).is_some());
    assert!(lock.try_lock_until(past).is_some());
    let held = lock.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(lock.try_lock_for(Duration::ZERO).is_none());
            assert!(lock.try_lock_until(past).is_none());
            assert!(lock.try_lock().is_none());
        });
    });
    drop(held);
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_waiter_that_gives_up_has_waited_and_holds_nothing() {
    let lock = Mutex::new(0);
    let held = lock.lock();
    thread::scope(|scope| {
        for milliseconds in [1, 5, 30] {
            let lock = &lock;
            scope.spawn(move || {
                let (begun, time) = (Instant::now(), Duration::from_millis(milliseconds));
                assert!(lock.try_lock_for(time).is_none());
                assert!(begun.elapsed() >= time, "it gave up too early");
                let until = Instant::now() + time;
                assert!(lock.try_lock_until(until).is_none());
                assert!(Instant::now() >= until, "it gave up too early");
            });
        }
    });
    assert!(lock.is_locked());
    drop(held);
    assert!(!lock.is_locked());
}

#[test]
fn a_time_without_end_is_waited_for() {
    let lock = Mutex::new(0);
    let held = lock.lock();
    thread::scope(|scope| {
        let waiters: Vec<_> =
            [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 40)]
                .into_iter()
                .map(|time| {
                    let lock = &lock;
                    scope.spawn(move || lock.try_lock_for(time).map(|mut value| *value += 1))
                })
                .collect();
        thread::sleep(Duration::from_millis(20));
        drop(held);
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Some(()));
        }
    });
    assert_eq!(*lock.lock(), 3);
}

/// A waiter that gives up just when it is woken must hand the wake-up on, or another sleeps for ever.
#[test]
fn waiters_that_give_up_take_no_wake_up_with_them() {
    let lock = Mutex::new(0u64);
    let (counted, gave_up) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..8 {
            let (lock, counted, gave_up) = (&lock, &counted, &gave_up);
            scope.spawn(move || {
                let mut random = Random(number);
                for _ in 0..3000 {
                    let guard = if number % 2 == 0 {
                        Some(lock.lock())
                    } else {
                        lock.try_lock_for(Duration::from_micros(random.below(200)))
                    };
                    let Some(mut value) = guard else {
                        gave_up.fetch_add(1, Relaxed);
                        continue;
                    };
                    *value += 1;
                    counted.fetch_add(1, Relaxed);
                    if random.below(64) == 0 {
                        // The others fall asleep meanwhile.
                        thread::sleep(Duration::from_micros(random.below(150)));
                    }
                }
            });
        }
    });
    assert_eq!(*lock.lock(), counted.load(Relaxed));
    assert_eq!(counted.load(Relaxed) + gave_up.load(Relaxed), 8 * 3000);
}
