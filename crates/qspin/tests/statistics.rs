//! Counters that other processes read: exact whoever counts, separate after a fork, gone with their
//! process.
//!
//! Children are made by `fork`, so each begins with groups that have not counted yet. The tests run
//! in parallel, so each has a group of its own.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use qspin::events::{CounterGroup, Event, Events};

/// A file of counters, read as `docs/statistics.md` describes it.
struct Published {
    descriptor: RawFd,
    file: File,
    header: Vec<Vec<String>>,
}

impl Published {
    /// The files of the group that are of that process. It may have others open: a child of a
    /// test inherits what the test looks at.
    fn all(process: u32, group: &str) -> Vec<Self> {
        let mut all = Self::open_in(process, group);
        all.retain(|file| file.line("pid") == [u64::from(process)]);
        all
    }

    /// The files of the group that are open in that process.
    fn open_in(process: u32, group: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for entry in fs::read_dir(format!("/proc/{process}/fd")).unwrap() {
            let path = entry.unwrap().path();
            let Ok(link) = fs::read_link(&path) else { continue };
            if link.to_str() == Some(&format!("/memfd:qspin-stat:{group} (deleted)")) {
                let descriptor = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
                let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
                found.push(Self { descriptor, header: Self::header(&file), file });
            }
        }
        found
    }

    fn only(process: u32, group: &str) -> Self {
        let mut all = Self::all(process, group);
        assert_eq!(all.len(), 1, "files of {group}");
        all.remove(0)
    }

    fn header(file: &File) -> Vec<Vec<String>> {
        let mut page = [0; 4096];
        file.read_exact_at(&mut page, 0).unwrap();
        let text = String::from_utf8(page.to_vec()).unwrap();
        let text = text.trim_end_matches('\0').to_owned();
        assert!(text.starts_with("qspin-stat 1\n") && text.ends_with("\nend\n"), "{text}");
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    fn line(&self, key: &str) -> Vec<u64> {
        let line = self.header.iter().find(|line| line[0] == key).unwrap();
        line[1..].iter().map(|word| word.parse().unwrap()).collect()
    }

    fn count(&self, event: Event) -> u64 {
        let events: Vec<_> = self.header.iter().filter(|line| line[0] == "event").collect();
        let index = events.iter().position(|line| line[1] == event.name()).unwrap() as u64;
        assert_eq!(events[index as usize].get(2).map(String::as_str), event.alias());
        let ([offset, stride, records], [mark]) = (
            self.line("records")[..].try_into().unwrap(),
            self.line("mark")[..].try_into().unwrap(),
        );
        let word = |record: u64| {
            let mut bytes = [0; 8];
            self.file.read_exact_at(&mut bytes, offset + record * stride + 8 * index).unwrap();
            u64::from_ne_bytes(bytes)
        };
        (0..records).filter(|record| *record != mark).map(word).sum::<u64>() - word(mark)
    }
}

/// A child that does `work` and then lives until it is killed or its parent has ended.
struct Child {
    process: libc::pid_t,
}

impl Child {
    /// Begins the child, and waits until its work is done. `work` says whether all was right.
    fn after(work: impl FnOnce() -> bool) -> Self {
        let mut pipe = [0; 2];
        // SAFETY: room for two.
        assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        // SAFETY: the C library lets the child of a program with threads allocate; it runs no
        // destructors of the parent.
        let process = unsafe { libc::fork() };
        assert!(process >= 0);
        if process == 0 {
            let good =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
            // SAFETY: calls that are allowed in the child of a program with threads.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::write(pipe[1], (&raw const good).cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        let child = Self { process };
        // SAFETY: both were just opened.
        let (mut read, write) = unsafe { (File::from_raw_fd(pipe[0]), File::from_raw_fd(pipe[1])) };
        drop(write);
        let mut good = [0];
        // A child that dies writes nothing.
        assert!(read.read_exact(&mut good).is_ok(), "the child has died");
        assert_eq!(good, [1], "the child found something wrong");
        child
    }

    fn id(&self) -> u32 {
        self.process as u32
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: a child that has not been waited for.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
    }
}

fn this() -> u32 {
    std::process::id()
}

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
    assert_eq!(seals & size, size, "nobody can cut it off");
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
    qspin::counter_group!(Race = "race");
    const THREADS: u64 = 4;
    const EACH: u64 = 200;
    for _ in 0..50 {
        let child = Child::after(|| {
            let start = Barrier::new(THREADS as usize);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        for _ in 0..EACH {
                            Race.count(Event::HashCount);
                        }
                    });
                }
            });
            Race::count_of(Event::HashCount) == THREADS * EACH
        });
        assert_eq!(Published::only(child.id(), "race").count(Event::HashCount), THREADS * EACH);
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
        while HANDLED.load(Relaxed) < 20_000 {
            // SAFETY: the thread lives until `done` is set.
            assert_eq!(unsafe { libc::pthread_kill(target, libc::SIGUSR1) }, 0);
        }
        done.store(true, Relaxed);
        counting.join().unwrap()
    });
    assert_eq!(Signalled::count_of(Event::HashCount), counted + HANDLED.load(Relaxed));
}

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
    qspin::counter_group!(Early = "early");
    const THREADS: u64 = 3;
    for _ in 0..30 {
        // Each time in a new process, where the group has not counted yet.
        drop(Child::after(|| {
            let start = Barrier::new(THREADS as usize + 1);
            let mut good = true;
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        for _ in 0..100 {
                            Early.count(Event::HashCount);
                        }
                    });
                }
                start.wait();
                let child = Child::after(|| {
                    Early.add(Event::HashCount, 1);
                    Early::count_of(Event::HashCount) == 1
                });
                good &= Published::only(child.id(), "early").count(Event::HashCount) == 1;
            });
            good && Early::count_of(Event::HashCount) == THREADS * 100
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
    // Somebody looks while it is killed.
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
fn who_closes_every_file_counts_on_and_keeps_what_it_opens_instead() {
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
