//! A waiter behind one that is halted halts early, where it is told to: on threads, counted.
//!
//! One test in a process of its own: tunables and counters are the process's.

use std::thread;
use std::time::{Duration, Instant};

use lock_api::RawMutex;
use qspin::events::{self, Event};
use qspin::paravirt_queued::CountedRawMutex;
use qspin::tuning::{self, Adaptive, Tuning};

static OFF: Tuning = Tuning { adaptive: Adaptive::Off, ..Tuning::DEFAULT };
static NEIGHBOUR: Tuning = Tuning { adaptive: Adaptive::Neighbour, ..Tuning::DEFAULT };
static PERIODIC: Tuning = Tuning { adaptive: Adaptive::Periodic, ..Tuning::DEFAULT };
/// By history: whatever has happened is no reason.
static STOIC: Tuning =
    Tuning { adaptive: Adaptive::History, history_threshold: 100, ..Tuning::DEFAULT };
/// By history: one halt is reason enough.
static ANXIOUS: Tuning =
    Tuning { adaptive: Adaptive::History, history_threshold: 0, ..Tuning::DEFAULT };

fn count(event: Event) -> u64 {
    events::snapshot().into_iter().find_map(|(e, n)| (e == event).then_some(n)).unwrap_or(0)
}

/// Waits until so many waiters have halted in the queue.
fn await_halts(halts: u64) {
    let began = Instant::now();
    while count(Event::WaitNodeCount) < halts {
        assert!(began.elapsed() < Duration::from_secs(60), "{halts} halts never came");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Queues the head and three waiters, each after the one before it has halted; returns how many
/// of them halted early.
fn halted_early(tuning: &'static Tuning) -> u64 {
    tuning::set(tuning);
    events::reset();
    let lock = CountedRawMutex::INIT;
    let held = lock.lock();
    thread::scope(|scope| {
        for halts in 0..4 {
            scope.spawn(|| {
                let held = lock.lock();
                // SAFETY: this thread holds the lock.
                unsafe { lock.unlock(held) };
            });
            if halts == 0 {
                let began = Instant::now();
                while count(Event::WaitHeadCount) == 0 {
                    assert!(began.elapsed() < Duration::from_secs(60), "the head never halted");
                    thread::sleep(Duration::from_millis(1));
                }
            } else {
                await_halts(halts);
            }
        }
        let early = count(Event::WaitEarlyCount);
        // SAFETY: this thread holds the lock.
        unsafe { lock.unlock(held) };
        early
    })
}

#[test]
fn a_waiter_behind_a_halted_one_halts_early_where_it_is_told_to() {
    assert_eq!(halted_early(&OFF), 0);
    // The first of the three is behind the head, which is no neighbour that is waited for.
    assert_eq!(halted_early(&NEIGHBOUR), 2);
    // Linux asks only whether it runs, so the head counts.
    assert_eq!(halted_early(&PERIODIC), 3);
    assert_eq!(halted_early(&STOIC), 0);
    // The threads are new, their numbers are not: these have halted before.
    assert_eq!(halted_early(&ANXIOUS), 2);
    tuning::set(&Tuning::DEFAULT);
}
