//! Exact counts under everything that a program may do to a lock.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use lock_api::RawMutex as _;
use qspin::{Mutex, RawMutex};

use super::{Random, contend};

#[test]
fn counts_are_exact_with_random_lengths_and_sleeps() {
    let locks: Vec<Mutex<u64>> = (0..4).map(|_| Mutex::new(0)).collect();
    let (threads, rounds) = (24, 500);
    thread::scope(|scope| {
        for number in 0..threads {
            let locks = &locks;
            scope.spawn(move || {
                let mut random = Random(number);
                for _ in 0..rounds {
                    let mut value = locks[random.below(4) as usize].lock();
                    let before = *value;
                    match random.below(100) {
                        0 => thread::sleep(Duration::from_micros(random.below(100))),
                        1..5 => thread::yield_now(),
                        _ => (0..random.below(200)).for_each(|_| std::hint::spin_loop()),
                    }
                    *value = before + 1;
                }
            });
        }
    });
    assert_eq!(locks.iter().map(|lock| *lock.lock()).sum::<u64>(), threads * rounds);
}

/// What two threads share in memory of its own: a lock, and how many are still to use it.
struct Page {
    lock: RawMutex,
    left: u32,
}

/// The last thread takes the memory away, at once after it has unlocked. The other's release may still be
/// under way: it must not touch the lock.
#[test]
fn nothing_touches_a_lock_after_its_release() {
    const THREADS: usize = 3;
    const ROUNDS: usize = 4000;
    let place = AtomicPtr::<Page>::new(std::ptr::null_mut());
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (place, barrier) = (&place, &barrier);
            scope.spawn(move || {
                let mut random = Random(number as u64);
                for _ in 0..ROUNDS {
                    if number == 0 {
                        place.store(map(), SeqCst);
                    }
                    barrier.wait();
                    let page = place.load(SeqCst);
                    use_once(page, random.below(60));
                    barrier.wait();
                }
            });
        }
    });

    fn map() -> *mut Page {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let (read_write, size) = (libc::PROT_READ | libc::PROT_WRITE, size_of::<Page>());
        // SAFETY: new memory.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), size, read_write, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        let page = page.cast::<Page>();
        // SAFETY: it is big enough, aligned, and no other thread's yet.
        unsafe { page.write(Page { lock: RawMutex::INIT, left: THREADS as u32 }) };
        page
    }

    fn use_once(page: *mut Page, pauses: u64) {
        // SAFETY: the page is there until the last of the threads has unlocked it for the last time.
        let lock = unsafe { &(*page).lock };
        for _ in 0..3 {
            let guard = lock.lock();
            (0..pauses).for_each(|_| std::hint::spin_loop());
            // SAFETY: locked above.
            unsafe { lock.unlock(guard) };
        }
        let guard = lock.lock();
        // SAFETY: only the owner of the lock is here.
        let last = unsafe {
            (*page).left -= 1;
            (*page).left == 0
        };
        // SAFETY: locked above.
        unsafe { lock.unlock(guard) };
        if last {
            // SAFETY: no thread uses it any more: this is what is tested.
            assert_eq!(unsafe { libc::munmap(page.cast(), size_of::<Page>()) }, 0);
        }
    }
}

/// Signals end halts early (EINTR), and their handler locks, too; some of its locks share a bucket with
/// what it interrupts.
#[test]
fn handlers_lock_while_they_interrupt_waits() {
    static IN_HANDLERS: [Mutex<u64>; 64] = [const { Mutex::new(0) }; 64];
    static NEXT: AtomicU64 = AtomicU64::new(0);
    extern "C" fn handler(_: libc::c_int) {
        let number = NEXT.fetch_add(1, Relaxed);
        *IN_HANDLERS[number as usize % 64].lock() += 1;
    }
    // SAFETY: a valid action, whose handler does only what may be done in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        libc::sigemptyset(&mut action.sa_mask);
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    let lock = Arc::new(Mutex::new(0u64));
    let done = AtomicBool::new(false);
    let stormed = AtomicBool::new(false);
    let ids: Vec<AtomicU64> = (0..6).map(|_| AtomicU64::new(0)).collect();
    let threads = 6;
    let rounds = 1500;
    thread::scope(|scope| {
        for number in 0..threads {
            let (lock, stormed) = (Arc::clone(&lock), &stormed);
            let id = &ids[number as usize];
            scope.spawn(move || {
                // SAFETY: asks for a number.
                id.store(unsafe { libc::pthread_self() }, SeqCst);
                let mut random = Random(number);
                for _ in 0..rounds {
                    let mut value = lock.lock();
                    *value += 1;
                    if random.below(32) == 0 {
                        thread::sleep(Duration::from_micros(100));
                    }
                }
                while !stormed.load(SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let (done, ids) = (&done, &ids);
        let storm = scope.spawn(move || {
            let mut random = Random(99);
            while !done.load(Relaxed) {
                let id = ids[random.below(threads) as usize].load(SeqCst);
                if id != 0 {
                    // SAFETY: the threads do not end before `done` is set and this one has ended.
                    unsafe { libc::pthread_kill(id, libc::SIGUSR1) };
                }
                thread::sleep(Duration::from_micros(20));
            }
        });
        // Threads may have had all their turns before the first signal comes: they are interrupted while they sleep then.
        while *lock.lock() < threads * rounds || NEXT.load(Relaxed) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        done.store(true, Relaxed);
        storm.join().unwrap();
        stormed.store(true, SeqCst);
    });
    assert_eq!(*lock.lock(), threads * rounds);
    let handled: u64 = IN_HANDLERS.iter().map(|lock| *lock.lock()).sum();
    assert_eq!(handled, NEXT.load(Relaxed), "each handler that began has ended, and counted");
    assert!(handled > 0, "no signal came");
}

/// More threads than there are numbers would be 16 384; a few hundred go through the same queues.
#[test]
fn hundreds_of_threads_sleep_on_one_lock_and_all_are_woken() {
    let lock = Mutex::new(0u64);
    let held = lock.lock();
    thread::scope(|scope| {
        for _ in 0..400 {
            scope.spawn(|| *lock.lock() += 1);
        }
        thread::sleep(Duration::from_millis(100));
        drop(held);
    });
    assert_eq!(*lock.lock(), 400);
}

/// No thread starves: each of them comes to an end although others never let go for long.
#[test]
fn no_waiter_is_passed_over_for_ever() {
    let lock = Mutex::new(());
    let turns: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for own in &turns {
            let (lock, stop) = (&lock, &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    let _held = lock.lock();
                    own.fetch_add(1, Relaxed);
                }
            });
        }
        let begun = Instant::now();
        let all = || turns.iter().all(|own| own.load(Relaxed) >= 100);
        while !all() && begun.elapsed() < super::LONG {
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Relaxed);
        assert!(all(), "a thread has not had a turn: {turns:?}");
    });
}

#[test]
fn the_counting_lock_counts_what_it_does() {
    use qspin::events;
    use qspin_core::events::Event;
    let lock = qspin::mutex::CountedRawMutex::INIT;
    assert_eq!(contend(&lock, 4, 2000), 8000);
    let count = |wanted| {
        let counts = events::snapshot();
        counts.iter().find(|(event, _)| *event == wanted).map_or(0, |&(_, n)| n)
    };
    // One that waits for certain: the lock is held until it has said so.
    let guard = lock.lock();
    let before = count(Event::MutexSlowpath);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let guard = lock.lock();
            // SAFETY: locked above.
            unsafe { lock.unlock(guard) };
        });
        let begun = Instant::now();
        while count(Event::MutexSlowpath) == before && begun.elapsed() < super::LONG {
            thread::yield_now();
        }
        // SAFETY: locked above.
        unsafe { lock.unlock(guard) };
        waits.join().unwrap();
    });
    assert!(count(Event::MutexSlowpath) > before);
    assert!(count(Event::SleepKick) <= count(Event::SleepCount), "who is woken has slept");
}
