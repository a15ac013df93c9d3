//! Other programs.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `command` says on stdout; it must succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let ran = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {}\n{said}", ran.status);
    String::from_utf8(ran.stdout).unwrap()
}

/// Whether `program` is installed; says that what needs it is skipped, otherwise.
pub(crate) fn have(program: &str, what: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|place| place.join(program).is_file())
    });
    if !found {
        // Not by the macro, whose output is shown only where a test fails.
        let _ = writeln!(std::io::stderr(), "skipped: {what} ({program} is not installed)");
    }
    found
}

/// Cargo's profile for these tests, in which the command is built, too: a further one takes minutes. (`./test` has built
/// it already, and says where: `QSPIN_BUILT`.)
pub(crate) fn profile() -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_qspin-install"));
    let name = built.parent().and_then(Path::file_name).unwrap().to_str().unwrap();
    if name == "debug" { "dev".to_owned() } else { name.to_owned() }
}

/// Where tests may write.
pub(crate) fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A file of this crate.
pub(crate) fn here(file: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Removes what earlier runs have installed, but `this`.
pub(crate) fn remove_the_old(this: &Path) {
    for entry in std::fs::read_dir(scratch()).unwrap().flatten() {
        let path = entry.path();
        let old = entry.file_name().to_string_lossy().starts_with("qspin installed ");
        let age = entry.metadata().and_then(|about| about.modified());
        let is_long_ago =
            age.is_ok_and(|then| then.elapsed().is_ok_and(|age| age.as_secs() > 3600));
        if old && is_long_ago && path != this {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// The warnings that the header and the examples must be free of.
pub(crate) const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// What compiles, for C and for C++, with its name.
pub(crate) fn compilers() -> Vec<(&'static str, &'static str)> {
    [("gcc", "g++"), ("clang", "clang++")]
        .into_iter()
        .filter(|(c, cpp)| {
            have(c, &format!("programs compiled by {c}"))
                && have(cpp, &format!("programs compiled by {cpp}"))
        })
        .collect()
}

/// What `pkg-config` says, as words: it quotes them for the shell.
pub(crate) fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let line = output(
        Command::new("pkg-config")
            .args(arguments)
            .arg("qspin")
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    );
    let shell = format!("printf '%s\\n' {}", line.trim());
    let words = output(Command::new("sh").args(["-c", &shell]));
    words.lines().map(str::to_owned).collect()
}

/// A command that runs `program` with the libraries of `prefix`.
pub(crate) fn run(program: impl AsRef<OsStr>, prefix: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix.join("lib"));
    for name in ["QSPIN_LOCK", "QSPIN_THREADS", "QSPIN_DEDICATED", "QSPIN_TOPOLOGY"] {
        command.env_remove(name);
    }
    command
}
