//! What is seen of programs that were not rebuilt: whose fault a wait is, where, and which threads wait for each other.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use qspin_core::locks::LOCKS;

use interposed::{compile, qspin, run, said};

mod elsewhere;
#[path = "../executable/mod.rs"]
mod executable;
#[path = "../interposed/mod.rs"]
mod interposed;
mod places;
mod rust;

/// Two functions hold the lock, nine times as long the one as the other, and say at the end how long each did.
const TWO_OWNERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) double owns_long(void) {
    pthread_mutex_lock(&hot); double t = now(); usleep(45000); t = now() - t; pthread_mutex_unlock(&hot); return t;
}
__attribute__((noinline)) double owns_shortly(void) {
    pthread_mutex_lock(&hot); double t = now(); usleep(5000); t = now() - t; pthread_mutex_unlock(&hot); return t;
}
__attribute__((noinline)) void waits(void) { pthread_mutex_lock(&hot); pthread_mutex_unlock(&hot); __asm__(""); }
static void *body(void *unused) { while (!stop) waits(); return unused; }
int main(void) {
    pthread_t threads[2];
    double held[2] = {0, 0};
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 25; i++) { held[0] += owns_long(); held[1] += owns_shortly(); }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%f\n", held[0] / (held[0] + held[1]));
    return 0;
}
"#;

#[test]
fn waits_are_charged_to_the_releases_that_they_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("owners");
    if !compile(TWO_OWNERS, &["-O1", "-g"], &program) {
        return;
    }
    let file = directory.path().join("stacks");
    let output = run(&[
        "--stats=folded",
        "--stats-out",
        file.to_str().unwrap(),
        "--",
        program.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", said(&output));
    let planted: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let of = |root: &str, function: &str| -> f64 {
        let is_it = |line: &&str| line.starts_with(root) && line.contains(&format!(";{function};"));
        text.lines()
            .filter(is_it)
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
            .sum()
    };
    let (long, short) = (of("keeps waiting;", "owns_long"), of("keeps waiting;", "owns_shortly"));
    let found = long / (long + short);
    assert!((found - planted).abs() < 0.05, "{found} of {planted}: {text}");
    assert!(of("waits;", "waits") > 0.0, "{text}");
    assert!(text.lines().all(|line| line.contains(";lock hot ")), "{text}");
}

const WRAPPED: &str = r#"
#include <mutex>
#include <thread>
#include <unistd.h>
static std::mutex hot;
__attribute__((noinline)) void works() {
    std::lock_guard<std::mutex> guard(hot);
    usleep(1000);
}
static void body() { for (int i = 0; i < 50; i++) works(); }
int main() { std::thread one(body), other(body); one.join(); other.join(); }
"#;

#[test]
fn the_caller_of_a_wrapper_is_shown_with_its_line_and_a_static_lock_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("wrapped.cc");
    std::fs::write(&source, WRAPPED).unwrap();
    for level in ["-O0", "-O2"] {
        let program = directory.path().join(format!("wrapped{level}"));
        let compiled = Command::new("g++")
            .arg(&source)
            .args([level, "-g", "-pthread", "-o"])
            .arg(&program)
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            println!("skipped: there is no C++ compiler");
            return;
        }
        let output = run(&["--stats", "--", program.to_str().unwrap()]);
        let text = said(&output);
        let row = text.lines().find(|line| line.starts_with(" hot "));
        let row = row.unwrap_or_else(|| panic!("{level}: {text}"));
        assert!(
            row.contains("works (wrapped.cc:7)") || row.contains("works (wrapped.cc:"),
            "{level}: {text}"
        );
        assert!(!row.contains("gthread"), "{level}: {text}");
    }
}

fn circles(directory: &Path) -> Option<std::path::PathBuf> {
    let program = directory.join("circles");
    compile(include_str!("../fixtures/circles.c"), &["-O1", "-g"], &program).then_some(program)
}

#[test]
fn every_planted_circle_is_named_and_the_process_aborted() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = circles(directory.path()) else { return };
    let program = program.to_str().unwrap();
    let kinds = ["mutex 1", "mutex 2", "mutex 3", "mutex 8", "read 2", "join 2", "spin 1"];
    for (kind, busy) in kinds.iter().flat_map(|kind| [(kind, ""), (kind, "busy")]) {
        let (kind, length) = kind.split_once(' ').unwrap();
        let mut arguments = vec!["--deadlocks=abort", "--", program, kind, length];
        arguments.extend((!busy.is_empty()).then_some(busy));
        let output = run(&arguments);
        let text = said(&output);
        assert_eq!(
            output.status.code(),
            Some(128 + libc::SIGABRT),
            "{kind} {length} {busy}: {text}"
        );
        let named = match length {
            "1" => "waits for itself".to_owned(),
            many => format!("{many} threads wait for each other"),
        };
        assert!(text.contains(&named), "{kind} {length} {busy}: {text}");
        assert!(text.contains("(circles.c:"), "{kind} {length} {busy}: {text}");
        assert_eq!(text.matches("deadlock: ").count(), 1, "{kind} {length} {busy}: {text}");
    }
}

#[test]
fn a_circle_is_named_whichever_lock_serves() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = circles(directory.path()) else { return };
    // Those that tell when a waiter sleeps, that sleep without a word, and that never sleep.
    for lock in ["mutex", "paravirt", "ticket"] {
        let program = program.to_str().unwrap();
        let output =
            run(&["--lock", lock, "--deadlocks=abort", "--", program, "mutex", "3", "busy"]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(128 + libc::SIGABRT), "{lock}: {text}");
        assert!(text.contains("3 threads wait for each other"), "{lock}: {text}");
    }
}

#[test]
fn a_read_behind_a_writer_is_a_circle_where_a_fair_reader_writer_lock_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = circles(directory.path()) else { return };
    let program = program.to_str().unwrap();
    for lock in LOCKS.iter().filter(|lock| lock.shared) {
        let output =
            run(&["--rwlock", lock.name, "--deadlocks=abort", "--", program, "again", "2", "busy"]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(128 + libc::SIGABRT), "{}: {text}", lock.name);
        assert!(text.contains("2 threads wait for each other"), "{}: {text}", lock.name);
        assert!(text.contains("waits, to write, and that comes first"), "{}: {text}", lock.name);
    }
}

#[test]
fn where_there_is_no_circle_nothing_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = circles(directory.path()) else { return };
    let output = run(&["--deadlocks=abort", "--", program.to_str().unwrap(), "none", "2", "busy"]);
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
}

#[test]
fn what_only_looks_like_a_deadlock_is_not_said_to_be_one() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("no_circle");
    if !compile(include_str!("../fixtures/no_circle.c"), &["-O1", "-g"], &program) {
        return;
    }
    // `./test --long` asks for ten minutes.
    let seconds = std::env::var("QSPIN_TORTURE_SECONDS").unwrap_or_else(|_| "3".into());
    let program = program.to_str().unwrap();
    for options in [&["--deadlocks=abort"][..], &["--deadlocks=abort", "--stats=json"]] {
        let file = directory.path().join("stats");
        let out = ["--stats-out", file.to_str().unwrap()];
        let out = if options.len() > 1 { &out[..] } else { &[] };
        let output = run(&[options, out, &["--", program, &seconds]].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{text}");
        assert!(text.ends_with(" rounds\n"), "{text}");
    }
}

/// Runs the program in the background, and gives what `stat` says of its process.
fn stat_of(arguments: &[&str], stat: &[&str]) -> (Output, Output) {
    let mut run = Command::new(qspin());
    run.arg("run").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A shell lets what it runs in the background ignore SIGQUIT, and a program inherits that.
    // SAFETY: the closure only makes a system call.
    unsafe {
        run.pre_exec(|| {
            libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut ran = run.spawn().unwrap();
    let mut first = String::new();
    let mut out = BufReader::new(ran.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    // The circle closes right after the line.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let children =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", ran.id())).unwrap();
    let process = children.trim().to_owned();
    let seen = Command::new(qspin()).args(["stat", &process]).args(stat).output().unwrap();
    // SAFETY: a child of this test's child, which ends with it.
    unsafe { libc::kill(process.parse().unwrap(), libc::SIGQUIT) };
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    (seen, ran.wait_with_output().unwrap())
}

#[test]
fn a_deadlock_is_shown_from_outside_and_by_sigquit() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = circles(directory.path()) else { return };
    let program = program.to_str().unwrap();
    let (seen, ended) = stat_of(&["--deadlocks", "--", program, "mutex", "2"], &["--deadlocks"]);
    let text = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert_eq!(seen.status.code(), Some(1), "{text}{}", said(&seen));
    assert!(text.contains("2 threads wait for each other"), "{text}");
    assert!(text.contains("holds mutex locks"), "{text}");
    assert_eq!(ended.status.code(), Some(128 + libc::SIGQUIT), "{}", said(&ended));
    assert!(said(&ended).contains("was sent SIGQUIT"), "{}", said(&ended));
}

#[test]
fn a_program_that_does_not_count_is_switched_on_and_off_from_outside() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("locking");
    let source = "#include <pthread.h>\n#include <stdio.h>\n\
        static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;\n\
        int main(void) {\n\
            puts(\"ready\"); fflush(stdout);\n\
            for (;;) { pthread_mutex_lock(&hot); pthread_mutex_unlock(&hot); }\n\
        }\n";
    if !compile(source, &["-O1", "-g"], &program) {
        return;
    }
    let (seen, _) = stat_of(&["--", program.to_str().unwrap()], &["--json"]);
    let text = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert_eq!(seen.status.code(), Some(0), "{text}{}", said(&seen));
    assert!(said(&seen).contains("counts as long as this looks at it"), "{}", said(&seen));
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["locks"][0]["name"], "hot", "{line}");
    assert!(line["locks"][0]["acquisitions"].as_u64().unwrap() > 0, "{line}");
    assert!(line["locks"][0]["where"].as_str().unwrap().contains("main (locking.c:"), "{line}");
}

#[test]
fn a_process_that_is_not_under_the_library_is_refused_in_one_line() {
    let own = std::process::id().to_string();
    for (arguments, right) in [
        (vec!["stat", own.as_str(), "--deadlocks"], "qspin run --deadlocks"),
        (vec!["stat", "--diff", "/no/such/file", "/etc/passwd"], "--stats=json"),
        (vec!["stat", "--diff", "/etc/passwd", "/etc/passwd"], "is no JSON"),
        (vec!["stat"], "PID"),
    ] {
        let output = Command::new(qspin()).args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(right), "{arguments:?}: {}", said(&output));
        assert_eq!(said(&output).lines().count(), 1, "{arguments:?}: {}", said(&output));
    }
}
