//! What is to be simulated: what the file says, and what the command line says instead.

use std::fs;
use std::path::Path;

use qspin_sim::catalog::Named;
use qspin_sim::change::Change;
use qspin_sim::{Hypervisor, Machine, Plan};

use super::Args;
use crate::failure::Failure;
use crate::this_machine;

/// A scenario is written by a person.
const LONGEST_FILE: u64 = 1 << 20;

/// What is asked for, by the file and by the command line.
pub(super) fn plan(args: &Args) -> Result<Plan, Failure> {
    let file = args.scenario.as_deref().unwrap_or(Path::new(""));
    let path = file.display();
    let text = read(file, "name a scenario, such as those in the folder scenarios")?;
    let wrong = |why: String| Failure::usage(format!("{path}: {why}"));
    let mut plan = Plan::from_toml(&text).map_err(wrong)?;
    if !args.locks.is_empty() {
        plan.locks.clone_from(&args.locks);
    }
    if !args.threads.is_empty() {
        plan.cpus.clone_from(&args.threads);
    }
    choose("variant", &mut plan.variants, &args.variants)?;
    choose("load", &mut plan.loads, &args.loads)?;
    if let Some(name) = &args.hypervisor {
        plan.base.hypervisor = match name.as_str() {
            "none" => None,
            name => Some(Hypervisor::named(name).map_err(Failure::usage)?),
        };
    }
    if let Some(machine) = &args.machine {
        plan.base.machine = self::machine(machine)?;
    }
    plan.check().map_err(wrong)?;
    Ok(plan)
}

/// The named ones of `changes`, in their own order; all where none is named.
fn choose(kind: &str, changes: &mut Vec<Change>, names: &[String]) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    if let Some(unknown) = names.iter().find(|&name| changes.iter().all(|it| it.name != *name)) {
        let known: Vec<&str> = changes.iter().map(|it| it.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Failure::usage(format!(
            "no {kind} of this scenario is called `{unknown}`: there are {known}"
        )));
    }
    changes.retain(|it| names.contains(&it.name));
    Ok(())
}

/// A machine by its name, its file, or this one.
pub(in crate::command) fn machine(name: &str) -> Result<Machine, Failure> {
    if name == "this" {
        return this_machine::described();
    }
    if Path::new(name).extension().is_none_or(|ending| ending != "toml") {
        return Machine::named(name)
            .map_err(|why| Failure::usage(format!("{why}; or name a file, or `this`")));
    }
    let text = read(Path::new(name), "name a file that `qspin calibrate --measure --out` wrote")?;
    Machine::from_toml(&text).map_err(|why| Failure::usage(format!("{name}: {why}")))
}

fn read(path: &Path, right: &str) -> Result<String, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read {}: {why}; {right}", path.display()))
    };
    let about = fs::metadata(path).map_err(|error| cannot(&error.kind()))?;
    if !about.is_file() || about.len() > LONGEST_FILE {
        return Err(cannot(&"it is no text file of at most 1 MiB"));
    }
    fs::read_to_string(path).map_err(|error| cannot(&error.kind()))
}

/// The name without the folders before it: where a file lies on one of several computers decides nothing.
fn file_name(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of the scenario's file.
pub(super) fn scenario(args: &Args) -> String {
    args.scenario.as_ref().map_or_else(String::new, |path| file_name(&path.to_string_lossy()))
}

/// The command line as far as it decides what is simulated: not where the rows go, nor which part of
/// them is made here.
pub(super) fn command(args: &Args) -> Vec<String> {
    let mut command = vec!["qspin".to_owned(), "simulate".to_owned(), scenario(args)];
    let mut add = |option: &str, value: String| command.extend([option.to_owned(), value]);
    let locks: Vec<&str> = args.locks.iter().map(|lock| lock.name()).collect();
    let threads: Vec<String> = args.threads.iter().map(u32::to_string).collect();
    for (option, value) in [
        ("--locks", locks.join(",")),
        ("--threads", threads.join(",")),
        ("--variants", args.variants.join(",")),
        ("--loads", args.loads.join(",")),
        ("--machine", args.machine.as_deref().map(file_name).unwrap_or_default()),
        ("--hypervisor", args.hypervisor.clone().unwrap_or_default()),
    ] {
        if !value.is_empty() {
            add(option, value);
        }
    }
    add("--seeds", args.seeds.to_string());
    add("--seed", args.seed.to_string());
    command
}
