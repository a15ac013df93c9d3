//! LLVM IR of a small client, made of the very source of the locks: for GenMC, which explores
//! it under RC11 and IMM, load buffering included, where loom cannot look.

mod audit;

pub use audit::{Audit, audit};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use qspin_core::locks::{LOCKS, Lock, Waits};

/// The locks that the client (`client/src/lib.rs`) can use: on its platform no CPU halts, and all are near.
pub fn locks() -> impl Iterator<Item = &'static Lock> {
    LOCKS.iter().filter(|lock| lock.waits != Waits::Halts && !lock.near_first)
}

/// How many threads the client may have.
pub const THREADS: std::ops::RangeInclusive<usize> = 2..=4;

/// Compiles the client for one lock and so many threads; writes the IR to `out`.
///
/// # Errors
/// Says what is wrong with the request, with the compiler, or with what it made.
pub fn emit(lock: &str, threads: usize, out: &Path) -> Result<Audit, String> {
    let lock = locks().find(|known| known.is_called(lock)).ok_or_else(|| {
        let names: Vec<_> = locks().map(|lock| lock.name).collect();
        format!("no client for lock `{lock}`; there are {}", names.join(", "))
    })?;
    if !THREADS.contains(&threads) {
        let (least, most) = (THREADS.start(), THREADS.end());
        return Err(format!("{threads} threads; a client has {least} to {most}"));
    }
    let out = std::path::absolute(out).map_err(|error| format!("{}: {error}", out.display()))?;
    compile(lock, threads, &out)?;
    let raw =
        std::fs::read_to_string(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let ir = without_what_no_checker_reads(&raw);
    std::fs::write(&out, &ir).map_err(|error| format!("{}: {error}", out.display()))?;
    let audit = audit(&ir);
    if !audit.has_main {
        return Err("the IR has no main".to_owned());
    }
    match audit.strangers.as_slice() {
        [] => Ok(audit),
        strangers => Err(format!("the IR calls {}", strangers.join(", "))),
    }
}

fn compile(lock: &Lock, threads: usize, out: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let manifest: PathBuf = [env!("CARGO_MANIFEST_DIR"), "client", "Cargo.toml"].iter().collect();
    let mut emit = OsString::from("--emit=llvm-ir=");
    emit.push(out);
    let output = Command::new(cargo)
        .args(["rustc", "--quiet", "--release", "--lib", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(["--cfg", "chosen", "--cfg", &format!("{:?}", lock.id)])
        .args(["--cfg", &format!("threads=\"{threads}\"")])
        .arg(emit)
        .args(["-C", "panic=abort", "-C", "opt-level=2", "-C", "codegen-units=1"])
        .args(["-C", "no-vectorize-loops", "-C", "no-vectorize-slp", "-C", "debuginfo=0"])
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("the client does not compile:\n{}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Fences of one thread with itself keep the compiler from moving what an interrupt could see.
/// A client has no interrupts, and a checker might take them for fences between threads, which
/// would hide what is to be found. Nothing unwinds either.
fn without_what_no_checker_reads(ir: &str) -> String {
    let keeps = |line: &&str| {
        !line.contains("syncscope(\"singlethread\")") && !line.contains("@rust_eh_personality(")
    };
    let personality = " personality ptr @rust_eh_personality";
    ir.lines().filter(keeps).flat_map(|line| [line.replace(personality, ""), "\n".into()]).collect()
}
