//! The right function, line and lock, in each language and at each level of optimisation, also of stripped files.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::interposed::{compile, run, said};

/// Two threads, one of which keeps the other waiting for longer each time than anything else here takes.
const C: &str = r#"
#include <pthread.h>
#include <unistd.h>
struct pair { long first; pthread_mutex_t lock; };
static struct pair hot = { 0, PTHREAD_MUTEX_INITIALIZER };
static volatile int held;
__attribute__((noinline)) void keeps(void) {
    pthread_mutex_lock(&hot.lock);
    held = 1;
    usleep(20000);
    pthread_mutex_unlock(&hot.lock);
    held = 0;
}
__attribute__((noinline)) void waits(void) {
    while (!held) usleep(100);
    pthread_mutex_lock(&hot.lock);
    pthread_mutex_unlock(&hot.lock);
    __asm__("");
}
static void *one(void *unused) { for (int i = 0; i < 20; i++) keeps(); held = 1; return unused; }
static void *two(void *unused) { for (int i = 0; i < 20; i++) waits(); return unused; }
int main(void) {
    pthread_t a, b;
    pthread_create(&b, 0, two, 0);
    pthread_create(&a, 0, one, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
"#;

/// What the table says of a lock, after its name.
fn row(program: &Path, lock: &str) -> String {
    let output = run(&["--stats", "--", program.to_str().unwrap()]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    let row = text.lines().find(|line| line.starts_with(&format!(" {lock} ")));
    row.unwrap_or_else(|| panic!("no {lock}: {text}")).to_owned()
}

/// The function and line that wait, and the function that is waited for.
fn assert_places(row: &str, waits: &str, keeps: &str) {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let &[.., place, culprit] = cells.as_slice() else { panic!("{row}") };
    assert!(place.starts_with(waits), "{waits}: {row}");
    assert!(culprit.starts_with(keeps), "{keeps}: {row}");
}

#[test]
fn a_function_of_c_has_its_line_and_a_static_lock_its_symbol() {
    let directory = tempfile::tempdir().unwrap();
    for level in ["-O0", "-O1", "-O2"] {
        let program = directory.path().join(format!("c{level}"));
        if !compile(C, &[level, "-g"], &program) {
            return;
        }
        let name = format!("c{level}.c");
        assert_places(
            &row(&program, "hot+0x8"),
            &format!("waits ({name}:16)"),
            &format!("keeps ({name}:1"),
        );
    }
}

#[test]
fn lines_of_a_stripped_file_come_from_its_separate_debug_file() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("stripped");
    if !compile(C, &["-O2", "-g"], &program) {
        return;
    }
    let objcopy = |arguments: &[&str]| {
        let done = Command::new("objcopy").args(arguments).current_dir(directory.path()).status();
        done.is_ok_and(|status| status.success())
    };
    if !objcopy(&["--only-keep-debug", "stripped", "stripped.debug"])
        || !objcopy(&["--strip-all", "stripped"])
    {
        println!("skipped: there is no objcopy");
        return;
    }
    // What is left without names: an address within the file.
    let output = run(&["--stats", "--", program.to_str().unwrap()]);
    assert!(!said(&output).contains("waits ("), "{}", said(&output));
    assert!(said(&output).contains("stripped+0x"), "{}", said(&output));
    std::fs::create_dir(directory.path().join(".debug")).unwrap();
    assert!(objcopy(&["--add-gnu-debuglink=stripped.debug", "stripped"]));
    for place in ["stripped.debug", ".debug/stripped.debug"] {
        if place.starts_with('.') {
            let from = directory.path().join("stripped.debug");
            std::fs::rename(from, directory.path().join(place)).unwrap();
        }
        let row = row(&program, "hot+0x8");
        assert_places(&row, "waits (stripped.c:16)", "keeps (stripped.c:1");
    }
}

/// As a wrapper of pthread's mutex in Rust is, with a function that is inlined.
const RUST: &str = r#"
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
#[repr(C, align(8))]
pub struct Raw(UnsafeCell<[u8; 40]>);
unsafe impl Sync for Raw {}
unsafe extern "C" {
    fn pthread_mutex_lock(raw: *mut [u8; 40]) -> i32;
    fn pthread_mutex_unlock(raw: *mut [u8; 40]) -> i32;
}
impl Raw {
    #[inline(always)]
    fn lock(&self) { unsafe { pthread_mutex_lock(self.0.get()) }; }
    #[inline(always)]
    fn unlock(&self) { unsafe { pthread_mutex_unlock(self.0.get()) }; }
}
#[unsafe(no_mangle)]
static HOT: Raw = Raw(UnsafeCell::new([0; 40]));
static HELD: AtomicBool = AtomicBool::new(false);
#[inline(never)]
fn keeps() {
    HOT.lock();
    HELD.store(true, SeqCst);
    std::thread::sleep(Duration::from_millis(20));
    HOT.unlock();
    HELD.store(false, SeqCst);
}
#[inline(never)]
fn waits() {
    while !HELD.load(SeqCst) { std::thread::yield_now(); }
    HOT.lock();
    HOT.unlock();
    HELD.load(SeqCst);
}
fn main() {
    let other = std::thread::spawn(|| for _ in 0..20 { waits() });
    for _ in 0..20 { keeps() }
    HELD.store(true, SeqCst);
    other.join().unwrap();
}
"#;

#[test]
fn a_function_of_rust_that_locks_by_pthread_is_shown_and_not_its_inlined_wrapper() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("wrapped.rs");
    std::fs::write(&source, RUST).unwrap();
    for level in ["0", "3"] {
        let program = directory.path().join(format!("wrapped{level}"));
        let compiled = Command::new("rustc")
            .args(["--edition", "2024", "-g", "-C", &format!("opt-level={level}"), "-o"])
            .args([&program, &source])
            .output();
        if !compiled.is_ok_and(|output| output.status.success()) {
            println!("skipped: there is no rustc");
            return;
        }
        assert_places(
            &row(&program, "HOT"),
            "wrapped::waits (wrapped.rs:32)",
            "wrapped::keeps (wrapped.rs:26)",
        );
    }
}

fn python() -> Option<PathBuf> {
    let found = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    let found = found.into_iter().find(|path| path.exists());
    if found.is_none() {
        println!("skipped: there is no Python");
    }
    found
}

#[test]
fn the_lock_of_pythons_interpreter_is_seen_where_a_thread_takes_it_up_again() {
    let Some(python) = python() else { return };
    // Each sleep gives the interpreter's lock away and takes it again.
    let script = "import threading, time\n\
        def body():\n    for _ in range(200): time.sleep(0.0001)\n\
        all = [threading.Thread(target=body) for _ in range(4)]\n\
        [one.start() for one in all]\n[one.join() for one in all]\n";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("locks.json");
    let output = run(&[
        "--stats=json",
        "--stats-out",
        file.to_str().unwrap(),
        "--",
        python.to_str().unwrap(),
        "-c",
        script,
    ]);
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(&file).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let locks = value["processes"][0]["locks"].as_array().unwrap();
    let is_it = |lock: &&serde_json::Value| {
        let place = lock["where"].as_str().unwrap_or_default();
        place.contains("take_gil")
            || place.contains("drop_gil")
            || place.starts_with("PyEval_RestoreThread")
            || place.starts_with("PyEval_SaveThread")
    };
    let own = locks.iter().find(is_it).unwrap_or_else(|| panic!("{text}"));
    assert!(own["acquisitions"].as_u64().unwrap() > 800, "{own}");
}
