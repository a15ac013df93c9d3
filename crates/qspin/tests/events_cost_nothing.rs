//! A lock that does not count has not one instruction for counting.
//!
//! The same probe is compiled twice: as it is, and with the line that counts taken out of the
//! source. The lock with `NoEvents` must come out as the same instructions; the lock that
//! counts must not, or this test would compare nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine code of the probe, compiled with `flags`.
fn assembly(name: &str, flags: &str) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let examples = target.join("release/examples");
    for old in assembly_files(&examples) {
        std::fs::remove_file(old).unwrap();
    }
    // The cause of a rebuild: without its output the example must be compiled again.
    let _ = std::fs::remove_dir_all(target.join("release/.fingerprint"));
    let output = Command::new(env!("CARGO"))
        .args(["rustc", "--release", "--offline", "--example", "probe", "--", "--emit", "asm"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = assembly_files(&examples);
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::read_to_string(&files[0]).unwrap()
}

fn assembly_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "s")).collect()
}

/// The instructions of `function`, without the names that differ from build to build.
fn instructions(assembly: &str, function: &str) -> Vec<String> {
    let label = format!("{function}:");
    let end = format!("\t.size\t{function},");
    assembly
        .lines()
        .skip_while(|line| *line != label)
        .take_while(|line| !line.starts_with(&end))
        .filter(|line| line.starts_with('\t') && !line.starts_with("\t."))
        .map(|line| line.split_whitespace().map(nameless).collect::<Vec<_>>().join(" "))
        .collect()
}

fn nameless(word: &str) -> &str {
    if word.starts_with(".L") || word.contains("_ZN") || word.contains("_R") {
        "name"
    } else {
        word
    }
}

/// The slow path that `function` calls.
fn slow_path(assembly: &str, function: &str) -> String {
    let label = format!("{function}:");
    let body = assembly.lines().skip_while(|line| *line != label);
    let mut words = body.flat_map(str::split_whitespace);
    let found = words.find(|word| word.contains("slowpath")).expect("a call of the slow path");
    found.trim_start_matches('*').split('@').next().unwrap().trim_end_matches("(%rip)").to_owned()
}

#[test]
fn a_lock_without_events_has_not_one_instruction_more() {
    let with = assembly("probe-with", "");
    let without = assembly("probe-without", "--cfg qspin_without_events");
    let code = |assembly: &str, function: &str| {
        let fast = instructions(assembly, function);
        let slow = instructions(assembly, &slow_path(assembly, function));
        assert!(fast.len() > 3 && slow.len() > 40, "{} and {} found", fast.len(), slow.len());
        (fast, slow)
    };

    let plain = code(&with, "probe_acquire");
    assert_eq!(plain, code(&without, "probe_acquire"));

    let counted = code(&with, "probe_acquire_counted");
    assert_eq!(plain.0, counted.0, "the fast path counts nothing");
    assert!(
        counted.1.len() > plain.1.len(),
        "the counted slow path has {} instructions, the plain one {}",
        counted.1.len(),
        plain.1.len()
    );
    println!("slow path: {} instructions, counted {}", plain.1.len(), counted.1.len());
}
