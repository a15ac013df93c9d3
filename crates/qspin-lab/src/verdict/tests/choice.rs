//! Constructed runs over several loads, each with one right choice.

use super::{machine, row};
use crate::bench::random::{CELL, SEED};
use crate::row::Row;
use crate::verdict::choice::choose;

/// Rounds of a figure, a little apart.
fn rounds(ops: f64, noise: f64) -> Vec<f64> {
    [-1.0, 0.3, -0.2, 1.0, 0.1, -0.4, 0.5].map(|at| ops * (1.0 + noise * at)).to_vec()
}

/// Two loads: each lock's throughput under the first and the second.
fn run(locks: &[(&str, f64, f64)], noise: f64) -> Vec<Row> {
    let under = |load: u32, threads| {
        locks.iter().enumerate().map(move |(at, (lock, first, second))| {
            let ops = if load == 1 { *first } else { *second };
            let mut row = row(lock, threads, ops);
            row.round_ops_per_s = rounds(ops, noise);
            // Paired rounds of the same noise would be no noise.
            row.round_ops_per_s.rotate_left(at);
            row.rounds = row.round_ops_per_s.len() as u32;
            row.params.insert(CELL.to_owned(), load.into());
            row.params.insert(SEED.to_owned(), 1.into());
            row
        })
    };
    under(1, 2).chain(under(2, 8)).collect()
}

fn said(rows: &[Row]) -> String {
    choose(&machine(2), rows).unwrap().sentences().join("\n")
}

fn taken(rows: &[Row]) -> Option<String> {
    choose(&machine(2), rows).unwrap().taken().map(str::to_owned)
}

#[test]
fn ours_is_taken_where_it_is_clearly_better() {
    let rows = run(&[("mutex", 4e6, 3e6), ("std", 3e6, 2e6), ("parking_lot", 4e6, 3e6)], 0.005);
    let said = said(&rows);
    assert!(said.starts_with("Take `mutex` in place of `std`, over these 2 loads."), "{said}");
    assert!(said.contains("`mutex` does 1.42 times `std` [1.41, 1.42]\n"), "{said}");
    assert!(said.contains("1.00 times `parking_lot` [1.00, 1.00]: no clear difference"), "{said}");
    assert!(said.contains("`mutex` clearly loses none of the loads."), "{said}");
    assert!(said.contains("In Rust `qspin::Mutex`"), "{said}");
    assert!(said.contains("`qspin_mutex_t`") && said.contains("--lock mutex"), "{said}");
}

#[test]
fn where_ours_lose_the_reader_keeps_what_there_is() {
    let rows = run(&[("mutex", 4e6, 3e6), ("std", 5e6, 3e6), ("parking_lot", 2e6, 1e6)], 0.005);
    let said = said(&rows);
    assert_eq!(taken(&rows), None);
    assert!(said.starts_with("Keep what you have: over these 2 loads `std` is clearly"), "{said}");
    assert!(said.contains("clearly loses 1 of the loads:\n  2 threads, 100 ns"), "{said}");
    assert!(said.contains(": 0.80 times `std`"), "{said}");
}

#[test]
fn where_all_are_level_the_reader_keeps_what_there_is() {
    let rows = run(&[("mutex", 4e6, 3e6), ("std", 4e6, 3e6)], 0.005);
    assert!(said(&rows).starts_with("Keep what you have: over these 2 loads the best of ours"));
    assert_eq!(taken(&rows), None);
}

#[test]
fn noise_and_too_few_rounds_recommend_nothing() {
    let noisy = run(&[("mutex", 4e6, 3e6), ("std", 3.6e6, 2.7e6)], 0.4);
    let mut few = run(&[("mutex", 4e6, 3e6), ("std", 2e6, 1e6)], 0.005);
    for row in &mut few {
        row.round_ops_per_s.truncate(5);
        row.rounds = 5;
    }
    for rows in [noisy, few] {
        assert!(said(&rows).starts_with("Cannot tell on this machine now: "), "{}", said(&rows));
        assert_eq!(taken(&rows), None);
    }
    // A difference that is larger than the noise is one.
    let noisy = run(&[("mutex", 40e6, 30e6), ("std", 4e6, 3e6)], 0.4);
    assert_eq!(taken(&noisy).as_deref(), Some("mutex"));
}

#[test]
fn another_of_ours_must_be_clearly_better_than_the_default() {
    let near = [("paravirt", 4.02e6, 3.02e6), ("mutex", 4e6, 3e6), ("std", 3e6, 2e6)];
    assert_eq!(taken(&run(&near, 0.005)).as_deref(), Some("mutex"));
    let far = [("paravirt", 6e6, 5e6), ("mutex", 4e6, 3e6), ("std", 3e6, 2e6)];
    assert_eq!(taken(&run(&far, 0.005)).as_deref(), Some("paravirt"));
    assert!(said(&run(&far, 0.005)).contains("In Rust `qspin::paravirt::Mutex`"));
}

#[test]
fn a_lock_that_starves_or_collapses_is_neither_taken_nor_a_measure() {
    // The fastest on average, and it leaves a thread without a turn.
    let mut rows = run(
        &[("mutex", 4e6, 3e6), ("paravirt", 9e6, 9e6), ("std", 5e6, 5e6), ("pthread", 3e6, 2e6)],
        0.005,
    );
    for row in rows.iter_mut().filter(|row| ["paravirt", "std"].contains(&row.lock.as_str())) {
        row.fairness.max_min = None;
    }
    let words = said(&rows);
    assert!(words.starts_with("Take `mutex` in place of `std` or `pthread`"), "{words}");
    assert!(words.contains("`paravirt` starves threads under 2 threads"), "{words}");
    // 28 operations a second, in strict order: it is slow, and starves none.
    let mut rows = run(&[("mutex", 4e6, 3e6), ("native", 4e6, 28.0), ("std", 2e6, 2e6)], 0.005);
    for row in rows.iter_mut().filter(|row| row.lock == "native" && row.threads == 8) {
        row.fairness.max_min = None;
    }
    let words = said(&rows);
    assert_eq!(taken(&rows).as_deref(), Some("mutex"));
    assert!(words.contains("`native` collapses under 8 threads"), "{words}");
    assert!(words.contains("28 operations a second"), "{words}");
    assert!(!words.contains("`native` starves"), "{words}");
}

#[test]
fn with_none_of_ours_or_none_of_theirs_there_is_nothing_to_choose() {
    for alone in ["mutex", "std"] {
        let rows = run(&[(alone, 4e6, 3e6)], 0.005);
        assert!(said(&rows).starts_with("Nothing to choose"), "{}", said(&rows));
    }
    let rows = run(&[("native", 4e6, 28.0), ("std", 4e6, 3e6)], 0.005);
    assert!(said(&rows).starts_with("Keep what you have: none of our locks"), "{}", said(&rows));
    assert_eq!(choose(&machine(2), &[]), None);
}
