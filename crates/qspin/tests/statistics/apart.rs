//! Processes do not count each other, leave nothing behind, and are left alone by the counting.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::Barrier;
use std::thread;

use qspin::events::{CounterGroup, Event, Events};

use crate::{Child, Published, new_groups, this};

#[test]
fn a_child_of_fork_counts_for_itself() {
    qspin::counter_group!(Forked = "forked");
    Forked.add(Event::HashCount, 100);
    let child = Child::after(|| {
        let mut good = Forked::count_of(Event::HashCount) == 0;
        good &= Published::open_in(this(), "forked").is_empty();
        Forked.add(Event::HashCount, 7);
        good &= Forked::count_of(Event::HashCount) == 7;
        let grandchild = Child::after(|| {
            let good = Forked::count_of(Event::HashCount) == 0;
            Forked.add(Event::HashCount, 1);
            good && Forked::count_of(Event::HashCount) == 1
        });
        good && Published::only(grandchild.id(), "forked").count(Event::HashCount) == 1
            && Forked::count_of(Event::HashCount) == 7
    });
    Forked.add(Event::HashCount, 10);
    assert_eq!(Forked::count_of(Event::HashCount), 110);
    assert_eq!(Published::only(this(), "forked").count(Event::HashCount), 110);
    let published = Published::only(child.id(), "forked");
    assert_eq!(published.count(Event::HashCount), 7);
    assert_eq!(published.line("pid"), [u64::from(child.id())]);
}

#[test]
fn a_fork_while_others_begin_to_count_is_exact_on_both_sides() {
    if !crate::is_alone("apart::a_fork_while_others_begin_to_count_is_exact_on_both_sides") {
        return;
    }
    const THREADS: u64 = 3;
    const GROUPS: usize = 50;
    let groups = new_groups("qspin-stat:early\0", GROUPS);
    let all_are =
        |count: u64| groups.iter().all(|group| group.counts()[Event::HashCount as usize] == count);
    for _ in 0..8 {
        // Each time in a new process, where no group has counted yet.
        drop(Child::after(|| {
            let start = Barrier::new(THREADS as usize + 1);
            let mut good = true;
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        groups.iter().for_each(|group| group.add(Event::HashCount, 1));
                    });
                }
                start.wait();
                for _ in 0..3 {
                    let child = Child::after(|| {
                        groups.iter().for_each(|group| group.add(Event::HashCount, 1));
                        all_are(1)
                    });
                    let published = Published::all(child.id(), "early");
                    good &= published.len() == GROUPS;
                    good &= published.iter().all(|file| file.count(Event::HashCount) == 1);
                }
            });
            good && all_are(THREADS)
        }));
    }
}

#[test]
fn nothing_is_left_of_a_process_that_is_killed() {
    qspin::counter_group!(Killed = "killed");
    let names = || {
        ["/dev/shm", "/tmp", "/run", "/var/tmp"]
            .into_iter()
            .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().contains("qspin-stat"))
            .collect::<Vec<_>>()
    };
    let before = names();
    let child = Child::after(|| {
        Killed.add(Event::HashCount, 3);
        true
    });
    // A reader watches while it is killed.
    let looked_at = Published::only(child.id(), "killed");
    let process = child.id();
    drop(child);
    assert!(!fs::exists(format!("/proc/{process}")).unwrap());
    assert_eq!(looked_at.count(Event::HashCount), 3, "who looks keeps what he looks at");
    assert_eq!(names(), before);
    let next = Child::after(|| {
        let good = Killed::count_of(Event::HashCount) == 0;
        Killed.add(Event::HashCount, 1);
        good
    });
    assert_eq!(Published::only(next.id(), "killed").count(Event::HashCount), 1);
}

/// Sets a limit of this process to `value`.
fn limit(what: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: a valid place.
    assert_eq!(unsafe { libc::setrlimit(what, &limit) }, 0);
}

#[test]
fn without_a_file_it_counts_on_unseen_and_apart_from_its_parent() {
    qspin::counter_group!(Unseen = "unseen");
    Unseen.add(Event::HashCount, 100);
    for what in [libc::RLIMIT_NOFILE, libc::RLIMIT_FSIZE] {
        let child = Child::after(|| {
            limit(what, 4);
            Unseen.add(Event::HashCount, 2);
            Unseen.add(Event::HashCount, 3);
            let mut good = Unseen::count_of(Event::HashCount) == 5;
            Unseen::reset();
            good &= Unseen::count_of(Event::HashCount) == 0;
            Unseen.count(Event::HashCount);
            good && Unseen::count_of(Event::HashCount) == 1
        });
        assert_eq!(Published::all(child.id(), "unseen").len(), 0);
    }
    assert_eq!(Unseen::count_of(Event::HashCount), 100);
    assert_eq!(Published::only(this(), "unseen").count(Event::HashCount), 100);
}

#[test]
fn the_first_count_leaves_errno_and_the_signal_mask_alone() {
    qspin::counter_group!(Errno = "errno");
    for descriptors in [1024, 4] {
        drop(Child::after(|| {
            limit(libc::RLIMIT_NOFILE, descriptors);
            // SAFETY: this thread's own, and valid places.
            unsafe {
                let (mut before, mut after): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
                libc::sigemptyset(&mut before);
                libc::sigaddset(&mut before, libc::SIGUSR2);
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                *libc::__errno_location() = 1234;
                Errno.count(Event::HashCount);
                let errno = *libc::__errno_location();
                libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut after);
                errno == 1234
                    && libc::sigismember(&after, libc::SIGUSR2) == 1
                    && libc::sigismember(&after, libc::SIGUSR1) == 0
            }
        }));
    }
}

#[test]
fn a_process_that_closes_every_file_counts_on_and_keeps_what_it_opens_instead() {
    qspin::counter_group!(Closing = "closing");
    drop(Child::after(|| {
        Closing.add(Event::HashCount, 1);
        let descriptor = Published::only(this(), "closing").descriptor;
        let mut kept = tempfile::tempfile().unwrap();
        // SAFETY: a file of the library's is closed behind its back; the number is another's then.
        unsafe {
            libc::close(descriptor);
            assert_eq!(libc::dup2(kept.as_raw_fd(), descriptor), descriptor);
        }
        Closing.add(Event::HashCount, 2);
        let good = Closing::count_of(Event::HashCount) == 3;
        let grandchild = Child::after(|| {
            Closing.add(Event::HashCount, 1);
            // SAFETY: asks whether it is open.
            unsafe { libc::fcntl(descriptor, libc::F_GETFD) >= 0 }
        });
        kept.write_all(b"kept").unwrap();
        good && Published::only(grandchild.id(), "closing").count(Event::HashCount) == 1
    }));
}

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn the_first_count_fits_on_the_smallest_stack_of_a_handler() {
    qspin::counter_group!(Small = "small");
    extern "C" fn first(_: libc::c_int) {
        Small.count(Event::HashCount);
        LAST.with(|last| last.set(1));
    }
    drop(Child::after(|| {
        // A page that must not be touched lies under the stack. What the kernel itself needs of
        // it depends on the processor; beside that there is one page.
        // SAFETY: a question.
        let kernel = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        let page = 4096;
        let size = kernel.max(libc::MINSIGSTKSZ).next_multiple_of(page) + page;
        // SAFETY: new memory, a handler that only counts, and a signal to this thread.
        unsafe {
            let memory = libc::mmap(
                std::ptr::null_mut(),
                page + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            libc::mprotect(memory, page, libc::PROT_NONE);
            let stack = libc::stack_t { ss_sp: memory.byte_add(page), ss_flags: 0, ss_size: size };
            assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = first as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
            libc::raise(libc::SIGUSR2);
        }
        LAST.with(Cell::get) == 1 && Published::only(this(), "small").count(Event::HashCount) == 1
    }));
}

#[test]
fn pages_that_are_too_large_are_not_replaced() {
    if !crate::is_alone("apart::pages_that_are_too_large_are_not_replaced") {
        return;
    }
    qspin::counter_group!(Large = "large");
    qspin::counter_group!(Neighbour = "neighbour");
    Neighbour.add(Event::HashCount, 3);
    qspin::inside::pretend_pages_of(1 << 20);
    Large.add(Event::HashCount, 7);
    assert_eq!(Large::count_of(Event::HashCount), 7);
    assert!(Published::open_in(this(), "large").is_empty(), "seen by no other process");
    drop(Child::after(|| {
        Large.add(Event::HashCount, 1);
        Large::count_of(Event::HashCount) == 1
    }));
    assert_eq!((Large::count_of(Event::HashCount), Neighbour::count_of(Event::HashCount)), (7, 3));
    qspin::inside::pretend_pages_of(4096);
    qspin::counter_group!(Small = "no-larger");
    Small.add(Event::HashCount, 1);
    assert_eq!(Published::only(this(), "no-larger").count(Event::HashCount), 1);
}
