//! Random loads: what is drawn, written, gone on with and refused; never how fast a lock was.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

/// Very short: where every CPU is busy with other things, a lock may do nothing at all.
const SHORT: [&str; 8] =
    ["bench", "--locks", "mutex,std", "--rounds", "1", "--seconds", "0.002", "--random"];

fn qspin(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("qspin").unwrap();
    command.args(args).timeout(Duration::from_secs(300));
    command
}

fn short(args: &[&str]) -> Command {
    qspin(&[&SHORT[..], args].concat())
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What was drawn of each cell.
fn loads(rows: &[Value]) -> BTreeSet<String> {
    rows.iter()
        .map(|row| {
            let mut params = row["params"].clone();
            params.as_object_mut().unwrap().retain(|param, _| param != "again");
            let of = |field: &str| row[field].clone();
            format!(
                "{params} {} {} {} {}",
                of("threads"),
                of("critical_ns"),
                of("lines"),
                of("hogs")
            )
        })
        .collect()
}

#[test]
fn a_run_has_every_contender_and_the_twin_in_every_cell_and_says_how_to_repeat_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let output = short(&["3", "--seed", "1", "--loads", "quiet"])
        .arg("--out")
        .arg(&path)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let text = String::from_utf8(output).unwrap();
    for said in
        ["qspin bench --threads ", "## Quiet: 3 cells", "The worst cells of `mutex`", "Noise:"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let rows = rows(&path);
    for cell in 1..=3 {
        let of = |again: bool| -> BTreeSet<&str> {
            rows.iter()
                .filter(|row| row["params"]["cell"] == cell && row["params"]["draw"] == 1)
                .filter(|row| row["params"]["again"].is_boolean() == again)
                .map(|row| row["lock"].as_str().unwrap())
                .collect()
        };
        let all = BTreeSet::from(["mutex", "mutex-twin", "std"]);
        assert_eq!(of(false), all, "cell {cell}");
        assert!(of(true).is_empty() || of(true) == all, "cell {cell}");
    }
    assert_eq!(loads(&rows).len(), 3);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no journal is left");
    for (format, said) in
        [("md", "## Quiet: 3 cells"), ("svg", "data-lock=\"mutex\""), ("html", "Regret")]
    {
        let report = qspin(&["report", "--format", format]).arg(&path).output().unwrap();
        let shown = String::from_utf8(report.stdout).unwrap()
            + &fs::read_to_string(folder.path().join("rows.html")).unwrap_or_default();
        assert!(report.status.success() && shown.contains(said), "{format}");
    }
}

#[test]
fn a_cell_alone_is_the_same_cell() {
    let folder = tempfile::tempdir().unwrap();
    let loads_of = |args: &[&str]| {
        let path = folder.path().join("rows.jsonl");
        short(args).arg("--out").arg(&path).assert().success();
        loads(&rows(&path))
    };
    let several = loads_of(&["2", "--seed", "4"]);
    let alone = loads_of(&["1", "--seed", "4", "--cell", "2"]);
    assert_eq!((several.len(), alone.len()), (2, 1));
    assert!(several.is_superset(&alone), "{several:?} {alone:?}");
}

#[test]
fn reader_writer_locks_have_shares_of_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    qspin(&["bench", "--random", "2", "--seed", "1", "--workload", "rw", "--rounds", "1"])
        .args(["--locks", "rwlock,std-rw", "--seconds", "0.002", "--out"])
        .arg(&path)
        .assert()
        .success();
    for row in rows(&path) {
        let of = |param: &str| row["params"][param].as_u64().unwrap();
        assert_eq!(of("readers") + of("writers"), 1000);
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_and_another_one_does_not_touch_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let args = [&SHORT[..], &["4", "--seed", "3", "--out"]].concat();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("qspin"))
        .args(&args)
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(out.any(|line| line.unwrap().contains("1/4")), "a cell was finished");
    child.kill().unwrap();
    child.wait().unwrap();
    let journal = folder.path().join("rows.jsonl.unfinished");
    assert!(journal.exists() && !path.exists());
    // As if it had been killed in the middle of a line.
    let torn = fs::read_to_string(&journal).unwrap() + "{\"schema\":1,";
    fs::write(&journal, torn).unwrap();
    let other = short(&["5", "--seed", "3", "--out"]).arg(&path).output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(said.contains("another command") && said.contains("rows.jsonl.unfinished"), "{said}");
    let rest = short(&["4", "--seed", "3", "--out"]).arg(&path).output().unwrap();
    let said = String::from_utf8(rest.stdout).unwrap();
    assert!(rest.status.success() && said.contains("there already"), "{said}");
    assert_eq!(loads(&rows(&path)).len(), 4);
    assert!(!journal.exists());
}

#[test]
fn what_does_not_fit_is_refused_in_a_line() {
    for (args, said) in [
        (&["--random", "3", "--threads", "2"][..], "leave out --threads"),
        (&["--random", "3", "--lengths", "tailed"], "leave out --lengths"),
        (&["--random", "0"], "1..=10000"),
        (&["--cell", "3"], "--random 200"),
        (&["--loads", "quiet"], "--random 200"),
        (&["--random", "3", "--locks", "ticket,std"], "name at least two"),
        (&["--random", "3", "--locks", "rwlock,std"], "reader-writer lock"),
    ] {
        let output = qspin(&[&["bench"], args].concat()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(
            stderr.contains(said) && stderr.trim_end().lines().count() == 1,
            "{args:?}: {stderr}"
        );
    }
}
