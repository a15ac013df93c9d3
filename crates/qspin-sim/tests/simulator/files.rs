//! The scenarios that come with the project.

use std::fs;
use std::path::{Path, PathBuf};

use qspin_sim::Plan;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Every scenario of a folder, with its name.
fn scenarios(folder: &str) -> Vec<(String, Plan)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let plan = Plan::from_toml(&fs::read_to_string(&path).unwrap());
        (name.clone(), plan.unwrap_or_else(|why| panic!("{name}: {why}")))
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn every_scenario_is_possible_and_every_machine_has_one() {
    let all = scenarios("scenarios");
    let machines = root().join("crates/qspin-sim/machines");
    for entry in fs::read_dir(machines).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let machine = qspin_sim::Machine::from_toml(&text).unwrap();
        assert!(all.iter().any(|(_, plan)| plan.base.machine == machine), "{}", machine.name);
    }
    assert!(all.iter().all(|(_, plan)| !plan.about.is_empty()));
}

#[test]
fn every_experiment_stands_in_the_book_with_its_command() {
    let book = fs::read_to_string(root().join("docs/evidence.md")).unwrap();
    assert!(book.contains("for each in scenarios/evidence/*.toml; do qspin simulate $each"));
    for (name, plan) in scenarios("scenarios/evidence") {
        assert!(plan.cells().len() > 3, "{name} compares something");
    }
}
