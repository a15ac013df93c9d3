//! Many threads, random lengths and sleeps, for as long as one likes: exact counts, and how long the longest wait
//! was.
//!
//! `QSPIN_TORTURE_SECONDS=600 cargo test -p qspin --test sleeping torture -- --nocapture --test-threads 1` is what
//! the book shows; without that it takes a second.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use qspin::{Mutex, RwLock};

const THREADS: u64 = 64;

/// Numbers that look random (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    /// Work of any length: mostly none, sometimes some microseconds, rarely a sleep.
    fn work(&mut self) {
        match self.roll(1000) {
            0 => thread::sleep(Duration::from_micros(self.roll(300))),
            1..20 => thread::yield_now(),
            20..500 => (0..self.roll(400)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}

/// How a thread waited, in nanoseconds.
#[derive(Default, Clone, Copy)]
struct Waits {
    count: u64,
    sum: u64,
    longest: u64,
}

impl Waits {
    fn add(&mut self, wait: Duration) {
        let wait = wait.as_nanos() as u64;
        self.count += 1;
        self.sum += wait;
        self.longest = self.longest.max(wait);
    }

    fn merge(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            longest: self.longest.max(other.longest),
        }
    }
}

fn length() -> Duration {
    let asked = std::env::var("QSPIN_TORTURE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or(1))
}

/// Runs `turn` in many threads for the time that was asked for; it returns how long it waited.
fn torture(name: &str, turn: impl Fn(&mut Dice) -> Duration + Sync) -> Waits {
    let (stop, length) = (AtomicBool::new(false), length());
    let waits = thread::scope(|scope| {
        let workers: Vec<_> = (1..=THREADS)
            .map(|seed| {
                let (stop, turn) = (&stop, &turn);
                scope.spawn(move || {
                    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    let mut waits = Waits::default();
                    while !stop.load(Relaxed) {
                        waits.add(turn(&mut dice));
                        dice.work();
                    }
                    waits
                })
            })
            .collect();
        thread::sleep(length);
        stop.store(true, Relaxed);
        let each = workers.into_iter().map(|worker| worker.join().unwrap());
        each.fold(Waits::default(), Waits::merge)
    });
    let mean = waits.sum as f64 / waits.count as f64;
    println!(
        "{name}: {THREADS} threads, {length:?}: {} acquisitions, wait {:.1} us in the mean, {:.1} ms at most: {:.0} times",
        waits.count,
        mean / 1e3,
        waits.longest as f64 / 1e6,
        waits.longest as f64 / mean,
    );
    waits
}

/// Counters that only exclusion keeps equal.
#[derive(Default)]
struct Pair(UnsafeCell<(u64, u64)>);

// SAFETY: used under a lock only: that is what is tested.
unsafe impl Sync for Pair {}

impl Pair {
    fn place(&self) -> *mut (u64, u64) {
        self.0.get()
    }
}

#[test]
fn torture_of_the_mutex_counts_right() {
    let lock = Mutex::new((0, 0));
    let waits = torture("mutex", |dice| {
        let begun = Instant::now();
        let mut pair = lock.lock();
        let wait = begun.elapsed();
        pair.0 += 1;
        dice.work();
        pair.1 += 1;
        wait
    });
    assert_eq!(*lock.lock(), (waits.count, waits.count));
}

#[test]
fn torture_of_the_reader_writer_lock_counts_right() {
    let (lock, pair) = (RwLock::new(()), Pair::default());
    let writes = std::sync::atomic::AtomicU64::new(0);
    torture("rwlock", |dice| {
        let begun = Instant::now();
        if dice.roll(4) == 0 {
            let _held = lock.write();
            let wait = begun.elapsed();
            // SAFETY: the lock is held for writing.
            let pair = unsafe { &mut *pair.place() };
            pair.0 += 1;
            dice.work();
            pair.1 += 1;
            writes.fetch_add(1, Relaxed);
            return wait;
        }
        let _held = lock.read();
        let wait = begun.elapsed();
        // SAFETY: the lock is held for reading.
        let pair = unsafe { &*pair.place() };
        let before = *pair;
        dice.work();
        assert!(
            before.0 == before.1 && std::hint::black_box(pair).0 == before.0,
            "a writer was at work"
        );
        wait
    });
    // SAFETY: no other thread is left.
    let pair = unsafe { *pair.place() };
    assert_eq!(pair, (writes.load(Relaxed), writes.load(Relaxed)));
}
