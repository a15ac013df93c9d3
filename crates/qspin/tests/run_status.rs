//! What threads know of one another's CPUs, and what holders tell the kernel.

// The portable platform knows of no thread whether it runs.
#![cfg(not(feature = "portable"))]

mod pinning;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use qspin::events::{self, Event};
use qspin::platform::holder::{self, Unavailable};
use qspin::platform::{cpu, run_status};
use qspin::tuning::{self, Tuning};
use qspin_core::platform::CpuId;

use pinning::{cpus, pin};

static ALONE: Mutex<()> = Mutex::new(());

/// One test at a time: they look at the numbers of threads, and set the tuning.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Whether two threads, each pinned to a CPU, know the other not to run; each looks in turn while
/// the other waits.
fn looks(cpus: [usize; 2]) -> [bool; 2] {
    let turns = Barrier::new(2);
    let numbers = [AtomicU32::new(0), AtomicU32::new(0)];
    thread::scope(|scope| {
        let looks = [0, 1].map(|own| {
            let (turns, numbers) = (&turns, &numbers);
            scope.spawn(move || {
                pin(cpus[own]);
                numbers[own].store(cpu::current().unwrap().number(), SeqCst);
                turns.wait();
                let other = CpuId::new(numbers[1 - own].load(SeqCst)).unwrap();
                let mut known = false;
                for turn in 0..2 {
                    if turn == own {
                        known = run_status::known_not_to_run(other);
                    }
                    turns.wait();
                }
                known
            })
        });
        looks.map(|thread| thread.join().unwrap())
    })
}

#[test]
fn of_two_threads_on_one_cpu_each_knows_that_the_other_does_not_run() {
    let _alone = alone();
    if !run_status::available() {
        println!("skipped: the C library has registered no rseq areas");
        return;
    }
    for cpu in cpus() {
        assert_eq!(looks([cpu, cpu]), [true, true], "CPU {cpu}");
    }
}

#[test]
fn a_thread_that_looks_runs() {
    let _alone = alone();
    let own = cpu::current().unwrap();
    assert!(!run_status::known_not_to_run(own));
}

#[test]
fn of_two_threads_on_two_cpus_nothing_is_known() {
    let _alone = alone();
    let cpus = cpus();
    let [first, second, ..] = cpus[..] else {
        println!("skipped: there is one CPU");
        return;
    };
    assert_eq!(looks([first, second]), [false, false]);
}

/// Runs on a new thread that is pinned, with the number of another one on the same CPU, which
/// sleeps meanwhile and then ends.
fn beside_a_sleeper(run: impl FnOnce(CpuId) + Send) {
    pin_here(|cpu| {
        let (send, number) = mpsc::channel();
        // Goes at the end of `run`, also if that is a panic.
        let (end, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                pin(cpu);
                send.send(cpu::current().unwrap()).unwrap();
                ended.recv().unwrap_err();
            });
            let _end = end;
            run(number.recv().unwrap());
        });
    });
}

/// Runs on a new thread, pinned.
fn pin_here(run: impl FnOnce(usize) + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let cpu = cpus()[0];
            pin(cpu);
            run(cpu);
        });
    });
}

#[test]
fn of_a_thread_that_has_ended_nothing_is_known() {
    let _alone = alone();
    if !run_status::available() {
        println!("skipped: the C library has registered no rseq areas");
        return;
    }
    let number = AtomicU32::new(0);
    pin_here(|_| {
        beside_a_sleeper(|sleeper| {
            assert!(run_status::known_not_to_run(sleeper));
            number.store(sleeper.number(), SeqCst);
        });
        // Its closure has ended; its last steps may still be under way.
        let number = CpuId::new(number.load(SeqCst)).unwrap();
        until(|| !run_status::known_not_to_run(number));
    });
}

#[test]
fn the_child_of_fork_knows_nothing_of_the_threads_of_its_parent() {
    let _alone = alone();
    if !run_status::available() {
        println!("skipped: the C library has registered no rseq areas");
        return;
    }
    beside_a_sleeper(|sleeper| {
        assert!(run_status::known_not_to_run(sleeper));
        // SAFETY: the child calls only async-signal-safe functions.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let known = run_status::known_not_to_run(sleeper);
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(i32::from(known)) };
        }
        assert!(child > 0, "fork failed");
        let mut status = 0;
        // SAFETY: `child` is ours and `status` a valid place.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child knew");
        assert!(run_status::known_not_to_run(sleeper), "the parent still knows");
    });
}

extern "C" fn number_itself(_: *mut libc::c_void) -> *mut libc::c_void {
    assert!(cpu::current().is_some());
    null_mut()
}

/// A thread whose stack, and so its area, is gone as soon as it is: what a stale look would show.
fn live_and_vanish() {
    const STACK: usize = 256 * 1024;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: plain calls; the stack lives until the thread has been joined.
    unsafe {
        let stack = libc::mmap(null_mut(), STACK, access, kind, -1, 0);
        assert_ne!(stack, libc::MAP_FAILED);
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, stack, STACK), 0);
        let mut thread = 0;
        assert_eq!(libc::pthread_create(&mut thread, &attributes, number_itself, null_mut()), 0);
        assert_eq!(libc::pthread_join(thread, null_mut()), 0);
        libc::munmap(stack, STACK);
        libc::pthread_attr_destroy(&mut attributes);
    }
}

#[test]
fn looks_at_threads_that_come_and_go_find_an_area_or_none() {
    let _alone = alone();
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !end.load(SeqCst) {
                    for number in 0..8 {
                        let _ = run_status::known_not_to_run(CpuId::new(number).unwrap());
                    }
                }
            });
        }
        for _ in 0..2000 {
            live_and_vanish();
        }
        end.store(true, SeqCst);
    });
}

#[test]
fn a_waiter_in_a_queue_halts_early_behind_one_that_does_not_run() {
    let _alone = alone();
    if !run_status::available() {
        println!("skipped: the C library has registered no rseq areas");
        return;
    }
    const WAITERS: usize = 4;
    let tune = |heed_preempted| -> &'static Tuning {
        Box::leak(Box::new(Tuning { heed_preempted, ..Tuning::DEFAULT }))
    };
    let early = |heed| {
        tuning::set(tune(heed));
        events::reset();
        pin_here(|cpu| {
            let lock = qspin::paravirt_queued::CountedMutex::new(0);
            let held = lock.lock();
            let started = AtomicU32::new(0);
            thread::scope(|scope| {
                for _ in 0..WAITERS {
                    scope.spawn(|| {
                        pin(cpu);
                        started.fetch_add(1, SeqCst);
                        *lock.lock() += 1;
                    });
                }
                until(|| started.load(SeqCst) == WAITERS as u32);
                // All of them queue on this CPU while this thread sleeps.
                thread::sleep(Duration::from_millis(50));
                drop(held);
            });
            assert_eq!(lock.into_inner(), WAITERS);
        });
        tuning::set(&Tuning::DEFAULT);
        let snapshot = events::snapshot();
        snapshot.into_iter().find(|(event, _)| *event == Event::WaitEarlyCount).unwrap().1
    };
    assert_eq!(early(false), 0);
    assert_ne!(early(true), 0);
}

#[test]
fn waiters_that_heed_run_status_exclude_one_another() {
    const THREADS: usize = 4;
    const TIMES: usize = 5_000;
    let _alone = alone();
    tuning::set(Box::leak(Box::new(Tuning { heed_preempted: true, ..Tuning::DEFAULT })));
    let simple = qspin::simple::Mutex::new(0);
    let queued = qspin::paravirt_queued::Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    *simple.lock() += 1;
                    *queued.lock() += 1;
                }
            });
        }
    });
    tuning::set(&Tuning::DEFAULT);
    assert_eq!((simple.into_inner(), queued.into_inner()), (THREADS * TIMES, THREADS * TIMES));
}

#[test]
fn holders_that_hint_exclude_one_another_whether_the_kernel_heeds_them_or_not() {
    let _alone = alone();
    static COUNT: qspin::native::HintedMutex<u64> = qspin::native::HintedMutex::new(0);
    static OTHER: qspin::queued_rw::HintedRwLock<u64> = qspin::queued_rw::HintedRwLock::new(0);
    const TIMES: u64 = 20_000;
    match holder::available() {
        Ok(()) => println!("the kernel extends time slices"),
        Err(why) => println!("{why}"),
    }
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for turn in 0..TIMES {
                    let mut count = COUNT.lock();
                    // Two locks, released in either order, and every way to take them.
                    let mut other = match turn % 3 {
                        0 => OTHER.try_write().unwrap_or_else(|| OTHER.write()),
                        1 => {
                            drop(OTHER.try_read());
                            OTHER.write()
                        }
                        _ => OTHER.write(),
                    };
                    (*count, *other) = (*count + 1, *other + 1);
                    if turn % 2 == 0 {
                        drop(count);
                    } else {
                        drop(other);
                    }
                }
            });
        }
    });
    assert_eq!(*COUNT.lock(), 2 * TIMES);
    assert_eq!(*OTHER.read(), 2 * TIMES);
}

#[test]
fn a_kernel_before_7_0_is_known_to_have_no_extension() {
    // SAFETY: a valid place.
    let release = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        assert_eq!(libc::uname(&mut name), 0);
        std::ffi::CStr::from_ptr(name.release.as_ptr()).to_str().unwrap().to_owned()
    };
    let major: u32 = release.split('.').next().unwrap().parse().unwrap();
    if major >= 7 {
        println!("skipped: this is Linux {release}");
        return;
    }
    let why = holder::available().unwrap_err();
    let expected =
        if run_status::available() { Unavailable::NotInKernel } else { Unavailable::NoArea };
    assert_eq!(why, expected);
    assert!(why.to_string().starts_with("no time slice extension for lock holders: "), "{why}");
}
