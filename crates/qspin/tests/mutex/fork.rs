//! A child may lock at once, whether handlers know of it or not.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use qspin::Mutex;

use super::{contend, is_alone};

/// How a child is made: by the C library, which calls handlers in it; or by a bare system call.
const WAYS: [unsafe fn() -> libc::pid_t; 2] = [by_the_c_library, bare];

unsafe fn by_the_c_library() -> libc::pid_t {
    // SAFETY: the caller's.
    unsafe { libc::fork() }
}

unsafe fn bare() -> libc::pid_t {
    // SAFETY: the same stack, in other memory; the C library is told of no thread.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
}

/// Runs `child` in a child process, made `way`, which must come to an end and say that all is well.
fn in_a_child(way: unsafe fn() -> libc::pid_t, child: impl FnOnce() -> bool) {
    // SAFETY: the child does what the locks allow, and makes threads, which the C library allows.
    match unsafe { way() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        0 => {
            let fine = child();
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!fine)) };
        }
        pid => {
            let begun = Instant::now();
            let mut status = 0;
            // SAFETY: a valid place.
            while unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == 0 {
                if begun.elapsed() > super::LONG {
                    // SAFETY: a child that was not waited for.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                    panic!("the child hangs");
                }
                thread::sleep(Duration::from_millis(5));
            }
            assert!(
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
                "status {status:#x}"
            );
        }
    }
}

#[test]
fn a_child_locks_what_its_parent_fights_for() {
    if !is_alone("fork::a_child_locks_what_its_parent_fights_for") {
        return;
    }
    let (mine, others) = (Mutex::new(0u64), Mutex::new(0u64));
    let waiting = AtomicU32::new(0);
    let theirs = Mutex::new(());
    thread::scope(|scope| {
        let held = theirs.lock();
        let guard = mine.lock();
        for _ in 0..4 {
            scope.spawn(|| {
                waiting.fetch_add(1, SeqCst);
                *mine.lock() += 1;
            });
        }
        // One that holds what the child will find locked.
        let keeper = scope.spawn(|| {
            let _held = others.lock();
            waiting.fetch_add(1, SeqCst);
            drop(theirs.lock());
        });
        while waiting.load(SeqCst) < 5 {
            thread::yield_now();
        }
        let ways = [0, 1, 5, 20].into_iter().flat_map(|time| WAYS.map(|way| (time, way)));
        for (milliseconds, way) in ways {
            // Some of the waiters look, later all of them sleep.
            thread::sleep(Duration::from_millis(milliseconds));
            in_a_child(way, || {
                // What another thread of the parent holds stays locked.
                let locked = others.try_lock_for(Duration::from_millis(2)).is_none();
                // What the child's own thread holds it releases, and there are no waiters of its own.
                // SAFETY: this thread holds the lock, by the guard that it does not drop.
                unsafe { mine.force_unlock(lock_api::GuardSend::new()) };
                let free = mine.try_lock().is_some();
                // Threads of its own fight for it, sleep and are woken.
                // SAFETY: the raw lock is only locked and unlocked in turn.
                let exact = contend(unsafe { mine.raw() }, 4, 2000) == 8000;
                locked && free && exact
            });
        }
        drop(guard);
        drop(held);
        keeper.join().unwrap();
    });
    assert_eq!(*mine.lock(), 4);
}

/// A fork at any moment while others lock: whatever state that catches, the child's new locks work, and
/// its generation's marks count.
#[test]
fn children_are_made_while_others_fight() {
    if !is_alone("fork::children_are_made_while_others_fight") {
        return;
    }
    let lock = Mutex::new(0u64);
    let fighting = AtomicU32::new(0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                fighting.fetch_add(1, SeqCst);
                while !stop.load(SeqCst) {
                    *lock.lock() += 1;
                }
            });
        }
        // Threads that begin allocate.
        while fighting.load(SeqCst) < 4 {
            thread::yield_now();
        }
        for number in 0..40 {
            in_a_child(WAYS[number % 2], || {
                let fresh = <qspin::RawMutex as lock_api::RawMutex>::INIT;
                contend(&fresh, 3, 300) == 900
            });
        }
        // Forked while this thread holds the lock: the child's own threads get it from it.
        for number in 0..40 {
            let guard = lock.lock();
            in_a_child(WAYS[number % 2], || {
                // SAFETY: this thread holds the lock, by the guard that it does not drop.
                unsafe { lock.force_unlock(lock_api::GuardSend::new()) };
                // SAFETY: the raw lock is only locked and unlocked in turn.
                contend(unsafe { lock.raw() }, 3, 300) == 900
            });
            drop(guard);
        }
        stop.store(true, SeqCst);
    });
}

/// The page that tells a child that it is one is not emptied there: the C library's handler tells it.
#[test]
fn children_lock_where_pages_are_too_large_to_be_emptied() {
    if !is_alone("fork::children_lock_where_pages_are_too_large_to_be_emptied") {
        return;
    }
    qspin::inside::pretend_pages_of(1 << 20);
    let lock = Mutex::new(0u64);
    let generation = qspin::inside::generation();
    let guard = lock.lock();
    let waiting = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                waiting.fetch_add(1, SeqCst);
                *lock.lock() += 1;
            });
        }
        while waiting.load(SeqCst) < 3 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        in_a_child(by_the_c_library, || {
            // SAFETY: this thread holds the lock, by the guard that it does not drop.
            unsafe { lock.force_unlock(lock_api::GuardSend::new()) };
            // SAFETY: the raw lock is only locked and unlocked in turn.
            let exact = contend(unsafe { lock.raw() }, 3, 300) == 900;
            exact && qspin::inside::generation() == generation + 1
        });
        drop(guard);
    });
    assert_eq!(*lock.lock(), 3);
}
