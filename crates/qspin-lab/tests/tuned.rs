//! Tunables, series and counters of `qspin bench`: what is shown and written, never how fast.

use std::fs;
use std::time::Duration;

use assert_cmd::Command;
use qspin::events::Event;
use qspin::tuning::{KICK_AHEAD_MAX, Tuning, kick_ahead_level};
use qspin_lab::bench::steps::{Series, steps};
use serde_json::{Value, json};

/// Runs a very short bench with `args`: what it said, its rows without the machine's, and that.
fn bench(args: &[&str]) -> (String, Vec<Value>, Value) {
    bench_of("0.002", args)
}

/// A bench in which threads surely meet: the lock is nearly always held.
const MEETING: [&str; 2] = ["--critical", "100us"];

/// Runs a bench with phases of `seconds`.
fn bench_of(seconds: &str, args: &[&str]) -> (String, Vec<Value>, Value) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    let output = Command::cargo_bin("qspin")
        .unwrap()
        .args(["bench", "--seconds", seconds, "--rounds", "1", "--out"])
        .arg(&path)
        .args(args)
        .timeout(Duration::from_secs(300))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&path).unwrap();
    let mut rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let machine = rows.remove(0);
    (said, rows, machine)
}

/// The first cells of the lines of the table whose heading begins with `title`.
fn first_cells(said: &str, title: &str) -> Vec<String> {
    let cell = |line: &str| line.split('|').next().unwrap_or("").trim().to_owned();
    let mut lines = said.lines().skip_while(|line| cell(line) != title || !line.contains('|'));
    assert!(lines.next().is_some(), "no table of {title} in:\n{said}");
    let lines = lines.skip_while(|line| !line.starts_with(['-', '=', '+'])).skip(1);
    lines.take_while(|line| line.contains('|')).map(cell).collect()
}

#[test]
fn what_was_tuned_is_in_the_rows_of_the_locks_that_read_it_and_in_the_table() {
    let (said, rows, machine) = bench(&[
        "--locks",
        "native,paravirt-queued,paravirt",
        "--threads",
        "1",
        "--tune",
        "kick_ahead=2,defer=conditions",
        "--tune",
        "pending=off",
    ]);
    let tune = |lock: &str| rows.iter().find(|row| row["lock"] == lock).unwrap()["tune"].clone();
    assert_eq!(tune("native"), json!({}));
    assert_eq!(tune("paravirt"), json!({"kick_ahead": 2}));
    let all = json!({"defer": "conditions", "kick_ahead": 2, "pending": "off"});
    assert_eq!(tune("paravirt-queued"), all);
    assert!(said.contains("tuned     kick_ahead=2 defer=conditions pending=off"), "{said}");
    assert!(said.contains("paravirt-queued [defer=conditions kick_ahead=2 pending=off]"), "{said}");
    assert!(said.contains(" paravirt [kick_ahead=2] "), "{said}");
    let order = machine["order"][0].as_str().unwrap();
    assert!(order.contains("paravirt:kick_ahead=2@1"), "{order}");
}

#[test]
fn tunables_of_the_environment_do_not_count_and_the_run_says_so() {
    let short = ["bench", "--seconds", "0.002", "--rounds", "1", "--locks", "yield,std"];
    let one = [&short[..], &["--threads", "1"]].concat();
    let matrix = [&short[..], &["--matrix", "quick", "--threads", "2"]].concat();
    for (args, value, told) in [
        (&one, Some("yield_polls=1"), 1),
        (&one, Some(""), 0),
        (&one, None, 0),
        (&matrix, Some("yield_polls=1"), 1),
    ] {
        let mut command = Command::cargo_bin("qspin").unwrap();
        match value {
            Some(value) => command.env("QSPIN_TUNE", value),
            None => command.env_remove("QSPIN_TUNE"),
        };
        let output = command.args(args).timeout(Duration::from_secs(300)).output().unwrap();
        let (said, warned) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{warned}");
        assert!(!String::from_utf8_lossy(said).contains("yield_polls"), "{args:?}");
        assert_eq!(warned.matches("QSPIN_TUNE does not count here").count(), told, "{warned}");
    }
}

#[test]
fn the_queue_of_the_reader_writer_lock_is_tuned_like_the_native_lock() {
    let args = ["--workload", "rw", "--locks", "queued-rw", "--threads", "2"];
    let tunes = ["--tune", "owner_polls=0,owner_pauses=9,pending_polls=1"];
    let (_, rows, _) = bench(&[&args[..], &tunes].concat());
    assert!(!rows.is_empty());
    for row in rows {
        let all = json!({"owner_polls": 0, "owner_pauses": 9, "pending_polls": 1});
        assert_eq!((&row["lock"], &row["tune"]), (&json!("queued-rw"), &all));
    }
}

#[test]
fn a_report_names_what_was_tuned() {
    let directory = tempfile::tempdir().unwrap();
    let qspin = |args: &[&str]| {
        let mut command = Command::cargo_bin("qspin").unwrap();
        command.current_dir(&directory).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let short = ["--seconds", "0.002", "--rounds", "1", "--threads", "2", "--out", "run.jsonl"];
    let tuned = ["bench", "--locks", "paravirt", "--tune", "kick_ahead=2"];
    qspin(&[&tuned[..], &short].concat());
    for format in ["md", "csv", "html"] {
        let made = qspin(&["report", "run.jsonl", "--format", format, "--out", "-"]);
        let made = made.replace('\\', "");
        assert!(made.contains("kick_ahead=2"), "{format}: {made}");
    }
    qspin(&[&["bench", "--steps"][..], &short].concat());
    let made = qspin(&["report", "run.jsonl", "--format", "md"]);
    let names: Vec<&str> = made.lines().filter_map(|line| line.split('|').nth(1)).collect();
    for step in steps(Series::Paravirt) {
        assert!(names.iter().any(|name| name.trim() == step.name), "{made}");
    }
    // One chart: a step is a contender, not a setting.
    assert_eq!(made.matches("\n## ").count(), 1, "{made}");
}

#[test]
fn steps_are_a_row_a_step_in_both_orders() {
    for (option, series) in [("--steps", Series::Paravirt), ("--steps=reviewed", Series::Reviewed)]
    {
        let (said, rows, machine) = bench(&[option, "--threads", "2,8"]);
        let steps = steps(series);
        let labels: Vec<&str> =
            ["native", "std"].into_iter().chain(steps.iter().map(|step| step.label)).collect();
        assert_eq!(first_cells(&said, "step"), labels, "{said}");
        for threads in [2, 8] {
            let at: Vec<&Value> = rows.iter().filter(|row| row["threads"] == threads).collect();
            let of: Vec<(&str, &Value)> =
                at.iter().map(|row| (row["lock"].as_str().unwrap(), &row["params"])).collect();
            assert_eq!(of[..2], [("native", &json!({})), ("std", &json!({}))]);
            for (found, step) in of[2..].iter().zip(&steps) {
                assert_eq!(*found, (step.lock, &json!({"step": step.name})));
            }
            assert_eq!(of.len(), 2 + steps.len());
            let tune = |name: &str| {
                let row = at.iter().find(|row| row["params"]["step"] == name);
                row.unwrap()["tune"].clone()
            };
            let level = kick_ahead_level(threads);
            let ahead = tune("4-kick-ahead");
            assert_eq!(ahead["kick_ahead"].as_u64().unwrap_or(0), u64::from(level));
            assert!(ahead["statistics"].is_null());
            assert_eq!(tune("3-statistics")["statistics"], "on");
            assert_eq!(tune("0-halt")["pending"], "off");
            assert_eq!(tune("10-culled"), json!({}));
        }
        assert_eq!(rows.len(), 2 * (2 + steps.len()), "one thread only on demand");
        assert!(said.contains("0 with 2 threads and 2 with 8 threads"), "{said}");
        assert!(said.contains("1 round is too few to tell the lines apart"), "{said}");
        assert!(!said.contains("NaN") && !said.contains("inf "), "{said}");
        assert!(machine["order"][0].as_str().unwrap().contains("paravirt-queued:0-halt@8"));
    }
}

#[test]
fn kick_ahead_levels_are_a_row_each() {
    let (said, rows, _) = bench(&["--kick-ahead", "0..5", "--threads", "2"]);
    let levels: Vec<String> =
        (0..=KICK_AHEAD_MAX).map(|level| format!("paravirt-queued kick_ahead={level}")).collect();
    assert_eq!(first_cells(&said, "kick-ahead")[2..], levels, "{said}");
    let tunes: Vec<&Value> = rows
        .iter()
        .filter(|row| row["lock"] == "paravirt-queued")
        .map(|row| &row["tune"])
        .collect();
    // 0 is the default, so nothing is away from it.
    let expected: Vec<Value> = (0..=KICK_AHEAD_MAX)
        .map(|level| if level == 0 { json!({}) } else { json!({"kick_ahead": level}) })
        .collect();
    assert_eq!(tunes, expected.iter().collect::<Vec<_>>());
    let args = ["--kick-ahead", "4,1", "--locks", "paravirt", "--tune", "head_polls=9"];
    let (said, rows, _) = bench(&[&args[..], &["--threads", "2"]].concat());
    assert_eq!(
        first_cells(&said, "kick-ahead"),
        ["native", "std", "paravirt kick_ahead=1", "paravirt kick_ahead=4"]
    );
    assert_eq!(rows[3]["tune"], json!({"head_polls": 9, "kick_ahead": 4}));
}

#[test]
fn stats_show_every_counter_under_both_names_and_the_averages() {
    let args = ["--stats", "--locks", "paravirt-queued,std", "--threads", "4"];
    let (said, rows, _) = bench_of("0.2", &[&args[..], &MEETING].concat());
    let cells: Vec<Vec<&str>> =
        said.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
    for event in Event::ALL {
        let line = cells.iter().find(|cells| cells[0] == event.name());
        let line = line.unwrap_or_else(|| panic!("{} is missing in:\n{said}", event.name()));
        assert_eq!(line[1], event.alias().unwrap_or(""), "{line:?}");
        assert_ne!(line[2], "", "{line:?}");
    }
    for average in ["kick latency, ns", "wake latency, ns", "hops a hash"] {
        assert!(cells.iter().any(|cells| cells[0] == average), "{average} is missing in:\n{said}");
    }
    for row in &rows {
        assert_eq!(row["events_ops"].is_u64(), row["lock"] == "paravirt-queued", "{row}");
    }
}

#[test]
fn a_lock_without_a_pending_waiter_counts_none() {
    let args = ["--locks", "paravirt-queued", "--threads", "2,4", "--stats"];
    let off = ["--tune", "pending=off"];
    let (_, rows, _) = bench_of("0.1", &[&args[..], &MEETING, &off].concat());
    for row in rows {
        assert!(row["events_ops"].as_u64() > Some(0), "{row}");
        assert!(row["events"]["pending_lock_count"].is_null(), "{row}");
    }
}

#[test]
fn locks_lists_every_tunable() {
    let output =
        Command::cargo_bin("qspin").unwrap().args(["locks", "--tunables"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for tunable in Tuning::ALL {
        assert!(text.contains(&format!(" {} ", tunable.name)), "{} in:\n{text}", tunable.name);
    }
    let of = |name: &str| text.split(&format!(" {name} ")).nth(1).unwrap_or("");
    assert!(of("pending_polls").lines().take(3).any(|line| line.contains("queued-rw")), "{text}");
    assert!(text.contains("never, conditions or always") && text.contains("0 to 5"), "{text}");
}

#[test]
fn remedies_are_a_row_each_and_those_that_are_not_to_be_had_say_why() {
    let remedies = ["--remedy", "c,none,a,b", "--threads", "4", "--pin", "C"];
    let (said, rows, machine) = bench(&remedies);
    let warnings = machine["warnings"].to_string();
    let mut expected = Vec::new();
    for lock in ["ticket", "simple", "yield", "paravirt"] {
        for remedy in ["none", "a", "b", "c"] {
            let is_left_out = warnings.contains(&format!("{lock} {remedy} is left out: "));
            if !is_left_out {
                expected.push(format!("{lock} {remedy}"));
            }
        }
    }
    assert_eq!(first_cells(&said, "remedy"), expected, "{said}");
    for (row, name) in rows.iter().zip(&expected) {
        let named = format!(
            "{} {}",
            row["lock"].as_str().unwrap(),
            row["params"]["remedy"].as_str().unwrap()
        );
        assert_eq!((&named, &row["pin"]), (name, &json!("C")));
    }
    assert_eq!(rows.len(), expected.len());
    let tune = |name: &str| {
        let at = expected.iter().position(|other| other == name);
        at.map(|at| rows[at]["tune"].clone())
    };
    // What a lock does not have is in the lock, not in the machine.
    assert_eq!((tune("ticket a"), tune("ticket c"), tune("yield c")), (None, None, None));
    assert_eq!(tune("simple none"), Some(json!({"simple_polls": 1 << 24})));
    assert_eq!(tune("simple a"), Some(json!({})));
    assert_eq!(tune("paravirt a"), Some(json!({"queue_yields": 1})));
    if let Err(why) = qspin::platform::holder::available() {
        assert!(warnings.contains(&format!("paravirt b is left out: {why}")), "{warnings}");
    }
    assert!(machine["order"][0].as_str().unwrap().contains("paravirt:none@4"), "{machine}");
}

#[test]
fn every_tunable_for_programs_has_an_experiment_and_every_tunable_a_place_on_the_page() {
    let experiments = include_str!("../../qspin/examples/tunables.rs");
    for tunable in Tuning::SUPPORTED {
        assert!(experiments.contains(&format!(" {}: ", tunable.name)), "{}", tunable.name);
    }
    let page = include_str!("../../../docs/tuning.md");
    for tunable in Tuning::ALL {
        assert!(page.contains(&format!("`{}`", tunable.name)), "{}", tunable.name);
    }
}
