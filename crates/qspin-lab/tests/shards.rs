//! Sweeps over several computers: the parts of a plan become, byte for byte, what one computer makes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;

const SCENARIO: &str = r#"
about = "twelve cells, for a test"
locks = ["native", "cna"]
cpus = [2, 4]
duration_ns = 5e4
start_ns = 1e3
machine = "oracle-x5-4"
hypervisor = "linux-bare-metal"
[[variants]]
name = "plain"
[[variants]]
name = "near ones first"
locks = ["cna"]
tuning = { numa_skip_bits = 0 }
[[loads]]
name = "alone"
[[loads]]
name = "beside a hog"
hogs = 1
[workload.locktorture]
inside_ns = 20
outside_ns = 40
"#;

fn qspin(directory: &Path, args: &[&str]) -> Output {
    Command::cargo_bin("qspin").unwrap().args(args).current_dir(directory).output().unwrap()
}

fn well(directory: &Path, args: &[&str]) -> Output {
    let output = qspin(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Refused by one line that has these parts; nothing is written.
fn refused(directory: &Path, args: &[&str], said: &[&str]) {
    let before = fs::read_dir(directory).unwrap().count();
    let output = qspin(directory, args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for part in said {
        assert!(stderr.contains(part), "{args:?}: `{part}` is missing in: {stderr}");
    }
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(fs::read_dir(directory).unwrap().count(), before, "{args:?}");
}

fn at_work() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("it.toml"), SCENARIO).unwrap();
    directory
}

const WHOLE: [&str; 6] = ["simulate", "it.toml", "--seeds", "2", "--out", "whole.jsonl"];

/// Part `number` of `of`, in the file `of-number.jsonl`.
fn part(directory: &Path, number: u32, of: u32) -> String {
    let (part, file) = (format!("{number}/{of}"), format!("{of}-{number}.jsonl"));
    well(directory, &["simulate", "it.toml", "--seeds", "2", "--shard", &part, "--out", &file]);
    file
}

#[test]
fn parts_become_the_whole_byte_for_byte() {
    let directory = at_work();
    let here = directory.path();
    well(here, &WHOLE);
    let whole = fs::read_to_string(here.join("whole.jsonl")).unwrap();
    // Two loads, two numbers of CPUs; two locks of the first variant and one of the second.
    assert_eq!(whole.lines().count(), 1 + 12);
    // More parts than cells, too: some have none.
    for of in [1, 3, 14] {
        let mut files: Vec<String> = (1..=of).map(|number| part(here, number, of)).collect();
        // The order of the files does not matter.
        files.reverse();
        let mut merge = vec!["report", "merge", "--out", "merged.jsonl"];
        merge.extend(files.iter().map(String::as_str));
        well(here, &merge);
        assert_eq!(fs::read_to_string(here.join("merged.jsonl")).unwrap(), whole, "{of} parts");
    }
    // Without a file, on the standard output; and what comes out is a run like any other.
    let shown = well(here, &["report", "merge", "1-1.jsonl"]).stdout;
    assert_eq!(String::from_utf8(shown).unwrap(), whole);
    let report = well(here, &["report", "merged.jsonl", "--format", "md"]).stdout;
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("SIMULATED") && report.contains("near ones first"), "{report}");
    assert!(report.contains("load beside a hog"), "{report}");
}

#[test]
fn parts_that_are_no_whole_are_refused() {
    let directory = at_work();
    let here = directory.path();
    let simulate =
        |part: &'static str| ["simulate", "it.toml", "--out", "x.jsonl", "--shard", part];
    for wrong in ["0/0", "3/2", "0/2", "1", "a/b", "-1/2"] {
        refused(here, &simulate(wrong), &[wrong, "I/N"]);
    }
    refused(here, &["simulate", "it.toml", "--shard", "1/2"], &["--out"]);
    let part_of = |more: [&'static str; 2]| [&simulate("1/2")[..], &more].concat();
    refused(here, &part_of(["--machine", "this"]), &["calibrate --measure"]);
    refused(here, &part_of(["--trace", "t.json"]), &["--trace", "--shard"]);
    let files = [1, 2, 3].map(|number| part(here, number, 3));
    let [first, second, third] = files.each_ref().map(String::as_str);
    let wrong = |files: &[&str], said: &[&str]| {
        refused(here, &[&["report", "merge", "--out", "m.jsonl"][..], files].concat(), said);
    };
    wrong(&[first, third], &["part 2/3 is missing"]);
    wrong(&[second], &["part 1/3 and 1 more is missing"]);
    wrong(&[first, second, third, second], &["part 2/3 is there twice", "3-2.jsonl"]);
    wrong(&[first, second, third, "none.jsonl"], &["none.jsonl"]);
    // Of another number of parts, other seeds, another scenario.
    let other = part(here, 2, 2);
    wrong(&[first, &other, third], &["different sweeps", "2-2.jsonl"]);
    let make = |change: &[&str], scenario: &str| {
        fs::write(here.join("it.toml"), scenario).unwrap();
        let args =
            ["simulate", "it.toml", "--seeds", "2", "--shard", "2/3", "--out", "other.jsonl"];
        well(here, &[&args[..], change].concat());
        fs::write(here.join("it.toml"), SCENARIO).unwrap();
    };
    make(&["--seed", "7"], SCENARIO);
    wrong(&[first, "other.jsonl", third], &["different sweeps"]);
    make(&[], &SCENARIO.replace("inside_ns = 20", "inside_ns = 21"));
    wrong(&[first, "other.jsonl", third], &["different sweeps"]);
    // No part at all, half of one, and the whole in the place of a part.
    well(here, &WHOLE);
    wrong(&["whole.jsonl"], &["whole.jsonl", "--shard"]);
    wrong(&["it.toml"], &["it.toml", "machine row"]);
    let text = fs::read_to_string(here.join(second)).unwrap();
    fs::write(here.join("other.jsonl"), &text[..text.len() - 9]).unwrap();
    wrong(&[first, "other.jsonl", third], &["other.jsonl", "torn"]);
    let short: Vec<&str> = text.lines().take(2).collect();
    fs::write(here.join("other.jsonl"), short.join("\n") + "\n").unwrap();
    wrong(&[first, "other.jsonl", third], &["other.jsonl", "2/3", "again"]);
    // And a part is never replaced by the whole.
    refused(here, &["report", "merge", first, second, third, "--out", second], &["replace"]);
}

/// A program that reads a number and writes it again must write the same: a reader that is off by the last digit
/// writes 0.4545454545454546 here.
#[test]
fn figures_that_have_no_short_form_come_through_digit_by_digit() {
    let directory = at_work();
    let here = directory.path();
    let hypervisor = r#"
[hypervisor]
switch = 500
halt = 700
kick = 900
wake = 2000
yield = 600
latency = 60000
least_slice = 10000
wake_granularity = 5000
quota = 5e4
period = 11e4
"#;
    let scenario = SCENARIO.replace("hypervisor = \"linux-bare-metal\"\n", "") + hypervisor;
    fs::write(here.join("it.toml"), scenario).unwrap();
    well(here, &WHOLE);
    let whole = fs::read_to_string(here.join("whole.jsonl")).unwrap();
    assert!(whole.contains("\"quota_cpus\":0.45454545454545453,"), "{whole}");
    let (first, second) = (part(here, 1, 2), part(here, 2, 2));
    well(here, &["report", "merge", &first, &second, "--out", "merged.jsonl"]);
    assert_eq!(fs::read_to_string(here.join("merged.jsonl")).unwrap(), whole);
}

#[test]
fn where_the_machine_lies_decides_nothing() {
    let directory = at_work();
    let here = directory.path();
    let machine = include_str!("../../qspin-sim/machines/oracle-x5-4.toml");
    fs::create_dir(here.join("elsewhere")).unwrap();
    fs::write(here.join("m.toml"), machine).unwrap();
    fs::write(here.join("elsewhere/m.toml"), machine).unwrap();
    let simulate = ["simulate", "it.toml", "--seeds", "2"];
    for (part, machine) in [("1/2", "m.toml"), ("2/2", "elsewhere/m.toml")] {
        let out = part.replace('/', "-");
        let more = ["--machine", machine, "--shard", part, "--out", &out];
        well(here, &[&simulate[..], &more].concat());
    }
    well(here, &["report", "merge", "1-2", "2-2", "--out", "merged.jsonl"]);
    well(here, &[&simulate[..], &["--machine", "m.toml", "--out", "whole.jsonl"]].concat());
    let read = |name: &str| fs::read(here.join(name)).unwrap();
    assert!(read("merged.jsonl") == read("whole.jsonl"));
}

fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join("examples/sweep").join(name)
}

fn script(name: &str, directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("bash");
    command.arg(example(name)).args(args).current_dir(directory);
    command.env("QSPIN", cargo_bin("qspin")).env_remove("SLURM_ARRAY_TASK_ID");
    command
}

#[test]
fn the_job_array_makes_the_parts_and_does_only_what_is_missing() {
    let directory = at_work();
    let here = directory.path();
    fs::create_dir(here.join("parts")).unwrap();
    let array = ["it.toml", "3", "parts", "--seeds", "2"];
    let task =
        |id: &str| script("slurm-array.sh", here, &array).env("SLURM_ARRAY_TASK_ID", id).unwrap();
    for id in ["1", "2", "3"] {
        task(id);
    }
    well(here, &WHOLE);
    let merge =
        ["report", "merge", "parts/1.jsonl", "parts/2.jsonl", "parts/3.jsonl", "--out", "m.jsonl"];
    well(here, &merge);
    let read = |name: &str| fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(read("m.jsonl"), read("whole.jsonl"));
    // A part that is there is left as it is.
    fs::write(here.join("parts/2.jsonl"), "mine\n").unwrap();
    let again = task("2");
    assert!(String::from_utf8_lossy(&again.stdout).contains("already"));
    assert_eq!(read("parts/2.jsonl"), "mine\n");
    // An array with more tasks than parts, no array, and no arguments.
    for (id, args, said) in [
        (Some("4"), &array[..], "4/3"),
        (None, &array[..], "SLURM_ARRAY_TASK_ID"),
        (Some("1"), &array[..2], "usage"),
    ] {
        let mut command = script("slurm-array.sh", here, args);
        if let Some(id) = id {
            command.env("SLURM_ARRAY_TASK_ID", id);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
    }
    let mut names: Vec<_> =
        fs::read_dir(here.join("parts")).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["1.jsonl", "2.jsonl", "3.jsonl"], "nothing unfinished is left");
}

#[test]
fn gnu_parallel_makes_the_whole() {
    let version = std::process::Command::new("parallel").arg("--version").output();
    if !version.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains("GNU parallel")) {
        println!("skipped: a sweep by GNU parallel (the Debian package parallel is not installed)");
        return;
    }
    let directory = at_work();
    let here = directory.path();
    well(here, &WHOLE);
    let args = ["it.toml", "3", "swept.jsonl", "--seeds", "2"];
    // What it says about being cited is for a person, once.
    let home = here.to_str().unwrap();
    script("gnu-parallel.sh", here, &args).env("HOME", home).unwrap();
    let read = |name: &str| fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(read("swept.jsonl"), read("whole.jsonl"));
    // A part that fails leaves no whole, and no parts.
    let mut bad = script("gnu-parallel.sh", here, &["it.toml", "3", "bad.jsonl", "--seeds", "0"]);
    assert!(!bad.env("HOME", home).output().unwrap().status.success());
    let left = fs::read_dir(here).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.starts_with("bad.jsonl")));
}

/// Cells of several tables, one of which has fitted cells and one is stated in words.
const TABLES: [&str; 4] = ["reproduce", "000-latencies", "004-single", "000-statistics"];

#[test]
fn parts_of_published_tables_become_what_is_printed_of_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let whole = well(here, &[&TABLES[..], &["--json"]].concat()).stdout;
    assert!(String::from_utf8_lossy(&whole).contains("\"table\":\"004-single\""));
    let [third, first, second] = ["third", "first", "second"];
    let part = |number: &str, file: &str, more: &[&str]| {
        well(here, &[&TABLES[..], &["--shard", number, "--out", file], more].concat());
    };
    for (number, file) in [("1/3", first), ("2/3", second), ("3/3", third)] {
        part(number, file, &[]);
    }
    well(here, &["report", "merge", third, first, second, "--out", "merged.json"]);
    assert!(fs::read(here.join("merged.json")).unwrap() == whole);

    let refuse = |files: &[&str], said: &[&str]| {
        refused(here, &[&["report", "merge", "--out", "m.json"][..], files].concat(), said);
    };
    refuse(&[first, third], &["part 2/3 is missing", "reproduce --shard 2/3"]);
    // Another seed; other constants.
    part("2/3", "other.part", &["--seed", "2"]);
    refuse(&[first, "other.part", third], &["different sweeps"]);
    fs::write(here.join("none.toml"), "").unwrap();
    part("2/3", "other.part", &["--constants", "none.toml"]);
    refuse(&[first, "other.part", third], &["different sweeps"]);
    let text = fs::read_to_string(here.join(second)).unwrap();
    let write = |text: &str| fs::write(here.join("other.part"), text).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let mut lines: Vec<&str> = lines.lines().collect();
    write(&format!("{head}\n{}\n", lines[1..].join("\n")));
    refuse(&[first, "other.part", third], &["2/3", "reproduce --shard 2/3 again"]);
    lines.swap(0, 1);
    write(&format!("{head}\n{}\n", lines.join("\n")));
    refuse(&[first, "other.part", third], &["belongs"]);
    // All parts of one plan, but of one that this version does not have.
    let plan = text.split("\"plan\":\"").nth(1).unwrap().split('"').next().unwrap();
    for (number, file) in [first, second, third].into_iter().enumerate() {
        let text = fs::read_to_string(here.join(file)).unwrap();
        fs::write(here.join(format!("old{number}")), text.replace(plan, "0")).unwrap();
    }
    refuse(&["old0", "old1", "old2"], &["another version"]);
}

#[test]
fn parts_of_published_tables_ask_for_a_file_and_for_tables() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let shard = ["--shard", "1/2"];
    refused(here, &[&TABLES[..], &shard].concat(), &["--out"]);
    refused(here, &[&TABLES[..], &["--out", "x"]].concat(), &["--shard"]);
    refused(here, &["reproduce", "--shard", "1/2", "--out", "x"], &["which tables"]);
    refused(here, &[&TABLES[..], &shard, &["--out", "x", "--json"]].concat(), &["--json"]);
    refused(here, &[&TABLES[..], &["--out", "x", "--shard", "3/2"]].concat(), &["I/N"]);
}

#[test]
fn the_job_array_reproduces_published_tables_too() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let array = ["004-single", "2", "."];
    for id in ["1", "2"] {
        script("slurm-array.sh", here, &array).env("SLURM_ARRAY_TASK_ID", id).unwrap();
    }
    let merged = well(here, &["report", "merge", "1.jsonl", "2.jsonl"]).stdout;
    assert!(merged == well(here, &["reproduce", "004-single", "--json"]).stdout);
}
