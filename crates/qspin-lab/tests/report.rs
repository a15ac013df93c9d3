//! `qspin report` from outside: formats, where the output goes, and what is refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use qspin_lab::report::family::is_reference;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn report(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qspin"))
        .current_dir(directory)
        .arg("report")
        .args(arguments)
        .output()
        .unwrap()
}

/// A directory with the fixture as `run.jsonl`.
fn with_run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("two-cpus.jsonl"), directory.path().join("run.jsonl")).unwrap();
    directory
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn html_goes_beside_the_run_and_text_to_standard_output() {
    let directory = with_run();
    let html = report(directory.path(), &["run.jsonl"]);
    assert!(html.status.success(), "{}", text(&html.stderr));
    assert_eq!(files(directory.path()), ["run.html", "run.jsonl"]);
    assert!(html.stdout.is_empty());
    for format in ["md", "csv", "svg"] {
        let output = report(directory.path(), &["run.jsonl", "--format", format]);
        assert!(output.status.success());
        assert!(output.stdout.len() > 1000, "{format}");
    }
    assert_eq!(files(directory.path()), ["run.html", "run.jsonl"]);
}

#[test]
fn the_ending_of_out_names_the_format() {
    let directory = with_run();
    for (name, begin) in [
        ("a.md", "# Which lock"),
        ("a.csv", "source,"),
        ("a.svg", "<?xml"),
        ("a.html", "<!DOCTYPE"),
    ] {
        let output = report(directory.path(), &["run.jsonl", "--out", name]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let made = fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(made.starts_with(begin), "{name}: {}", &made[..40]);
    }
}

#[test]
fn a_dash_is_a_pipe() {
    let output = Command::new(env!("CARGO_BIN_EXE_qspin"))
        .args(["report", "-", "--format", "csv"])
        .write_stdin(fs::read(fixture("two-cpus.jsonl")).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("standard input"));
}

#[test]
fn every_contender_is_in_every_format() {
    let directory = with_run();
    let rows = fs::read_to_string(fixture("two-cpus.jsonl")).unwrap();
    // The ends of the scale are in no chart.
    let locks: BTreeSet<&str> = rows
        .split("\"lock\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|lock| !is_reference(lock))
        .collect();
    assert!(locks.len() > 9);
    for format in ["md", "csv", "svg", "html"] {
        let made = report(directory.path(), &["run.jsonl", "--format", format, "--out", "-"]);
        let made = text(&made.stdout).replace('\\', "");
        for lock in &locks {
            assert!(made.contains(lock), "{lock} is missing in {format}");
        }
    }
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let directory = with_run();
    for format in ["md", "csv", "svg", "html"] {
        let make =
            || report(directory.path(), &["run.jsonl", "--format", format, "--out", "-"]).stdout;
        assert_eq!(make(), make(), "{format}");
    }
}

#[test]
fn markdown_reads_well() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["two-cpus.jsonl", "mixed.jsonl"] {
        fs::copy(fixture(name), directory.path().join(name)).unwrap();
        let output = report(directory.path(), &[name, "--format", "md"]);
        insta::assert_snapshot!(format!("markdown-{name}"), text(&output.stdout));
    }
}

#[test]
fn csv_has_a_column_a_field() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixture("mixed.jsonl"), directory.path().join("mixed.jsonl")).unwrap();
    let output = report(directory.path(), &["mixed.jsonl", "--format", "csv"]);
    insta::assert_snapshot!("csv-mixed", text(&output.stdout));
}

#[test]
fn runs_of_several_machines_stay_apart() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["two-cpus.jsonl", "mixed.jsonl"] {
        fs::copy(fixture(name), directory.path().join(name)).unwrap();
    }
    let both = report(directory.path(), &["two-cpus.jsonl", "mixed.jsonl", "--format", "md"]);
    let both = text(&both.stdout);
    for heading in ["## two-cpus.jsonl: Example CPU", "## mixed.jsonl: Example Server CPU"] {
        assert!(both.contains(heading), "{both}");
    }
    assert_eq!(both.matches("**Machine**").count(), 2);
    // One file with two machine rows is two runs as well.
    let joined = ["two-cpus.jsonl", "mixed.jsonl"]
        .map(|name| fs::read_to_string(fixture(name)).unwrap())
        .concat();
    fs::write(directory.path().join("joined.jsonl"), joined).unwrap();
    let joined = text(&report(directory.path(), &["joined.jsonl", "--format", "md"]).stdout);
    assert_eq!(joined.matches("**Machine**").count(), 2);
}

#[test]
fn a_later_row_with_the_same_key_replaces_the_earlier() {
    let directory = with_run();
    let path = directory.path().join("run.jsonl");
    let mut rows = fs::read_to_string(&path).unwrap();
    let again = rows.lines().nth(1).unwrap().replace("\"rounds\":9", "\"rounds\":77");
    assert!(again.contains("\"lock\":\"native\""));
    rows += &again;
    let before = rows.lines().count();
    fs::write(&path, rows).unwrap();
    let csv = text(&report(directory.path(), &["run.jsonl", "--format", "csv"]).stdout);
    // The header stands for the machine row; the line that came twice is one.
    assert_eq!(csv.lines().count(), before - 1);
    assert_eq!(csv.matches(",77,").count(), 1);
}

#[test]
fn unknown_fields_and_blank_lines_are_no_harm() {
    let directory = with_run();
    let path = directory.path().join("run.jsonl");
    let rows = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        rows.replace("{\"schema\":1,", "{\"schema\":1,\"new\":[{}],").replace('\n', "\r\n\r\n"),
    )
    .unwrap();
    let output = report(directory.path(), &["run.jsonl", "--format", "md"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Runs the report on `content` and returns the one line that it complains with.
fn complaint(content: impl AsRef<[u8]>) -> String {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("run.jsonl"), content).unwrap();
    fs::write(directory.path().join("run.html"), "an older report").unwrap();
    let output = report(directory.path(), &["run.jsonl"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(files(directory.path()), ["run.html", "run.jsonl"]);
    let older = fs::read_to_string(directory.path().join("run.html")).unwrap();
    assert_eq!(older, "an older report", "an older report was damaged");
    said
}

#[test]
fn bad_lines_are_named_with_file_and_line() {
    let good = fs::read_to_string(fixture("two-cpus.jsonl")).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let (machine, row) = (lines[0], lines[1]);
    let with = |bad: &str| format!("{machine}\n{row}\n{bad}\n{}\n", lines[2]);
    let changed = |from: &str, to: &str| {
        assert!(row.contains(from), "{from}");
        with(&row.replacen(from, to, 1))
    };
    let median = row.split("\"median\":").nth(1).unwrap().split(',').next().unwrap();
    let median = format!("\"median\":{median}");
    for (content, place, word) in [
        (with("hello"), ":3:", "not a row"),
        (with("[1,2]"), ":3:", "JSON object"),
        (with("{\"a\":1}"), ":3:", "no \"schema\""),
        (with(&row[..row.len() / 2]), ":3:", "not a row"),
        (changed("\"schema\":1", "\"schema\":2"), ":3:", "reads schema 1"),
        (changed("\"schema\":1", "\"schema\":\"x\""), ":3:", "reads schema 1"),
        (
            changed("\"kind\":\"bench\"", "\"kind\":\"dream\""),
            ":3:",
            "machine, bench, vm or simulate",
        ),
        (changed("\"kind\":\"bench\",", ""), ":3:", "no \"kind\""),
        (changed("\"lock\":\"native\",", ""), ":3:", "lock"),
        (changed("\"lock\":\"native\"", "\"lock\":\"a`b\""), ":3:", "is no name"),
        (changed("\"threads\":1", "\"threads\":0"), ":3:", "threads is 0"),
        (changed("\"threads\":1", "\"threads\":-1"), ":3:", "threads"),
        (changed("\"threads\":1", "\"threads\":\"two\""), ":3:", "threads"),
        (changed(&median, "\"median\":-5"), ":3:", "ops_per_s.median is -5"),
        (changed(&median, "\"median\":NaN"), ":3:", "not a row"),
        (changed(&median, "\"median\":1e999"), ":3:", "not a row"),
        (changed(&median, "\"median\":null"), ":3:", "ops_per_s.median"),
        (changed(&median, "\"median\":1"), ":3:", "must ascend"),
        (changed("\"p50\":", "\"p50\":-"), ":3:", "wait_ns.p50"),
        (changed("\"factor\":0.5", "\"factor\":1.5"), ":3:", "between 0 and 1"),
        (changed("\"max_min\":1", "\"max_min\":0.5"), ":3:", "1 or more"),
        (format!("{row}\n"), ":1:", "before any `machine` row"),
        (format!("{}\n", machine.replace("\"cpus\":2", "\"cpus\":0")), ":1:", "cpus is 0"),
        (format!("{machine}\n{row}\n{}", &row[..200]), ":3:", "torn"),
        (format!("{machine}\n"), "run.jsonl", "nothing was measured"),
        (String::new(), "run.jsonl", "is empty"),
        ("\n\n".to_owned(), "run.jsonl", "is empty"),
        (format!("{machine}\n{}\n", "x".repeat(2 << 20)), ":2:", "longer than 1 MiB"),
    ] {
        let said = complaint(&content);
        assert!(said.contains(place) && said.contains(word), "wanted {place} {word}, got {said}");
    }
    let said = complaint(b"\xff\xfe\x00binary\n");
    assert!(said.contains("run.jsonl:1:"), "{said}");
}

#[test]
fn absent_inputs_and_impossible_outputs_are_refused() {
    let directory = with_run();
    for (arguments, word) in [
        (&["no.jsonl"][..], "no.jsonl"),
        (&["."], "directory"),
        (&["run.jsonl", "no.jsonl", "--out", "a.html"], "no.jsonl"),
        (&["run.jsonl", "--out", "no/such/a.html"], "no/such/a.html"),
        (&["run.jsonl", "--out", "a.txt"], "html, md, csv or svg"),
        (&["run.jsonl", "--format", "pdf"], "html, md, csv, svg"),
        (&["run.jsonl", "--format", "md", "--out", "run.jsonl"], "would replace the run"),
        (&["run.jsonl", "--format", "md", "--out", "./run.jsonl"], "would replace the run"),
        (&[], "RUN.jsonl"),
    ] {
        let output = report(directory.path(), arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
        assert_eq!(files(directory.path()), ["run.jsonl"]);
    }
}
