//! Patience: who yields to somebody that computes sleeps instead, for a while.
//!
//! The clock is the test's. What a thread has found out stands under its number, which it may have from a
//! thread that has ended.

use std::cell::Cell;

use qspin::platform::Threads;
use qspin::platform::clock::Clock;
use qspin::platform::holder::Unhinted;
use qspin_core::platform::Platform;
use qspin_core::sleepers::Patience;
use qspin_core::tuning::Tuning;

thread_local! {
    /// What the clock says, and how much later it is whenever it is looked at.
    static TIME: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

struct Ticking;

impl Clock for Ticking {
    fn now_ns() -> u64 {
        TIME.with(|time| {
            let (now, tick) = time.get();
            time.set((now + tick, tick));
            now + tick
        })
    }
}

type TestThreads = Threads<qspin::events::NoEvents, Unhinted, Ticking>;

/// How often a waiter looks again before it sleeps, if a yield takes so many ns.
fn looks(yield_ns: u64) -> u32 {
    let p = TestThreads::NEW;
    TIME.with(|time| time.set((1, yield_ns)));
    let mut patience = Patience::new(&p);
    let mut looks = 0;
    while !patience.is_over() {
        patience.wait(&p);
        looks += 1;
    }
    looks
}

/// Forgets what the thread that had this number has found out.
fn begin_anew() {
    // A thread that has a number.
    assert!(TestThreads::NEW.cpu().is_some());
    let waits = (0..).take_while(|_| looks(0) == Tuning::DEFAULT.mutex_looks).count();
    assert!(waits <= Tuning::DEFAULT.mutex_crowded_waits as usize);
}

#[test]
fn a_long_yield_is_the_last_for_a_while() {
    let Tuning { mutex_looks, mutex_yields, mutex_crowded_waits, .. } = Tuning::DEFAULT;
    let long = u64::from(Tuning::DEFAULT.mutex_yield_us) * 1000;
    begin_anew();
    assert_eq!(looks(long - 1), mutex_looks + mutex_yields, "nobody needs the CPU");
    assert_eq!(looks(long), mutex_looks + 1, "the yield was long");
    for wait in 0..mutex_crowded_waits {
        assert_eq!(looks(0), mutex_looks, "wait {wait} after it");
    }
    assert_eq!(looks(0), mutex_looks + mutex_yields, "it tries again");
    // Nobody else is concerned.
    assert_eq!(looks(long), mutex_looks + 1);
    std::thread::spawn(move || {
        begin_anew();
        assert_eq!(looks(0), mutex_looks + mutex_yields);
    })
    .join()
    .unwrap();
    assert_eq!(looks(0), mutex_looks);
}

#[test]
fn who_has_none_sleeps_at_once() {
    assert!(Patience::none().is_over());
    assert!(!Patience::none().only_looks());
}
