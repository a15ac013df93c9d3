//! `qspin simulate` and `qspin reproduce`: what they say is SIMULATED, the same each time, and what is
//! wrong with the input is one line.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

const SCENARIO: &str = r#"
about = "two sockets, for a test"
locks = ["native", "cna"]
cpus = [2, 4]
duration_ns = 2e5
start_ns = 1e3
placement = "spread"
machine = "oracle-x5-4"
[workload.locktorture]
inside_ns = 20
outside_ns = 40
"#;

fn qspin(directory: &Path, args: &[&str]) -> std::process::Output {
    Command::cargo_bin("qspin").unwrap().args(args).current_dir(directory).output().unwrap()
}

fn at_work(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("it.toml"), text).unwrap();
    directory
}

#[test]
fn what_is_shown_is_simulated_and_the_same_each_time() {
    let directory = at_work(SCENARIO);
    let show = || {
        let output = qspin(directory.path(), &["simulate", "it.toml", "--seeds", "3"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = show();
    assert!(shown.starts_with("SIMULATED"), "{shown}");
    assert!(shown.contains("native") && shown.contains("seeds 1 to 3"), "{shown}");
    assert_eq!(shown, show());
}

#[test]
fn rows_are_read_by_the_report_which_says_what_they_are() {
    let directory = at_work(SCENARIO);
    let output = qspin(directory.path(), &["simulate", "it.toml", "--out", "rows.jsonl", "--json"]);
    assert!(output.status.success());
    let rows = fs::read_to_string(directory.path().join("rows.jsonl")).unwrap();
    assert_eq!(rows, String::from_utf8(output.stdout).unwrap());
    assert_eq!(rows.lines().count(), 5, "a machine and four cells");
    assert!(rows.lines().next().unwrap().contains("SIMULATED Oracle X5-4"));
    let report = qspin(directory.path(), &["report", "rows.jsonl", "--format", "md"]);
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("SIMULATED"), "{report}");
}

#[test]
fn a_timeline_is_json_and_names_owners_and_waiters() {
    let directory = at_work(SCENARIO);
    let args = ["simulate", "it.toml", "--locks", "native", "--threads", "4", "--trace", "t.json"];
    assert!(qspin(directory.path(), &args).status.success());
    let text = fs::read_to_string(directory.path().join("t.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |name: &str| events.iter().filter(|it| it["name"] == name).collect::<Vec<_>>();
    let (holds, waits) = (of("holds lock 0"), of("waits for lock 0"));
    assert!(holds.len() > 50 && waits.len() > 50, "{} {}", holds.len(), waits.len());
    // No strand holds a lock that another one holds.
    let mut spans: Vec<(f64, f64)> =
        holds.iter().map(|it| (it["ts"].as_f64().unwrap(), it["dur"].as_f64().unwrap())).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 1e-6));
    assert!(text.contains("SIMULATED"));
}

#[test]
fn regret_on_drawn_machines_is_the_same_each_time_and_a_cell_can_be_had_alone() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &[&'static str]| {
        let args = [&["simulate", "--seed", "4", "--locks", "native,backoff,yield"], more].concat();
        let output = qspin(directory.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = run(&["--random", "5", "--out", "rows.jsonl"]);
    assert!(shown.starts_with("SIMULATED") && shown.contains("seed 4"), "{shown}");
    assert!(shown.contains("Quiet: 4 cells") && shown.contains("Disturbed: 1 cell"), "{shown}");
    assert!(shown.contains("The worst cells of `native`"), "{shown}");
    assert!(!shown.contains("CPU time"), "what was not simulated is not shown: {shown}");
    assert_eq!(run(&["--random", "5"]), shown);
    let rows = fs::read_to_string(directory.path().join("rows.jsonl")).unwrap();
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(rows.len(), 15);
    let alone = run(&["--random", "1", "--cell", "3", "--json"]);
    let of_third: Vec<&str> =
        rows.iter().copied().filter(|row| row.contains(r#""cell":3"#)).collect();
    assert_eq!(alone.lines().skip(1).collect::<Vec<_>>(), of_third);
}

#[test]
fn wrong_input_is_one_line_and_leaves_nothing() {
    let wrong = |text: &str, args: &[&str], said: &[&str]| {
        let directory = at_work(text);
        let output = qspin(directory.path(), args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        for part in said {
            assert!(stderr.contains(part), "{args:?}: `{part}` is missing in: {stderr}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "{args:?}");
        assert!(output.stdout.is_empty());
    };
    let simulate = |more: &[&'static str]| [&["simulate", "it.toml"], more].concat();
    wrong(SCENARIO, &["simulate", "gone.toml"], &["gone.toml", "scenarios"]);
    wrong(SCENARIO, &simulate(&["--locks", "nativ"]), &["`nativ`", "cna-paravirt"]);
    wrong(SCENARIO, &simulate(&["--threads", "0"]), &["1 to 8192"]);
    wrong(SCENARIO, &simulate(&["--threads", "145"]), &["[hypervisor]"]);
    wrong(SCENARIO, &simulate(&["--locks", "paravirt"]), &["[hypervisor]"]);
    wrong(SCENARIO, &simulate(&["--trace", "t.json"]), &["these are 4"]);
    wrong(SCENARIO, &simulate(&["--random", "5"]), &["--random"]);
    wrong(SCENARIO, &["simulate", "--random", "0"], &["1..=100000"]);
    wrong(SCENARIO, &["simulate", "--random", "5", "--locks", "mutex"], &["at least two"]);
    wrong(SCENARIO, &["simulate", "--cell", "5"], &["--random"]);
    wrong(&SCENARIO.replace("\"native\"", "\"nativ\""), &simulate(&[]), &["line 3", "native"]);
    wrong(&SCENARIO.replace("x5-4", "x5-5"), &simulate(&[]), &["line 8", "oracle-x5-8"]);
    wrong(&SCENARIO.replace("[2, 4]", "[]"), &simulate(&[]), &["at least one"]);
    wrong(SCENARIO, &["reproduce", "--json"], &["--all", "002-locktorture"]);
    wrong(SCENARIO, &["reproduce", "002-machines"], &["002-locktorture"]);
    wrong(SCENARIO, &["reproduce", "001-A", "--constants", "it.toml"], &["it.toml", "calibrate"]);
    wrong(SCENARIO, &["calibrate", "x5"], &["x5-4"]);
}

#[test]
fn a_lock_that_stands_still_is_said_with_its_owner_and_waiters() {
    let text = SCENARIO.replace("start_ns", "watchdog_ns = 1\nstart_ns");
    let output = qspin(at_work(&text).path(), &["simulate", "it.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("SIMULATED") && stderr.contains("nothing moves any more"), "{stderr}");
}

#[test]
fn reproduce_alone_lists_the_tables() {
    let output = qspin(at_work("").path(), &["reproduce"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list = String::from_utf8(output.stdout).unwrap();
    for table in ["000-haswell", "002-locktorture", "004-dbench", "002-tpcc"] {
        assert!(list.contains(table), "{table}: {list}");
    }
    assert!(output.stderr.is_empty());
}

#[test]
fn what_is_stated_in_words_is_judged_too() {
    let output = qspin(at_work("").path(), &["reproduce", "004-single", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let table = &report["tables"][0];
    let cell = &table["cells"][0];
    assert_eq!((&cell["claim"], &cell["published"]), (&"no difference".into(), &1.0.into()));
    assert!(cell["agrees"].is_boolean() && cell["simulated"].is_number());
    assert_eq!(table["claims"], 1);
}

#[test]
fn reproduced_cells_stand_beside_the_published_ones() {
    let directory = at_work("");
    let args = ["reproduce", "000-latencies", "--json", "--report", "page.html"];
    let output = qspin(directory.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let table = &report["tables"][0];
    assert_eq!((&report["schema"], &table["table"]), (&1.into(), &"000-latencies".into()));
    let cells = table["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    assert_eq!(cells[0]["published"], 89.8);
    for cell in cells {
        // What is put into the simulation comes back: no result, so no error.
        assert_eq!(cell["role"], "given");
        assert!(cell["simulated"].is_number() && cell["error"].is_null());
    }
    for field in ["ratio_mae", "value_mae", "null_mae", "rank_correlation", "max_cell_error"] {
        assert!(table.get(field).is_some(), "{field}");
    }
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("SIMULATED") && page.contains("000-latencies"));
}
