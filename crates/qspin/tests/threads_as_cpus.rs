//! The threads platform: numbers, signal handlers, fork, and threads without a number.
//!
//! These tests look at counters of the whole process, so they run one after the other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;

use qspin::events::{self, Event};
use qspin::platform::cpu;
use qspin_core::platform::CpuId;

static ALONE: Mutex<()> = Mutex::new(());

/// One test at a time, and only once the threads of the one before have given their numbers back.
fn alone() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    until(|| cpu::in_use() == 0);
    alone
}

fn count(event: Event) -> u64 {
    events::snapshot().into_iter().find(|(other, _)| *other == event).map_or(0, |(_, n)| n)
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn numbers_are_dense_reused_and_given_back() {
    let _alone = alone();
    let before = cpu::in_use();
    for _ in 0..200 {
        // One after the other, so that one number serves them all.
        let number = thread::spawn(|| cpu::current().unwrap().number()).join().unwrap();
        assert!(number <= before, "{number}");
    }
    let together = 50;
    let numbered = Barrier::new(together + 1);
    thread::scope(|scope| {
        for _ in 0..together {
            scope.spawn(|| {
                assert_eq!(cpu::current(), cpu::current());
                numbered.wait();
                numbered.wait();
            });
        }
        numbered.wait();
        assert!(cpu::in_use() >= together as u32);
        numbered.wait();
    });
    // A scope ends when its threads' closures have; their key destructors may still be running.
    until(|| cpu::in_use() <= before);
}

macro_rules! a_destructor_of_a_dying_thread_may_lock {
    ($($lock:ident)*) => {
        $(
            #[test]
            fn $lock() {
                static COUNT: qspin::$lock::Mutex<u32> = qspin::$lock::Mutex::new(0);
                struct LocksWhenDropped;
                impl Drop for LocksWhenDropped {
                    fn drop(&mut self) {
                        assert!(cpu::current().is_some(), "it must not lose its number so early");
                        *COUNT.lock() += 1;
                    }
                }
                thread_local! {
                    static LAST: LocksWhenDropped = const { LocksWhenDropped };
                }
                let _alone = alone();
                let before = cpu::in_use();
                let threads: Vec<_> = (0..16)
                    .map(|_| {
                        thread::spawn(|| {
                            LAST.with(|_| {});
                            *COUNT.lock() += 1;
                        })
                    })
                    .collect();
                for thread in threads {
                    thread.join().unwrap();
                }
                assert_eq!(*COUNT.lock(), 32);
                until(|| cpu::in_use() <= before);
            }
        )*
    };
}

mod a_destructor_of_a_dying_thread_may_lock {
    use super::*;

    a_destructor_of_a_dying_thread_may_lock!(native paravirt paravirt_stealing paravirt_queued);
    a_destructor_of_a_dying_thread_may_lock!(paravirt_ticket ticket mcs cna cna_paravirt);
}

mod handler {
    use super::*;

    pub(super) static DONE: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static LEVEL: Cell<usize> = const { Cell::new(0) };
    }

    /// Does this for the level that it runs at, and says when it is done.
    pub(super) fn one_level_deeper(wait: impl FnOnce(usize)) {
        let level = LEVEL.with(|level| level.replace(level.get() + 1));
        wait(level);
        DONE.fetch_add(1 << (4 * level), Ordering::Relaxed);
        LEVEL.with(|cell| cell.set(level));
    }
}

/// Interrupts `wait_one_level_deeper`, which waits for the lock of its level, again and again, while
/// it waits; `release` then releases the lock of a level.
fn nest_five_deep(wait_one_level_deeper: extern "C" fn(libc::c_int), release: impl Fn(usize)) {
    // SAFETY: the handler only locks and touches atomics and plain thread locals.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wait_one_level_deeper as *const () as usize;
        action.sa_flags = libc::SA_NODEFER;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    events::reset();
    handler::DONE.store(0, Ordering::Relaxed);
    let (send, receive) = std::sync::mpsc::channel();
    let waiter = thread::spawn(move || {
        // SAFETY: asks only for this thread's own handle.
        send.send(unsafe { libc::pthread_self() }).unwrap();
        wait_one_level_deeper(0);
    });
    let target = receive.recv().unwrap();
    // From here to the queue it is a few instructions; then each level is waited for before the
    // next signal interrupts it.
    thread::sleep(std::time::Duration::from_millis(20));
    let levels = [Event::LockUseNode2, Event::LockUseNode3, Event::LockUseNode4, Event::LockNoNode];
    for event in levels {
        // SAFETY: the thread lives: it waits for a lock that is held.
        assert_eq!(unsafe { libc::pthread_kill(target, libc::SIGUSR1) }, 0);
        until(|| count(event) == 1);
    }
    // The innermost handler must end first, or the others never go on.
    for level in (0..5).rev() {
        release(level);
        until(|| handler::DONE.load(Ordering::Relaxed) >> (4 * level) & 1 == 1);
    }
    waiter.join().unwrap();
    assert_eq!(handler::DONE.load(Ordering::Relaxed), 0x11111);
    for event in levels {
        assert_eq!(count(event), 1, "{}", event.name());
    }
}

macro_rules! handlers_nest_four_deep_with_nodes_and_deeper_without {
    ($($lock:ident)*) => {
        $(
            #[test]
            fn $lock() {
                /// One lock a nesting level, of a kind each of whose waiters needs a node.
                static LOCKS: [qspin::$lock::CountedMutex<u32>; 5] =
                    [const { qspin::$lock::CountedMutex::new(0) }; 5];
                extern "C" fn wait_one_level_deeper(_: libc::c_int) {
                    handler::one_level_deeper(|level| *LOCKS[level].lock() += 1);
                }
                let _alone = alone();
                LOCKS.iter().for_each(|lock| std::mem::forget(lock.lock()));
                nest_five_deep(wait_one_level_deeper, |level| {
                    // SAFETY: locked just above, and released once.
                    unsafe { LOCKS[level].force_unlock(lock_api::GuardSend::new()) };
                });
            }
        )*
    };
}

mod handlers_nest_four_deep_with_nodes_and_deeper_without {
    use super::*;

    handlers_nest_four_deep_with_nodes_and_deeper_without!(mcs ticket paravirt_ticket);
}

/// Runs `child` in a child process, which must say that all was well; one that hangs is killed.
fn fork(child: impl FnOnce() -> bool) {
    // SAFETY: the child calls only async-signal-safe functions and our locks.
    let process = unsafe { libc::fork() };
    if process == 0 {
        // SAFETY: plain system calls; the second ends the child without running the parent's
        // destructors.
        unsafe {
            libc::alarm(60);
            libc::_exit(i32::from(!child()));
        }
    }
    assert!(process > 0, "fork failed");
    let mut status = 0;
    // SAFETY: `process` is ours and `status` a valid place.
    assert_eq!(unsafe { libc::waitpid(process, &mut status, 0) }, process);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");
}

#[test]
#[cfg_attr(feature = "portable", ignore = "the portable platform does not notice a fork")]
fn the_child_of_fork_has_one_number_and_may_lock() {
    static LOCK: qspin::native::Mutex<u32> = qspin::native::Mutex::new(0);
    static HALTING: qspin::paravirt::Mutex<u32> = qspin::paravirt::Mutex::new(0);
    let _alone = alone();
    let (numbered, end) = (Barrier::new(5), Barrier::new(5));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _ = cpu::current();
                numbered.wait();
                end.wait();
            });
        }
        let _ = cpu::current();
        numbered.wait();
        assert!(cpu::in_use() >= 5);
        fork(|| {
            let ok = cpu::in_use() == 1 && cpu::current().is_some();
            for _ in 0..1000 {
                *LOCK.lock() += 1;
                *HALTING.lock() += 1;
            }
            ok && *LOCK.lock() == 1000 && *HALTING.lock() == 1000
        });
        end.wait();
    });
}

macro_rules! who_waited_at_the_fork_harms_no_other_lock_in_the_child {
    ($($lock:ident)*) => {
        $(
            #[test]
            #[cfg_attr(feature = "portable", ignore = "the portable platform does not notice a fork")]
            fn $lock() {
                static HELD: qspin::$lock::Mutex<()> = qspin::$lock::Mutex::new(());
                static OTHER: qspin::$lock::Mutex<u32> = qspin::$lock::Mutex::new(0);
                let _alone = alone();
                let held = HELD.lock();
                let queueing = AtomicU32::new(0);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        queueing.store(1, Ordering::Relaxed);
                        drop(HELD.lock());
                    });
                    // From here to the queue it is a few instructions.
                    until(|| queueing.load(Ordering::Relaxed) == 1);
                    thread::sleep(std::time::Duration::from_millis(20));
                    fork(|| {
                        // The waiter's number stays taken; this thread gets one that no queue knows.
                        let mut ok = cpu::in_use() >= 1 && cpu::current().is_some();
                        let waiters = cpu::in_use();
                        for _ in 0..1000 {
                            *OTHER.lock() += 1;
                        }
                        ok &= *OTHER.lock() == 1000 && waiters == 2;
                        ok
                    });
                    drop(held);
                });
            }
        )*
    };
}

mod who_waited_at_the_fork_harms_no_other_lock_in_the_child {
    use super::*;

    who_waited_at_the_fork_harms_no_other_lock_in_the_child!(mcs ticket paravirt_ticket);
    who_waited_at_the_fork_harms_no_other_lock_in_the_child!(paravirt paravirt_stealing);
    who_waited_at_the_fork_harms_no_other_lock_in_the_child!(paravirt_queued cna_paravirt);
}

mod sleeper {
    use super::*;

    pub(super) static NUMBERED: AtomicU32 = AtomicU32::new(0);
    pub(super) static END: std::sync::RwLock<()> = std::sync::RwLock::new(());

    extern "C" fn sleep(_: *mut libc::c_void) -> *mut libc::c_void {
        if cpu::current().is_some() {
            NUMBERED.fetch_add(1, Ordering::Relaxed);
        }
        drop(END.read());
        std::ptr::null_mut()
    }

    /// Starts a thread that takes a number and sleeps. Without the guard pages and the signal
    /// stack of `std`: a process may have only so many mappings.
    pub(super) fn start() -> Option<libc::pthread_t> {
        // SAFETY: plain calls of the C library on places that live long enough.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_setguardsize(&mut attributes, 0);
            libc::pthread_attr_setstacksize(&mut attributes, 64 * 1024);
            let mut thread = 0;
            let error = libc::pthread_create(&mut thread, &attributes, sleep, std::ptr::null_mut());
            libc::pthread_attr_destroy(&mut attributes);
            (error == 0).then_some(thread)
        }
    }
}

/// Has `mmap` refused to this thread from now on.
fn refuse_mappings() {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let compare = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(load, 0, 0, 0),
        step(compare, 0, 1, libc::SYS_mmap as u32),
        // `SECCOMP_RET_ERRNO` and `SECCOMP_RET_ALLOW`.
        step(answer, 0, 0, 0x0005_0000 | libc::ENOMEM as u32),
        step(answer, 0, 0, 0x7fff_0000),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a valid program, for this thread.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::syscall(libc::SYS_seccomp, 1, 0, &raw const program), 0);
    }
}

#[test]
#[cfg_attr(
    feature = "portable",
    ignore = "the portable platform takes memory from the program's allocator"
)]
fn threads_for_whose_nodes_there_is_no_memory_have_no_number_and_stay_exclusive() {
    const EXTRA: usize = 4;
    /// So many threads have memory when the thousandth has.
    const WITH_MEMORY: u32 = 1023;
    let _alone = alone();
    events::reset();
    let lock = qspin::native::CountedMutex::new(0u64);
    let sleeping = qspin::Mutex::new(0u64);
    // The first release of a process is a slow one, for which this thread takes a number if no other has made it.
    drop(sleeping.lock());
    let before = cpu::in_use();
    let held = (lock.lock(), sleeping.lock());
    // Sleepers hold every number that memory is mapped for, so that threads that come after them need more.
    let keep = sleeper::END.write().unwrap();
    let wanted = WITH_MEMORY - before;
    let sleepers: Vec<_> = (0..wanted).map_while(|_| sleeper::start()).collect();
    assert_eq!(sleepers.len(), wanted as usize, "so many threads there must be");
    until(|| sleeper::NUMBERED.load(Ordering::Relaxed) == wanted);
    assert_eq!(cpu::in_use(), WITH_MEMORY);
    let rounds = 200;
    thread::scope(|scope| {
        for _ in 0..EXTRA {
            scope.spawn(|| {
                refuse_mappings();
                assert_eq!(cpu::current(), None);
                for _ in 0..rounds {
                    *lock.lock() += 1;
                    *sleeping.lock() += 1;
                }
                assert_eq!(cpu::current(), None);
            });
        }
        // All but the one that is pending find that they have no node.
        until(|| count(Event::LockNoNode) >= EXTRA as u64 - 1);
        drop(held);
    });
    // Each of them takes a number before it finds no memory, and gives it back at once.
    assert_eq!(cpu::in_use(), WITH_MEMORY);
    // A thread to which it is not refused gets memory and a number.
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(cpu::current(), CpuId::new(WITH_MEMORY)));
    });
    drop(keep);
    for sleeper in &sleepers {
        // SAFETY: started above and joined once.
        unsafe { libc::pthread_join(*sleeper, std::ptr::null_mut()) };
    }
    assert_eq!(*lock.lock(), (EXTRA * rounds) as u64);
    assert_eq!(*sleeping.lock(), (EXTRA * rounds) as u64);
    until(|| cpu::in_use() == before);
}
