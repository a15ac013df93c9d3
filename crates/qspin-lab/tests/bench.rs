//! Short real runs: what they must contain, never how fast they were.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use qspin_lab::bench::plan::orders;
use qspin_lab::contender::catalog::{self, Lock, Origin};
use serde_json::Value;

fn qspin(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("qspin").unwrap();
    command.args(args).timeout(Duration::from_secs(300));
    command
}

/// Every lock that excludes, in the order of the rows: those that threads can share, without the
/// C peers, which are measured on demand.
fn locks() -> Vec<&'static str> {
    named(|lock| !lock.is_rw() && matches!(lock.origin, Origin::Ours | Origin::Peer))
}

fn named(wanted: impl Fn(&Lock) -> bool) -> Vec<&'static str> {
    catalog::locks().iter().filter(|lock| wanted(lock)).map(|lock| lock.name).collect()
}

/// Runs a very short bench with `args`; its rows, the machine row first. Where every CPU is busy
/// with other things, such a run may find no time to measure anything.
fn rows(args: &[&str]) -> Vec<Value> {
    rows_of("0.005", args)
}

/// Runs a bench with phases of `seconds`; its rows, the machine row first.
fn rows_of(seconds: &str, args: &[&str]) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    qspin(&["bench", "--seconds", seconds, "--rounds", "2", "--out"])
        .arg(&path)
        .args(args)
        .assert()
        .success();
    read(&path)
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn locks_at(rows: &[Value], threads: u64) -> Vec<&str> {
    let at = rows.iter().filter(|row| row["threads"] == threads);
    at.map(|row| row["lock"].as_str().unwrap()).collect()
}

#[test]
fn a_run_has_every_contender_at_every_number_of_threads() {
    let rows = rows(&["--threads", "2"]);
    let (locks, ends) = (locks(), named(|lock| lock.origin == Origin::Baseline));
    assert!(locks.contains(&"native") && ends.contains(&"floor"));
    let with_ends = [&locks[..], &ends].concat();
    assert_eq!(locks_at(&rows, 1), with_ends, "one thread is always there");
    assert_eq!(locks_at(&rows, 2), locks);
    assert_eq!(rows.len(), 1 + with_ends.len() + locks.len());
}

#[test]
fn rows_have_the_documented_fields() {
    let rows = rows_of("0.1", &["--locks", "native,std", "--threads", "2", "--critical", "1us"]);
    let machine = &rows[0];
    assert_eq!(machine["schema"], 1);
    assert_eq!(machine["kind"], "machine");
    assert_eq!(machine["command"][0], "qspin");
    assert!(machine["cpus"].as_u64().unwrap() >= 1);
    assert!(machine["floor_ns"].as_f64().unwrap() > 0.0);
    assert_eq!(machine["order"].as_array().unwrap().len(), 2);
    for row in &rows[1..] {
        assert_eq!(row["schema"], 1);
        assert_eq!(row["kind"], "bench");
        assert_eq!(row["workload"], "lengths");
        assert_eq!((&row["critical_ns"], &row["outside_ns"]), (&1000.0.into(), &100.0.into()));
        assert_eq!((&row["lines"], &row["pin"], &row["hogs"]), (&1.into(), &"B".into(), &0.into()));
        assert_eq!((&row["rounds"], &row["partial"]), (&2.into(), &false.into()));
        let ops = &row["ops_per_s"];
        let (lo, median, hi) = (ops["lo"].as_f64(), ops["median"].as_f64(), ops["hi"].as_f64());
        assert!(lo <= median && median <= hi && hi > Some(0.0), "{ops}");
        let wait = &row["wait_ns"];
        for (less, more) in [("p50", "p99"), ("p99", "p999"), ("p999", "max")] {
            assert!(wait[less].as_f64() <= wait[more].as_f64(), "{wait}");
        }
        assert!(wait["worst_thread_p999"].as_f64() >= wait["p999"].as_f64(), "{wait}");
        assert!(wait["samples"].as_u64() > Some(0), "{wait}");
        let factor = row["fairness"]["factor"].as_f64().unwrap();
        assert!((0.5..=1.0).contains(&factor), "{factor}");
        let alone = row["threads"] == 1;
        assert_eq!(row["uncontended_ns"].is_object(), alone);
        assert_eq!(row["floor_ratio"].is_object(), alone);
    }
}

#[test]
fn a_file_name_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(std::ffi::OsStr::from_bytes(b"r\xffun"));
    qspin(&["bench", "--seconds", "0.001", "--rounds", "1", "--locks", "std", "--threads", "1"])
        .arg("--out")
        .arg(&path)
        .assert()
        .success();
    assert!(read(&path)[0]["command"].as_array().unwrap().len() > 9);
}

/// A file that takes nothing.
fn full() -> fs::File {
    fs::OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[test]
fn a_full_standard_output_is_named() {
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("qspin"))
        .arg("locks")
        .stdout(full())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("qspin: cannot write to standard output: "), "{said}");
}

#[test]
fn a_full_standard_error_changes_nothing_but_that() {
    let status = std::process::Command::new(assert_cmd::cargo::cargo_bin!("qspin"))
        .args(["bench", "--seed", "x"])
        .stderr(full())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn events_are_counted_where_a_lock_counts() {
    let rows = rows(&["--locks", "native,std", "--threads", "2"]);
    for row in &rows[1..] {
        let ours = row["lock"] == "native";
        assert_eq!(row["events_ops"].is_u64(), ours, "{row}");
    }
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let order =
        |seed| rows(&["--locks", "ours", "--threads", "1,2", "--seed", seed])[0]["order"].clone();
    let first = order("7");
    assert_eq!(first, order("7"));
    assert_ne!(first, order("8"));
    let rounds = first.as_array().unwrap();
    assert_ne!(rounds[0], rounds[1]);
    let ours = named(|lock| lock.origin == Origin::Ours && !lock.is_rw()).len();
    assert_eq!(rounds[0].as_str().unwrap().split(' ').count(), ours * 2 + 1);
}

#[test]
fn more_threads_than_cpus_end_in_bounded_time() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let threads = (4 * cpus).min(64).to_string();
    let rows = rows(&["--locks", "native,ticket,mcs,std", "--threads", &threads]);
    let at = locks_at(&rows, threads.parse().unwrap());
    assert_eq!(at, ["native", "ticket", "mcs", "std"]);
}

#[test]
fn the_table_the_card_and_the_verdict_are_shown() {
    let output = qspin(&["bench", "--seconds", "0.005", "--rounds", "2", "--seed", "3"])
        .args(["--locks", "native,std,empty", "--threads", "1,2"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["machine ", "kernel ", "seed 3", "1 thread on", "2 threads on", "ops/s", "floor"] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    assert!(text.matches("native").count() >= 3, "{text}");
    assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
}

#[test]
fn pins_and_overcommitment_are_in_the_rows() {
    let rows = rows(&["--locks", "std", "--threads", "1", "--pin", "C", "--overcommit", "2x"]);
    let cpus = rows[0]["cpus"].as_u64().unwrap();
    assert_eq!(rows[1]["pin"], "C");
    assert_eq!(rows[1]["hogs"], 2 * cpus - 1);
    assert_eq!(rows[1]["params"]["overcommit"], 2);
}

/// A matrix of one cell.
const ONE_CELL: [&str; 10] =
    ["--threads", "2", "--critical", "0", "--outside", "0", "--rounds", "2", "--seconds", "0.005"];

#[test]
fn a_matrix_judges_its_first_lock_and_writes_what_it_prints() {
    let directory = tempfile::tempdir().unwrap();
    let (out, table) = (directory.path().join("rows.jsonl"), directory.path().join("matrix.md"));
    let files = ["--out", out.to_str().unwrap(), "--table", table.to_str().unwrap()];
    let locks = ["bench", "--matrix", "quick", "--locks", "yield,std,tas"];
    let printed = qspin(&[&locks[..], &ONE_CELL, &files].concat()).assert().success();
    let printed = String::from_utf8(printed.get_output().stdout.clone()).unwrap();
    assert_eq!(fs::read_to_string(&table).unwrap().trim(), printed.trim());
    assert!(printed.contains("`yield` against the best of `std`"), "{printed}");
    assert!(printed.contains("1 cell: ") && printed.contains("0, 0; 2 threads"), "{printed}");
    assert!(printed.contains("too few for an interval"), "{printed}");
    let rows = read(&out);
    assert_eq!(locks_at(&rows[1..], 2), ["yield", "std", "tas"]);
    for row in &rows[1..] {
        assert_eq!(row["fairness_s"], 0.05);
        assert!(row["wait_ns"]["samples"].as_u64().unwrap() > 0, "{row}");
    }
}

#[test]
fn a_disturbed_matrix_arranges_its_disturbances_or_says_why_not() {
    let locks = ["bench", "--matrix", "disturbed", "--locks", "yield,std"];
    let found = rows_of("0.005", &[&locks[1..], &ONE_CELL[..6]].concat());
    let with =
        |name: &str| found[1..].iter().filter(|row| row["params"].get(name).is_some()).count();
    // Two and four hogs inside, sleepers and yielders, for two locks; two quotas where they can be made.
    assert_eq!((with("hogs_inside"), with("holder")), (4, 4));
    let skipped = found[0]["warnings"].to_string().contains("Skipped: the cells with a quota");
    assert_eq!(with("quota"), if skipped { 0 } else { 4 });
    let hogs = found[1..].iter().filter(|row| row["hogs"].as_u64().unwrap() > 0).count();
    assert_eq!(hogs, 4);
}

#[test]
fn a_matrix_of_reader_writer_locks_has_their_mixes() {
    let locks = ["--matrix", "rwlock", "--locks", "rwlock,std-rw"];
    let found = rows_of("0.005", &[&locks[..], &ONE_CELL[..6]].concat());
    let mixes: Vec<_> = found[1..]
        .iter()
        .map(|row| (&row["params"]["readers"], &row["params"]["writers"]))
        .collect();
    assert_eq!(mixes.len(), 10);
    assert!(mixes.iter().any(|(readers, writers)| **readers == 99 && **writers == 1));
}

#[test]
fn locktorture_prints_its_line() {
    let output = qspin(&["bench", "--workload", "locktorture", "--seconds", "0.01"])
        .args(["--rounds", "1", "--locks", "std", "--threads", "2"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line =
        text.lines().find(|line| line.starts_with("std@2")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("Writes:  Total: ") && line.contains("Max/Min: "), "{line}");
}

#[test]
fn kernel_lock_bench_prints_the_published_grid() {
    let output = qspin(&["bench", "--workload", "kernel-lock-bench", "--ratio", "backoff/tas"])
        .args(["--seconds", "0.002", "--rounds", "1", "--threads", "1,2"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for non_critical in [1, 32, 128] {
        let title = format!("non-critical-length: {non_critical}");
        let at = lines.iter().position(|line| **line == title).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(lines[at + 1], "       0     1     2     4     8    16    32    64   128");
        for (line, threads) in lines[at + 2..].iter().zip(["1", "2"]) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((fields[0], fields.len()), (threads, 1 + 9), "{line}");
        }
    }
    assert!(text.contains("1 round is too few to tell `backoff` and `tas` apart"), "{text}");
}

#[test]
fn readers_and_writers_have_locks_and_waits_of_their_own() {
    let rows = rows(&["--workload", "rw", "--ratio", "3:1", "--threads", "2"]);
    let all = [
        "rwlock",
        "queued-rw",
        "paravirt-rw",
        "std-rw",
        "parking_lot-rw",
        "pthread-rw",
        "pthread-writers-rw",
        "parking_lot-0.12-rw",
    ];
    assert_eq!(locks_at(&rows, 2), all);
    for row in &rows[1..] {
        assert_eq!((&row["params"]["readers"], &row["params"]["writers"]), (&3.into(), &1.into()));
        let by = &row["wait_ns_by"];
        let samples = |class: &str| by[class]["samples"].as_u64().unwrap_or(0);
        let all = row["wait_ns"]["samples"].as_u64().unwrap_or(0);
        assert_eq!(samples("read") + samples("write"), all, "{row}");
    }
}

#[test]
fn a_load_that_is_not_plain_is_measured_and_named_in_its_rows() {
    let load =
        ["--lengths", "tailed", "--lock-count", "3", "--holder", "yields/5", "--phases", "1us/0"];
    let check = |rows: &[Value]| {
        for row in &rows[1..] {
            let params = &row["params"];
            assert_eq!((&params["lengths"], &params["locks"]), (&"tailed".into(), &3.into()));
            assert_eq!((&params["holder"], &params["one_in"]), (&"yields".into(), &5.into()));
            assert_eq!(params["then_critical_ns"], 1000);
            assert_eq!(params["then_outside_ns"], 0);
            assert_eq!(params["hogs_inside"], 1);
            assert!(row["ops_per_s"]["median"].as_f64().unwrap() > 0.0, "{row}");
        }
    };
    let beside = ["--hogs-inside", "1", "--threads", "2"];
    let plain = ["--locks", "mutex,parking_lot-0.12"];
    check(&rows(&[&load[..], &beside, &plain].concat()));
    let shared = ["--workload", "rw", "--ratio", "1:1", "--locks", "rwlock,pthread-writers-rw"];
    check(&rows(&[&load[..], &beside, &shared].concat()));
}

/// A bench that has said what it is about to do, and goes on for long.
fn long_bench(args: &[&str]) -> Child {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("qspin"))
        .args(["bench", "--locks", "std", "--threads", "1,2"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("run ")));
    // What follows is not read; the pipe holds it.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn interrupt(child: &Child) {
    // SAFETY: the child is ours and not yet waited for, so its number names no other process.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
}

#[test]
fn an_interrupted_run_keeps_its_finished_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let (out, report) = (directory.path().join("run.jsonl"), directory.path().join("run.html"));
    // A machine that is busy with other tests may need longer for its first round.
    for seconds in [1, 5, 25] {
        let mut child = long_bench(&[
            "--seconds",
            "0.01",
            "--rounds",
            "10000",
            "--out",
            out.to_str().unwrap(),
            "--report",
            report.to_str().unwrap(),
        ]);
        std::thread::sleep(Duration::from_secs(seconds));
        interrupt(&child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        if out.exists() {
            break;
        }
    }
    let rows = read(&out);
    let rounds = rows[1]["rounds"].as_u64().unwrap();
    assert!((1..10_000).contains(&rounds));
    assert_eq!(rows[0]["order"].as_array().unwrap().len() as u64, rounds);
    for row in &rows[1..] {
        assert_eq!((&row["partial"], &row["rounds"]), (&true.into(), &rounds.into()));
    }
    assert!(fs::read_to_string(report).unwrap().contains("<html"));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
}

#[test]
fn an_interrupt_before_the_first_round_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run.jsonl");
    let mut child = long_bench(&["--seconds", "600", "--out", out.to_str().unwrap()]);
    let before = Instant::now();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(before.elapsed() < Duration::from_secs(60));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

/// Processes whose parent is `parent`.
fn children_of(parent: u32) -> Vec<u32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|process| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // After the name in parentheses: state, then the parent.
            let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
            after.split(' ').nth(1) == Some(&parent.to_string())
        })
        .collect()
}

/// Whether a hog, also a stopped one, is still there.
fn is_hog(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z ") && stat.contains("(qspin)"))
}

/// Kills a bench with these options once it has `count` hogs, and sees whether they die.
fn assert_hogs_die(args: &[&str], count: usize, stopped: bool) {
    let mut child = long_bench(&[&["--seconds", "600"], args].concat());
    let until = Instant::now() + Duration::from_secs(30);
    let mut hogs = Vec::new();
    while hogs.len() < count && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        hogs = children_of(child.id());
    }
    assert_eq!(hogs.len(), count);
    if stopped {
        let state = |hog| fs::read_to_string(format!("/proc/{hog}/stat")).unwrap();
        for hog in &hogs {
            while !state(*hog).contains(") T ") && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(state(*hog).contains(") T "), "a hog that was to stand still: {}", state(*hog));
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let alive = || hogs.iter().any(|hog| is_hog(*hog));
    while alive() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!alive(), "a hog outlived its bench");
}

#[test]
fn hogs_die_with_the_bench_however_it_ends() {
    assert_hogs_die(&["--hogs", "2"], 2, false);
}

#[test]
fn hogs_that_never_ran_die_too() {
    let cpus = qspin_lab::bench::affinity::allowed_cpus().len();
    // With so many threads there are no hogs; with this seed it is the first cell that runs:
    // one lock at 1, 2 and many threads, and the empty lock at 1.
    let many = (4 * cpus).to_string();
    let seed = (0..).find(|&seed| orders(seed, 4, 1)[0][0] == 3).unwrap().to_string();
    let args = ["--threads", &many, "--overcommit", "2x", "--seed", &seed];
    assert_hogs_die(&args, 2 * cpus - 1, true);
}

#[test]
fn locks_lists_every_lock() {
    let output = qspin(&["locks"]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for lock in named(|_| true) {
        assert!(text.contains(&format!(" {lock} ")), "{lock} is missing in:\n{text}");
    }
    for heading in ["bytes", "fairness", "waits how", "NUMA-aware", "for what"] {
        assert!(text.contains(heading), "{text}");
    }
}

/// A run beside an earlier one: its rows by name, and what is refused.
#[test]
fn a_baseline_is_compared_row_by_row() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.jsonl");
    let old = old.to_str().unwrap();
    let load = [
        "bench",
        "--locks",
        "mutex,std",
        "--threads",
        "1,2",
        "--rounds",
        "2",
        "--seconds",
        "0.005",
    ];
    qspin(&load).args(["--out", old]).assert().success();
    let output = qspin(&load).args(["--baseline", old]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let compared = text.split("\nNow, and in ").nth(1).unwrap_or_else(|| panic!("{text}"));
    assert!(compared.starts_with(old), "{compared}");
    for part in
        ["now / then", "1 thread on", "2 threads on", "mutex", "std", "too few rounds to tell (?)"]
    {
        assert!(compared.contains(part), "`{part}` is missing: {compared}");
    }
    // Nothing of it is a row.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
