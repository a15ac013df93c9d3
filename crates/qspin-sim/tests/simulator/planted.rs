//! Locks with a bug on purpose: the simulator must find it, or it finds nothing.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::fixtures;
use qspin_core::lock::RawLock;
use qspin_core::node::{HALTED, NodeId, RUNNING};
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};
use qspin_sim::platform::{SimPlatform, SimWord};
use qspin_sim::{Failure, Lock, Scenario, simulate_lock};

fn scenario() -> Scenario {
    fixtures::counting(Lock::Paravirt, 4, 100)
}

/// Takes the lock by a load and a store.
struct NotAtomic(SimWord);

// SAFETY: it does not exclude; that is what the test is about. What is counted under it are
// simulated words, which no bug of a lock makes unsound.
unsafe impl RawLock<SimPlatform> for NotAtomic {
    fn new() -> Self {
        Self(SimWord::new(0))
    }
    fn acquire(&self, p: &SimPlatform) {
        while self.0.load(Relaxed) != 0 {
            p.relax(1);
        }
        self.0.store(1, Relaxed);
    }
    fixtures::refuses_who_tries!();
    unsafe fn release(&self, _: &SimPlatform) {
        self.0.store(0, Release);
    }
    fn is_locked(&self, _: &SimPlatform) -> bool {
        self.0.load(Relaxed) != 0
    }
}

#[test]
fn a_test_and_set_that_does_not_exclude_is_found() {
    let failure = simulate_lock::<NotAtomic>(&scenario(), 1).unwrap_err();
    assert!(matches!(failure, Failure::Exclusion { .. }), "{failure}");
}

/// A word in a line of its own.
#[repr(C, align(64))]
struct Apart(SimWord);

/// Dekker's idea of a lock for two, without the fence that a store buffer makes necessary.
struct NoFence<const FENCED: bool>([Apart; 2]);

// SAFETY: with the fence it excludes two CPUs that only ever try; without, see above.
unsafe impl<const FENCED: bool> RawLock<SimPlatform> for NoFence<FENCED> {
    fn new() -> Self {
        Self([Apart(SimWord::new(0)), Apart(SimWord::new(0))])
    }
    fn acquire(&self, p: &SimPlatform) {
        let me = p.number() as usize;
        loop {
            self.0[me].0.store(1, Relaxed);
            if FENCED {
                p.fence(SeqCst);
            }
            if self.0[1 - me].0.load(Acquire) == 0 {
                return;
            }
            self.0[me].0.store(0, Relaxed);
            p.relax(1 + p.random(|random| random.below(8)));
        }
    }
    fixtures::refuses_who_tries!();
    unsafe fn release(&self, p: &SimPlatform) {
        self.0[p.number() as usize].0.store(0, Release);
    }
    fn is_locked(&self, _: &SimPlatform) -> bool {
        self.0.iter().any(|word| word.0.load(Relaxed) != 0)
    }
}

#[test]
fn the_store_buffer_is_real_a_missing_fence_is_found_and_one_that_is_there_suffices() {
    let scenario = Scenario { cpus: 2, ..scenario() };
    let found = (0..50).find_map(|seed| simulate_lock::<NoFence<false>>(&scenario, seed).err());
    let excludes = !matches!(found, Some(Failure::Exclusion { .. } | Failure::Count { .. }));
    assert!(!excludes, "{found:?}");
    for seed in 0..50 {
        simulate_lock::<NoFence<true>>(&scenario, seed).unwrap();
    }
}

/// Halts while the lock is taken, and is kicked by the release; `CHECKS` again before it halts.
struct Halting<const CHECKS: bool> {
    word: SimWord,
    waiter: SimWord,
}

// SAFETY: the word is taken by a compare-exchange only, and cleared by the holder.
unsafe impl<const CHECKS: bool> RawLock<SimPlatform> for Halting<CHECKS> {
    fn new() -> Self {
        Self { word: SimWord::new(0), waiter: SimWord::new(0) }
    }
    fn acquire(&self, p: &SimPlatform) {
        let me = NodeId::new(p.cpu().unwrap(), 0).unwrap();
        // So that it comes at any moment of the other's section.
        p.relax(p.random(|random| random.below(40)));
        while self.word.compare_exchange(0, 1, Acquire).is_err() {
            let free = Until::is(0);
            if p.wait_until(&self.word, free, Budget::Polls(3), Relaxed) == 0 {
                continue;
            }
            // What it has seen is old by the time it lies down.
            p.relax(5);
            // One waiter at a time may sleep.
            if self.waiter.compare_exchange(0, me.number(), Relaxed).is_err() {
                p.relax(1);
                continue;
            }
            if CHECKS && self.word.load(SeqCst) == 0 {
                self.waiter.store(0, Relaxed);
                continue;
            }
            p.node(me).state.store(HALTED, Relaxed);
            p.halt(me);
            p.node(me).state.store(RUNNING, Relaxed);
            self.waiter.store(0, Relaxed);
        }
    }
    fixtures::refuses_who_tries!();
    unsafe fn release(&self, p: &SimPlatform) {
        self.word.swap(0, Release);
        if let Some(waiter) = NodeId::from_number(self.waiter.load(Relaxed)) {
            p.kick(waiter);
        }
    }
    fn is_locked(&self, _: &SimPlatform) -> bool {
        self.word.load(Relaxed) != 0
    }
}

#[test]
fn a_lost_wake_up_is_found_and_its_victim_named() {
    // Few sections: while the other CPU goes on, one of its releases would wake the victim.
    let scenario = fixtures::counting(Lock::Paravirt, 2, 3);
    let lost = (0..300).find_map(|seed| simulate_lock::<Halting<false>>(&scenario, seed).err());
    let Some(Failure::Standstill { standings, .. }) = lost else {
        panic!("no thread was left asleep: {lost:?}");
    };
    let [victim] = &standings[..] else { panic!("one is asleep, not {standings:?}") };
    assert!(victim.does.contains("is halted"), "{victim}");
    assert!(matches!(victim.wants, Some((0, None, _))), "{victim}");
    for seed in 0..300 {
        simulate_lock::<Halting<true>>(&scenario, seed).unwrap();
    }
}

std::thread_local! {
    static RELEASES: Cell<u32> = const { Cell::new(0) };
}

/// Never releases, from the tenth time on.
struct Forgetful(SimWord);

// SAFETY: it excludes, more than it should.
unsafe impl RawLock<SimPlatform> for Forgetful {
    fn new() -> Self {
        RELEASES.set(0);
        Self(SimWord::new(0))
    }
    fn acquire(&self, p: &SimPlatform) {
        while self.0.swap(1, Acquire) != 0 {
            p.wait_until(&self.0, Until::is(0), Budget::Unbounded, Relaxed);
        }
    }
    fixtures::refuses_who_tries!();
    unsafe fn release(&self, _: &SimPlatform) {
        RELEASES.set(RELEASES.get() + 1);
        if RELEASES.get() < 10 {
            self.0.store(0, Release);
        }
    }
    fn is_locked(&self, _: &SimPlatform) -> bool {
        self.0.load(Relaxed) != 0
    }
}

#[test]
fn a_deadlock_ends_with_a_list_of_waits() {
    let failure = simulate_lock::<Forgetful>(&scenario(), 1).unwrap_err();
    let text = failure.to_string();
    let Failure::Standstill { standings, .. } = failure else { panic!("{text}") };
    assert_eq!(standings.len(), 4, "{text}");
    assert!(text.contains("watches lock 0 (byte 0), which is 0x1"), "{text}");
}

/// Spins without ever trying.
struct Hopeless(SimWord);

// SAFETY: no thread ever acquires it.
unsafe impl RawLock<SimPlatform> for Hopeless {
    fn new() -> Self {
        Self(SimWord::new(0))
    }
    fn acquire(&self, p: &SimPlatform) {
        loop {
            self.0.load(Relaxed);
            p.relax(1000);
        }
    }
    fixtures::refuses_who_tries!();
    unsafe fn release(&self, _: &SimPlatform) {}
    fn is_locked(&self, _: &SimPlatform) -> bool {
        false
    }
}

#[test]
fn a_livelock_ends_by_the_watchdog_in_simulated_time() {
    let scenario = Scenario { watchdog_ns: 1e6, hogs: 4, ..scenario() };
    let failure = simulate_lock::<Hopeless>(&scenario, 1).unwrap_err();
    let Failure::Standstill { at_ns, standings } = failure else { panic!("{failure}") };
    assert_eq!(standings.len(), 4);
    assert!((1e6..1.1e6).contains(&at_ns), "{at_ns}");
}
