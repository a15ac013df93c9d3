use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use qspin::{Condvar, Mutex};

use super::{LONG, until};

#[test]
fn everything_that_was_put_in_is_taken_out() {
    const THREADS: u64 = 6;
    const THINGS: u64 = 3000;
    const ROOM: usize = 4;
    let (queue, filled, emptied) = (Mutex::new(Vec::new()), Condvar::new(), Condvar::new());
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for producer in 0..THREADS {
            let (queue, filled, emptied) = (&queue, &filled, &emptied);
            scope.spawn(move || {
                for thing in 0..THINGS {
                    let mut queue = queue.lock();
                    emptied.wait_while(&mut queue, |queue| queue.len() == ROOM);
                    queue.push(producer * THINGS + thing);
                    drop(queue);
                    // Either has to do: with one, another thread than the one that was meant may not be told.
                    if thing % 2 == 0 {
                        filled.notify_one()
                    } else {
                        filled.notify_all() > 0
                    };
                }
            });
            scope.spawn(|| {
                for _ in 0..THINGS {
                    let mut queue = queue.lock();
                    filled.wait_while(&mut queue, |queue| queue.is_empty());
                    let thing = queue.pop().unwrap();
                    // Under the lock this time.
                    emptied.notify_one();
                    drop(queue);
                    sum.fetch_add(thing, Relaxed);
                }
            });
        }
    });
    let all = THREADS * THINGS;
    assert_eq!(sum.load(Relaxed), all * (all - 1) / 2);
}

/// Rounds in which all threads wait for all: each notification is for all, and a waiter that was moved to the
/// mutex and forgotten would stop it for ever.
#[test]
fn all_are_told_again_and_again() {
    const THREADS: u64 = 16;
    const ROUNDS: u64 = 300;
    let (state, turn) = (Mutex::new((0_u64, 0_u64)), Condvar::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let mut state = state.lock();
                    state.0 += 1;
                    if state.0 == THREADS {
                        *state = (0, round + 1);
                        turn.notify_all();
                    } else {
                        turn.wait_while(&mut state, |state| state.1 == round);
                    }
                }
            });
        }
    });
    assert_eq!(*state.lock(), (0, ROUNDS));
}

#[test]
fn times_are_kept() {
    let (mutex, condition) = (Mutex::new(()), Condvar::new());
    let moment = Duration::from_millis(20);
    let mut held = mutex.lock();
    // A wait may end for no reason, so it is repeated until the time is said to be over.
    let wait = |wait: &mut dyn FnMut() -> bool| {
        let began = Instant::now();
        while !wait() {
            assert!(began.elapsed() < LONG);
        }
        began.elapsed()
    };
    assert!(wait(&mut || condition.wait_for(&mut held, moment).timed_out()) >= moment);
    let end = Instant::now() + moment;
    wait(&mut || condition.wait_until(&mut held, end).timed_out());
    assert!(Instant::now() >= end);
    assert!(condition.wait_while_for(&mut held, |()| true, moment).timed_out());
    assert!(!condition.wait_while_for(&mut held, |()| false, moment).timed_out());
    // In the past, and no time at all.
    assert!(wait(&mut || condition.wait_until(&mut held, end).timed_out()) < LONG);
    assert!(wait(&mut || condition.wait_for(&mut held, Duration::ZERO).timed_out()) < LONG);
    // It holds the mutex again, whatever has ended the wait.
    assert!(mutex.is_locked());
    drop(held);
    assert!(!mutex.is_locked());
}

#[test]
fn a_time_that_never_comes_is_no_overflow() {
    let (mutex, condition) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut told = mutex.lock();
            while !*told {
                assert!(!condition.wait_for(&mut told, Duration::MAX).timed_out());
            }
        });
        *mutex.lock() = true;
        condition.notify_all();
    });
}

#[test]
fn one_condition_may_serve_two_mutexes() {
    let (one, other, condition) = (Mutex::new(false), Mutex::new(false), Condvar::new());
    let waiting = AtomicU64::new(0);
    thread::scope(|scope| {
        for mutex in [&one, &other, &one, &other] {
            let (condition, waiting) = (&condition, &waiting);
            scope.spawn(move || {
                let mut told = mutex.lock();
                waiting.fetch_add(1, Relaxed);
                condition.wait_while(&mut told, |told| !*told);
            });
        }
        until(|| waiting.load(Relaxed) == 4);
        for mutex in [&one, &other] {
            *mutex.lock() = true;
        }
        condition.notify_all();
    });
}

/// Waiters that give up just when they are told, or are moved: no thread's notification is lost with them.
#[test]
fn a_waiter_that_gives_up_takes_no_notification_along() {
    let (mutex, condition) = (Mutex::new(0_u64), Condvar::new());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for index in 0..4 {
            let (mutex, condition, stop) = (&mutex, &condition, &stop);
            scope.spawn(move || {
                let mut count = mutex.lock();
                while !stop.load(Relaxed) {
                    condition.wait_for(&mut count, Duration::from_micros(50 * (index + 1)));
                }
            });
        }
        scope.spawn(|| {
            for round in 0..500 {
                let mut count = mutex.lock();
                *count += 1;
                condition.notify_all();
                condition.wait_for(&mut count, Duration::from_micros(20 * (round % 10)));
            }
            stop.store(true, Relaxed);
            condition.notify_all();
        });
    });
    assert_eq!(*mutex.lock(), 500);
}

/// Waits with `wait` in three threads, until all have begun to wait, and calls `then` under the mutex.
fn with_three_waiters<R>(
    condition: &Condvar,
    wait: impl Fn(&Condvar, &mut qspin::MutexGuard<'_, bool>) + Sync,
    then: impl FnOnce() -> R,
) -> R {
    let (mutex, waiting) = (Mutex::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut told = mutex.lock();
                waiting.fetch_add(1, Relaxed);
                wait(condition, &mut told);
            });
        }
        until(|| waiting.load(Relaxed) == 3);
        // They wait: each has released the mutex only to do so.
        let mut told = mutex.lock();
        let result = then();
        *told = true;
        drop(told);
        condition.notify_all();
        result
    })
}

/// Rounds until one is as expected: a waiter whose bucket is in use is rarely woken otherwise than by a notification.
const ROUNDS: u32 = 20;

#[test]
fn each_waiter_is_reported_once() {
    let wait = |condition: &Condvar, told: &mut qspin::MutexGuard<'_, bool>| {
        condition.wait_while(told, |told| !*told);
    };
    let condition = Condvar::new();
    assert!(!condition.notify_one() && condition.notify_all() == 0, "no thread waits");
    let one_by_one = (0..ROUNDS).any(|_| {
        let woken = with_three_waiters(&condition, wait, || {
            (0..5).map(|_| condition.notify_one()).filter(|woken| *woken).count()
        });
        assert!(woken <= 3);
        woken == 3
    });
    assert!(one_by_one);
    let at_once = (0..ROUNDS).any(|_| {
        let (first, rest) = with_three_waiters(&condition, wait, || {
            (condition.notify_all(), condition.notify_all() + usize::from(condition.notify_one()))
        });
        assert!(first + rest <= 3);
        (first, rest) == (3, 0)
    });
    assert!(at_once);
}

/// Two of three waiters are moved to the mutex, and their deadline passes while they sleep for it.
#[test]
fn what_was_reported_has_not_timed_out() {
    let deadline = Duration::from_millis(200);
    let condition = Condvar::new();
    let all = (0..ROUNDS).any(|_| {
        let notified = AtomicU64::new(0);
        let reported = with_three_waiters(
            &condition,
            |condition, told| {
                if !condition.wait_for(told, deadline).timed_out() {
                    notified.fetch_add(1, Relaxed);
                }
            },
            || {
                let reported = condition.notify_all() as u64;
                thread::sleep(deadline + Duration::from_millis(20));
                reported
            },
        );
        assert!(notified.load(Relaxed) >= reported);
        reported == 3
    });
    assert!(all);
}
