//! The results of an experiment are those of today's locks: the one that simulates the default locks, again.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The lines of a text without what alignment leaves at their ends.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

#[test]
fn the_results_of_readers_and_writers_are_those_of_todays_locks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulated = Command::new(env!("CARGO_BIN_EXE_qspin"))
        .args(["simulate", "scenarios/evidence/readers-writers.toml", "--seeds", "6"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(simulated.status.success(), "{simulated:?}");
    let results =
        fs::read_to_string(root.join("data/results/evidence-readers-writers.md")).unwrap();
    let (_, written) = results.split_once("```text\n").unwrap();
    let (written, _) = written.split_once("```").unwrap();
    let simulated = String::from_utf8(simulated.stdout).unwrap();
    for (written, simulated) in lines(written).iter().zip(lines(&simulated)) {
        assert_eq!(*written, simulated, "the results are stale: see the head of the file");
    }
    assert_eq!(lines(written).len(), lines(&simulated).len());
    assert!(lines(written).len() > 50);
}
