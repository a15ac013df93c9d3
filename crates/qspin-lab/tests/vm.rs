//! `qspin vm`: wrong input, and the guest itself where QEMU is installed.

use std::fs;
use std::process::{Command as Process, Output};

use assert_cmd::Command;
use qspin_lab::row::Row;

mod executable;

fn qspin() -> Command {
    Command::cargo_bin("qspin").unwrap()
}

/// Runs `qspin vm` with `args`, which are wrong, and gives the line that it complains with.
fn complaint(args: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let output = qspin().arg("vm").args(args).current_dir(&directory).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "{args:?} left a file");
    stderr
}

#[test]
fn wrong_input_is_answered_with_what_would_be_right() {
    for wrong in ["0", "65", "1000", "-1", "two", "2,,4"] {
        let said = complaint(&["--vcpus", wrong]);
        assert!(said.contains("give 1 to 64"), "{wrong}: {said}");
    }
    for (args, right) in [
        (["--locks", "nativ"], "native, backoff"),
        (["--locks", "std"], "native, backoff"),
        (["--locks", "mutex"], "no way to sleep yet: choose from native"),
        (["--critical", "5"], "no unit"),
        (["--seconds", "0"], "0.001 to 3600"),
        (["--accel", "xen"], "auto, kvm, tcg"),
        (["--machine", "toaster"], "q35, pc, microvm"),
        (["--tune", "colour=red"], "no tunable"),
        (["--tests", "all"], "exclusion"),
        (["--qemu", "/no/such/qemu"], "apt-get install qemu-system-x86"),
        (["--qemu", "no-such-qemu"], "apt-get install qemu-system-x86"),
        (["--qemu", "/etc/passwd"], "apt-get install qemu-system-x86"),
        (["--out", "/no/such/directory/x"], "does not exist"),
        (["--preempt", "holder"], "holder:5ms:p=0.01"),
        (["--preempt", "owner:5ms:p=0.01"], "holder:5ms:p=0.01"),
        (["--preempt", "holder:5:p=0.01"], "no unit"),
        (["--preempt", "holder:5ms:p=2"], "at most 1"),
        (["--preempt", "next:2s:p=1"], "too long"),
        (["--seed", "5"], "--preempt"),
        (["--apic", "x3"], "auto, x, x2"),
    ] {
        let said = complaint(&args);
        assert!(said.contains(right), "{args:?}: {said}");
    }
    for (args, right) in [
        (&["--honour-hints"][..], "--preempt"),
        (&["--preempt", "holder:5ms:p=1", "--seed", "-1"], "0 to 18446744073709551615"),
        (&["--preempt", "holder:5ms:p=1", "--suite"], "cannot be used with"),
        (&["--accel", "vmm", "--machine", "pc"], "about QEMU"),
        (&["--accel", "vmm", "--qemu", "/bin/sh"], "about QEMU"),
        (&["--steps=backwards"], "series, reviewed, numa"),
        (&["--steps", "--locks", "native"], "cannot be used with"),
        (&["--steps", "--suite"], "cannot be used with"),
        (&["--steps", "--tune", "kick_ahead=1"], "leave it out of --tune"),
        (&["--remedy", "d"], "none, a, b, c"),
        (&["--remedy", "a", "--tune", "queue_yields=2"], "leave it out of --tune"),
        (&["--remedy", "b", "--locks", "ticket"], "add --preempt"),
        (&["--remedy", "a,c", "--locks", "ticket"], "ticket c is left out"),
        (&["--pin", "D"], "A, B, C"),
        (&["--hogs", "-1"], "0..=1024"),
        (&["--overcommit", "5x"], "1x, 2x, 3x or 4x"),
        (&["--overcommit", "2x", "--hogs", "1"], "cannot be used with"),
    ] {
        let said = complaint(args);
        assert!(said.contains(right), "{args:?}: {said}");
    }
}

/// A program that looks like an emulator.
fn emulator(directory: &tempfile::TempDir, script: &str) -> String {
    let path = directory.path().join("emulator");
    executable::write(&path, format!("#!/bin/sh\n{script}\n"));
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_image_that_is_not_ours_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let qemu = emulator(&directory, "exit 0");
    for image in ["/bin/sh", "/etc/passwd", "/no/such/file", "/"] {
        let said = complaint(&["--qemu", &qemu, "--image", image]);
        assert!(said.contains(image), "{said}");
    }
}

/// What `qspin vm` does with an emulator that prints `lines` and ends.
fn with_emulator(script: &str, args: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let qemu = emulator(&directory, script);
    let mut vm = qspin();
    vm.args(["vm", "--accel", "tcg", "--vcpus", "2", "--qemu", &qemu]).args(args);
    let output = vm.current_dir(&directory).output().unwrap();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "the emulator alone");
    output
}

#[test]
fn a_guest_that_fails_is_told_of_and_nothing_is_written() {
    for (script, said) in [
        ("echo oops >&2; exit 1", "oops"),
        (r#"echo '{"guest":"panic","file":"x.rs","line":7}'"#, "x.rs:7"),
        (r#"echo '{"guest":"fault","vector":13,"at":4096}'"#, "fault 13 at 0x1000"),
        (r#"echo '{"guest":"usage","why":"not all CPUs have come","what":"vcpus"}'"#, "not all"),
        (
            r#"echo '{"guest":"hang","test":"bench","waits":[{"cpu":1,"level":"task","lock":"tas","holds":false}]}'"#,
            "CPU 1 waits for tas (task)",
        ),
    ] {
        let output = with_emulator(script, &["--out", "x.jsonl"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{script}: {stderr}");
        assert!(stderr.contains(said), "{script}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn figures_are_shown_though_their_file_cannot_be_written() {
    // The directory of `--out` is there at the start, and gone at the end.
    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let ready = r#"{"guest":"ready","version":"0.1.0","vcpus":2,"apic":"xapic","kick":"vector","kvm":false,"steal_time":false,"sched_yield":false,"realtime":false,"counter_khz":2293325,"shared_page":1257472,"first_lock_us":28986}"#;
    let phase = r#"{"guest":"phase","lock":"tas","round":0,"ns":1000000,"operations":[7,9],"acquisitions":16,"struck":0,"unfinished":0,"longest_ns":5000,"worst_cpu_p999":100,"platform":{"halts_on":0},"waits":[[100,16]]}"#;
    let end = r#"{"guest":"end","ok":true,"failed":0,"ms":5}"#;
    let script = format!("rmdir {}; echo '{ready}'; echo '{phase}'; echo '{end}'", gone.display());
    let out = gone.join("vm.jsonl");
    let output = with_emulator(&script, &["--locks", "tas", "--out", out.to_str().unwrap()]);
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write") && stderr.contains("vm.jsonl"), "{stderr}");
    assert!(stdout.lines().any(|line| line.trim_start().starts_with("tas ")), "{stdout}");
}

#[test]
fn a_wrong_result_of_the_suite_is_a_failure() {
    let script = r#"echo '{"guest":"result","test":"halts","detail":"d","lock":"tas","ok":false,"counted":1,"expected":2}'
echo '{"guest":"end","ok":false,"failed":1,"ms":5}'"#;
    let output = with_emulator(script, &["--suite"]);
    assert_eq!(output.status.code(), Some(1));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("WRONG     halts") && stdout.contains("1 of 2"), "{stdout}");
}

/// Whether the emulator is installed; a line says that a test is skipped without it.
fn has_qemu() -> bool {
    let found = Process::new("qemu-system-x86_64").arg("--version").output().is_ok();
    if !found {
        println!("skipped: the guest (qemu-system-x86 is not installed)");
    }
    found
}

#[test]
fn the_suite_holds_in_the_guest() {
    if !has_qemu() {
        return;
    }
    for vcpus in ["1", "2", "4"] {
        let mut vm = qspin();
        let output = vm
            .args(["vm", "--suite", "--accel", "tcg", "--seconds", "0.02", "--vcpus", vcpus])
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{vcpus} vCPUs: {stdout}{stderr}");
        assert!(!stdout.contains("WRONG") && stdout.contains("\nend "), "{stdout}");
        let tests = stdout.lines().filter(|line| line.starts_with("ok ")).count();
        assert!(tests > 14 + 14 + 5, "{tests} results: {stdout}");
    }
}

/// `QSPIN_GUEST_BOOTS` guests, one after the other, each with locks that halt and are kicked.
#[test]
fn boots_in_a_row_do_not_hang() {
    if !has_qemu() {
        return;
    }
    let boots = std::env::var("QSPIN_GUEST_BOOTS").ok().and_then(|text| text.parse().ok());
    for boot in 0..boots.unwrap_or(5) {
        // The boards in turn, and 2 to 8 CPUs.
        let board = ["q35", "microvm", "pc"][boot % 3];
        let vcpus = ["2", "5", "8", "3"][boot % 4];
        let mut vm = qspin();
        vm.args(["vm", "--suite", "--accel", "tcg", "--machine", board, "--vcpus", vcpus]);
        vm.args(["--seconds", "0.02", "--locks", "native,paravirt,paravirt-ticket"]);
        let output = vm.args(["--tests", "exclusion,nesting,storm"]).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "boot {boot} on {board}: {stdout}{stderr}");
    }
}

#[test]
fn a_hang_says_which_thread_waits_for_what() {
    if !has_qemu() {
        return;
    }
    let args = ["vm", "--suite", "--hang", "--accel", "tcg", "--vcpus", "3", "--locks", "ticket"];
    let output = qspin().args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for said in ["CPU 0 holds ticket (task)", "CPU 1 waits for ticket", "CPU 2 waits for ticket"] {
        assert!(stderr.contains(said), "{stderr}");
    }
}

/// Two locks, whose holder or next waiter is stopped; `None`, with a line, where that is not possible.
fn preempted(args: &[&str]) -> Option<(String, Vec<Row>)> {
    let directory = tempfile::tempdir().unwrap();
    let mut vm = qspin();
    vm.args(["vm", "--locks", "paravirt,ticket", "--seconds", "0.2", "--out", "rows.jsonl"]);
    let output = vm.args(args).current_dir(&directory).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(2) && (stderr.contains("ptrace") || stderr.contains("KVM")) {
        println!("skipped: {args:?} ({stderr})");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let text = fs::read_to_string(directory.path().join("rows.jsonl")).unwrap();
    let rows: Vec<Row> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let said = stdout.lines().find(|line| line.starts_with("preempted ")).unwrap().to_owned();
    Some((said, rows))
}

/// The numbers of a text.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|other: char| !other.is_ascii_digit() && other != '.');
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_holder_is_stopped_on_purpose() {
    if !has_qemu() {
        return;
    }
    let args = ["--accel", "tcg", "--vcpus", "3", "--preempt", "holder:2ms:p=0.1", "--seed", "9"];
    let Some((said, rows)) = preempted(&args) else { return };
    for row in &rows {
        assert_eq!(row.params["preempt"], "holder:2ms:p=0.1");
        assert_eq!((&row.params["seed"], &row.params["hints"]), (&9.into(), &"ignored".into()));
    }
    assert!(rows.iter().any(|row| row.platform["struck"] > 0), "{rows:?}");
    // "preempted 12 of 12 times, for 2.1 ms each (2.0 to 3.0); 12 of them while it held the lock"
    let found = numbers(&said);
    assert!(found[0] > 0.0 && found[0] == found[1], "{said}");
    assert!(found[3] >= 2.0, "none is let go on before its time: {said}");
    assert_eq!(found[5], found[0], "all held the lock: {said}");
}

#[test]
fn a_hint_keeps_the_holder_running_and_the_next_waiter_can_be_stopped() {
    if !has_qemu() {
        return;
    }
    let tcg = ["--accel", "tcg", "--vcpus", "3", "--preempt"];
    let hinted = [&tcg[..], &["holder:2ms:p=0.1", "--honour-hints"]].concat();
    let Some((said, rows)) = preempted(&hinted) else { return };
    assert_eq!(rows[0].params["hints"], "honoured");
    assert!(said.contains("; 0 of them while it held the lock; a hint put off "), "{said}");
    let next = [&tcg[..], &["next:2ms:p=0.1"]].concat();
    let Some((said, _)) = preempted(&next) else { return };
    assert!(numbers(&said)[0] > 0.0 && said.contains("while it waited"), "{said}");
}

#[test]
fn our_own_monitor_stops_its_cpus() {
    let args = ["--accel", "vmm", "--vcpus", "2", "--preempt", "holder:2ms:p=1"];
    let Some((said, rows)) = preempted(&args) else { return };
    assert_eq!(
        (&rows[0].params["accel"], &rows[0].params["machine"]),
        (&"vmm".into(), &"vmm".into())
    );
    let found = numbers(&said);
    assert!(found[0] > 0.0 && found[0] == found[1] && found[5] == found[0], "{said}");
}

#[test]
fn rows_have_everything_that_was_measured_and_a_report_can_be_drawn() {
    if !has_qemu() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut vm = qspin();
    vm.args(["vm", "--accel", "tcg", "--vcpus", "2,4", "--locks", "native,cna-paravirt"]);
    vm.args(["--seconds", "0.05", "--rounds", "2", "--tune", "awake_polls=64"]);
    let output = vm.args(["--out", "rows.jsonl"]).current_dir(&directory).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let text = fs::read_to_string(directory.path().join("rows.jsonl")).unwrap();
    let rows: Vec<Row> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<_> = rows.iter().map(|row| (row.lock.as_str(), row.threads)).collect();
    assert_eq!(keys, [("native", 2), ("cna-paravirt", 2), ("native", 4), ("cna-paravirt", 4)]);
    for row in &rows {
        assert_eq!((row.kind.as_str(), row.rounds, row.partial), ("vm", 2, false));
        assert_eq!(row.tune["awake_polls"], 64);
        assert_eq!(row.params["accel"], "tcg");
        let waits = row.wait_ns.unwrap();
        assert!(waits.p50 <= waits.p99 && waits.p99 <= waits.p999 && waits.p999 <= waits.max);
        assert!(waits.samples > 0 && row.ops_per_s.median > 0.0, "{row:?}");
        assert!(row.platform.contains_key("halts_on") && row.platform.contains_key("kicks_nmi"));
        if row.lock == "native" {
            assert_eq!(row.platform["halts_on"] + row.platform["halts_off"], 0);
        }
    }
    let report = qspin().args(["report", "rows.jsonl"]).current_dir(&directory).output().unwrap();
    let stderr = String::from_utf8_lossy(&report.stderr).into_owned();
    assert_eq!(report.status.code(), Some(0), "{stderr}");
}

/// The rows of `qspin vm` under emulation, and what it shows.
fn measured(args: &[&str]) -> (Vec<Row>, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut vm = qspin();
    vm.args(["vm", "--accel", "tcg", "--seconds", "0.02", "--out", "rows.jsonl"]).args(args);
    let output = vm.current_dir(&directory).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let text = fs::read_to_string(directory.path().join("rows.jsonl")).unwrap();
    let rows = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    (rows, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn each_step_is_a_row_tuned_as_it_is_on_threads() {
    if !has_qemu() {
        return;
    }
    let (rows, shown) =
        measured(&["--vcpus", "2", "--steps", "--rounds", "2", "--tune", "queue_polls=9"]);
    let step = |row: &Row| row.params.get("step").map(|step| step.as_str().unwrap().to_owned());
    let steps: Vec<_> = rows.iter().filter_map(step).collect();
    assert_eq!(rows.len(), steps.len() + 1, "one reference");
    assert_eq!((steps[0].as_str(), steps[steps.len() - 1].as_str()), ("0-halt", "10-culled"));
    assert!(!steps.iter().any(|step| step == "3-statistics"), "the guest counts by itself");
    for row in &rows {
        assert_eq!((row.rounds, row.pin.as_str(), row.hogs), (2, "B", 0));
        assert_eq!(row.tune["queue_polls"], 9);
    }
    let unconditional = &rows.iter().find(|row| step(row).as_deref() == Some("1-unconditional"));
    assert!(!unconditional.unwrap().tune.contains_key("kick_unconditionally"), "the default");
    assert_eq!(rows[1].tune["kick_unconditionally"], 0);
    for label in ["native", "0 halt", "10 culled", "2 vCPUs", "2 rounds are too few"] {
        assert!(shown.contains(label), "{label}: {shown}");
    }
}

#[test]
fn each_remedy_is_a_row_beside_hogs_of_the_host() {
    if !has_qemu() {
        return;
    }
    let load = ["--vcpus", "2", "--remedy", "none,a,c", "--locks", "simple,ticket"];
    let (rows, shown) = measured(&[&load[..], &["--pin", "A", "--overcommit", "4x"]].concat());
    let key = |row: &Row| format!("{} {}", row.lock, row.params["remedy"].as_str().unwrap());
    let keys: Vec<_> = rows.iter().map(key).collect();
    assert_eq!(keys, ["simple none", "simple a", "simple c", "ticket none"]);
    assert_eq!(rows[2].tune["heed_preempted"], 1);
    let cpus = qspin_lab::bench::affinity::allowed_cpus().len() as u32;
    for row in &rows {
        assert_eq!((row.pin.as_str(), row.hogs), ("A", (4 * cpus).saturating_sub(2)));
        assert_eq!(row.params["overcommit"], 4);
    }
    assert!(shown.contains("ticket a is left out: its waiters do not yield."), "{shown}");
}
