//! Constructed runs, each with one right answer.

use super::*;
use crate::report::group::groups;
use crate::row::{Fairness, Machine, Row, WaitNs};

mod choice;
mod collapse;

pub(crate) fn machine(cpus: u32) -> Machine {
    serde_json::from_value(serde_json::json!({
        "schema": 1, "kind": "machine", "version": "0", "command": [], "seed": 0,
        "started": "2026-01-01T00:00:00Z", "cpu": "Test CPU", "cpus": cpus, "numa_nodes": 1,
        "hypervisor": "none", "quota_cpus": null, "kernel": "6", "governor": null, "load": 0.0,
    }))
    .unwrap()
}

/// A fair row with intervals of one in a hundred.
pub(crate) fn row(lock: &str, threads: u32, ops: f64) -> Row {
    Row {
        ops_per_s: Interval { median: ops, lo: ops * 0.99, hi: ops * 1.01 },
        wait_ns: Some(waits(1e4)),
        fairness: Fairness { max_min: Some(1.2), factor: 0.52 },
        fairness_s: None,
        ..serde_json::from_value(serde_json::json!({
            "schema": 1, "kind": "bench", "workload": "lengths", "lock": lock, "threads": threads,
            "critical_ns": 100.0, "outside_ns": 100.0, "lines": 1, "pin": "B", "hogs": 0,
            "rounds": 9, "ops_per_s": {"median": 1.0, "lo": 1.0, "hi": 1.0}, "wait_ns": null,
            "fairness": {"max_min": 1.0, "factor": 0.5}, "cpu_ns_per_op": null,
            "overhead_ns_per_op": null,
        }))
        .unwrap()
    }
}

fn waits(worst: f64) -> WaitNs {
    serde_json::from_value(serde_json::json!({
        "p50": 100.0, "p99": 1e3, "p999": 5e3, "max": worst * 2.0, "worst_thread_p999": worst,
    }))
    .unwrap()
}

fn wide(mut row: Row, share: f64) -> Row {
    let median = row.ops_per_s.median;
    row.ops_per_s = Interval { median, lo: median * (1.0 - share), hi: median * (1.0 + share) };
    row
}

fn unfair(mut row: Row, max_min: Option<f64>, factor: f64) -> Row {
    row.fairness = Fairness { max_min, factor };
    row
}

fn late(mut row: Row, worst: f64) -> Row {
    row.wait_ns = Some(waits(worst));
    row
}

fn judged(cpus: u32, rows: &[Row]) -> Judgement {
    judge(&groups(&machine(cpus), rows)[0])
}

fn names(judged: &Judged) -> Vec<&str> {
    judged.recommended().iter().map(|score| score.name.as_str()).collect()
}

#[test]
fn a_clear_winner_is_named_with_its_lead() {
    let rows = [row("a", 2, 4e6), row("b", 2, 2e6), row("c", 2, 1e6)];
    let found = judged(2, &rows);
    assert_eq!(found.cases[0].case, Case::Fits);
    assert_eq!(names(&found.cases[0]), ["a"]);
    let words = verdict(&machine(2), &rows);
    assert!(
        words.contains("take `a`: 4 M operations a second, 2.0 times the next, `b`"),
        "{words}"
    );
}

/// The same from `rounds` rounds.
fn after(rounds: u32, rows: &[Row]) -> Vec<Row> {
    rows.iter().map(|row| Row { rounds, ..row.clone() }).collect()
}

#[test]
fn too_few_rounds_tell_no_locks_apart() {
    let rows = [row("a", 1, 4e6), row("b", 1, 2e6), row("a", 2, 4e6), row("b", 2, 2e6)];
    for rounds in 1..6 {
        let words = verdict(&machine(2), &after(rounds, &rows));
        assert_eq!(words.matches("too few rounds to tell locks apart").count(), 2, "{words}");
        for certain in ["take `", "times the next", "no clear difference", "Not sure"] {
            assert!(!words.contains(certain), "{words}");
        }
    }
    assert!(verdict(&machine(2), &after(6, &rows)).contains("take `a`"));
}

#[test]
fn a_collapse_needs_no_interval_where_chance_makes_none() {
    let fallen = |ops| [row("mcs", 2, 4e6), row("mcs", 8, ops), row("std", 8, 4e6)];
    let words = |rounds, ops| verdict(&machine(2), &after(rounds, &fallen(ops)));
    assert!(words(1, 1e4).contains("Collapse: with 8 threads on 2 CPUs `mcs`"));
    assert!(!words(1, 6e5).contains("Collapse"));
    assert!(words(6, 6e5).contains("Collapse"));
}

#[test]
fn overlapping_intervals_are_no_clear_difference() {
    let rows = [wide(row("a", 2, 4e6), 0.1), wide(row("b", 2, 3.7e6), 0.1), row("c", 2, 1e6)];
    let found = judged(2, &rows);
    assert_eq!(names(&found.cases[0]), ["a", "b"]);
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("no clear difference between `a` and `b`"), "{words}");
    assert!(!words.contains("`c`"), "{words}");
}

#[test]
fn what_may_be_much_worse_is_not_recommended_beside_what_is_near() {
    let rows =
        [wide(row("a", 2, 4e6), 0.6), wide(row("b", 2, 3.5e6), 0.6), wide(row("c", 2, 1.5e6), 0.6)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["a", "b"]);
    // But with nothing nearer, an overlap is an overlap.
    let rows = [wide(row("a", 2, 4e6), 0.6), wide(row("c", 2, 1.5e6), 0.6)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["a", "c"]);
}

#[test]
fn a_sure_difference_of_a_hundredth_is_none() {
    let rows = [wide(row("a", 1, 4e6), 0.001), wide(row("b", 1, 3.96e6), 0.001)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["a", "b"]);
}

#[test]
fn equal_locks_are_ordered_by_name_whatever_the_order_of_the_rows() {
    let rows = [row("b", 1, 4e6), row("a", 1, 4e6)];
    let turned = [row("a", 1, 4e6), row("b", 1, 4e6)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["a", "b"]);
    assert_eq!(verdict(&machine(2), &rows), verdict(&machine(2), &turned));
}

#[test]
fn three_cases_are_judged_apart() {
    let rows = [
        row("a", 1, 9e6),
        row("b", 1, 5e6),
        row("a", 2, 3e6),
        row("b", 2, 4e6),
        row("a", 8, 2e6),
        row("b", 8, 3e6),
    ];
    let cases: Vec<Case> = judged(2, &rows).cases.iter().map(|judged| judged.case).collect();
    assert_eq!(cases, [Case::Alone, Case::Fits, Case::Over]);
    let winners: Vec<String> =
        judged(2, &rows).cases.iter().map(|judged| names(judged).concat()).collect();
    assert_eq!(winners, ["a", "b", "b"]);
}

#[test]
fn the_all_rounder_is_the_lock_with_the_best_worst_case() {
    let rows = [
        row("specialist", 1, 10e6),
        row("specialist", 8, 0.1e6),
        row("all-rounder", 1, 8e6),
        row("all-rounder", 8, 3.6e6),
        row("crowd", 1, 3e6),
        row("crowd", 8, 4e6),
    ];
    let best = judged(2, &rows).all_round.unwrap();
    assert_eq!(best.names, ["all-rounder"]);
    assert!((best.at_least - 0.8).abs() < 1e-9);
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("Take `all-rounder`: at least 0.80 of the best"), "{words}");
}

#[test]
fn a_tie_in_every_case_is_the_all_round_choice() {
    let rows = [
        wide(row("a", 1, 9e6), 0.2),
        wide(row("a", 8, 4e6), 0.2),
        wide(row("b", 1, 8e6), 0.2),
        wide(row("b", 8, 4.4e6), 0.2),
        row("c", 1, 9e6),
        row("c", 8, 1e6),
    ];
    let best = judged(2, &rows).all_round.unwrap();
    assert_eq!((best.names.as_slice(), best.level), (&["a".to_owned(), "b".to_owned()][..], true));
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("Take `a` or `b`: none is clearly worse than the best"), "{words}");
    assert!(words.contains("Noisy: half of the 95 % intervals are wider than 0.40"), "{words}");
}

#[test]
fn several_that_starve_share_a_sentence() {
    let rows = [
        unfair(row("x", 2, 9e6), None, 1.0),
        unfair(row("y", 2, 8e6), Some(30.0), 0.8),
        row("fair", 2, 4e6),
    ];
    let words = verdict(&machine(2), &rows);
    assert!(
        words.contains(
            "Left out: `x` and `y` look fast, but starve threads; with 2 threads `x` left a \
             thread without a single turn."
        ),
        "{words}"
    );
}

#[test]
fn a_busy_machine_hides_no_collapse() {
    let noisy = |lock: &str, threads: u32, ops: f64| Row {
        ops_per_s: Interval { median: ops, lo: 0.0, hi: ops * 1.2 },
        ..row(lock, threads, ops)
    };
    let rows = [
        noisy("native", 2, 4e6),
        noisy("native", 8, 70.0),
        noisy("std", 2, 4e6),
        row("std", 8, 4e6),
    ];
    assert!(judged(2, &rows).collapse.is_some());
}

#[test]
fn a_lock_that_starves_is_left_out_and_named() {
    for starving in [
        unfair(row("greedy", 2, 9e6), None, 1.0),
        unfair(row("greedy", 2, 9e6), Some(12.0), 0.8),
        unfair(row("greedy", 2, 9e6), Some(5.0), 0.95),
    ] {
        let rows = [starving, row("fair", 2, 4e6), row("slow", 2, 1e6)];
        assert_eq!(names(&judged(2, &rows).cases[0]), ["fair"]);
        let words = verdict(&machine(2), &rows);
        assert!(words.contains("Left out: `greedy` looks fast, but with 2 threads it"), "{words}");
    }
}

#[test]
fn a_slow_lock_that_starves_needs_no_word() {
    let rows = [row("fair", 2, 4e6), unfair(row("greedy", 2, 1e6), Some(50.0), 0.9)];
    assert!(!verdict(&machine(2), &rows).contains("greedy"));
}

#[test]
fn one_thread_that_waits_for_ages_is_starvation_too() {
    let rows = [late(row("greedy", 8, 9e6), 2e9), row("fair", 8, 4e6), row("slow", 8, 1e6)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["fair"]);
    // Where all wait for ages, it is the machine and not the lock.
    let rows =
        [late(row("a", 8, 9e6), 2e9), late(row("b", 8, 4e6), 1e9), late(row("c", 8, 1e6), 1e9)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["a"]);
}

#[test]
fn where_every_lock_starves_none_is_recommended() {
    let rows = [unfair(row("a", 2, 9e6), Some(50.0), 0.9), unfair(row("b", 2, 8e6), None, 1.0)];
    let found = judged(2, &rows);
    assert_eq!(found.cases[0].outcome, Outcome::NoneFit(0));
    let words = verdict(&machine(2), &rows);
    assert!(words.contains("no lock is good here: the fastest is `a`"), "{words}");
    assert!(!words.contains("take `"), "{words}");
}

#[test]
fn a_lock_that_starves_in_one_case_is_no_all_rounder() {
    let rows = [
        row("greedy", 1, 9e6),
        unfair(row("greedy", 2, 9e6), None, 1.0),
        row("fair", 1, 8e6),
        row("fair", 2, 4e6),
    ];
    assert_eq!(judged(2, &rows).all_round.unwrap().names, ["fair"]);
}

#[test]
fn the_harness_is_never_a_contender() {
    let rows =
        [row("empty", 1, 99e6), row("floor", 1, 50e6), row("native", 1, 40e6), row("std", 1, 20e6)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["native"]);
    let words = verdict(&machine(2), &rows);
    assert!(!words.contains("empty") && !words.contains("floor"), "{words}");
    let only = [row("empty", 1, 99e6)];
    assert!(verdict(&machine(2), &only).contains("nothing to compare"));
}

#[test]
fn one_lock_alone_wins_nothing() {
    let words = verdict(&machine(2), &[row("native", 1, 40e6)]);
    assert!(words.contains("only `native` was measured, 40 M operations a second"), "{words}");
    assert!(!words.contains("take"), "{words}");
}

#[test]
fn a_single_thread_needs_no_words_on_fairness_or_collapse() {
    let words = verdict(&machine(1), &[row("a", 1, 4e6), row("b", 1, 2e6)]);
    assert_eq!(words.lines().count(), 2, "{words}");
    assert!(words.lines().nth(1).unwrap().starts_with("  1 thread: take `a`"), "{words}");
}

#[test]
fn equal_throughput_is_decided_by_the_cost_of_the_lock_alone() {
    let cost = |lock: &str, ns: f64| Row {
        uncontended_ns: Some(Interval { median: ns, lo: ns * 0.99, hi: ns * 1.01 }),
        ..row(lock, 1, 4e6)
    };
    let words = verdict(&machine(2), &[cost("a", 5.0), cost("b", 3.0), cost("c", 3.02)]);
    assert!(words.contains("a lock and an unlock cost least with `b` and `c`, 3 ns"), "{words}");
}

#[test]
fn a_lock_that_misses_a_number_of_threads_is_not_compared_in_that_case() {
    let rows = [row("a", 4, 4e6), row("a", 8, 4e6), row("b", 4, 9e6)];
    assert_eq!(names(&judged(2, &rows).cases[0]), ["a"]);
}

#[test]
fn quota_hogs_and_pinning_take_cpus_away() {
    let rows = [row("a", 2, 4e6), row("b", 2, 3e6)];
    let over = |machine: &Machine, rows: &[Row]| judge(&groups(machine, rows)[0]).cases[0].case;
    assert_eq!(over(&machine(4), &rows), Case::Fits);
    let quota = Machine { quota_cpus: Some(1.5), ..machine(4) };
    assert_eq!(over(&quota, &rows), Case::Over);
    let hogs = rows.clone().map(|row| Row { hogs: 3, ..row });
    assert_eq!(over(&machine(4), &hogs), Case::Over);
    let half = rows.clone().map(|row| Row { pin: "C".into(), ..row });
    assert_eq!(over(&machine(2), &half), Case::Over);
    let simulated = rows.map(|row| Row {
        kind: "simulate".into(),
        params: [("cpus".to_owned(), 1.into())].into(),
        ..row
    });
    assert_eq!(over(&machine(4), &simulated), Case::Over);
}

#[test]
fn hogs_that_vary_with_the_threads_are_one_setting() {
    let overcommitted = |threads: u32, hogs: u32| Row {
        hogs,
        params: [("overcommit".to_owned(), 2.into())].into(),
        ..row("a", threads, 1e6)
    };
    let rows = [overcommitted(1, 3), overcommitted(2, 2)];
    let found = groups(&machine(2), &rows);
    assert_eq!(found.len(), 1);
    assert_eq!(judge(&found[0]).cases.len(), 1);
    assert_eq!(judge(&found[0]).cases[0].case, Case::Over);
}

#[test]
fn where_the_rows_come_from_is_said() {
    let mark = |kind: &str| verdict(&machine(2), &[Row { kind: kind.into(), ..row("a", 1, 1e6) }]);
    assert!(mark("simulate").contains("[SIMULATED]"));
    assert!(mark("vm").contains("[GUEST]"));
    assert!(!mark("bench").contains('['));
}

#[test]
fn an_interrupted_run_says_so() {
    let words = verdict(&machine(2), &[Row { partial: true, rounds: 3, ..row("a", 1, 1e6) }]);
    assert!(
        words.contains("Partial: the run was interrupted; some figures rest on 3 rounds"),
        "{words}"
    );
}

#[test]
fn tuned_variants_of_a_lock_compete() {
    let tuned = Row { tune: [("cap".to_owned(), 64.into())].into(), ..row("backoff", 2, 8e6) };
    let words = verdict(&machine(2), &[row("backoff", 2, 4e6), tuned]);
    assert!(words.contains("take `backoff [cap=64]`"), "{words}");
}

#[test]
fn many_settings_get_a_line_each() {
    let rows: Vec<Row> = (1..=6)
        .flat_map(|outside| {
            ["a", "b"].map(|lock| Row { outside_ns: f64::from(outside), ..row(lock, 2, 1e6) })
        })
        .collect();
    let words = verdict(&machine(2), &rows);
    assert_eq!(words.lines().count(), 6, "{words}");
    assert!(words.contains("2 threads, a CPU for each: `a` or `b`"), "{words}");
}

#[test]
fn no_rows_no_verdict() {
    assert_eq!(verdict(&machine(2), &[]), "No lock was measured.");
}

#[test]
fn rows_in_which_threads_starve_are_told() {
    let rows = [row("a", 2, 4e6), unfair(row("b", 2, 9e6), None, 1.0), row("a", 1, 4e6)];
    let found: Vec<&str> =
        starving(&machine(2), &rows).iter().map(|row| row.lock.as_str()).collect();
    assert_eq!(found, ["b"]);
}

#[test]
fn rounds_tell_locks_apart_whose_intervals_overlap() {
    // The machine halves its speed in every other round.
    let disturbed = |lock, threads, ops: f64| {
        let rounds = [1.0, 0.5, 1.01, 0.49, 0.99, 0.51].map(|speed| ops * speed);
        let row = Row { rounds: 6, ..wide(row(lock, threads, ops * 0.75), 0.4) };
        Row { round_ops_per_s: rounds.to_vec(), ..row }
    };
    for threads in [&[2][..], &[4, 8]] {
        let mut rows: Vec<Row> = threads.iter().map(|&n| disturbed("a", n, 4.4e6)).collect();
        rows.extend(threads.iter().map(|&n| disturbed("b", n, 4e6)));
        assert_eq!(names(&judged(2, &rows).cases[0]), ["a"]);
        for row in &mut rows {
            row.round_ops_per_s.clear();
        }
        assert_eq!(names(&judged(2, &rows).cases[0]), ["a", "b"]);
    }
}
