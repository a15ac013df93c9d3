//! Programs in C, with the library and without: what they print must be the same.
//!
//! An error of the library shows as a difference; an error in a program shows in both. Only of what a child of
//! `fork` finds is more asked than the C library does, whose reader-writer locks do not survive one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use qspin_core::locks::{Id, LOCKS, Lock, Waits};
use tempfile::TempDir;

/// Every lock that can serve, those that readers share included, whose waiters spin, or do not: more threads than CPUs
/// wait for time slices on the former.
fn locks(spinning: bool) -> Vec<&'static str> {
    let is_wanted = |lock: &&Lock| (lock.waits == Waits::Spins) == spinning;
    LOCKS.iter().filter(is_wanted).map(|lock| lock.name).collect()
}

const SOME: &[&str] = &["mutex", "paravirt"];

/// The library, built in this profile.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        // For tests alone cargo builds no shared library in its place.
        let name = profile.file_name().unwrap().to_str().unwrap();
        let name = if name == "debug" { "dev" } else { name };
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "qspin-preload", "--profile", name]);
        // For another processor than cargo's, what is built lies in a directory with the target's name.
        let mut target = profile.parent().unwrap();
        let triple = target.file_name().unwrap().to_str().unwrap();
        if triple.starts_with(&format!("{}-", std::env::consts::ARCH)) {
            cargo.args(["--target", triple]);
            target = target.parent().unwrap();
        }
        let built = cargo.arg("--target-dir").arg(target).status().unwrap();
        assert!(built.success());
        let library = profile.join("libqspin_preload.so");
        assert!(library.is_file(), "{}", library.display());
        library
    })
}

/// The compilers that there are.
fn compilers() -> Vec<&'static str> {
    // Under an emulator a program that is not there begins, and fails.
    let is_there = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found: Vec<_> = ["gcc", "clang"].into_iter().filter(is_there).collect();
    if found.is_empty() {
        println!("skipped: there is no C compiler");
    }
    found
}

fn compile(compiler: &str, name: &str, to: &TempDir, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(format!("{name}.c"));
    let program = to.path().join(format!("{name}-{compiler}"));
    let compiled = Command::new(compiler)
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(more)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .args(["-pthread", "-ldl"])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

/// Runs a program, for two minutes at most: a hang is an error.
fn run(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["120", "env"]);
    for (name, value) in environment {
        command.arg(format!("{name}={value}"));
    }
    let output = command.arg(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{} {environment:?}: {}: {said}",
        program.display(),
        output.status
    );
    assert_eq!(said, "", "nothing is printed");
    output
}

fn with_lock(lock: &str) -> [(&str, &str); 2] {
    let serves_readers = Id::named(lock).is_some_and(|id| id.lock().shared);
    let variable = if serves_readers { "QSPIN_PRELOAD_RWLOCK" } else { "QSPIN_PRELOAD_LOCK" };
    [("LD_PRELOAD", library().to_str().unwrap()), (variable, lock)]
}

#[track_caller]
fn must_be_the_same(bare: &Output, interposed: &Output, about: &str) {
    let [bare, interposed] =
        [bare, interposed].map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    for (line, (bare, interposed)) in bare.lines().zip(interposed.lines()).enumerate() {
        assert_eq!(bare, interposed, "{about}: line {}: without and with the library", line + 1);
    }
    assert_eq!(bare.lines().count(), interposed.lines().count(), "{about}");
    assert!(!bare.is_empty());
}

fn compare(name: &str, arguments: &[&str], locks: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let program = compile(compiler, name, &directory, &[]);
        let bare = run(&program, arguments, &[]);
        for lock in locks {
            let interposed = run(&program, arguments, &with_lock(lock));
            must_be_the_same(&bare, &interposed, &format!("{name}, {compiler}, {lock}"));
        }
    }
}

#[test]
fn every_function_returns_what_the_c_library_returns() {
    let all = [locks(false), locks(true)].concat();
    compare("outcomes", &[], &all);
}

/// Behind the library there is another, which ends later and sees what the end has left.
#[test]
fn errno_is_the_program_s_before_main_at_the_end_and_after_every_call() {
    let directory = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let end = compile(compiler, "end", &directory, &["-shared", "-fPIC"]);
        let program = compile(compiler, "errno", &directory, &[]);
        let bare = run(&program, &[], &[("LD_PRELOAD", end.to_str().unwrap())]);
        let preload = format!("{}:{}", library().display(), end.display());
        let report = directory.path().join("report");
        File::create(&report).unwrap().set_len(BLOCK + 64 * SLOT).unwrap();
        for counts in ["0", "1"] {
            for lock in [locks(false), vec!["cna"]].concat() {
                let [_, lock_variable] = with_lock(lock);
                let environment = [
                    ("LD_PRELOAD", preload.as_str()),
                    lock_variable,
                    ("QSPIN_PRELOAD_STATS", counts),
                    ("QSPIN_PRELOAD_REPORT", report.to_str().unwrap()),
                ];
                let interposed = run(&program, &[], &environment);
                must_be_the_same(&bare, &interposed, &format!("errno, {compiler}, {lock}"));
                let said = String::from_utf8_lossy(&interposed.stdout);
                assert!(said.starts_with("at load 0, at main 0\n"), "{said}");
                assert!(said.ends_with("changed by 0 calls\nat the end 12345\n"), "{said}");
            }
        }
    }
}

#[test]
fn nothing_is_lost_when_many_threads_lock_wait_and_give_up() {
    compare("storm", &[], &locks(false));
}

#[test]
fn a_cancelled_wait_has_the_mutex_and_takes_no_signal() {
    compare("cancel", &[], SOME);
}

#[test]
fn what_was_released_or_has_signalled_is_not_touched() {
    compare("released", &[], &locks(false));
    compare("signals", &[], SOME);
}

#[test]
fn a_wait_that_is_refused_takes_no_signal() {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: a program cannot stop itself after each instruction on this processor");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let program = compile(compiler, "signals", &directory, &[]);
        let output = run(&program, &["refused"], &with_lock(SOME[0]));
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "refused: 0 lost, 0 wrong, often\n", "{compiler}");
    }
}

#[test]
fn real_time_threads_are_woken_by_priority() {
    compare("priorities", &[], &["mutex"]);
}

#[test]
fn what_is_destroyed_is_not_touched_by_threads_that_leave_it() {
    compare("leaving", &[], &locks(false));
}

#[test]
fn children_that_no_handler_knows_of_can_use_what_others_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let program = compile(compiler, "forks", &directory, &[]);
        for lock in locks(false) {
            let output = run(&program, &[], &with_lock(lock));
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(said, "system call: 0\n_Fork: 0\nhandler: 0\n", "{compiler}, {lock}");
        }
    }
}

/// Constructors have no environment from the C library yet.
#[test]
fn the_environment_forbids_barriers() {
    let Some(compiler) = compilers().pop() else { return };
    let directory = tempfile::tempdir().unwrap();
    let program = compile(compiler, "barrier", &directory, &[]);
    let [preload, _] = with_lock(SOME[0]);
    let said = |value| {
        let output = run(&program, &[], &[preload, ("QSPIN_MEMBARRIER", value)]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    if said("on") != "registered\n" {
        println!("skipped: there are no barriers here: {}", said("on"));
        return;
    }
    assert_eq!(said("off"), "not registered\n");
    // `run` sees to it that there is no complaint.
    assert_eq!(said("nonsense"), "registered\n");
}

#[test]
fn a_wait_by_the_monotonic_clock_needs_no_function_of_newer_c_libraries() {
    let directory = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let old = compile(compiler, "no_clockwait", &directory, &["-shared", "-fPIC"]);
        let preload = format!("{}:{}", library().display(), old.display());
        for name in ["clocks", "cancel"] {
            let program = compile(compiler, name, &directory, &[]);
            let bare = run(&program, &[], &[]);
            let interposed = run(&program, &[], &[("LD_PRELOAD", &preload)]);
            must_be_the_same(&bare, &interposed, name);
        }
    }
}

/// The fields of a slot in the library's file, as `qspin run` reads them.
fn slot(report: &Path, number: u64) -> [u64; 3] {
    let text = File::open(report).unwrap();
    let at = BLOCK + number * SLOT;
    [16, 40 + 8, 88].map(|field| {
        let mut bytes = [0; 8];
        text.read_exact_at(&mut bytes, at + field).unwrap();
        u64::from_ne_bytes(bytes)
    })
}
/// What comes before the slots, and of what each has a whole number.
const BLOCK: u64 = 1 << 16;
const SLOT: u64 =
    (4096 + 2048 * 1024 + (1 << 17) + 4096 * 256 + 1024 * 1024_u64).next_multiple_of(BLOCK);

#[test]
fn a_child_writes_nothing_and_an_executed_program_ends_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report");
    File::create(&report).unwrap().set_len(BLOCK + 64 * SLOT).unwrap();
    let Some(compiler) = compilers().pop() else { return };
    let program = compile(compiler, "executes", &directory, &[]);
    let environment = [
        ("LD_PRELOAD", library().to_str().unwrap()),
        ("QSPIN_PRELOAD_REPORT", report.to_str().unwrap()),
        ("QSPIN_PRELOAD_STATS", "1"),
    ];
    run(&program, &[], &environment);
    // The program's own `timeout` and `env` are not loaded with the library.
    let [first, robust, map] = slot(&report, 0);
    let [second, _, other_map] = slot(&report, 1);
    assert_eq!(first, second, "one process, two programs");
    assert_eq!(robust, 1, "one by the program, none by its child");
    assert!(map > 0 && other_map > 0);
    let mut text = vec![0; map as usize];
    let of_first = BLOCK + 4096 + 2048 * 1024;
    File::open(&report).unwrap().read_exact_at(&mut text, of_first).unwrap();
    assert!(String::from_utf8_lossy(&text).contains("executes-"), "the map of the first program");
}

#[test]
fn by_hand_the_table_is_printed_at_the_end() {
    let Some(compiler) = compilers().pop() else { return };
    let directory = tempfile::tempdir().unwrap();
    let program = compile(compiler, "counts", &directory, &[]);
    let counted = |program: &Path| {
        let output = Command::new(program)
            .env("LD_PRELOAD", library())
            .env("QSPIN_PRELOAD_STATS", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    };
    let output = counted(&program);
    let table = String::from_utf8_lossy(&output.stderr).into_owned();
    let head = table.lines().next().unwrap();
    assert!(head.contains(": mutexes are served by mutex; "), "{table}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut shown = 0;
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let Some(row) = table.lines().find(|row| row.trim_start().starts_with(words[0])) else {
            continue;
        };
        assert_eq!(row.split_whitespace().nth(1), Some(words[1]), "acquisitions: {table}");
        assert!(row.contains("counts-"), "the program is where they are taken: {table}");
        shown += 1;
    }
    assert_eq!(shown, said.lines().count().min(12), "{said}{table}");
    let output = counted(Path::new("/bin/true"));
    assert!(output.stderr.is_empty(), "a program that locks nothing: {output:?}");
}

#[test]
fn every_acquisition_is_counted_and_what_is_measured_stands_for_all() {
    const HEAD: usize = 4096;
    let Some(compiler) = compilers().pop() else { return };
    let directory = tempfile::tempdir().unwrap();
    let program = compile(compiler, "counts", &directory, &[]);
    for lock in ["mutex", "paravirt", "tas", "rwlock", "queued-rw", "paravirt-rw"] {
        let report = directory.path().join(lock);
        File::create(&report).unwrap().set_len(BLOCK + 64 * SLOT).unwrap();
        let [preload, lock] = with_lock(lock);
        let counted = [
            preload,
            lock,
            ("QSPIN_PRELOAD_REPORT", report.to_str().unwrap()),
            ("QSPIN_PRELOAD_STATS", "1"),
        ];
        let output = run(&program, &[], &counted);
        let mut slot = vec![0; SLOT as usize];
        File::open(&report).unwrap().read_exact_at(&mut slot, BLOCK).unwrap();
        let number = |at: usize| u64::from_ne_bytes(slot[at..at + 8].try_into().unwrap());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in said.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let address = u64::from_str_radix(&words[0][2..], 16).unwrap();
            let times: u64 = words[1].parse().unwrap();
            let is_shared = words.len() > 2;
            let row = (HEAD..HEAD + 2048 * 1024)
                .step_by(1024)
                .find(|row| number(*row) == address)
                .unwrap_or_else(|| panic!("{lock:?}: {line}: no row"));
            assert_eq!(number(row + 8), times, "{lock:?}: {line}: acquisitions");
            assert!(number(row + 16) <= times, "{lock:?}: {line}: contended");
            let sum = |from: usize| -> u64 {
                slot[row + from..row + from + 4 * 96]
                    .chunks_exact(4)
                    .map(|count| u64::from(u32::from_ne_bytes(count.try_into().unwrap())))
                    .sum()
            };
            // All but the last period, a 32nd and a quarter of that. Those of a lock for many are not measured.
            let holds = sum(496);
            let least = if is_shared { 0 } else { times - times / 20 - 1 };
            assert!((least..=times).contains(&holds), "{lock:?}: {line}: {holds}");
            let waits = sum(112);
            assert!((waits > 0) == (number(row + 16) > 0), "{lock:?}: {line}: {waits} waits");
        }
    }
}

/// A C library whose condition variables have their marks elsewhere, as from version 2.41 on.
#[test]
fn the_marks_of_condition_variables_are_found_wherever_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let versions = directory.path().join("versions");
    let version = if cfg!(target_arch = "x86_64") { "GLIBC_2.3.2" } else { "GLIBC_2.17" };
    std::fs::write(&versions, format!("{version} {{ pthread_cond_init; }};\n")).unwrap();
    let script = format!("-Wl,--version-script={}", versions.display());
    for compiler in compilers() {
        let other = compile(compiler, "marks", &directory, &["-shared", "-fPIC", &script]);
        let program = compile(compiler, "clocks", &directory, &[]);
        let bare = run(&program, &[], &[]);
        let preload = format!("{}:{}", library().display(), other.display());
        for preload in [library().to_str().unwrap(), &preload] {
            let interposed = run(&program, &[], &[("LD_PRELOAD", preload)]);
            must_be_the_same(&bare, &interposed, preload);
        }
    }
}

#[test]
fn constructors_plugins_dead_owners_and_signal_handlers() {
    let directory = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let plugin = compile(compiler, "plugin", &directory, &["-shared", "-fPIC"]);
        compare("load", &[plugin.to_str().unwrap()], &[locks(false), locks(true)].concat());
    }
}

#[test]
fn a_child_can_use_what_threads_of_its_parent_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    for compiler in compilers() {
        let program = compile(compiler, "fork", &directory, &[]);
        for lock in locks(false) {
            let output = run(&program, &[], &with_lock(lock));
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(
                said, "executed: 500\nvfork: 0\npopen: 0\nunlock: 0\n",
                "{compiler}, {lock}"
            );
        }
    }
}

#[test]
fn a_lock_or_tunable_that_does_not_exist_counts_as_not_said() {
    let environment = [
        ("LD_PRELOAD", library().to_str().unwrap()),
        ("QSPIN_PRELOAD_LOCK", "moon"),
        ("QSPIN_PRELOAD_RWLOCK", "mutex"),
        ("QSPIN_PRELOAD_TUNE", "moon=full,,head_polls=,=,head_polls=0,queue_polls=99999999999"),
        ("QSPIN_PRELOAD_REPORT", "/nowhere/at/all"),
        ("QSPIN_PRELOAD_STATS", "yes"),
    ];
    run(Path::new("/bin/true"), &[], &environment);
}

#[test]
fn no_function_is_called_for_a_variable_of_the_thread_where_locks_are_free() {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(library()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("skipped: there is no objdump for this processor");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The exported names, and by their names in this crate the functions that they go on with.
    let hot = [
        "<pthread_mutex_lock>",
        "<pthread_mutex_unlock>",
        "<pthread_mutex_trylock>",
        "<pthread_spin_lock>",
        "entry10mutex_lock",
        "mutex12lock_special",
        "mutex14unlock_special",
        "RwLock9try_write",
    ];
    let mut seen = 0;
    let mut by_thread_pointer = 0;
    for function in text.split("\n\n") {
        let name = if cfg!(target_arch = "x86_64") { "%fs:(" } else { "tpidr_el0" };
        by_thread_pointer += usize::from(function.contains(name));
        let Some(name) = function.lines().find(|line| line.ends_with(">:")) else { continue };
        if hot.iter().any(|hot| name.contains(hot)) {
            seen += 1;
            assert!(!function.contains("__tls_get_addr"), "{function}");
        }
    }
    assert!(seen >= 5, "the names are there: {seen}");
    assert!(by_thread_pointer > 0, "the owner's number is found by the thread pointer");
}

#[test]
fn programs_of_the_system_do_what_they_do_without() {
    let script = "import threading, queue, concurrent.futures as f\n\
        q = queue.Queue()\n\
        ts = [threading.Thread(target=lambda: [q.put(i) for i in range(200)]) for _ in range(4)]\n\
        [t.start() for t in ts]; [t.join() for t in ts]\n\
        with f.ThreadPoolExecutor(4) as e: n = sum(e.map(lambda i: i * i, range(500)))\n\
        with f.ProcessPoolExecutor(2) as e: m = sum(e.map(abs, range(-50, 0)))\n\
        print(q.qsize(), n, m)";
    let programs: [(&str, &[&str]); 3] = [
        ("/usr/bin/python3", &["-c", script]),
        ("/bin/sh", &["-c", "echo a b | tr a-z A-Z; exit 0"]),
        ("/usr/bin/xz", &["--version"]),
    ];
    for (program, arguments) in programs {
        let program = Path::new(program);
        if !program.is_file() {
            println!("skipped: there is no {}", program.display());
            continue;
        }
        let bare = run(program, arguments, &[]);
        let interposed = run(program, arguments, &with_lock(SOME[0]));
        must_be_the_same(&bare, &interposed, &program.display().to_string());
    }
}
