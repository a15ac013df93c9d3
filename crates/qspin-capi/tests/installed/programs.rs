//! C and C++ programs over what is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{STRICT, compilers, have, here, output, pkg_config, run, scratch};
use crate::prefix;

/// Every program, with how it is compiled and what it says.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("examples/counter.c", &C, "4 threads counted to 4000\n"),
    ("examples/readers.c", &C, "3 readers saw whole pairs only\n"),
    ("examples/statistics.c", &C, "lock_slowpath 1\npending_lock_count 1\n"),
    ("examples/choose.c", &C, ", fixed\n"),
    ("examples/tunables.c", &C, ""),
    ("examples/guards.cpp", &CPP, "42 -1 800 1200\n"),
    ("tests/c/locks.c", &C, "every lock does what the header says\n"),
    ("tests/c/locks.c", &["-x", "c++", "-std=c++17"], "every lock does what the header says\n"),
    ("tests/c/defaults.c", &C, "the defaults do what the header says\n"),
    ("tests/c/defaults.c", &["-x", "c++", "-std=c++17"], "the defaults do what the header says\n"),
    ("tests/c/inline_cost.c", &C, " ns\n"),
    ("tests/c/names.c", &C, "every name means what it says\n"),
    ("tests/c/names.c", &["-x", "c++", "-std=c++17"], "every name means what it says\n"),
    ("tests/c/classes.cpp", &CPP, "every class is a lock\n"),
];
const C: [&str; 2] = ["-std=c11", "-D_DEFAULT_SOURCE"];
const CPP: [&str; 1] = ["-std=c++17"];

fn compile(compiler: &str, how: &[&str], source: &str, more: &[String], program: &Path) {
    let mut command = Command::new(compiler);
    command.args(STRICT).args(["-O2", "-pthread"]).args(how).arg(here(source));
    // What follows is no source any more.
    output(command.args(["-x", "none", "-o"]).arg(program).args(more));
}

/// Compiles every program with each compiler, and runs it.
fn every_program(kind: &str, libraries: &[String], with: &[&str]) {
    let directory = tempfile::tempdir_in(scratch()).unwrap();
    for (c, cpp) in compilers() {
        for (number, (source, how, says)) in PROGRAMS.iter().enumerate() {
            let is_cpp = how.contains(&"-std=c++17");
            let program = directory.path().join(format!("{c}-{kind}-{number}"));
            let how: Vec<&str> = how.iter().chain(with).copied().collect();
            compile(if is_cpp { cpp } else { c }, &how, source, libraries, &program);
            let said = output(&mut run(&program, prefix()));
            assert!(said.ends_with(says), "{source}, {kind}, by {c}: {said}");
        }
    }
}

#[test]
fn with_the_shared_library_by_pkg_config() {
    if have("pkg-config", "programs by pkg-config") {
        let words = pkg_config(prefix(), &["--cflags", "--libs"]);
        every_program("shared", &words, &[]);
    }
}

#[test]
fn with_the_first_attempt_in_the_programs_code() {
    if have("pkg-config", "programs by pkg-config") {
        let words = pkg_config(prefix(), &["--cflags", "--libs"]);
        every_program("inline", &words, &["-DQSPIN_INLINE"]);
    }
}

/// What links the static library.
fn static_words() -> Vec<String> {
    let mut words = pkg_config(prefix(), &["--cflags", "--libs", "--static"]);
    let archive = prefix().join("lib/libqspin.a").to_str().unwrap().to_owned();
    let ours = words.iter().position(|word| word == "-lqspin").expect("it names the library");
    words[ours] = archive;
    words
}

#[test]
fn with_the_static_library_by_pkg_config() {
    if have("pkg-config", "programs by pkg-config") {
        every_program("static", &static_words(), &[]);
    }
}

#[test]
fn the_environment_chooses_the_lock_in_both_kinds_of_program() {
    if !have("pkg-config", "programs by pkg-config") {
        return;
    }
    let directory = tempfile::tempdir_in(scratch()).unwrap();
    for (c, _) in compilers().into_iter().take(1) {
        for (kind, words) in
            [("shared", pkg_config(prefix(), &["--cflags", "--libs"])), ("static", static_words())]
        {
            let program = directory.path().join(kind);
            // Without a call that would decide anew: what was found at load time counts.
            let source = directory.path().join("load.c");
            let text = "#include <qspin.h>\n#include <stdio.h>\n\
                        int main(void) { return puts(qspin_select_chosen()) < 0; }\n";
            fs::write(&source, text).unwrap();
            compile(c, &C, source.to_str().unwrap(), &words, &program);
            for lock in ["native", "backoff", "cna-paravirt"] {
                let said = output(run(&program, prefix()).env("QSPIN_LOCK", lock));
                assert_eq!(said, format!("{lock}\n"), "{kind}");
            }
        }
    }
}

#[test]
fn an_example_says_what_is_wrong_with_its_input() {
    if !have("pkg-config", "programs by pkg-config") {
        return;
    }
    let directory = tempfile::tempdir_in(scratch()).unwrap();
    for (c, _) in compilers().into_iter().take(1) {
        let program = directory.path().join("tunables");
        let words = pkg_config(prefix(), &["--cflags", "--libs"]);
        compile(c, &C, "examples/tunables.c", &words, &program);
        let said = output(run(&program, prefix()).args(["awake_polls", "77"]));
        assert!(said.contains("awake_polls                   77"), "{said}");
        for (arguments, told) in [
            (&["awake_polls"][..], "NAME VALUE"),
            (&["queue", "1"], "no tunable 'queue'"),
            (&["awake_polls", "0"], "from 1 to 16777216, not 0"),
            (&["awake_polls", "many"], "not a number like 64"),
            (&["awake_polls", "-1"], "not a number like 64"),
        ] {
            let ran = run(&program, prefix()).args(arguments).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains(told) && said.lines().count() == 1, "{arguments:?}: {said}");
        }
    }
}

#[test]
fn by_cmake() {
    if !have("cmake", "programs by CMake") {
        return;
    }
    let directory = tempfile::tempdir_in(scratch()).unwrap();
    let build_tool =
        if have("ninja", "CMake's programs built by ninja") { "Ninja" } else { "Unix Makefiles" };
    if build_tool != "Ninja" && !have("make", "programs by CMake") {
        return;
    }
    for (c, cpp) in compilers() {
        let build: PathBuf = directory.path().join(c);
        output(
            Command::new("cmake")
                .args(["-G", build_tool, "-S"])
                .arg(here("tests/cmake"))
                .arg("-B")
                .arg(&build)
                .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()))
                .arg(format!("-DEXAMPLES={}", here("examples").display()))
                .env("CC", c)
                .env("CXX", cpp),
        );
        output(Command::new("cmake").arg("--build").arg(&build));
        for (name, says) in [
            ("counter", "4 threads counted to 4000\n"),
            ("readers", "3 readers saw whole pairs only\n"),
            ("choose", ", fixed\n"),
            ("guards", "42 -1 800 1200\n"),
        ] {
            for kind in ["qspin", "static"] {
                // CMake tells the program itself where its library is.
                let mut program = run(build.join(format!("{name}_{kind}")), prefix());
                let said = output(program.env_remove("LD_LIBRARY_PATH"));
                assert!(said.ends_with(says), "{name}, {kind}, by {c}: {said}");
            }
        }
    }
}
