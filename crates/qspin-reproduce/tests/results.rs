//! `data/results/accuracy.md` is what the program says today.

use qspin_reproduce::run::{cells_of, planned, simulate, verdicts};
use qspin_reproduce::{Constants, show, tables};

const RESULTS: &str = include_str!("../../../data/results/accuracy.md");
const HOW: &str = "stale: qspin reproduce --all --markdown > data/results/accuracy.md";

/// Tables that take little to simulate, of different locks and machines.
const QUICK: [&str; 5] = ["000-latencies", "001-A", "002-lock2", "004-single", "002-fsmark-fsync"];

#[test]
fn tables_that_are_simulated_anew_are_those_of_the_file() {
    let constants = Constants::frozen().unwrap();
    let planned = planned(&QUICK, &constants).unwrap();
    let cells: Vec<_> = cells_of(&planned).collect();
    let (figures, failed) = simulate(&cells, 1, || false, || ());
    assert!(failed.is_empty(), "{failed:?}");
    let verdicts = verdicts(&planned, figures);
    assert_eq!(verdicts.len(), QUICK.len());
    for verdict in verdicts {
        let section = show::section(&verdict, &constants);
        assert!(RESULTS.contains(&section), "{HOW}\nnow: {section}");
    }
}

/// What is fitted and what is predicted of a table that takes long is seen in its head.
#[test]
fn every_table_is_there_with_the_constants_of_today() {
    let constants = Constants::frozen().unwrap();
    for table in tables() {
        let head = show::fitted(table, &constants);
        assert!(RESULTS.contains(&format!("\n## {table} (")), "{HOW}: {table}");
        assert!(RESULTS.contains(&head), "{HOW}: {head}");
    }
}
