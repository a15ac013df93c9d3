//! What a machine may do to the default locks: futexes that fail, clocks that leap, threads that are cancelled,
//! and more threads than there are numbers.

mod cancelled;
mod clock;
// The portable platform leaves futexes to the standard library.
#[cfg(not(feature = "portable"))]
mod futexes;
mod many;

use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

use lock_api::{RawMutex, RawRwLock};

/// More than anything here takes, and less than for ever.
const LONG: Duration = Duration::from_secs(120);

/// Waits until `condition` holds; fails where it never does.
fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "it never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A counter that only exclusion keeps right.
struct Counter(UnsafeCell<u64>);

// SAFETY: used under a lock only: that is what is tested.
unsafe impl Sync for Counter {}

impl Counter {
    const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// Adds one, not all at once. The caller holds the lock.
    fn add(&self) {
        let place = self.0.get();
        // SAFETY: the caller holds the lock.
        unsafe {
            let before = place.read_volatile();
            std::hint::spin_loop();
            place.write_volatile(before + 1);
        }
    }

    fn get(&self) -> u64 {
        // SAFETY: no other thread is at it, or the caller holds the lock.
        unsafe { self.0.get().read_volatile() }
    }
}

/// Threads that lock, now and then with a time; returns what was counted, and what should have been.
fn contend(lock: &(impl lock_api::RawMutexTimed<Duration = Duration> + Sync)) -> (u64, u64) {
    let counter = Counter::new();
    let done = run(|thread, round| {
        let guard = if (thread + round).is_multiple_of(4) {
            lock.try_lock_for(Duration::from_micros(round % 200))
        } else {
            Some(lock.lock())
        };
        let Some(guard) = guard else { return 0 };
        counter.add();
        pause(round);
        // SAFETY: locked above.
        unsafe { lock.unlock(guard) };
        1
    });
    (counter.get(), done)
}

/// The same with readers, which must not see a writer at work.
fn share(lock: &(impl lock_api::RawRwLockTimed<Duration = Duration> + Sync)) -> (u64, u64) {
    let counter = Counter::new();
    let done = run(|thread, round| {
        if (thread + round).is_multiple_of(3) {
            let Some(guard) = lock.try_lock_exclusive_for(Duration::from_millis(round % 3)) else {
                return 0;
            };
            counter.add();
            pause(round);
            // SAFETY: locked above.
            unsafe { lock.unlock_exclusive(guard) };
            return 1;
        }
        let guard = lock.lock_shared();
        let before = counter.get();
        pause(round);
        assert_eq!(counter.get(), before, "a writer was at work");
        // SAFETY: locked above.
        unsafe { lock.unlock_shared(guard) };
        0
    });
    (counter.get(), done)
}

/// What `step` says, summed over some threads and rounds.
fn run(step: impl Fn(u64, u64) -> u64 + Sync) -> u64 {
    std::thread::scope(|scope| {
        let step = &step;
        let workers: Vec<_> = (0..6)
            .map(|thread| {
                scope.spawn(move || (0..1500).map(|round| step(thread, round)).sum::<u64>())
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    })
}

/// Now and then long enough for others to sleep.
fn pause(round: u64) {
    if round.is_multiple_of(64) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Both kinds, made anew, count right.
fn counts_are_exact<M, R>()
where
    M: lock_api::RawMutexTimed<Duration = Duration> + Sync,
    R: lock_api::RawRwLockTimed<Duration = Duration> + Sync,
{
    let (counted, done) = contend(&<M as RawMutex>::INIT);
    assert!(counted == done && done > 0, "{counted} of {done}");
    let (counted, done) = share(&<R as RawRwLock>::INIT);
    assert!(counted == done && done > 0, "{counted} of {done}");
}
