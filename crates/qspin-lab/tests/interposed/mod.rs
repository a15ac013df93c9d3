//! Running programs under the interposer.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The command, with the library beside it.
pub(crate) fn qspin() -> &'static Path {
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

pub(crate) fn run(arguments: &[&str]) -> Output {
    Command::new(qspin()).arg("run").args(arguments).output().unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether there is a compiler, and the program.
pub(crate) fn compile(source: &str, more: &[&str], to: &Path) -> bool {
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
