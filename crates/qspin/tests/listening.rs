//! Tunables changed from outside: taken at the next slow path, by one process alone, and only where it listens.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Mutex;

use qspin::tuning::{self, ListenError, Tuning};

/// The tunables are the process's, so one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A page of requests as another process sees it.
struct Page {
    file: File,
    pid: i32,
    words: u64,
    names: Vec<String>,
}

impl Page {
    /// Those that are open in the process.
    fn all(process: i32) -> Vec<Self> {
        let entries = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let found = paths.filter(|path| {
            std::fs::read_link(path)
                .is_ok_and(|link| link.to_str() == Some("/memfd:qspin-tunables (deleted)"))
        });
        found.map(|path| Self::open(&path)).collect()
    }

    fn only(process: i32) -> Self {
        let mut all = Self::all(process);
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn open(path: &std::path::Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut bytes = vec![0; 3072];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(bytes[..end].to_vec()).unwrap();
        assert!(text.starts_with("qspin-tune 1\npid ") && text.ends_with("\nend\n"), "{text}");
        let after = |key: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            lines.map(str::to_owned).collect()
        };
        let words = after("words").remove(0);
        Self {
            file,
            pid: after("pid")[0].parse().unwrap(),
            words: words.split(' ').next().unwrap().parse().unwrap(),
            names: after("tunable"),
        }
    }

    fn word(&self, number: usize) -> u32 {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, self.words + 4 * number as u64).unwrap();
        u32::from_ne_bytes(bytes)
    }

    fn write(&self, number: usize, word: u32) {
        self.file.write_all_at(&word.to_ne_bytes(), self.words + 4 * number as u64).unwrap();
    }

    fn place(&self, name: &str) -> usize {
        self.names.iter().position(|other| other == name).unwrap()
    }

    fn value(&self, name: &str) -> u32 {
        self.word(2 + self.place(name))
    }

    fn ask(&self, name: &str, value: u32) {
        self.write(2 + self.names.len() + self.place(name), 1 << 31 | value);
        self.write(0, 1);
    }
}

fn me() -> i32 {
    std::process::id() as i32
}

/// What `work` returns in a child of this process. `raw`: forked behind the C library's back.
fn in_a_child(raw: bool, work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child makes async-signal-safe calls only.
    let child = unsafe { if raw { libc::syscall(libc::SYS_fork) as i32 } else { libc::fork() } };
    assert!(child >= 0);
    if child == 0 {
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the child.
        unsafe { libc::_exit(said.unwrap_or(99)) };
    }
    let mut status = 0;
    // SAFETY: a child that nothing else waits for.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status}");
    libc::WEXITSTATUS(status)
}

#[test]
fn a_request_is_taken_at_the_next_look_and_shown() {
    let _turn = TURN.lock().unwrap();
    tuning::listen().unwrap();
    tuning::listen().unwrap();
    let page = Page::only(me());
    assert_eq!(page.pid, me());
    assert_eq!(page.names.len(), Tuning::ALL.len());
    let heeded = page.word(1);
    page.ask("numa_threshold_ns", 2_000_000);
    page.ask("numa_by_node", 1);
    page.ask("numa_skip_bits", 17);
    let seen = tuning::get();
    assert_eq!((seen.numa_threshold_ns, seen.numa_by_node), (2_000_000, true));
    assert_eq!(seen.numa_skip_bits, Tuning::DEFAULT.numa_skip_bits, "17 is out of its range");
    assert_eq!((page.word(0), page.word(1)), (0, heeded + 1));
    assert_eq!((page.value("numa_threshold_ns"), page.value("numa_by_node")), (2_000_000, 1));
    tuning::set(&Tuning::DEFAULT);
    assert_eq!(page.value("numa_threshold_ns"), Tuning::DEFAULT.numa_threshold_ns);
    assert_eq!(tuning::get(), &Tuning::DEFAULT);
}

#[test]
fn waiters_take_it_on_their_slow_path() {
    let _turn = TURN.lock().unwrap();
    tuning::listen().unwrap();
    let page = Page::only(me());
    let heeded = page.word(1);
    let lock = qspin::paravirt::Mutex::new(0);
    page.ask("steal_polls", 3);
    // The fast path does not look.
    *lock.lock() += 1;
    assert_eq!((page.word(0), page.word(1)), (1, heeded));
    let guard = lock.lock();
    std::thread::scope(|scope| {
        scope.spawn(|| *lock.lock() += 1);
        while page.word(1) == heeded {
            std::thread::yield_now();
        }
        drop(guard);
    });
    assert_eq!((page.value("steal_polls"), *lock.lock()), (3, 2));
    tuning::set(&Tuning::DEFAULT);
}

#[test]
fn a_child_has_a_page_of_its_own_from_its_first_look_on() {
    let _turn = TURN.lock().unwrap();
    tuning::listen().unwrap();
    let page = Page::only(me());
    page.ask("steal_polls", 7);
    assert_eq!(tuning::get().steal_polls, 7);
    for raw in [false, true] {
        let said = in_a_child(raw, || {
            let own = std::process::id() as i32;
            // This test's own view of its page is among the open files.
            if Page::all(own).iter().any(|found| found.pid != page.pid) {
                return 1;
            }
            if raw {
                // It notices at its parent's next request, which it does not take.
                page.ask("cull_polls", 9);
            }
            if *tuning::get() != (Tuning { steal_polls: 7, ..Tuning::DEFAULT }) {
                return 2;
            }
            let mine = Page::all(own).into_iter().find(|found| found.pid == own);
            let Some(mine) = mine.filter(|mine| mine.value("steal_polls") == 7) else { return 3 };
            mine.ask("steal_polls", 8);
            i32::from(tuning::get().steal_polls != 8) * 4
        });
        assert_eq!(said, 0, "raw: {raw}");
        assert_eq!(tuning::get().steal_polls, 7);
        assert_eq!(tuning::get().cull_polls, if raw { 9 } else { Tuning::DEFAULT.cull_polls });
    }
    tuning::set(&Tuning::DEFAULT);
}

#[test]
fn the_environment_sets_tunables_and_refuses_to_listen() {
    const ROLE: &str = "QSPIN_TEST_ROLE";
    if std::env::var_os(ROLE).is_some() {
        assert_eq!(tuning::listen(), Err(ListenError::Refused));
        assert!(Page::all(me()).is_empty());
        let tuned = Tuning { numa_by_node: true, numa_threshold_ns: 5, ..Tuning::DEFAULT };
        assert_eq!(tuning::get(), &tuned);
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_environment_sets_tunables_and_refuses_to_listen", "--nocapture"])
        .env(ROLE, "1")
        .env("QSPIN_LISTEN", "off")
        .env("QSPIN_TUNE", "numa_by_node=on,moon=full,numa_threshold_ns=5")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("qspin: QSPIN_TUNE is malformed").count(), 1, "{said}");
}
