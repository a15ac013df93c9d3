//! Every lock excludes, on real threads: exact counts, whatever the number of threads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use lock_api::{Mutex, RawMutex, RawRwLock, RwLock};

/// Operations of each thread. Strict orders need up to a scheduler's slice a hand-over when
/// threads outnumber CPUs, so those rounds are short.
fn operations(threads: u32) -> u64 {
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    if threads <= cpus { 200_000 } else { 100 }
}

/// Two halves that are equal whenever no thread is inside: a torn update shows at once.
#[derive(Default)]
struct Halves(u64, u64);

fn excludes<R: RawMutex + Send + Sync>() {
    for threads in [1, 2, 3, 8] {
        let lock = Mutex::<R, _>::new(Halves::default());
        let start = Barrier::new(threads as usize);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..operations(threads) {
                        let mut halves = lock.lock();
                        assert_eq!(halves.0, halves.1);
                        halves.0 += 1;
                        std::hint::black_box(&mut *halves);
                        halves.1 += 1;
                    }
                });
            }
        });
        assert!(!lock.is_locked());
        assert_eq!(lock.into_inner().0, u64::from(threads) * operations(threads));
    }
}

fn try_lock_takes_what_is_free_and_only_that<R: RawMutex + Send + Sync>() {
    let lock = Mutex::<R, _>::new(0);
    let held = lock.try_lock().expect("a free lock");
    assert!(lock.is_locked());
    assert!(lock.try_lock().is_none());
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_lock().is_none()));
    });
    drop(held);
    assert!(!lock.is_locked());

    // Takers by `try_lock` and by `lock` together.
    let (taken, threads, wanted) = (AtomicU32::new(0), 4, 100);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (lock, taken) = (&lock, &taken);
            scope.spawn(move || {
                for _ in 0..wanted {
                    let mut inside = if thread % 2 == 0 {
                        lock.lock()
                    } else {
                        loop {
                            match lock.try_lock() {
                                Some(guard) => break guard,
                                None => thread::yield_now(),
                            }
                        }
                    };
                    *inside += 1;
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(*lock.lock(), threads * wanted);
    assert_eq!(taken.into_inner(), threads * wanted);
}

fn released_by_a_panic_and_movable_while_forgotten<R: RawMutex + Send + Sync>() {
    let lock = Mutex::<R, _>::new(1);
    let panicked = thread::scope(|scope| {
        scope
            .spawn(|| {
                let _held = lock.lock();
                std::panic::resume_unwind(Box::new("inside the critical section"));
            })
            .join()
            .is_err()
    });
    assert!(panicked);
    assert_eq!(*lock.lock(), 1);
    // lock_api allows to forget a guard, and then to move and drop the lock.
    std::mem::forget(lock.lock());
    let moved = lock;
    assert!(moved.is_locked());
    drop(moved);
}

macro_rules! for_every_lock {
    ($($lock:ident)*) => {
        $(
            mod $lock {
                #[test]
                fn excludes() {
                    super::excludes::<qspin::$lock::RawMutex>();
                }
                #[test]
                fn excludes_and_counts() {
                    super::excludes::<qspin::$lock::CountedRawMutex>();
                }
                #[test]
                fn try_lock_takes_what_is_free_and_only_that() {
                    super::try_lock_takes_what_is_free_and_only_that::<qspin::$lock::RawMutex>();
                }
                #[test]
                fn released_by_a_panic_and_movable_while_forgotten() {
                    super::released_by_a_panic_and_movable_while_forgotten::<qspin::$lock::RawMutex>();
                }
            }
        )*
    };
}

for_every_lock!(native cna cna_paravirt backoff tas yielding ticket mcs simple);
for_every_lock!(paravirt paravirt_stealing paravirt_queued paravirt_ticket select);

fn readers_share_and_writers_exclude<R: RawRwLock + Send + Sync>() {
    let lock = RwLock::<R, _>::new(Halves::default());

    let reader = lock.read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    assert!(lock.try_read().is_some(), "a second reader");
    assert!(lock.try_write().is_none(), "a writer beside a reader");
    drop(reader);
    let writer = lock.write();
    assert!(lock.is_locked_exclusive());
    assert!(lock.try_read().is_none(), "a reader beside a writer");
    assert!(lock.try_write().is_none(), "a second writer");
    drop(writer);

    for (readers, writers) in [(1, 1), (3, 1), (2, 2), (0, 4)] {
        let before = lock.read().0;
        let rounds = operations(readers + writers);
        thread::scope(|scope| {
            for _ in 0..readers {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let halves = lock.read();
                        assert_eq!(halves.0, halves.1);
                    }
                });
            }
            for _ in 0..writers {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let mut halves = lock.write();
                        halves.0 += 1;
                        std::hint::black_box(&mut *halves);
                        halves.1 += 1;
                    }
                });
            }
        });
        assert!(!lock.is_locked());
        assert_eq!(lock.read().0 - before, u64::from(writers) * rounds);
    }
}

#[test]
fn queued_rw() {
    readers_share_and_writers_exclude::<qspin::queued_rw::RawRwLock>();
    readers_share_and_writers_exclude::<qspin::queued_rw::CountedRawRwLock>();
}

#[test]
fn paravirt_rw() {
    readers_share_and_writers_exclude::<qspin::paravirt_rw::RawRwLock>();
    readers_share_and_writers_exclude::<qspin::paravirt_rw::CountedRawRwLock>();
}

#[test]
fn a_reader_in_an_interrupt_passes_a_waiting_writer_and_no_other_does() {
    an_interrupt_passes::<qspin::queued_rw::RawRwLock>();
    an_interrupt_passes::<qspin::paravirt_rw::RawRwLock>();
}

fn an_interrupt_passes<R: RawRwLock + Send + Sync>() {
    let lock = RwLock::<R, _>::new(0);
    let outer = lock.read();
    let written = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            *lock.write() += 1;
            written.store(true, Ordering::Release);
        });
        // Until the writer waits, a newcomer still gets in.
        while lock.try_read().is_some() {
            thread::yield_now();
        }
        assert!(!written.load(Ordering::Acquire));
        {
            let _interrupt = qspin::platform::interrupt::Interrupt::enter();
            // It would deadlock here if it queued behind the writer, which waits for `outer`.
            assert_eq!(*lock.read(), 0);
        }
        assert!(lock.try_read().is_none(), "not an interrupt: behind the writer");
        drop(outer);
    });
    assert_eq!(*lock.read(), 1);
}

#[test]
fn a_full_barrier_can_follow_an_acquisition() {
    // Store buffering across two locks: with the barrier at most one of the two may miss the
    // other's store.
    let (mine, yours) = (qspin::native::Mutex::new(()), qspin::native::Mutex::new(()));
    for _ in 0..20_000 {
        let (x, y) = (AtomicU32::new(0), AtomicU32::new(0));
        let (a, b) = thread::scope(|scope| {
            let other = scope.spawn(|| {
                y.store(1, Ordering::Relaxed);
                let _held = yours.lock();
                qspin::full_barrier_after_lock();
                x.load(Ordering::Relaxed)
            });
            x.store(1, Ordering::Relaxed);
            let held = mine.lock();
            qspin::full_barrier_after_lock();
            let seen = y.load(Ordering::Relaxed);
            drop(held);
            (seen, other.join().unwrap())
        });
        assert!(a + b >= 1, "both sides missed the other's store");
    }
}
