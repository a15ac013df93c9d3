//! This machine, measured and simulated: `calibrate --measure`, `simulate --machine`, `bench --compare-simulated`;
//! and what becomes of a simulation that is interrupted.

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use qspin_lab::bench::affinity::allowed_cpus;
use qspin_sim::Machine;

const SCENARIO: &str = r#"
locks = ["native", "ticket"]
cpus = [1, 2]
duration_ns = 1e5
start_ns = 1e3
machine = "oracle-x5-4"
[workload.locktorture]
inside_ns = 20
outside_ns = 40
"#;

fn at_work() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("it.toml"), SCENARIO).unwrap();
    directory
}

fn qspin(directory: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::cargo_bin("qspin").unwrap().args(args).current_dir(directory).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Whether there are two CPUs, between which something can be measured.
fn two_cpus() -> bool {
    let two = allowed_cpus().len() > 1;
    if !two {
        println!("skipped: this machine, measured (there is one CPU only)");
    }
    two
}

#[test]
fn what_is_measured_is_a_machine_that_is_simulated_and_compared() {
    if !two_cpus() {
        return;
    }
    let directory = at_work();
    let here = directory.path();
    let (code, stdout, stderr) = qspin(here, &["calibrate", "--measure", "--out", "mine.toml"]);
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    assert!(stderr.contains(" ns") && stderr.contains("wrote"), "{stderr}");
    let machine = Machine::from_toml(&fs::read_to_string(here.join("mine.toml")).unwrap()).unwrap();
    assert!(machine.source.contains("Not measured, as"), "{}", machine.source);

    let (code, stdout, _) = qspin(here, &["simulate", "it.toml", "--machine", "mine.toml"]);
    assert_eq!(code, Some(0));
    assert!(
        stdout.starts_with("SIMULATED, not measured") && stdout.contains(&machine.name),
        "{stdout}"
    );
    let (code, stdout, stderr) = qspin(here, &["simulate", "it.toml", "--machine", "this"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(&machine.name), "{stdout}");

    let bench = ["bench", "--locks", "native,ticket", "--peers", "none", "--threads", "1,2,4"];
    let short = ["--rounds", "1", "--seconds", "0.01", "--compare-simulated=mine.toml"];
    let (code, stdout, stderr) = qspin(here, &[&bench[..], &short[..]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let compared = stdout.split("SIMULATED beside measured").nth(1).unwrap();
    for threads in ["1 thread on", "2 threads on", "4 threads on"] {
        let table = compared.split(threads).nth(1).unwrap();
        let row = |lock: &str| {
            let line = table.lines().find(|line| line.trim().starts_with(lock)).unwrap();
            line.split('|').count()
        };
        assert!(row("native") == 6 && row("ticket") == 6, "{table}");
    }
}

#[test]
fn a_matrix_and_random_loads_are_judged_beside_their_blind_simulation() {
    if !two_cpus() {
        return;
    }
    let directory = at_work();
    let here = directory.path();
    let (code, _, stderr) = qspin(here, &["calibrate", "--measure", "--out", "mine.toml"]);
    assert_eq!(code, Some(0), "{stderr}");
    let judged = |of: &[&str]| {
        let short = ["--rounds", "2", "--seconds", "0.05", "--compare-simulated=mine.toml"];
        let (code, stdout, stderr) = qspin(here, &[&["bench"], of, &short[..]].concat());
        assert_eq!(code, Some(0), "{stderr}");
        stdout.split("SIMULATED beside measured, blindly").nth(1).unwrap().to_owned()
    };
    // The columns of the line that is so called.
    let line = |text: &str, name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.trim().starts_with(name)).unwrap();
        line.split('|').map(|column| column.trim().to_owned()).collect()
    };
    // Cells and figures. Where other work takes the CPUs, a lock may do nothing in so short a phase: it has no figure,
    // and is counted as such.
    let counted = |text: &str| -> (String, u32) {
        let all = line(text, "all");
        let idle = text.lines().find(|line| line.ends_with("with nothing was done in the time"));
        let idle: u32 = idle.map_or(0, |line| line.split(' ').nth(2).unwrap().parse().unwrap());
        (all[1].clone(), all[2].parse::<u32>().unwrap() + idle)
    };
    let small = ["--critical", "50ns", "--outside", "0ns", "--threads", "1,2"];
    let matrix = judged(&[&["--matrix", "quick", "--locks", "mutex,tas,std"], &small[..]].concat());
    // Two cells, two locks that are simulated, one that is not.
    assert_eq!(counted(&matrix), ("2".to_owned(), 4), "{matrix}");
    assert!(matrix.contains("left out: 2 with a lock that is not simulated"), "{matrix}");
    let random = judged(&["--random", "2", "--seed", "1", "--locks", "mutex,paravirt,std"]);
    assert_eq!(counted(&random), ("2".to_owned(), 4), "{random}");
    let rw = ["--matrix", "rwlock", "--locks", "rwlock,std-rw", "--threads", "2"];
    let rw = judged(&[&rw[..], &["--critical", "1us", "--outside", "2us"]].concat());
    // Five mixes of one lock: figures, and no choice.
    let all = line(&rw, "all");
    assert_eq!((all[1].as_str(), all[2].as_str(), all[7].as_str()), ("5", "5", "–"), "{rw}");
}

#[test]
fn one_cpu_and_other_impossible_wishes_are_one_line_and_leave_nothing() {
    let directory = at_work();
    let here = directory.path();
    fs::write(here.join("broken.toml"), "name = 3\n").unwrap();
    let refused = |output: (Option<i32>, String, String), said: &[&str]| {
        let (code, stdout, stderr) = output;
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        for part in said {
            assert!(stderr.contains(part), "`{part}` is missing in: {stderr}");
        }
        assert_eq!(fs::read_dir(here).unwrap().count(), 2);
    };
    let one = allowed_cpus()[0].to_string();
    let alone = Process::new("taskset")
        .args(["-c", &one])
        .arg(cargo_bin("qspin"))
        .args(["calibrate", "--measure", "--out", "mine.toml"])
        .current_dir(here)
        .output();
    match alone {
        Ok(output) => {
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let output = (output.status.code(), text(output.stdout), text(output.stderr));
            refused(output, &[&format!("CPU {one} only"), "taskset"]);
        }
        Err(_) => println!("skipped: there is no taskset"),
    }
    let simulate = |machine| qspin(here, &["simulate", "it.toml", "--machine", machine]);
    refused(simulate("oracle"), &["`oracle`", "oracle-x5-8", "`this`"]);
    refused(simulate("gone.toml"), &["gone.toml", "--measure"]);
    refused(simulate("broken.toml"), &["broken.toml", "line 1, column"]);
    refused(qspin(here, &["simulate", "it.toml", "--hypervisor", "xen"]), &["`xen`", "kvm-2015"]);
    refused(qspin(here, &["simulate", "it.toml", "--variants", "x"]), &["`x`", "none"]);
    refused(qspin(here, &["calibrate", "--measure", "x5-4"]), &["--measure"]);
    refused(qspin(here, &["calibrate", "--measure", "--out", "no/m.toml"]), &["directory"]);
    let bench =
        |more: &[&'static str]| qspin(here, &[&["bench", "--compare-simulated"], more].concat());
    refused(bench(&["--workload", "rw"]), &["lengths"]);
    refused(bench(&["--locks", "std"]), &["add one of native"]);
    refused(bench(&["--lines", "65"]), &["64"]);
    refused(bench(&["--steps"]), &["--steps"]);
    let many = ["--random", "2", "--tune", "queue_polls=3"];
    refused(bench(&many), &["default tunables", "--tune"]);
}

#[test]
fn an_interrupted_simulation_keeps_what_is_finished() {
    let directory = at_work();
    let here = directory.path();
    fs::write(here.join("long.toml"), SCENARIO.replace("1e5", "3e6")).unwrap();
    let began = Instant::now();
    // Minutes of work; on a busy computer nothing may be finished after a second.
    for seconds in [1, 4, 16, 32] {
        let child = Process::new(cargo_bin("qspin"))
            .args(["simulate", "long.toml", "--seeds", "1000", "--out", "rows.jsonl"])
            .current_dir(here)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_secs(seconds));
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
        let Ok(rows) = fs::read_to_string(here.join("rows.jsonl")) else { continue };
        assert!(rows.contains("Not all runs came to their end"), "{rows}");
        let row = rows.lines().nth(1).unwrap();
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        assert!(row["partial"] == true || rows.lines().count() > 2, "{row}");
        assert!(row["rounds"].as_u64().unwrap() >= 1 && row["ops_per_s"]["median"].is_number());
        return;
    }
    panic!("nothing was finished in {:?}", began.elapsed());
}

#[test]
fn an_interrupted_reproduction_leaves_the_page_of_before() {
    let directory = at_work();
    let page = directory.path().join("page.html");
    fs::write(&page, "of before").unwrap();
    let child = Process::new(cargo_bin("qspin"))
        .args(["reproduce", "--all", "--report", "page.html"])
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It takes a minute.
    thread::sleep(Duration::from_secs(2));
    // SAFETY: sends a signal to a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted") && stderr.contains("no page"), "{stderr}");
    assert_eq!(fs::read_to_string(&page).unwrap(), "of before");
}
