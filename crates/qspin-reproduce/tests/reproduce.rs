//! The rules of the reproduction: what is fitted is not predicted, and the same seed finds the same.

use std::collections::BTreeSet;

use qspin_reproduce::{Constants, Role, calibrate, cells, published, studies, study_of, tables};
use qspin_sim::Machine;
use qspin_sim::catalog::Named;

fn constants() -> Constants {
    Constants::frozen().unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn every_table_has_a_study_and_cells_that_are_possible() {
    assert_eq!(tables().count(), 25);
    for name in tables() {
        assert!(study_of(name).is_some(), "{name}");
        let table = published::table(name).unwrap();
        let mut seen = BTreeSet::new();
        for plan in cells(&table, &constants()).unwrap() {
            assert!(seen.insert((plan.row, plan.column)), "{name}: a cell has one role");
            assert!(table.values.contains(&plan.column), "{name}: only what was measured");
            for scenario in &plan.scenarios {
                assert_eq!(scenario.check(), Ok(()), "{name}, row {}", plan.row);
            }
        }
    }
}

#[test]
fn the_frozen_constants_were_fitted_to_calibrated_cells_and_nothing_else() {
    let constants = constants();
    for study in studies() {
        let of_role = |role| {
            let mut names = BTreeSet::new();
            for name in &study.tables {
                let table = published::table(name).unwrap();
                for plan in cells(&table, &constants).unwrap() {
                    let row = &table.rows[plan.row];
                    if plan.role == role && row.cells[plan.column].is_some() {
                        let column = &table.columns[plan.column];
                        names.insert(format!("{name}: {}, {column}", table.row_name(row)));
                    }
                }
            }
            names
        };
        let (fitted, predicted) = (of_role(Role::Calibrated), of_role(Role::Predicted));
        assert!(!predicted.is_empty(), "{}: nothing is predicted", study.name);
        assert!(fitted.is_disjoint(&predicted), "{}", study.name);
        if let Some(found) = constants.0.get(&study.name) {
            let cells: BTreeSet<String> = found.cells.iter().cloned().collect();
            assert_eq!(cells, fitted, "{}", study.name);
            let knobs: BTreeSet<&str> = study.knobs.iter().map(|knob| knob.name.as_str()).collect();
            let values: BTreeSet<&str> = found.values.keys().map(String::as_str).collect();
            assert_eq!(values, knobs, "{}", study.name);
        }
    }
}

/// Two costs are written down beside the machines' files, to grow with a constant that is fitted.
#[test]
fn without_constants_machines_are_those_of_the_catalog() {
    for (table, machine) in [
        ("002-open1", "oracle-x5-4"),
        ("002-aim7", "oracle-x5-8"),
        ("003-1", "xeon-8380l"),
        ("004-openclose", "power9-16"),
    ] {
        let plans = cells(&published::table(table).unwrap(), &Constants::default()).unwrap();
        assert_eq!(plans[0].scenarios[0].machine, Machine::named(machine).unwrap());
    }
}

#[test]
fn the_same_seed_finds_the_same_constants() {
    let study = studies().find(|study| study.name == "open1").unwrap();
    let search = |seed| calibrate(study, &constants(), 3, seed, &|_, _| true).unwrap().unwrap();
    let (one, again, other) = (search(1), search(1), search(2));
    assert_eq!(one, again);
    assert_ne!(one.seed, other.seed);
    let outside = one.values["outside_ns"];
    assert!((500.0..=2500.0).contains(&outside), "{outside}");
}

#[test]
fn a_search_that_is_stopped_ends() {
    let study = studies().find(|study| study.name == "open1").unwrap();
    let seen = std::sync::atomic::AtomicU32::new(0);
    let stop = |number, _| {
        seen.store(number, std::sync::atomic::Ordering::Relaxed);
        number < 2
    };
    calibrate(study, &constants(), 50, 1, &stop).unwrap();
    assert_eq!(seen.into_inner(), 2);
}
