//! Each count is counted once, whichever thread counts, and seen outside.

use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use qspin::events::{CounterGroup, Event, Events, Group};

use crate::{Child, Published, new_groups, this};

#[test]
fn the_file_says_what_was_counted() {
    qspin::counter_group!(Seen = "seen");
    assert_eq!(Published::all(this(), "seen").len(), 0, "nothing was counted");
    Seen.add(Event::HashCount, 3);
    Seen.count(Event::KickLatencies);
    let published = Published::only(this(), "seen");
    assert_eq!(published.line("pid"), [u64::from(this())]);
    for (event, count) in Seen::snapshot() {
        assert_eq!(published.count(event), count, "{}", event.name());
    }
    assert_eq!((Seen::count_of(Event::HashCount), Seen::count_of(Event::KickLatencies)), (3, 1));
    assert!(published.descriptor > 2, "in the place of a standard stream");
    // SAFETY: questions about an open file.
    let (flags, seals) = unsafe {
        let ask = |what| libc::fcntl(published.descriptor, what);
        (ask(libc::F_GETFD), ask(libc::F_GET_SEALS))
    };
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC, "not for programs that it starts");
    let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    assert_eq!(seals & size, size, "it cannot be cut off");
    assert!(published.file.set_len(0).is_err());
}

#[test]
fn groups_do_not_count_each_other() {
    qspin::counter_group!(One = "one");
    qspin::counter_group!(Other = "other");
    One.add(Event::HashCount, 1);
    Other.add(Event::HashCount, 20);
    assert_eq!((One::count_of(Event::HashCount), Other::count_of(Event::HashCount)), (1, 20));
    assert_eq!(Published::only(this(), "one").count(Event::HashCount), 1);
    assert_eq!(Published::only(this(), "other").count(Event::HashCount), 20);
}

#[test]
fn a_lock_of_a_group_counts_there_and_nowhere_else() {
    qspin::counter_group!(Table = "contended");
    static LOCK: qspin::native::MutexWith<Table, u64> = qspin::native::MutexWith::new(0);
    static READ: qspin::queued_rw::RwLockWith<Table, u64> = qspin::queued_rw::RwLockWith::new(0);
    let held = LOCK.lock();
    thread::scope(|scope| {
        scope.spawn(|| *LOCK.lock() += 1);
        while Table::count_of(Event::LockSlowpath) == 0 {
            thread::yield_now();
        }
        drop(held);
    });
    assert_eq!(*READ.read(), 0);
    assert_eq!(Table::count_of(Event::LockSlowpath), 1);
    assert_eq!(Published::only(this(), "contended").count(Event::LockSlowpath), 1);
    assert_eq!(qspin::events::Counted::count_of(Event::LockSlowpath), 0);
}

#[test]
fn a_reset_from_inside_or_outside_begins_at_zero_and_loses_nothing_after() {
    qspin::counter_group!(Reset = "reset");
    Reset.add(Event::HashCount, 5);
    Reset::reset();
    assert_eq!(Reset::count_of(Event::HashCount), 0);
    let published = Published::only(this(), "reset");
    assert_eq!(published.count(Event::HashCount), 0);
    Reset.add(Event::HashCount, 7);
    assert_eq!((Reset::count_of(Event::HashCount), published.count(Event::HashCount)), (7, 7));
    // As another process does it: the sums go into the record that is subtracted.
    let [offset, stride, _] = published.line("records")[..].try_into().unwrap();
    let mark = offset + published.line("mark")[0] * stride;
    let sum = 12_u64.to_ne_bytes();
    published.file.write_all_at(&sum, mark + 8 * Event::HashCount as u64).unwrap();
    assert_eq!((Reset::count_of(Event::HashCount), published.count(Event::HashCount)), (0, 0));
    Reset.add(Event::HashCount, 2);
    assert_eq!((Reset::count_of(Event::HashCount), published.count(Event::HashCount)), (2, 2));
}

#[test]
fn no_count_is_lost_while_the_first_ones_publish() {
    if !crate::is_alone("exact::no_count_is_lost_while_the_first_ones_publish") {
        return;
    }
    const THREADS: u64 = 4;
    const EACH: u64 = 3;
    const GROUPS: usize = 100;
    let groups = new_groups("qspin-stat:race\0", GROUPS);
    for _ in 0..5 {
        let child = Child::after(|| {
            let start = Barrier::new(THREADS as usize);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        for group in groups {
                            for _ in 0..EACH {
                                group.add(Event::HashCount, 1);
                            }
                        }
                    });
                }
            });
            // A thread that came while every other group was published has published none.
            groups.iter().for_each(|group| group.add(Event::HashCount, 1));
            let exact =
                |group: &Group| group.counts()[Event::HashCount as usize] == THREADS * EACH + 1;
            groups.iter().all(exact)
        });
        let published = Published::all(child.id(), "race");
        assert_eq!(published.len(), GROUPS);
        for file in published {
            assert_eq!(file.count(Event::HashCount), THREADS * EACH + 1);
        }
    }
}

#[test]
fn more_threads_than_records_lose_no_count() {
    qspin::counter_group!(Many = "many");
    const THREADS: u64 = 300;
    const EACH: u64 = 500;
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                Many.count(Event::HashCount);
                // All numbers are in use at once.
                start.wait();
                for _ in 1..EACH {
                    Many.count(Event::HashCount);
                }
            });
        }
    });
    assert_eq!(Many::count_of(Event::HashCount), THREADS * EACH);
    assert_eq!(Published::only(this(), "many").count(Event::HashCount), THREADS * EACH);
}

mod handler {
    use super::*;

    qspin::counter_group!(pub(super) Signalled = "signalled");
    pub(super) static HANDLED: AtomicU64 = AtomicU64::new(0);

    pub(super) extern "C" fn count(_: libc::c_int) {
        Signalled.count(Event::HashCount);
        HANDLED.fetch_add(1, Relaxed);
    }
}

#[test]
fn signal_handlers_lose_no_count_of_what_they_interrupt() {
    use handler::{HANDLED, Signalled};

    // SAFETY: the handler only counts.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler::count as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    let done = AtomicBool::new(false);
    let (send, receive) = std::sync::mpsc::channel();
    let counted = thread::scope(|scope| {
        let counting = scope.spawn(|| {
            // SAFETY: asks only for this thread's own handle.
            send.send(unsafe { libc::pthread_self() }).unwrap();
            let mut counted = 0_u64;
            while !done.load(Relaxed) {
                Signalled.count(Event::HashCount);
                counted += 1;
            }
            counted
        });
        let target = receive.recv().unwrap();
        while HANDLED.load(Relaxed) < 5_000 {
            // SAFETY: the thread lives until `done` is set.
            assert_eq!(unsafe { libc::pthread_kill(target, libc::SIGUSR1) }, 0);
        }
        done.store(true, Relaxed);
        counting.join().unwrap()
    });
    assert_eq!(Signalled::count_of(Event::HashCount), counted + HANDLED.load(Relaxed));
}
