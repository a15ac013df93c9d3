//! The two libraries, built.
//!
//! The C compiler, not rustc, links the shared library from the static one: rustc gives the linker a version
//! script of its own, and a linker takes either an anonymous one or one that names versions.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name under which programs that are linked to the shared library load it. Its number changes when a
/// program linked earlier would no longer run.
pub(crate) const SONAME: &str = "libqspin.so.0";

/// The libraries that the archive needs, as `rustc --print native-static-libs` says for it.
pub(crate) const NEEDS: &[&str] = &["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

/// A directory with `libqspin.a` and `libqspin.so`, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Libraries(PathBuf);

impl Libraries {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Libraries {
    fn drop(&mut self) {
        // Below cargo's own directory: a directory that cannot be removed is in no one's way there.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|why| format!("cannot run '{program}': {why}; is it installed?"))?;
    if status.success() { Ok(()) } else { Err(format!("'{program}' failed ({status}); see above")) }
}

/// Where cargo builds.
pub(crate) fn target() -> Result<PathBuf, String> {
    let target = env::var_os("CARGO_TARGET_DIR").filter(|directory| !directory.is_empty());
    let target = target.map_or_else(|| workspace().join("target"), PathBuf::from);
    std::path::absolute(&target).map_err(|why| why.to_string())
}

fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// Cargo, about to build below `target` for this machine, whatever target is configured.
pub(crate) fn cargo(what: &str, target: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([what, "--locked", "--quiet", "--target-dir"]).arg(target);
    cargo.current_dir(workspace()).env_remove("CARGO_BUILD_TARGET");
    cargo
}

/// Builds them.
pub(crate) fn build() -> Result<Libraries, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = target()?;
    let mut cargo = cargo("rustc", &target);
    cargo.args(["--package", "qspin-capi", "--lib", "--crate-type", "staticlib"]);
    run(cargo.args(["--profile", "capi"]))?;
    let archive = target.join("capi/libqspin_capi.a");

    let directory = target.join(format!("capi/qspin-install-{}", std::process::id()));
    let failed = |why: std::io::Error| format!("cannot write {}: {why}", directory.display());
    let libraries = Libraries(directory.clone());
    std::fs::create_dir_all(&directory).map_err(failed)?;
    std::fs::copy(&archive, directory.join("libqspin.a"))
        .map_err(|why| format!("cannot copy {}: {why}", archive.display()))?;
    let mut script = OsString::from("-Wl,--version-script=");
    script.push(here.join("package/qspin.map"));
    let mut cc = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-shared", "-o"]).arg(directory.join("libqspin.so"));
    cc.arg(format!("-Wl,-soname,{SONAME}")).arg(script);
    // Never unloaded: threads have its destructors, and the C library has its `fork` handlers.
    cc.args([
        "-Wl,--gc-sections",
        "-Wl,--strip-debug",
        "-Wl,-z,defs",
        "-Wl,-z,relro",
        "-Wl,-z,now",
        "-Wl,-z,nodelete",
    ]);
    cc.arg("-Wl,--whole-archive").arg(directory.join("libqspin.a")).arg("-Wl,--no-whole-archive");
    run(cc.args(NEEDS.iter().map(|library| format!("-Wl,--as-needed,{library}"))))?;
    Ok(libraries)
}
