//! Wrong input: exit code 2, one line on stderr that says what would be right, nothing on stdout
//! and nothing written.

use std::fs;

use assert_cmd::Command;

/// Runs `qspin` with `args` and gives the line that it complains with.
fn complaint(args: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let output =
        Command::cargo_bin("qspin").unwrap().args(args).current_dir(&directory).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    assert!(stderr.starts_with("qspin: "), "{args:?}: {stderr}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "{args:?} left a file");
    stderr
}

/// What would be right stands in the complaint.
fn assert_said(args: &[&str], right: &[&str]) {
    let said = complaint(args);
    for part in right {
        assert!(said.contains(part), "{args:?}: `{part}` is missing in: {said}");
    }
}

#[test]
fn unknown_locks_are_answered_with_the_known_ones() {
    assert_said(&["bench", "--locks", "nativ"], &["`nativ`", "native, backoff", "usync", "empty"]);
    assert_said(&["bench", "--locks", "std,,tas"], &["``", "native, backoff"]);
}

#[test]
fn a_lock_of_the_other_kind_is_answered_with_those_that_fit() {
    assert_said(&["bench", "--locks", "std-rw"], &["--workload rw", "std"]);
    assert_said(
        &["bench", "--workload", "rw", "--locks", "std"],
        &["no reader-writer lock", "queued-rw, paravirt-rw, std-rw, parking_lot-rw, pthread-rw"],
    );
}

#[test]
fn threads_are_one_to_many() {
    for wrong in ["0", "5000", "-1", "two", "1,,2", "1.5", "99999999999999999999"] {
        assert_said(&["bench", "--threads", wrong], &["1 to 4096", "1,2,4,8"]);
    }
}

#[test]
fn durations_have_a_unit() {
    for wrong in ["100", "1h", "ns", "1ns2", "-5ns", "2s"] {
        assert_said(&["bench", &format!("--critical={wrong}")], &["1s"]);
        assert_said(&["bench", &format!("--outside={wrong}")], &["1s"]);
    }
    assert_said(&["bench", "--critical", "100"], &["no unit", "100ns, 2us, 1.5ms or 1s"]);
}

#[test]
fn other_values_have_a_range() {
    assert_said(&["bench", "--seconds", "0"], &["0.001 to 3600"]);
    assert_said(&["bench", "--seconds", "soon"], &["0.1"]);
    assert_said(&["bench", "--rounds", "0"], &["1..=10000"]);
    assert_said(&["bench", "--critical", "-5ns"], &["`-5ns` is no duration", "100ns, 2us"]);
    assert_said(&["bench", "--seconds", "-1s"], &["`-1s`", "0.1"]);
    assert_said(&["bench", "--overcommit", "-2x"], &["1x, 2x, 3x or 4x"]);
    assert_said(&["bench", "--seed", "-1"], &["from 0 to 18446744073709551615"]);
    assert_said(&["bench", "--lines", "0"], &["1..=4096"]);
    assert_said(&["bench", "--hogs", "-1"], &["0..=1024"]);
    assert_said(&["bench", "--pin", "D"], &["A, B, C"]);
    assert_said(&["bench", "--overcommit", "5x"], &["1x, 2x, 3x or 4x"]);
    assert_said(&["bench", "--overcommit", "2x", "--hogs", "1"], &["--hogs", "--overcommit"]);
    assert_said(&["bench", "--workload", "sleep"], &["lengths", "locktorture", "rw"]);
    assert_said(&["bench", "--peers", "go"], &["none, rust, c"]);
}

#[test]
fn remedies_are_four_and_exclude_what_sets_the_same() {
    assert_said(&["bench", "--remedy", "d"], &["`d` is no remedy", "none, a, b, c"]);
    assert_said(&["bench", "--remedy", ""], &["`` is no remedy"]);
    assert_said(&["bench", "--remedy", "a", "--steps"], &["--remedy", "--steps"]);
    assert_said(&["bench", "--remedy", "a", "--workload", "rw"], &["--remedy", "lengths"]);
    assert_said(
        &["bench", "--remedy", "a", "--tune", "queue_yields=2"],
        &["--remedy sets queue_yields itself"],
    );
    assert_said(
        &["bench", "--remedy", "a", "--locks", "ticket"],
        &["nothing is left to measure: ticket a is left out: its waiters do not yield"],
    );
}

#[test]
fn tunables_have_names_and_ranges() {
    assert_said(&["bench", "--tune", "kickahead=2"], &["`kickahead`", "kick_ahead?", "--tunables"]);
    assert_said(&["bench", "--tune", "moon=full"], &["`moon`", "owner_polls, ", "rotate_turns"]);
    assert_said(&["bench", "--tune", "kick_ahead=6"], &["kick_ahead", "0 to 5", "default is 0"]);
    assert_said(
        &["bench", "--tune", "kick_ahead=2,defer=sometimes"],
        &["`sometimes`", "never, conditions or always", "default is always"],
    );
    assert_said(&["bench", "--tune", "pending"], &["no value", "off or on"]);
    assert_said(&["bench", "--tune", "-5"], &["name=value"]);
    assert_said(
        &["bench", "--tune", "kick_ahead=2", "--tune", "kick_ahead=2"],
        &["kick_ahead twice"],
    );
    assert_said(
        &["bench", "--locks", "std,tas", "--tune", "cull_polls=2"],
        &["--tune cull_polls=2 says nothing to these locks: add paravirt or cna-paravirt"],
    );
    assert_said(&["bench", "--workload", "rw", "--tune", "pending=off"], &["add paravirt-queued"]);
}

#[test]
fn series_decide_for_themselves() {
    assert_said(&["bench", "--steps=backwards"], &["series, reviewed, numa"]);
    assert_said(&["bench", "--steps", "--locks", "native"], &["leave out --locks"]);
    assert_said(&["bench", "--steps", "--peers", "none"], &["--steps", "--peers"]);
    assert_said(&["bench", "--steps", "--kick-ahead", "1"], &["--steps", "--kick-ahead"]);
    assert_said(&["bench", "--steps", "--tune", "defer=always"], &["sets defer itself"]);
    assert_said(
        &["bench", "--kick-ahead", "1", "--tune", "kick_ahead=1"],
        &["--kick-ahead sets kick_ahead itself"],
    );
    for series in [&["--steps"][..], &["--kick-ahead", "0..5"]] {
        for workload in ["rw", "kernel-lock-bench"] {
            let args = [&["bench", "--workload", workload], series].concat();
            assert_said(&args, &[series[0], "lengths or locktorture"]);
        }
    }
    for wrong in ["6", "0..6", "5..0", "-1", "all", ""] {
        assert_said(&["bench", "--kick-ahead", wrong], &["0..5", "0,2,4 or 3"]);
    }
    for locks in ["native", "paravirt,paravirt-queued", "nothing"] {
        assert_said(
            &["bench", "--kick-ahead", "1", "--locks", locks],
            &[
                "one lock: name paravirt, paravirt-stealing, paravirt-queued, cna-paravirt or paravirt-rw",
            ],
        );
    }
}

#[test]
fn the_threshold_of_the_numa_aware_locks_is_a_time() {
    let wrong = [
        ("0", "give 1ns to 1s"),
        ("0ms", "give 1ns to 1s"),
        ("2s", "at most 1s"),
        ("99999999999999999999ms", "at most 1s"),
        ("10", "no unit"),
        ("soon", "no duration"),
        ("-1ms", "no duration"),
        ("1h", "no unit of time"),
        ("", "no duration"),
    ];
    for (wrong, right) in wrong {
        assert_said(&["bench", "--numa-threshold", wrong], &["--numa-threshold <TIME>", right]);
    }
    assert_said(
        &["bench", "--numa-threshold", "1ms", "--tune", "numa_threshold_ns=5"],
        &["--tune and --numa-threshold both set numa_threshold_ns", "give one of them"],
    );
    assert_said(
        &["bench", "--locks", "native,paravirt", "--numa-threshold", "1ms"],
        &["--numa-threshold numa_threshold_ns=1000000 says nothing", "add cna or cna-paravirt"],
    );
    assert_said(
        &["bench", "--steps=numa", "--numa-threshold", "1ms"],
        &["--steps sets numa_threshold_ns itself: leave out --numa-threshold"],
    );
    assert_said(
        &["bench", "--steps=numa", "--tune", "numa_skip_bits=1"],
        &["--steps sets numa_skip_bits itself: leave it out of --tune"],
    );
    // What another series sets is nothing to this one's locks.
    assert_said(&["bench", "--steps=numa", "--tune", "defer=never"], &["says nothing"]);
}

#[test]
fn a_made_up_topology_has_a_form() {
    for wrong in ["2x", "0x1x1", "nodes", "2x1x1x1", "/nowhere/at/all"] {
        for workload in ["lengths", "torture"] {
            let directory = tempfile::tempdir().unwrap();
            let output = Command::cargo_bin("qspin")
                .unwrap()
                .env("QSPIN_TOPOLOGY", wrong)
                .args(["bench", "--locks", "cna", "--workload", workload])
                .current_dir(&directory)
                .output()
                .unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{wrong}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{wrong}: {stderr}");
            assert!(stderr.contains(&format!("QSPIN_TOPOLOGY={wrong}")), "{stderr}");
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn a_lock_that_counts_nothing_has_no_statistics() {
    assert_said(&["bench", "--stats", "--locks", "std"], &["add one of qspin's own"]);
    assert_said(
        &["bench", "--stats", "--workload", "kernel-lock-bench"],
        &["--stats", "--workload lengths"],
    );
}

#[test]
fn ratios_fit_their_workload() {
    assert_said(&["bench", "--ratio", "backoff/tas"], &["--workload kernel-lock-bench"]);
    assert_said(&["bench", "--workload", "rw", "--ratio", "a/b"], &["--ratio 9:1"]);
    assert_said(
        &["bench", "--workload", "kernel-lock-bench", "--ratio", "9:1"],
        &["--ratio backoff/tas"],
    );
    assert_said(
        &["bench", "--workload", "kernel-lock-bench", "--ratio", "backoff/nothing"],
        &["`nothing`", "native, backoff, tas"],
    );
    assert_said(&["bench", "--workload", "rw", "--ratio", "0:0"], &["not both 0"]);
    assert_said(&["bench", "--ratio", "tas/tas"], &["with itself"]);
}

#[test]
fn what_would_have_no_effect_is_refused() {
    for workload in ["locktorture", "kernel-lock-bench"] {
        for option in [["--critical", "1us"], ["--outside", "1us"], ["--lines", "2"]] {
            let args = ["bench", "--workload", workload, option[0], option[1]];
            assert_said(&args, &[option[0], workload, "--workload lengths"]);
        }
    }
    assert_said(&["bench", "--workload", "rw", "--lines", "2"], &["--lines says nothing to rw"]);
    assert_said(&["bench", "--locks", "peers", "--peers", "none"], &["add --peers rust"]);
    let grid = ["bench", "--quick", "--workload", "kernel-lock-bench"];
    assert_said(&grid, &["leave out --quick"]);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_measuring() {
    for option in ["--out", "--report"] {
        assert_said(&["bench", option, "missing/run"], &["missing/run", "directory that exists"]);
        assert_said(&["bench", option, "."], &["it is a directory"]);
        assert_said(&["bench", option, "/dev/null"], &["not a regular file"]);
        assert_said(&["bench", option, "a/"], &["not the name of a file"]);
        assert_said(&["bench", option, "-"], &["go to files only"]);
        assert_said(&["bench", option, &"x".repeat(300)], &["too long"]);
    }
    assert_said(&["bench", "--out", "run", "--report", "./run"], &["give two files"]);
}

#[cfg(not(feature = "peers-c"))]
#[test]
fn c_peers_need_a_build_with_them() {
    for args in [["bench", "--peers", "c"], ["bench", "--locks", "tbb_spin"]] {
        assert_said(&args, &["--features peers-c", "libtbb-dev"]);
    }
}

#[test]
fn unknown_words_are_one_line_too() {
    assert_said(&["bensh"], &["bensh", "bench"]);
    assert_said(&["bench", "--thread", "2"], &["--threads"]);
    assert_said(&["bench", "extra"], &["extra", "Usage: qspin bench"]);
}

#[test]
fn a_matrix_decides_for_itself() {
    // As it was called before.
    assert_said(&["bench", "--grid", "quick", "--hogs", "2"], &["leave out --hogs"]);
    assert_said(&["bench", "--matrix", "all"], &["default", "quick", "disturbed", "rwlock"]);
    assert_said(&["bench", "--matrix", "default", "--quick"], &["--matrix quick"]);
    assert_said(&["bench", "--matrix", "default", "--hogs", "2"], &["leave out --hogs"]);
    assert_said(&["bench", "--matrix", "rwlock", "--workload", "rw"], &["leave out --workload"]);
    assert_said(&["bench", "--matrix", "quick", "--locks", "mutex,tas"], &["std", "parking_lot"]);
    assert_said(&["bench", "--matrix", "quick", "--locks", "std-rw"], &["--matrix rwlock"]);
    assert_said(&["bench", "--matrix", "quick", "--locks", "floor,std"], &["one thread only"]);
    assert_said(&["bench", "--table", "/tmp/matrix.md"], &["--matrix default"]);
    assert_said(&["bench", "--matrix", "quick", "--table", "/no/such/file.md"], &["/no/such"]);
}

#[test]
fn a_baseline_is_a_run_of_bench_under_one_load() {
    assert_said(&["bench", "--baseline", "none.jsonl"], &["none.jsonl", "qspin bench --out"]);
    assert_said(
        &["bench", "--baseline", "x", "--random", "3"],
        &["--baseline", "leave out --random"],
    );
    assert_said(&["bench", "--baseline", "x", "--quick"], &["leave out --quick without a load"]);
    assert_said(&["bench", "--baseline", "x", "--steps"], &["leave out --steps"]);
}

#[test]
fn manual_pages_go_into_a_directory_that_is_there() {
    assert_said(&["manual", "nowhere"], &["nowhere is no directory"]);
}
