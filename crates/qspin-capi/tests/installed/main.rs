//! What is installed: built once by the documented command, then looked at, and used by C and C++ programs
//! as they would: with gcc and clang, by pkg-config and by CMake.
//!
//! The prefix has a space in its name, which each of the files must survive.

mod command;
mod package;
mod programs;

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use command::output;

/// The prefix below which everything is installed.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<tempfile::TempDir> = OnceLock::new();
    PREFIX
        .get_or_init(|| {
            let directory =
                tempfile::Builder::new().prefix("qspin installed ").tempdir_in(command::scratch());
            let directory = directory.unwrap();
            let mut install = Command::new(env!("CARGO_BIN_EXE_qspin-install"));
            match std::env::var_os("QSPIN_BUILT") {
                Some(directory) => install.arg("--built").arg(directory),
                None => install.args(["--profile", &command::profile()]),
            };
            let said = output(install.arg("--prefix").arg(directory.path()));
            assert!(said.starts_with("qspin "), "{said}");
            // Statics are not dropped, so the next run removes what this one leaves.
            command::remove_the_old(directory.path());
            directory
        })
        .path()
}

#[test]
fn bad_input_is_told_in_one_line_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    for (arguments, told) in [
        (vec![], "no prefix"),
        (vec!["--prefix"], "lacks its value"),
        (vec!["--prefix", file.to_str().unwrap()], "not a directory"),
        (vec!["--prefix", "/proc/self/here"], "name a directory"),
        (vec!["--prefix", "x", "--libdir", "../lib"], "below the prefix"),
        (vec!["--destdir", "x"], "unknown argument '--destdir'"),
    ] {
        let mut install = Command::new(env!("CARGO_BIN_EXE_qspin-install"));
        let ran = install.args(&arguments).current_dir(directory.path()).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.starts_with("qspin-install: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(told), "{arguments:?}: {said}");
        assert!(ran.stdout.is_empty());
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn help_is_no_error() {
    let said = output(Command::new(env!("CARGO_BIN_EXE_qspin-install")).arg("--help"));
    assert!(said.contains("usage: qspin-install --prefix DIR"));
}
