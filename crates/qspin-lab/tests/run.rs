//! `qspin run`: exit codes, what is refused and why, the table, the comparison.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The command, with the library beside it.
fn qspin() -> &'static Path {
    static QSPIN: OnceLock<PathBuf> = OnceLock::new();
    QSPIN.get_or_init(|| {
        let command = PathBuf::from(env!("CARGO_BIN_EXE_qspin"));
        let profile = command.parent().unwrap();
        let name = profile.file_name().unwrap().to_str().unwrap();
        let name = if name == "debug" { "dev" } else { name };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "qspin-preload", "--profile", name])
            .arg("--target-dir")
            .arg(profile.parent().unwrap())
            .status()
            .unwrap();
        assert!(built.success());
        command
    })
}

fn run(arguments: &[&str]) -> Output {
    Command::new(qspin()).arg("run").args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn compile(source: &str, more: &[&str], to: &Path) -> bool {
    let code = to.with_extension("c");
    std::fs::write(&code, source).unwrap();
    let compiled =
        Command::new("gcc").arg(&code).args(more).args(["-pthread", "-o"]).arg(to).output();
    let compiled = compiled.is_ok_and(|output| output.status.success());
    if !compiled {
        println!("skipped: {} cannot be compiled here", to.display());
    }
    compiled
}

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
        std::fs::write(&script, format!("#!{} -x\n", program.display())).unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, everybody).unwrap();
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
    let wrong: [(&[&str], &str); 9] = [
        (&["--", "/no/such/program"], "No such file"),
        (&["--", "no-such-program-anywhere"], "PATH"),
        (&["--", "/etc/passwd"], "not executable"),
        (&["--", "/"], "name a program"),
        (&["--lock", "moon", "--", "true"], "choose from paravirt"),
        (&["--tune", "moon=1", "--", "true"], "no tunable is called"),
        (&["--compare", "0", "--", "true"], "1 to 1000"),
        (&["--figure", "x", "--", "true"], "--compare"),
        (&["--compare", "1", "--figure", "nothing", "--", "true"], "no number"),
    ];
    for (arguments, right) in wrong {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
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
        let output = run(&["--lock", name, "--tune", "queue_looks=7", "--", "true"]);
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{name}");
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
        assert!(text.contains("served by paravirt;"), "{text}");
    }
}

#[test]
fn a_comparison_shows_a_ratio_with_its_interval_or_how_a_run_failed() {
    let output = run(&["--compare", "2", "--", "true"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        text.contains("2 pairs") && text.contains('[') && text.contains("too few pairs"),
        "{text}"
    );
    let output = run(&["--compare", "2", "--figure", "rate:", "--", "echo", "rate: 12.5"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1.000 [1.000, 1.000]"), "{text}");
    let output = run(&["--compare", "2", "--", "sh", "-c", "echo why; exit 9"]);
    assert_eq!(output.status.code(), Some(9));
    assert!(said(&output).contains("why"), "{}", said(&output));
}
