use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use qspin::{Mutex, Once, OnceState};

#[test]
fn the_first_does_it_and_the_others_wait() {
    for round in 0..200 {
        let (once, done) = (Once::new(), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    once.call_once(|| {
                        // Sometimes long enough for the others to sleep.
                        if round % 20 == 0 {
                            thread::sleep(Duration::from_millis(2));
                        }
                        done.fetch_add(1, Relaxed);
                    });
                    assert_eq!(done.load(Relaxed), 1);
                });
            }
        });
        assert!(once.is_completed());
    }
}

#[test]
fn a_thread_that_fails_leaves_it_to_the_next() {
    let (once, tries) = (Once::new(), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let panics = catch_unwind(AssertUnwindSafe(|| {
                    once.call_once(|| {
                        thread::sleep(Duration::from_millis(1));
                        if tries.fetch_add(1, Relaxed) < 3 {
                            resume_unwind(Box::new(()));
                        }
                    });
                }))
                .is_err();
                assert!(panics || once.is_completed());
            });
        }
    });
    assert!(once.is_completed());
    assert_eq!(tries.load(Relaxed), 4);
}

#[test]
fn its_state_says_how_far_it_is() {
    let (once, seen) = (Once::new(), Mutex::new(Vec::new()));
    assert_eq!(once.state(), OnceState::New);
    let run = |fails: bool| {
        catch_unwind(AssertUnwindSafe(|| {
            once.call_once_force(|before| {
                seen.lock().push(before);
                assert_eq!(once.state(), OnceState::InProgress);
                thread::scope(|scope| {
                    scope.spawn(|| assert_eq!(once.state(), OnceState::InProgress));
                });
                if fails {
                    resume_unwind(Box::new(()));
                }
            });
        }))
        .is_err()
    };
    assert!(run(true));
    assert!(once.state().poisoned() && !once.state().done() && !once.is_completed());
    assert!(run(true));
    assert_eq!(once.state(), OnceState::Poisoned);
    assert!(!run(false));
    assert!(once.state().done() && once.is_completed());
    // It is not called any more.
    assert!(!run(true));
    assert_eq!(*seen.lock(), [OnceState::New, OnceState::Poisoned, OnceState::Poisoned]);
}
