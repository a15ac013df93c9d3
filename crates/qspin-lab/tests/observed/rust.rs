//! A Rust program whose locks are those of the crate, with its feature `profile`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::interposed::{qspin, run, said};

/// The example of the crate, built with the feature.
fn profiled() -> PathBuf {
    let profile = qspin().parent().unwrap();
    let name = profile.file_name().unwrap().to_str().unwrap();
    let name = if name == "debug" { "dev" } else { name };
    // Beside the others, so that no other build of the crate is replaced.
    let target = profile.parent().unwrap().join("profiled");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "qspin", "--features", "profile"])
        .args(["--example", "profiled", "--profile", name, "--config"])
        .args([&format!("profile.{name}.debug=1"), "--target-dir"])
        .arg(&target)
        .status()
        .unwrap();
    assert!(built.success());
    target.join(profile.file_name().unwrap()).join("examples/profiled")
}

fn lock<'a>(line: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let locks = line["locks"].as_array().unwrap();
    let found = locks.iter().find(|lock| lock["name"].as_str().unwrap().contains(name));
    found.unwrap_or_else(|| panic!("no {name}: {line}"))
}

#[test]
fn its_locks_are_counted_with_names_lines_and_blame() {
    let program = profiled();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("locks.json");
    let file_name = file.to_str().unwrap();
    let program_name = program.to_str().unwrap();
    let output = run(&["--stats=json", "--stats-out", file_name, "--", program_name, "20"]);
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(&file).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let processes = value["processes"].as_array().unwrap();
    let own = processes.iter().find(|process| process["served_by"] == "crate qspin");
    let own = own.unwrap_or_else(|| panic!("{text}"));
    let hot = lock(own, "HOT");
    assert_eq!(hot["acquisitions"], 41, "each round two, and the last look: {hot}");
    assert!(hot["contended"].as_u64().unwrap() > 0, "{hot}");
    assert!(hot["where"].as_str().unwrap().contains("profiled::waits (profiled.rs:3"), "{hot}");
    assert!(hot["blamed"].as_str().unwrap().contains("profiled::keeps (profiled.rs:2"), "{hot}");
    assert_eq!(lock(own, "TABLE")["acquisitions"], 40, "{own}");

    let folded = run(&["--stats=folded", "--", program_name, "20"]);
    let text = said(&folded);
    assert!(text.lines().any(|line| line.starts_with("keeps waiting;") && line.contains("keeps")));
    let table = said(&run(&["--stats", "--", program_name, "5"]));
    assert!(table.contains("locks of the crate qspin: 2 locks"), "{table}");
}

#[test]
fn it_is_looked_at_while_it_runs_and_counts_only_then() {
    let program = profiled();
    let mut ran = Command::new(program).arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(ran.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    let stat = |more: &[&str]| {
        Command::new(qspin()).args(["stat", first.trim()]).args(more).output().unwrap()
    };
    let seen = stat(&["--json"]);
    let refused = stat(&["--deadlocks"]);
    ran.kill().unwrap();
    ran.wait().unwrap();
    assert_eq!(seen.status.code(), Some(0), "{}", said(&seen));
    assert!(said(&seen).contains("counts as long as this looks at it"), "{}", said(&seen));
    let line: serde_json::Value = serde_json::from_slice(&seen.stdout).unwrap();
    let hot = lock(&line, "HOT");
    let many = hot["acquisitions"].as_u64().unwrap();
    assert!(many > 0 && many < 1200, "a second of it, and not all: {hot}");
    assert!(hot["where"].as_str().unwrap().contains("profiled::waits"), "{hot}");
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("feature `profile`"), "{}", said(&refused));
    assert_eq!(said(&refused).lines().count(), 1);
}

#[test]
fn without_being_asked_it_counts_nothing() {
    let output = Command::new(profiled()).arg("3").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.ends_with("6 3\n"), "{text}");
    assert!(output.stderr.is_empty());
}
