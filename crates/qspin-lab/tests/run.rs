//! `qspin run`: exit codes, what is refused and why, the table, the comparison.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use qspin_core::locks::LOCKS;

use interposed::{compile, qspin, run, said};

mod executable;
mod interposed;

#[test]
fn the_exit_code_is_the_programs() {
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 77", 77), ("kill -9 $$", 137), ("kill $$", 143)]
    {
        let output = run(&["--", "sh", "-c", script]);
        assert_eq!((output.status.code(), said(&output)), (Some(code), String::new()), "{script}");
    }
    let output = run(&["sh", "-c", "cat; echo out; echo err >&2", "--", "--stats"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n");
    assert_eq!(said(&output), "err\n");
}

#[test]
fn what_cannot_be_interposed_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("static");
    if compile("int main(void) { return 0; }", &["-static"], &program) {
        let output = run(&["--", program.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3));
        assert!(said(&output).contains("statically linked"), "{}", said(&output));
        assert_eq!(said(&output).lines().count(), 1);
        let script = directory.path().join("script");
        executable::write(&script, format!("#!{} -x\n", program.display()));
        let output = run(&["--", script.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    }
    let linker = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    let other = directory.path().join("other");
    if compile("int main(void) { return 0; }", &[linker], &other) {
        let output = run(&["--", other.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3));
        assert!(said(&output).contains("ld-musl"), "{}", said(&output));
    }
}

#[test]
fn bad_input_is_answered_in_one_line_with_what_would_be_right() {
    let directory = tempfile::tempdir().unwrap();
    let nonsense = directory.path().join("nonsense");
    // What the kernel does not execute, though it may be.
    executable::write(&nonsense, "#!/no/such/interpreter\n");
    let wrong: [(&[&str], i32, &str); 18] = [
        (&["--", "/no/such/program"], 127, "No such file"),
        (&["--", "./nonexist"], 127, "No such file"),
        (&["--", "no-such-program-anywhere"], 127, "PATH"),
        (&["--", "/etc/passwd"], 126, "not executable"),
        (&["--", "/"], 126, "name a program"),
        (&["--", nonsense.to_str().unwrap()], 126, "cannot run"),
        (&["--stats", "--compare", "2", "--", "true"], 2, "--compare"),
        (&["--lock", "moon", "--", "true"], 2, "choose from mutex"),
        (&["--rwlock", "moon", "--", "true"], 2, "choose from rwlock, queued-rw, paravirt-rw"),
        (&["--rwlock", "mutex", "--", "true"], 2, "no reader-writer lock called `mutex`"),
        (&["--tune", "moon=1", "--", "true"], 2, "no tunable is called"),
        (&["--compare", "0", "--", "true"], 2, "1 to 1000"),
        (&["--figure", "x", "--", "true"], 2, "--compare"),
        (&["--stats=moon", "--", "true"], 2, "possible values: table"),
        (&["--stats=pprof", "--", "true"], 2, "--stats-out FILE"),
        (
            &["--stats", "--stats-out", "/no/such/directory/file", "--", "true"],
            2,
            "directory that exists",
        ),
        (&["--stats-out", "file", "--", "true"], 2, "--stats"),
        (&["--deadlocks=moon", "--", "true"], 2, "possible values: report"),
    ];
    for (arguments, code, right) in wrong {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(right), "{arguments:?}: {}", said(&output));
        assert_eq!(said(&output).lines().count(), 1, "{arguments:?}: {}", said(&output));
    }
    let output = Command::new(qspin())
        .args(["run", "--", "true"])
        .env("QSPIN_PRELOAD", "/no/such/library.so")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("libqspin_preload.so"), "{}", said(&output));
}

#[test]
fn every_lock_is_known_to_the_library() {
    let help = run(&["--lock", "moon", "--", "true"]);
    let help = said(&help);
    let (_, names) = help.split_once("choose from ").unwrap();
    let names: Vec<_> =
        names.trim().split([',', ' ', ';']).filter(|name| !name.is_empty()).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        // A name that the library did not know would be said to be unknown.
        let output = run(&["--lock", name, "--tune", "queue_polls=7", "--", "true"]);
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{name}");
    }
    for lock in LOCKS.iter().filter(|lock| lock.shared) {
        let output = run(&["--rwlock", lock.name, "--", "true"]);
        assert_eq!(
            (output.status.code(), said(&output)),
            (Some(0), String::new()),
            "{}",
            lock.name
        );
    }
}

/// Takes a lock, and says whether the library is there, and what it is told.
const LOCKING: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int main(int argc, char **argv) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    pthread_mutex_lock(&lock);
    while (fgets(line, sizeof line, maps)) found |= strstr(line, "libqspin_preload") != 0;
    pthread_mutex_unlock(&lock);
    printf("n: %d\n%s\n", 1 + found, argc > 1 ? argv[1] : "");
    return 0;
}
"#;

#[test]
fn a_program_that_locks_nothing_is_told_of_in_the_place_of_figures() {
    for arguments in [&["--compare", "2"][..], &["--stats"]] {
        let output = run(&[arguments, &["--", "sh", "-c", "true; true"]].concat());
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
        assert!(output.stdout.is_empty(), "no ratio");
        assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
        let begin = "qspin: this program locks nothing through the C library: ";
        assert!(said(&output).starts_with(begin), "{}", said(&output));
    }
    let output = run(&["--stats", "--", "sh", "-c", "exit 6"]);
    assert_eq!(output.status.code(), Some(6), "a failure is the program's own");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("spins");
    let source = "#include <pthread.h>\n\
        int main(void) {\n\
            pthread_spinlock_t lock;\n\
            pthread_spin_init(&lock, 0);\n\
            return pthread_spin_lock(&lock);\n\
        }\n";
    if compile(source, &[], &program) {
        let output = run(&["--compare", "1", "--", program.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "spinlocks are served: {}", said(&output));
    }
}

#[test]
fn a_function_of_c_is_shown_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("short");
    // What a type of C++ is called in a mangled name.
    let source = "#include <pthread.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
        __attribute__((noinline)) int f(void) {\n\
            pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); return 0;\n\
        }\n\
        int main(void) { for (int i = 0; i < 99; i++) f(); return 0; }\n";
    if compile(source, &[], &program) {
        let output = run(&["--stats", "--", program.to_str().unwrap()]);
        assert!(said(&output).contains(" f in short"), "{}", said(&output));
    }
}

const CONTENDING: &str = r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
__attribute__((noinline)) void the_hot_place(int i) {
    pthread_mutex_lock(&hot);
    if (i % 50 == 0) usleep(100);
    pthread_mutex_unlock(&hot);
}
static void *body(void *unused) {
    for (int i = 0; i < 1000; i++) the_hot_place(i);
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
    return unused;
}
int main(int argc, char **argv) {
    (void)argv;
    pthread_t threads[4];
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_t robust;
    pthread_mutex_init(&robust, &attributes);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    if (argc > 1) _exit(5);
    return 0;
}
"#;

#[test]
fn the_table_says_what_was_waited_for_where_and_what_was_left() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("contending");
    if !compile(CONTENDING, &["-O1"], &program) {
        return;
    }
    let program = program.to_str().unwrap();
    for (arguments, code) in
        [(vec!["--stats", "--", program], 0), (vec!["--stats", "--", program, "x"], 5)]
    {
        let output = run(&arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        let row = text.lines().find(|line| line.contains("the_hot_place in contending"));
        let row = row.unwrap_or_else(|| panic!("{text}"));
        assert!(row.contains("4000"), "every acquisition is counted: {text}");
        assert!(text.contains("left to the C library: 1 robust mutexes"), "{text}");
        assert!(text.contains("served by mutex;"), "{text}");
    }
    let output = run(&["--rwlock", "paravirt-rw", "--stats", "--", program]);
    let text = said(&output);
    assert!(text.contains("served by mutex, reader-writer locks by paravirt-rw;"), "{text}");
}

#[test]
fn inside_another_run_the_inner_one_counts_and_the_stock_locks_are_stock() {
    let qspin = qspin().to_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("locking");
    if !compile(LOCKING, &[], &program) {
        return;
    }
    let output =
        run(&["--lock", "native", "--", qspin, "run", "--lock", "cna", "--", "sh", "-c", "exit 6"]);
    assert_eq!((output.status.code(), said(&output)), (Some(6), String::new()));
    // Half of these runs are with the library: the program says whether it has that in its memory.
    let program = program.to_str().unwrap();
    let inner = [qspin, "run", "--compare", "2", "--figure", "n:", "--", program];
    let output = run(&[&["--"], &inner[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("2.000 [2.000, 2.000]"), "{text}{}", said(&output));
}

#[test]
fn a_signal_goes_to_the_program_unless_it_comes_from_there() {
    let script =
        "trap 'echo heard; exit 7' INT TERM USR1; echo ready; while :; do sleep 0.01; done";
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
        let mut ran = Command::new(qspin());
        ran.args(["run", "--", "sh", "-c", script]).stdout(Stdio::piped());
        // In the background of a script it is ignored, and stays so.
        // SAFETY: an async-signal-safe function.
        unsafe {
            ran.pre_exec(move || {
                libc::signal(signal, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut ran = ran.spawn().unwrap();
        let mut lines = BufReader::new(ran.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(ran.id() as i32, signal) };
        assert_eq!(lines.next().unwrap().unwrap(), "heard");
        assert_eq!(ran.wait().unwrap().code(), Some(7), "{signal}");
    }
    // To its whole group, to which `qspin run` belongs: it hears that once.
    let script = "trap 'echo heard' USR1; kill -USR1 0; sleep 0.2; exit 4";
    let mut ran = Command::new(qspin());
    ran.args(["run", "--", "sh", "-c", script]).process_group(0);
    let output = ran.output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "heard\n");
}

#[test]
fn a_process_that_executes_another_program_or_crashes_has_a_table_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("crashing");
    let crashes = CONTENDING
        .replace("_exit(5)", "raise(SIGSEGV)")
        .replace("#include", "#include <signal.h>\n#include");
    let crashes =
        crashes.replacen("#include <signal.h>\n#include <signal.h>", "#include <signal.h>", 1);
    if !compile(&crashes, &["-O1"], &program) {
        return;
    }
    let script = format!("exec {} x", program.display());
    let output = run(&["--stats", "--", "sh", "-c", &script]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(128 + libc::SIGSEGV), "{text}");
    assert!(text.contains("the_hot_place in crashing"), "{text}");
    assert!(text.contains("processes that took no lock: 1\n"), "the shell: {text}");
}

#[test]
fn more_processes_than_there_is_room_for_are_told_of() {
    let script = "i=0; while [ $i -lt 66 ]; do /bin/true; i=$((i+1)); done";
    let output = run(&["--stats", "--", "sh", "-c", script]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.ends_with("and 3 more processes, which were not counted: there is room for 64\n"),
        "{text}"
    );
}

/// Of a program that has taken one lock 99 times, and waits.
fn locks_are_json_and_begin_anew(stat: impl Fn(&[&str]) -> Output) {
    let lines = |options: &[&str]| -> Vec<serde_json::Value> {
        let output = stat(options);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of = |line: &serde_json::Value| {
        assert!(line["pid"].is_number() && line["name"] == "closing", "{line}");
        assert_eq!(line["served_by"], "mutex");
        let locks = line["locks"].as_array().unwrap();
        locks.iter().map(|lock| lock["acquisitions"].as_u64().unwrap()).sum::<u64>()
    };
    let once = lines(&["--json"]);
    // The last ones stand in the lock's own memory still.
    let seen = of(&once[0]);
    assert!(once.len() == 1 && (90..=99).contains(&seen), "{once:?}");
    assert!(once[0]["locks"][0]["where"].as_str().unwrap().contains("main in closing"));
    let watched = lines(&["--json", "--interval", "0.1", "--count", "2"]);
    assert_eq!(watched.len(), 2);
    for line in &watched {
        assert_eq!(of(line), seen);
        assert_eq!(line["locks"][0]["acquisitions_per_s"], 0.0);
        assert!(line["interval_s"].as_f64().unwrap() >= 0.1);
    }
    let output = stat(&["--interval", "0.1", "--count", "1"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("per second"), "{output:?}");
    assert_eq!(lines(&["--json", "--reset"]).iter().map(of).collect::<Vec<_>>(), [seen]);
    assert_eq!(lines(&["--json"]).iter().map(of).collect::<Vec<_>>(), [0], "they began anew");
}

#[test]
fn locks_of_a_running_program_are_shown_also_if_it_has_closed_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("closing");
    let source = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <unistd.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
        int main(void) {\n\
            for (int i = 0; i < 99; i++) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }\n\
            for (int i = 3; i < 2000; i++) close(i);\n\
            char line[16]; int length = 0;\n\
            for (int pid = getpid(); pid; pid /= 10) line[sizeof line - 1 - ++length] = '0' + pid % 10;\n\
            line[sizeof line - 1] = '\\n';\n\
            (void)!write(1, line + sizeof line - 1 - length, length + 1);\n\
            return (int)read(0, line, 1);\n\
        }\n";
    if !compile(source, &["-O1"], &program) {
        return;
    }
    for (stats, shown) in [(&["--stats"][..], true), (&[], false)] {
        let mut ran = Command::new(qspin());
        ran.arg("run").args(stats).arg("--").arg(&program);
        let mut ran =
            ran.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(ran.stdout.take().unwrap()).lines();
        let process = lines.next().unwrap().unwrap();
        let stat = |options: &[&str]| {
            Command::new(qspin()).args(["stat", &process]).args(options).output().unwrap()
        };
        let output = stat(&[]);
        if shown {
            locks_are_json_and_begin_anew(stat);
        }
        drop(ran.stdin.take());
        assert_eq!(ran.wait().unwrap().code(), Some(0));
        if shown {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                text.contains("99") && text.contains("main in closing"),
                "{text}{}",
                said(&output)
            );
        } else {
            // `qspin run` has the file still, through which it is switched on.
            assert_eq!(output.status.code(), Some(0));
            assert!(
                said(&output).contains("counts as long as this looks at it"),
                "{}",
                said(&output)
            );
        }
    }
}

#[test]
fn an_interpreter_at_the_end_of_a_large_file_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("large");
    if !compile("int main(void) { return 8; }", &[], &program) {
        return;
    }
    // The name of the dynamic linker moves behind two megabytes, as tools do that change it.
    let mut bytes = std::fs::read(&program).unwrap();
    let number =
        |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..at + 8].as_array().unwrap());
    let first = number(&bytes, 32) as usize;
    let segment = (0..16).map(|each| first + each * 56).find(|at| bytes[*at] == 3).unwrap();
    let place = number(&bytes, segment + 8) as usize;
    let name = bytes[place..place + number(&bytes, segment + 32) as usize].to_vec();
    bytes.resize(2 << 20, 0);
    let end = bytes.len() as u64;
    bytes[segment + 8..segment + 16].copy_from_slice(&end.to_le_bytes());
    bytes.extend(name);
    std::fs::write(&program, bytes).unwrap();
    let output = run(&["--", program.to_str().unwrap()]);
    assert_eq!((output.status.code(), said(&output)), (Some(8), String::new()));
}

#[test]
fn a_comparison_shows_a_ratio_with_its_interval_or_how_a_run_failed() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("locking");
    if !compile(LOCKING, &[], &program) {
        return;
    }
    let program = program.to_str().unwrap();
    let output = run(&["--compare", "2", "--", program]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        text.contains("2 pairs") && text.contains('[') && text.contains("too few pairs"),
        "{text}"
    );
    let output = run(&["--compare", "2", "--figure", "rate:", "--", program, "rate: 12.5"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1.000 [1.000, 1.000]"), "{text}");
    let output = run(&["--rwlock", "paravirt-rw", "--compare", "2", "--", program]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("mutex and paravirt-rw against the C library's locks"), "{text}");
    let output = run(&["--compare", "1", "--figure", "nothing", "--", program]);
    assert_eq!((output.status.code(), said(&output).lines().count()), (Some(2), 1));
    assert!(said(&output).contains("no number"), "{}", said(&output));
    let output = run(&["--compare", "2", "--", "sh", "-c", "echo why; exit 9"]);
    assert_eq!(output.status.code(), Some(9));
    assert!(said(&output).contains("why"), "{}", said(&output));
}
