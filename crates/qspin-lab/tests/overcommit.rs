//! The table of document 001, from rows that carry its figures as times of an operation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/overcommit.jsonl")
}

/// Reports on runs of these contents, `--out` to the standard output.
fn report(runs: &[&str], arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_qspin"));
    command.current_dir(directory.path()).arg("report");
    for (number, run) in runs.iter().enumerate() {
        let name = format!("{number}.jsonl");
        fs::write(directory.path().join(&name), run).unwrap();
        command.arg(name);
    }
    let output = command.args(["--out", "-"]).args(arguments).output().unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), runs.len());
    output
}

fn shown(runs: &[&str], arguments: &[&str]) -> String {
    let output = report(runs, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rows() -> String {
    fs::read_to_string(fixture()).unwrap()
}

/// Without the blanks that align columns.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the published table says, in its layout: a block a scenario, a line a degree.
const PUBLISHED: &str = "\
## W/o native and W/ paravirt, overcommitted

lengths: critical 1 µs, outside 0 ns, 4 threads on 4 CPUs, Example CPU

Time of an operation of all threads together, ns: the average of the rounds and their standard \
deviation; less is better. Difference: (w/o − w/) / w/o.

**Scenario A** (each thread has its CPU)

| overcommitted | W/o native, avg (std-dev) | W/ paravirt, avg (std-dev) | Difference |
|---------------|--------------------------:|---------------------------:|-----------:|
| 1x            |           273.270 (1.051) |            251.613 (1.155) |       7.9% |
| 2x, 4 hogs    |          541.343 (57.317) |            443.400 (2.832) |      18.1% |
| 3x, 8 hogs    |           819.160 (9.218) |            642.393 (2.646) |      21.6% |
| 4x, 12 hogs   |         1020.493 (34.743) |            839.327 (0.658) |      17.8% |

**Scenario B** (no pinning)

| overcommitted | W/o native, avg (std-dev) | W/ paravirt, avg (std-dev) | Difference |
|---------------|--------------------------:|---------------------------:|-----------:|
| 1x            |           276.947 (0.644) |            248.397 (1.563) |      10.3% |
| 2x, 4 hogs    |           500.723 (5.694) |            438.957 (6.112) |      12.3% |
| 3x, 8 hogs    |           725.687 (5.267) |            641.317 (3.902) |      11.6% |
| 4x, 12 hogs   |          973.910 (21.712) |            836.853 (2.754) |      14.1% |

**Scenario C** (all threads on half of the CPUs)

| overcommitted | W/o native, avg (std-dev) | W/ paravirt, avg (std-dev) | Difference |
|---------------|--------------------------:|---------------------------:|-----------:|
| 1x            |          564.610 (12.055) |            420.510 (2.598) |      25.5% |
| 2x, 4 hogs    |           750.867 (5.139) |            618.570 (2.914) |      17.6% |
| 3x, 8 hogs    |          950.150 (13.496) |            813.803 (1.872) |      14.4% |
| 4x, 12 hogs   |          1125.027 (5.337) |           1007.630 (5.707) |      10.4% |
";

#[test]
fn the_layout_and_the_differences_are_the_published_ones() {
    for arguments in [&[][..], &["--overcommit-table", "native,paravirt"]] {
        let text = shown(&[&rows()], &[&["--format", "md"], arguments].concat());
        assert!(text.ends_with(PUBLISHED), "{text}");
    }
    let page = shown(&[&rows()], &["--format", "html"]);
    for part in ["Scenario A: each thread has its CPU", "273.270 (1.051)", "7.9%", "Scenario C"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_other_way_round_it_is_a_loss() {
    let text = shown(&[&rows()], &["--format", "md", "--overcommit-table", "paravirt, native"]);
    assert!(
        squeezed(&text).contains("| 1x | 251.613 (1.155) | 273.270 (1.051) | -8.6% |"),
        "{text}"
    );
}

/// The fixture as a run for each scenario and degree.
fn apart() -> Vec<String> {
    let rows = rows();
    let lines: Vec<&str> = rows.lines().collect();
    lines[1..].chunks(2).map(|pair| format!("{}\n{}\n{}\n", lines[0], pair[0], pair[1])).collect()
}

#[test]
fn runs_are_put_together_but_a_line_compares_one_run() {
    let apart = apart();
    let apart: Vec<&str> = apart.iter().map(String::as_str).collect();
    let text = shown(&apart, &["--format", "md"]);
    assert!(text.ends_with(PUBLISHED), "{text}");
    // The same locks, but never side by side.
    let rows = rows();
    let lines: Vec<&str> = rows.lines().collect();
    let alone = |row: &str| format!("{}\n{row}\n", lines[0]);
    let text = shown(&[&alone(lines[1]), &alone(lines[2])], &["--format", "md"]);
    assert!(!text.contains("Scenario"), "{text}");
}

#[test]
fn what_cannot_be_told_apart_is_marked() {
    let text = shown(&[&rows().replace("\"rounds\":9", "\"rounds\":3")], &["--format", "md"]);
    assert!(
        squeezed(&text).contains("| 7.9% ≈ |") && text.contains("≈: no clear difference"),
        "{text}"
    );
}

#[test]
fn rows_without_a_spread_show_their_median() {
    let old = rows().replace("\"op_ns\":{", "\"unknown\":{");
    let text = shown(&[&old], &["--format", "md"]);
    assert!(squeezed(&text).contains("| 1x | 273.270 (–) | 251.613 (–) | 7.9% |"), "{text}");
    assert!(text.contains("shows its median"), "{text}");
}

/// The one line that a refusal says.
fn refused(runs: &[&str], arguments: &[&str]) -> String {
    let output = report(runs, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn a_table_that_cannot_be_shown_is_refused() {
    let rows = rows();
    let table = |pair, format| refused(&[&rows], &["--overcommit-table", pair, "--format", format]);
    assert!(table("native,ticket", "md").contains("`native` and `ticket`"));
    assert!(table("native,native", "md").contains("one lock twice"));
    assert!(table("native", "md").contains("native,paravirt"));
    assert!(table("native,paravirt", "csv").contains("--format html or md"));
    let bad = rows.replace("\"mean\":273.27,", "\"mean\":-1,");
    assert!(refused(&[&bad], &["--format", "md"]).contains("op_ns.mean is -1"));
}

#[test]
fn a_bench_writes_what_the_table_needs() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run.jsonl");
    let status = Command::new(env!("CARGO_BIN_EXE_qspin"))
        .args(["bench", "--locks", "native,std", "--threads", "1,2", "--overcommit", "2x"])
        .args(["--pin", "C", "--rounds", "2", "--seconds", "0.1", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let run = fs::read_to_string(&out).unwrap();
    let text = shown(&[&run], &["--format", "md", "--overcommit-table", "native,std"]);
    let table = text.split("## W/o native and W/ std").nth(1).unwrap();
    assert!(table.contains("**Scenario C**") && table.contains("| 2x"), "{table}");
}
