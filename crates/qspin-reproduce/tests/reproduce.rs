//! The rules of the reproduction: what is fitted is not predicted, and the same seed finds the same.

use std::collections::BTreeSet;

use qspin_reproduce::{Constants, Role, STUDIES, TABLES, calibrate, cells, published, study_of};

fn constants() -> Constants {
    Constants::frozen().unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn every_table_has_a_study_and_cells_that_are_possible() {
    for name in TABLES {
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
    for study in STUDIES {
        let of_role = |role| {
            let mut names = BTreeSet::new();
            for name in study.tables {
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
        if let Some(found) = constants.0.get(study.name) {
            let cells: BTreeSet<String> = found.cells.iter().cloned().collect();
            assert_eq!(cells, fitted, "{}", study.name);
            let knobs: BTreeSet<&str> = study.knobs.iter().map(|knob| knob.name).collect();
            let values: BTreeSet<&str> = found.values.keys().map(String::as_str).collect();
            assert_eq!(values, knobs, "{}", study.name);
        }
    }
}

#[test]
fn the_same_seed_finds_the_same_constants() {
    let study = STUDIES.iter().find(|study| study.name == "open1").unwrap();
    let search = |seed| calibrate(study, &constants(), 3, seed, &|_, _| true).unwrap().unwrap();
    let (one, again, other) = (search(1), search(1), search(2));
    assert_eq!(one, again);
    assert_ne!(one.seed, other.seed);
    let outside = one.values["outside_ns"];
    assert!((500.0..=2500.0).contains(&outside), "{outside}");
}

#[test]
fn a_search_that_is_stopped_ends() {
    let study = STUDIES.iter().find(|study| study.name == "open1").unwrap();
    let seen = std::sync::atomic::AtomicU32::new(0);
    let stop = |number, _| {
        seen.store(number, std::sync::atomic::Ordering::Relaxed);
        number < 2
    };
    calibrate(study, &constants(), 50, 1, &stop).unwrap();
    assert_eq!(seen.into_inner(), 2);
}
