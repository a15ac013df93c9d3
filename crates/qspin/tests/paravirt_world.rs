//! The locks whose waiters halt, and the world: signals, `errno`, fork, and locks that vanish.

// The portable platform notices no fork, and a signal ends none of its halts.
#![cfg(not(feature = "portable"))]

mod halting;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use lock_api::RawMutex;
use qspin::events;
use qspin::tuning::Tuning;

use halting::{Alone, halting, halts, until};

extern "C" fn does_nothing(_: libc::c_int) {}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: a valid action; the handlers here only lock and touch atomics.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// Starts `body` and returns the thread's handle as the C library has it.
fn start<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    body: impl FnOnce() + Send + 'scope,
) -> libc::pthread_t {
    let (send, receive) = std::sync::mpsc::channel();
    scope.spawn(move || {
        // SAFETY: asks only for this thread's own handle.
        send.send(unsafe { libc::pthread_self() }).unwrap();
        body();
    });
    receive.recv().unwrap()
}

fn interrupt(thread: libc::pthread_t, signal: libc::c_int) {
    // SAFETY: the thread lives: it waits for a lock that is held by the caller.
    assert_eq!(unsafe { libc::pthread_kill(thread, signal) }, 0);
}

fn errno() -> libc::c_int {
    // SAFETY: the place is this thread's.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: libc::c_int) {
    // SAFETY: the place is this thread's.
    unsafe { *libc::__errno_location() = value };
}

fn a_halt_leaves_errno_alone<R: RawMutex + Send + Sync>() {
    let _alone = Alone::with(halting());
    handle(libc::SIGUSR2, does_nothing);
    let lock = lock_api::Mutex::<R, _>::new(());
    let seen = AtomicI32::new(0);
    thread::scope(|scope| {
        let held = lock.lock();
        let waiter = start(scope, || {
            set_errno(4711);
            drop(lock.lock());
            seen.store(errno(), Ordering::Relaxed);
        });
        // The halt ends by a signal (EINTR), and the next one by a kick.
        until(|| halts() >= 1);
        let before = halts();
        until(|| {
            interrupt(waiter, libc::SIGUSR2);
            halts() > before
        });
        drop(held);
    });
    assert_eq!(seen.into_inner(), 4711);
}

/// What the signal handler does; it has no argument of its own.
static IN_HANDLER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn counts_in_handler<R: RawMutex + 'static>(_: libc::c_int) {
    let lock = IN_HANDLER.load(Ordering::Acquire).cast::<lock_api::Mutex<R, u32>>();
    // SAFETY: the test put a lock of this type there, which lives until the handler has run.
    *unsafe { &*lock }.lock() += 1;
    HANDLED.fetch_add(1, Ordering::Release);
}

fn a_handler_may_halt_while_it_interrupts_a_halt<R: RawMutex + Send + Sync + 'static>() {
    let _alone = Alone::with(halting());
    let outer = lock_api::Mutex::<R, u32>::new(0);
    let inner = lock_api::Mutex::<R, u32>::new(0);
    IN_HANDLER.store((&raw const inner).cast_mut().cast(), Ordering::Release);
    HANDLED.store(0, Ordering::Relaxed);
    handle(libc::SIGUSR2, counts_in_handler::<R>);
    let rounds = 20;
    for round in 1..=rounds {
        events::reset();
        thread::scope(|scope| {
            let held = outer.lock();
            let waiter = start(scope, || *outer.lock() += 1);
            until(|| halts() >= 1);
            let held_inner = inner.lock();
            let before = halts();
            interrupt(waiter, libc::SIGUSR2);
            // The handler halts, too, with a node of its own.
            until(|| halts() > before);
            drop(held_inner);
            until(|| HANDLED.load(Ordering::Acquire) == round);
            // The handler was not interrupted, and has left its halt and its node.
            assert_eq!(*inner.lock(), round);
            drop(held);
        });
        assert_eq!(*outer.lock(), round);
    }
}

/// Waits for a child that ends with 0 if all was well; one that hangs is killed by its alarm.
fn fork(child: impl FnOnce() -> bool) {
    // SAFETY: the child uses what the C library keeps usable across `fork`: memory and threads.
    let process = unsafe { libc::fork() };
    if process == 0 {
        // SAFETY: plain system calls.
        unsafe { libc::alarm(30) };
        let ok = child();
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(i32::from(!ok)) };
    }
    assert!(process > 0, "fork failed");
    let mut status = 0;
    // SAFETY: `process` is ours and `status` a valid place.
    assert_eq!(unsafe { libc::waitpid(process, &mut status, 0) }, process);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");
}

/// Counts in several threads of a child, which must not panic.
fn counts<R: RawMutex + Send + Sync>(lock: &lock_api::Mutex<R, u32>) -> bool {
    let (threads, rounds) = (4, 200);
    let before = *lock.lock();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let mut sum = lock.lock();
                    *sum += 1;
                    // Others come, and wait.
                    thread::yield_now();
                }
            });
        }
    });
    *lock.lock() == before + threads * rounds
}

fn a_child_is_not_harmed_by_those_that_halted_at_the_fork<R: RawMutex + Send + Sync>() {
    let _alone = Alone::with(halting());
    let waiters = 3;
    let mut waited_for = lock_api::Mutex::<R, u32>::new(0);
    let place = &raw mut waited_for;
    let other = lock_api::Mutex::<R, u32>::new(0);
    // SAFETY: no thread writes to the place but the child, to its copy.
    let lock = unsafe { &*place };
    thread::scope(|scope| {
        let held = lock.lock();
        for waiter in 1..=waiters {
            scope.spawn(|| *lock.lock() += 1);
            until(|| halts() >= waiter);
        }
        fork(|| {
            events::reset();
            let mut ok = counts(&other);
            // The lock that they waited for is made anew, in the same place.
            // SAFETY: the child has one thread, and that one looks at the lock only afterwards.
            let anew = unsafe {
                place.write(lock_api::Mutex::new(0));
                &*place
            };
            ok &= counts(anew);
            ok && halts() > 0
        });
        drop(held);
    });
    assert_eq!(*lock.lock(), waiters as u32);
    assert!(counts(&other));
}

/// The next owner unmaps the lock: a thread that touches it after the step that releases it is killed.
fn the_next_owner_may_free_the_lock<R: RawMutex + Send + Sync>() {
    const PAGE: usize = 4096;
    for (tuning, rounds) in [(halting(), 500), (Tuning::DEFAULT, 500)] {
        let _alone = Alone::with(tuning);
        for _ in 0..rounds {
            events::reset();
            // SAFETY: a new mapping.
            let page = unsafe {
                let (protection, flags) =
                    (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
                libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0)
            };
            assert_ne!(page, libc::MAP_FAILED);
            // SAFETY: the page is large and aligned enough, and ours until the next owner unmaps
            // it, which happens once, after the last look of the other.
            let lock: &R = unsafe {
                page.cast::<R>().write(R::INIT);
                &*page.cast()
            };
            let guard = lock.lock();
            let address = AtomicUsize::new(page as usize);
            let waiting = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    waiting.store(true, Ordering::Release);
                    std::mem::forget(lock.lock());
                    let page = address.load(Ordering::Relaxed) as *mut libc::c_void;
                    // SAFETY: see above.
                    assert_eq!(unsafe { libc::munmap(page, PAGE) }, 0);
                });
                until(|| waiting.load(Ordering::Acquire));
                if tuning != Tuning::DEFAULT {
                    until(|| halts() > 0);
                }
                // SAFETY: locked above.
                unsafe { lock.unlock(guard) };
            });
        }
    }
}

macro_rules! for_every_halting_lock {
    ($($lock:ident)*) => {
        $(
            mod $lock {
                type Counted = qspin::$lock::CountedRawMutex;
                #[test]
                fn a_halt_leaves_errno_alone() {
                    super::a_halt_leaves_errno_alone::<Counted>();
                }
                #[test]
                fn a_handler_may_halt_while_it_interrupts_a_halt() {
                    super::a_handler_may_halt_while_it_interrupts_a_halt::<Counted>();
                }
                #[test]
                fn a_child_is_not_harmed_by_those_that_halted_at_the_fork() {
                    super::a_child_is_not_harmed_by_those_that_halted_at_the_fork::<Counted>();
                }
                #[test]
                fn the_next_owner_may_free_the_lock() {
                    super::the_next_owner_may_free_the_lock::<Counted>();
                }
            }
        )*
    };
}

for_every_halting_lock!(paravirt paravirt_stealing paravirt_queued paravirt_ticket cna_paravirt);
