//! A fork in a signal handler that interrupts a fork of the same thread.
//!
//! A program without the test harness, which has threads: in a process that has ever had two, the
//! C library takes locks of its own in `fork`, and a fork inside that one would wait for them.

use std::fs;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};

use qspin::events::{CounterGroup, Event, Events};

/// At least so many forks of each: of the program, and of the handler that interrupts it.
const FORKS: u32 = 400;

qspin::counter_group!(Before = "before");
qspin::counter_group!(After = "after");

static BY_HANDLER: AtomicU32 = AtomicU32::new(0);
/// The program calls `fork` just now, and how often it was interrupted then.
static IN_FORK: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicU32 = AtomicU32::new(0);
static TIMER: AtomicPtr<libc::c_void> = AtomicPtr::new(null_mut());
static WRONG: AtomicBool = AtomicBool::new(false);

/// Makes a child that counts for itself alone, and waits for its end.
fn fork(interrupted: &AtomicBool) {
    // SAFETY: the child makes only async-signal-safe calls, as does the parent here; `status` is a
    // valid place.
    unsafe {
        interrupted.store(true, Relaxed);
        let child = libc::fork();
        interrupted.store(false, Relaxed);
        if child == 0 {
            Before.count(Event::HashCount);
            libc::_exit(i32::from(Before::count_of(Event::HashCount) != 1));
        }
        let mut status = 0;
        let waited = libc::waitpid(child, &mut status, 0);
        WRONG.fetch_or(child < 0 || waited != child || status != 0, Relaxed);
    }
}

extern "C" fn fork_too(_: libc::c_int) {
    if IN_FORK.load(Relaxed) {
        INSIDE.fetch_add(1, Relaxed);
    }
    fork(&AtomicBool::new(false));
    interrupt_after(20_000 + BY_HANDLER.fetch_add(1, Relaxed) % 97 * 10_000);
}

/// Only ever once, so that the program gets on however slow a fork is.
fn interrupt_after(nanoseconds: u32) {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let once = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds.into() };
    let when = libc::itimerspec { it_interval: never, it_value: once };
    // SAFETY: made before the first signal.
    unsafe { libc::timer_settime(TIMER.load(Relaxed), 0, &when, null_mut()) };
}

fn begin() {
    // SAFETY: a handler that only makes async-signal-safe calls, and valid places.
    unsafe {
        // Kills what hangs.
        libc::alarm(20);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fork_too as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, null_mut()), 0);
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGUSR1;
        let mut timer = null_mut();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        TIMER.store(timer, Relaxed);
    }
    interrupt_after(20_000);
}

fn is_published(group: &str) -> bool {
    let name = format!("/memfd:qspin-stat:{group} (deleted)");
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    links
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|link| link.as_os_str() == &*name)
}

fn main() {
    if cfg!(feature = "portable") {
        println!("skipped: the portable platform does not notice a fork");
        return;
    }
    Before.add(Event::HashCount, 5);
    begin();
    let mut by_program = 0;
    while by_program < FORKS || BY_HANDLER.load(Relaxed) < FORKS {
        fork(&IN_FORK);
        by_program += 1;
    }
    // SAFETY: made above, and the handler, which uses it, is not under way.
    unsafe { libc::timer_delete(TIMER.load(Relaxed)) };
    let inside = INSIDE.load(Relaxed);
    println!(
        "{by_program} forks, {} in handlers, {inside} of them in forks",
        BY_HANDLER.load(Relaxed)
    );
    assert!(!WRONG.load(Relaxed), "a child counted what its parent did");
    assert_ne!(inside, 0);
    assert_eq!(Before::count_of(Event::HashCount), 5);
    // The last of all forks has given the turn back.
    After.count(Event::HashCount);
    assert!(is_published("before") && is_published("after"));
}
