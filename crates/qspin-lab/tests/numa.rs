//! The NUMA-aware locks in `qspin bench`, on topologies that are made up: what is counted, shown and
//! written, never how fast.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use qspin::events::Event;
use qspin_lab::bench::steps::{Series, steps};
use serde_json::{Value, json};

/// A bench with `args`, in `directory`, as if the machine were `topology`.
fn bench_in(directory: &Path, topology: Option<&str>, args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("qspin").unwrap();
    command.current_dir(directory).arg("bench").args(args).timeout(Duration::from_secs(300));
    match topology {
        Some(topology) => command.env("QSPIN_TOPOLOGY", topology),
        None => command.env_remove("QSPIN_TOPOLOGY"),
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What it said on both outputs, its machine row, and its other rows.
fn bench(topology: Option<&str>, args: &[&str]) -> ([String; 2], Value, Vec<Value>) {
    let directory = tempfile::tempdir().unwrap();
    let output =
        bench_in(directory.path(), topology, &[args, &["--out", "run.jsonl"][..]].concat());
    let text = fs::read_to_string(directory.path().join("run.jsonl")).unwrap();
    let mut rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let machine = rows.remove(0);
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (said, machine, rows)
}

/// A bench in which threads meet, and wait in a queue: the lock is nearly always held.
const MEETING: [&str; 8] =
    ["--rounds", "1", "--seconds", "0.3", "--critical", "20us", "--threads", "6"];

fn count(row: &Value, event: Event) -> u64 {
    row["events"][event.name()].as_u64().unwrap_or(0)
}

fn cells<'a>(said: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let cells = said.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    cells.into_iter().find(|cells| cells[0] == name && cells.len() > 1)
}

#[test]
fn how_local_hand_overs_are_is_in_the_tables_and_rows_of_the_locks_that_count_it() {
    let args = ["--quick", "--locks", "cna,cna-paravirt,native", "--stats"];
    let ([said, warned], machine, rows) = bench(Some("2x1x1"), &[&args[..], &MEETING].concat());
    assert!(said.contains("\ntopology  2x1x1, as QSPIN_TOPOLOGY says, not this machine's\n"));
    assert!(warned.contains("warning: The topology is made up"), "{warned}");
    assert_eq!(machine["topology"], "2x1x1");
    assert!(machine["warnings"][0].as_str().unwrap().contains("made up"));
    let local = cells(&said, "hand-over locality, share");
    assert!(local.is_some(), "{said}");
    let has_column = said.lines().any(|line| line.split('|').any(|cell| cell.trim() == "local"));
    assert!(has_column, "{said}");
    for row in &rows {
        let (near, far) = (count(row, Event::CnaLocalHandoff), count(row, Event::CnaRemoteHandoff));
        if near + far == 0 {
            assert!(row["locality"].is_null(), "{row}");
        } else {
            let share = row["locality"].as_f64().unwrap();
            assert!((share - near as f64 / (near + far) as f64).abs() < 1e-12, "{row}");
            assert!(row["lock"] != "native", "{row}");
        }
    }
    // Six threads that are hardly ever outside: behind the head there is a waiter.
    let cna = rows.iter().find(|row| row["lock"] == "cna" && row["threads"] == 6).unwrap();
    assert!(cna["locality"].is_f64(), "{cna}");
}

#[test]
fn without_stats_the_table_has_no_column_of_what_is_counted() {
    let ([said, _], _, rows) = bench(Some("2x1x1"), &[&["--locks", "cna"][..], &MEETING].concat());
    assert!(!said.contains("local"), "{said}");
    assert!(rows.iter().all(|row| row["events_ops"].is_u64()));
}

#[test]
fn a_machine_that_is_not_made_up_says_nothing_of_it() {
    let args = ["--locks", "cna", "--threads", "1", "--rounds", "1", "--seconds", "0.002"];
    for topology in [None, Some("")] {
        let ([said, warned], machine, rows) = bench(topology, &args);
        assert!(!said.contains("QSPIN_TOPOLOGY") && !warned.contains("made up"), "{said}{warned}");
        assert!(machine["topology"].is_null());
        assert!(rows[0]["locality"].is_null(), "one thread hands nothing over");
    }
}

#[test]
fn a_single_node_has_local_hand_overs_only() {
    let (_, _, rows) =
        bench(Some("1x4x1"), &[&["--locks", "cna", "--stats"][..], &MEETING].concat());
    let row = rows.iter().find(|row| row["threads"] == 6).unwrap();
    assert_eq!(count(row, Event::CnaRemoteHandoff) + count(row, Event::CnaSplice), 0, "{row}");
    assert_eq!(row["locality"], 1.0, "{row}");
}

#[test]
fn the_threshold_is_in_the_rows_of_the_locks_that_read_it() {
    let args = ["--locks", "native,cna,cna-paravirt", "--threads", "2", "--rounds", "1"];
    let args = [&args[..], &["--seconds", "0.002", "--numa-threshold", "10ms"]].concat();
    let ([said, _], _, rows) = bench(None, &args);
    assert!(said.contains("tuned     numa_threshold_ns=10000000"), "{said}");
    for row in rows {
        let tuned = json!({"numa_threshold_ns": 10_000_000});
        let expected = if row["lock"] == "native" { json!({}) } else { tuned };
        assert_eq!(row["tune"], expected, "{row}");
    }
    // The default is no tuning.
    let args = ["--locks", "cna", "--threads", "1", "--rounds", "1", "--seconds", "0.002"];
    let (_, _, rows) = bench(None, &[&args[..], &["--numa-threshold", "1ms"]].concat());
    assert_eq!(rows[0]["tune"], json!({}));
}

#[test]
fn the_steps_of_the_numa_aware_lock_are_a_row_each() {
    let args = ["--steps=numa", "--threads", "2,4", "--rounds", "1", "--seconds", "0.01"];
    let ([said, _], machine, rows) = bench(Some("2x1x1"), &args);
    let steps = steps(Series::Numa);
    for threads in [2, 4] {
        let at: Vec<&Value> = rows.iter().filter(|row| row["threads"] == threads).collect();
        let of: Vec<(&str, &Value)> =
            at.iter().map(|row| (row["lock"].as_str().unwrap(), &row["params"])).collect();
        assert_eq!(of[..2], [("std", &json!({})), ("paravirt", &json!({}))]);
        assert_eq!(of.len(), 2 + steps.len());
        for (found, step) in of[2..].iter().zip(&steps) {
            assert_eq!(*found, (step.lock, &json!({"step": step.name})));
        }
        let tune = |name: &str| {
            let row = at.iter().find(|row| row["params"]["step"] == name);
            row.unwrap()["tune"].clone()
        };
        let queues = json!({"numa_threshold_ns": 1 << 30, "numa_skip_bits": 0});
        assert_eq!(tune("3-two-queues"), queues);
        let flush = json!({"numa_threshold_ns": 10_000_000, "numa_skip_bits": 0});
        assert_eq!(tune("4-flush-10ms"), flush);
        assert_eq!(tune("4b-flush-1ms"), json!({"numa_skip_bits": 0}));
        for default in ["0-native", "6-shuffle-reduction", "7-halting"] {
            assert_eq!(tune(default), json!({}), "{default}");
        }
    }
    for step in &steps {
        assert!(cells(&said, step.label).is_some(), "{} is missing in:\n{said}", step.label);
    }
    assert!(said.contains("Patches 1, 2 and 5 of the series have no switch"), "{said}");
    assert!(said.contains("The topology is made up: the order moves waiters"), "{said}");
    assert!(said.contains("1 round is too few"), "{said}");
    assert!(machine["order"][0].as_str().unwrap().contains("cna:3-two-queues@4"));
}

#[test]
fn steps_where_all_cpus_are_equally_near_say_that_no_waiter_is_moved() {
    let args = ["--steps=numa", "--threads", "2", "--rounds", "1", "--seconds", "0.002"];
    let ([said, _], _, _) = bench(Some("1x2x1"), &args);
    assert!(said.contains("All CPUs are equally near here"), "{said}");
}

#[test]
fn every_report_that_shows_figures_shows_how_local_hand_overs_were_and_what_was_made_up() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--locks", "cna,std", "--out", "run.jsonl", "--report", "run.html"];
    bench_in(directory.path(), Some("2x1x1"), &[&args[..], &MEETING].concat());
    let report = |format: &str| {
        let args = ["report", "run.jsonl", "--format", format, "--out", "-"];
        let mut command = Command::cargo_bin("qspin").unwrap();
        let output = command.current_dir(&directory).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().replace('\\', "")
    };
    let written = fs::read_to_string(directory.path().join("run.html")).unwrap();
    let made_up = "2x1x1, as QSPIN_TOPOLOGY says, not this machine";
    for page in [written, report("html"), report("md")] {
        assert!(page.contains("local hand-overs"), "{page}");
        assert!(page.contains(made_up), "{page}");
        assert!(page.contains("The topology is made up"), "{page}");
    }
    let csv = report("csv");
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert!(header.contains(&"locality"), "{header:?}");
    assert!(header.contains(&"topology"), "{header:?}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",2x1x1,")), "{csv}");
}

#[test]
fn torture_on_nodes_that_are_made_up_says_so_and_the_locks_hold() {
    let args = ["--workload", "torture", "--locks", "cna,cna-paravirt", "--seconds", "1"];
    let directory = tempfile::tempdir().unwrap();
    let args = [&args[..], &["--threads", "6"]].concat();
    let output = bench_in(directory.path(), Some("3x2x1"), &args);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("\ntopology  3x2x1, as QSPIN_TOPOLOGY says, not this machine's\n"));
    for lock in ["cna", "cna-paravirt"] {
        let line = cells(&said, lock).unwrap_or_else(|| panic!("{said}"));
        assert_eq!((line[1], line.last()), ("6", Some(&"held")), "{said}");
    }
}

#[test]
fn a_share_that_is_none_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--locks", "cna", "--threads", "1", "--rounds", "1", "--seconds", "0.002"];
    bench_in(directory.path(), None, &[&args[..], &["--out", "run.jsonl"]].concat());
    let path = directory.path().join("run.jsonl");
    let rows = fs::read_to_string(&path).unwrap();
    fs::write(&path, rows.replace("\"locality\":null", "\"locality\":1.5")).unwrap();
    let mut command = Command::cargo_bin("qspin").unwrap();
    let output = command.current_dir(&directory).args(["report", "run.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("locality is 1.5, and must be a share between 0 and 1"), "{said}");
}
