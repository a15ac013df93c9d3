use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use qspin::RwLock;
use qspin::rwlock::{RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};

use super::{LONG, until};

/// A small generator: which operation is next.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A pair that is equal whenever no writer is at work.
type Pair = (u64, u64);

fn write(pair: &mut Pair, dice: &mut Dice) {
    pair.0 += 1;
    if dice.roll(64) == 0 {
        thread::yield_now();
    }
    pair.1 += 1;
}

fn read(pair: &Pair, dice: &mut Dice) {
    let first = pair.0;
    if dice.roll(64) == 0 {
        thread::yield_now();
    }
    // The compiler must not take it for granted.
    assert_eq!(std::hint::black_box(pair).1, first, "a writer was at work");
}

#[test]
fn counts_are_exact_whatever_the_threads_do() {
    const THREADS: u64 = 12;
    const ROUNDS: u64 = 1500;
    let lock = RwLock::new((0, 0));
    let writes = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 1..=THREADS {
            let (lock, writes) = (&lock, &writes);
            scope.spawn(move || {
                let dice = &mut Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let mut written = 0;
                for _ in 0..ROUNDS {
                    let moment = Duration::from_micros(dice.roll(200));
                    match dice.roll(11) {
                        0 | 1 => {
                            write(&mut lock.write(), dice);
                            written += 1;
                        }
                        2 => {
                            if let Some(mut pair) = lock.try_write_for(moment) {
                                write(&mut pair, dice);
                                written += 1;
                            }
                        }
                        3 => {
                            let mut pair = lock.write();
                            write(&mut pair, dice);
                            let after = pair.0;
                            let pair = RwLockWriteGuard::downgrade(pair);
                            assert_eq!(pair.0, after, "a writer came in between");
                            read(&pair, dice);
                            written += 1;
                        }
                        4 => {
                            let pair = lock.upgradable_read();
                            read(&pair, dice);
                            let before = pair.0;
                            let mut pair = RwLockUpgradableReadGuard::upgrade(pair);
                            assert_eq!(pair.0, before, "a writer came in between");
                            write(&mut pair, dice);
                            written += 1;
                        }
                        5 => {
                            if let Some(pair) = lock.try_upgradable_read_for(moment) {
                                read(&pair, dice);
                                match RwLockUpgradableReadGuard::try_upgrade_for(pair, moment) {
                                    Ok(mut pair) => {
                                        write(&mut pair, dice);
                                        written += 1;
                                    }
                                    Err(pair) => read(&pair, dice),
                                }
                            }
                        }
                        6 => {
                            let mut pair = lock.write();
                            write(&mut pair, dice);
                            let after = pair.0;
                            let pair = RwLockWriteGuard::downgrade_to_upgradable(pair);
                            assert_eq!(pair.0, after, "a writer came in between");
                            let mut pair = RwLockUpgradableReadGuard::upgrade(pair);
                            assert_eq!(pair.0, after, "a writer came in between");
                            write(&mut pair, dice);
                            written += 2;
                        }
                        7 => {
                            let pair = lock.upgradable_read();
                            let before = pair.0;
                            let pair = RwLockUpgradableReadGuard::downgrade(pair);
                            assert_eq!(pair.0, before, "a writer came in between");
                            read(&pair, dice);
                        }
                        8 => {
                            if let Some(pair) = lock.try_read_for(moment) {
                                read(&pair, dice);
                            }
                        }
                        _ => read(&lock.read(), dice),
                    }
                }
                writes.fetch_add(written, Relaxed);
            });
        }
    });
    let pair = *lock.read();
    assert_eq!(pair, (writes.load(Relaxed), writes.load(Relaxed)));
    assert!(!lock.is_locked());
}

#[test]
fn a_writer_comes_through_a_stream_of_readers() {
    let lock = RwLock::new(0_u64);
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    // Readers overlap: the lock is never free by itself.
                    let one = lock.read();
                    std::hint::black_box(*one);
                    thread::yield_now();
                    drop(one);
                    assert!(began.elapsed() < LONG, "the writers starve");
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    *lock.write() += 1;
                }
            });
        }
        until(|| *lock.read() == 200);
        stop.store(true, Relaxed);
    });
}

#[test]
fn a_reader_comes_through_a_stream_of_writers() {
    let lock = RwLock::new(0_u64);
    let read = AtomicU64::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while read.load(Relaxed) < 200 {
                    *lock.write() += 1;
                    assert!(began.elapsed() < LONG, "the readers starve");
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    std::hint::black_box(*lock.read());
                    read.fetch_add(1, Relaxed);
                }
            });
        }
    });
}

#[test]
fn a_waiter_that_gives_up_has_waited_and_leaves_nothing_behind() {
    let lock = RwLock::new(());
    let moment = Duration::from_millis(20);
    let writes = lock.write();
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_read_for(moment).is_none()));
        scope.spawn(|| assert!(lock.try_write_for(moment).is_none()));
        scope.spawn(|| assert!(lock.try_upgradable_read_for(moment).is_none()));
        scope.spawn(|| assert!(lock.try_write_until(Instant::now() + moment).is_none()));
    });
    assert!(began.elapsed() >= moment);
    drop(writes);
    let reads = lock.read();
    assert!(lock.try_write_for(Duration::ZERO).is_none());
    assert!(lock.try_write_until(Instant::now()).is_none());
    // The waiter that gave up had closed the lock to readers.
    assert!(lock.try_read().is_some());
    let upgradable = lock.upgradable_read();
    let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, moment) else {
        panic!("there is another reader");
    };
    assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
    drop(reads);
    drop(RwLockUpgradableReadGuard::upgrade(upgradable));
    // The largest time there is, is no overflow.
    drop(lock.try_write_for(Duration::MAX).unwrap());
    assert!(!lock.is_locked());
}

#[test]
fn sleepers_wake_when_they_can_get_in() {
    let lock = RwLock::new(0);
    let inside = AtomicU64::new(0);
    let writes = lock.write();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let _reads = lock.read();
                inside.fetch_add(1, Relaxed);
                // All at once, or never.
                until(|| inside.load(Relaxed) == 8);
            });
        }
        // Long enough for most to sleep; what follows holds either way.
        thread::sleep(Duration::from_millis(50));
        drop(writes);
    });
    *lock.write() += 1;
}

#[test]
fn a_part_of_the_value_keeps_the_lock() {
    let lock = RwLock::new((1, 2));
    let part = RwLockReadGuard::map(lock.read(), |pair| &pair.1);
    assert!(*part == 2 && lock.try_write().is_none() && lock.try_read().is_some());
    drop(part);
    let mut part = RwLockWriteGuard::map(lock.write(), |pair| &mut pair.0);
    *part = 7;
    assert!(lock.try_read().is_none());
    drop(part);
    assert_eq!(*lock.read(), (7, 2));
}

#[test]
fn a_panic_releases_and_poisons_nothing() {
    let lock = RwLock::new(0);
    let died = thread::scope(|scope| {
        scope
            .spawn(|| {
                let mut value = lock.write();
                *value = 5;
                std::panic::resume_unwind(Box::new(()));
            })
            .join()
    });
    assert!(died.is_err() && *lock.read() == 5);
}

/// Readers that had to wait get in beside one that reads upgradably, also if that waits for them.
#[test]
fn an_upgradable_reader_keeps_no_reader_out() {
    for _ in 0..20 {
        let lock = RwLock::new(());
        let read = AtomicU64::new(0);
        let writes = lock.write();
        thread::scope(|scope| {
            for number in 0..6 {
                let (lock, read) = (&lock, &read);
                scope.spawn(move || {
                    if number < 2 {
                        let looks = lock.upgradable_read();
                        until(|| read.load(Relaxed) == 4);
                        drop(looks);
                    } else {
                        let _reads = lock.read();
                        read.fetch_add(1, Relaxed);
                    }
                });
            }
            // Long enough for most to sleep; what follows holds either way.
            thread::sleep(Duration::from_millis(5));
            drop(writes);
        });
    }
}

/// An upgrade waits for the readers inside, and for no others; while it does, and when it has given up, others
/// may have waited, which must then be admitted.
#[test]
fn an_upgrade_that_is_given_up_lets_readers_in_again() {
    let lock = RwLock::new(());
    let read = AtomicU64::new(0);
    let reads = lock.read();
    thread::scope(|scope| {
        let looks = lock.upgradable_read();
        let waits = scope.spawn(|| {
            until(|| lock.try_read().is_none());
            // The upgrade is on its way.
            for _ in 0..3 {
                drop(lock.read());
                read.fetch_add(1, Relaxed);
            }
        });
        let moment = Duration::from_millis(50);
        let Err(looks) = RwLockUpgradableReadGuard::try_upgrade_for(looks, moment) else {
            panic!("there is another reader");
        };
        until(|| read.load(Relaxed) == 3 || waits.is_finished());
        assert_eq!(read.load(Relaxed), 3);
        drop(looks);
    });
    drop(reads);
    assert!(!lock.is_locked());
}

/// A reader in a signal handler that says what it is passes a writer that waits for what it has interrupted.
#[test]
fn a_handler_reads_what_it_has_interrupted_the_reading_of() {
    use qspin::platform::interrupt::Interrupt;
    static LOCK: RwLock<u64> = RwLock::new(7);
    static READ: AtomicU64 = AtomicU64::new(0);
    static FAILED: AtomicBool = AtomicBool::new(false);
    extern "C" fn handler(_: libc::c_int) {
        let _interrupt = Interrupt::enter();
        match LOCK.try_read_for(Duration::from_secs(20)) {
            Some(value) => READ.store(*value, Relaxed),
            None => FAILED.store(true, Relaxed),
        }
    }
    // SAFETY: a valid action, whose handler does only what may be done in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        libc::sigemptyset(&mut action.sa_mask);
        assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
    }
    let id = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let reads = LOCK.read();
            // SAFETY: asks for a number.
            id.store(unsafe { libc::pthread_self() }, Relaxed);
            until(|| READ.load(Relaxed) == 7 || FAILED.load(Relaxed));
            drop(reads);
        });
        until(|| id.load(Relaxed) != 0);
        scope.spawn(|| *LOCK.write() += 1);
        // The writer waits, and keeps newcomers out.
        until(|| LOCK.try_read().is_none());
        thread::sleep(Duration::from_millis(20));
        // SAFETY: the thread does not end before the handler has.
        assert_eq!(unsafe { libc::pthread_kill(id.load(Relaxed), libc::SIGUSR2) }, 0);
    });
    assert!(!FAILED.load(Relaxed), "it waited for a writer that waits for it");
    assert_eq!(*LOCK.read(), 8);
}

/// A thread that releases fairly and comes back at once comes after the one that has closed the lock.
#[test]
fn a_fair_release_hands_the_lock_off() {
    let lock = RwLock::new(0_u64);
    for round in 0..60_u64 {
        // Held for reading, or by an upgrade, which is possible while a writer waits.
        let reads = round.is_multiple_of(2).then(|| lock.read());
        let looks = (!round.is_multiple_of(2)).then(|| lock.upgradable_read());
        thread::scope(|scope| {
            scope.spawn(|| *lock.write() += 1);
            until(|| lock.try_read().is_none());
            if let Some(reads) = reads {
                RwLockReadGuard::unlock_fair(reads);
            }
            if let Some(looks) = looks {
                if round % 4 == 1 {
                    RwLockUpgradableReadGuard::unlock_fair(looks);
                } else {
                    RwLockWriteGuard::unlock_fair(RwLockUpgradableReadGuard::upgrade(looks));
                }
            }
            let mut held = lock.write();
            assert_eq!(*held, round + 1, "the waiter was passed");
            RwLockWriteGuard::bump(&mut held);
        });
    }
    assert!(!lock.is_locked());
}
