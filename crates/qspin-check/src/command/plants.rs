//! `qspin-check plants`

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::arguments::Arguments;
use super::report::put_section;
use crate::failure::Kind;
use crate::plants::{Catcher, Plant, Sign, all, named, tree};
use crate::workers;

/// The most that one check may take.
const SECONDS: u64 = 120;
/// Schedules in which shuttle must find a bug, of each kind.
const SCHEDULES: u64 = 20_000;
/// The seed of the first one, unless another is given.
const SEED: u64 = 1;

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let seconds = arguments.number("seconds", SECONDS)?;
    let seed = arguments.number("seed", SEED)?;
    let only = arguments.take("plant");
    let page = arguments.take("markdown").map(PathBuf::from);
    arguments.nothing_else()?;
    let plants = all()?;
    if let Some(only) = &only
        && !plants.iter().any(|plant| plant.name == *only)
    {
        let names: Vec<_> = plants.iter().map(|plant| plant.name.as_str()).collect();
        return Err(format!("--plant `{only}` is none; there are {}", names.join(", ")));
    }
    let begun = Instant::now();
    let exe = std::env::current_exe().map_err(|error| format!("this command: {error}"))?;
    let folder = exe.ancestors().nth(2).unwrap_or(Path::new("target")).join("plants");
    let checker = match tree::build(&plants, &folder) {
        Ok(checker) => checker,
        Err(message) => {
            println!("plants   FAILED: {message}");
            return Ok(false);
        }
    };
    let jobs: Vec<_> = (0..)
        .zip(&plants)
        .filter(|(_, plant)| only.as_ref().is_none_or(|only| plant.name == *only))
        .flat_map(|(number, plant)| plant.catchers.iter().map(move |by| (number, plant, by)))
        .collect();
    let good = workers::each(jobs.len(), |job| {
        let (number, plant, by) = jobs[job];
        let outcome = caught(&Search { checker: &checker, number, by, seconds, seed });
        let Catcher { tool, lock, sign } = by;
        let (mark, result) = match &outcome {
            Ok(found) => ("", format!("caught: {found}")),
            Err(message) => ("FAILED: ", message.clone()),
        };
        let (name, sign) = (&plant.name, sign.to_string());
        println!("plants   {name:34} {tool:8} {lock:26} {sign:30} {mark}{result}");
        outcome.is_ok()
    });
    if let Some(page) = page {
        put_section(&page, "Bugs planted in the source", &markdown(&plants))?;
    }
    let failed = good.iter().filter(|good| !**good).count();
    let result = if failed == 0 { "all caught".to_owned() } else { format!("{failed} FAILED") };
    let (bugs, checks) = (plants.len(), jobs.len());
    let seconds = begun.elapsed().as_secs_f64();
    println!("qspin-check plants: {bugs} bugs, {checks} checks, {result} ({seconds:.1} s)");
    Ok(failed == 0 && !jobs.is_empty())
}

/// A check of the copy with one of its plants.
struct Search<'a> {
    checker: &'a Path,
    /// Of the plant.
    number: u32,
    by: &'a Catcher,
    seconds: u64,
    seed: u64,
}

/// Whether the check as `qspin-check loom` runs it catches the plant of this number, or one with one preemption more,
/// for all of whose schedules there is no time each day; returns what it said.
fn caught(search: &Search<'_>) -> Result<String, String> {
    let daily = catches(search, "0");
    if daily.is_ok() || search.by.tool != "loom" {
        return daily;
    }
    let deeper = catches(search, "1")?;
    Ok(format!("with one preemption more {deeper}"))
}

/// Runs a check with the plant of this number; returns what it said when it failed as expected.
fn catches(search: &Search<'_>, deeper: &str) -> Result<String, String> {
    let Search { checker, number, by, seconds, seed } = *search;
    let mut command = Command::new(checker);
    command.args([&by.tool, "--lock", &by.lock]);
    if by.tool == "loom" {
        command.args(["--seconds", &seconds.to_string(), "--deeper", deeper]);
    } else {
        command.args(["--seed", &seed.to_string()]);
    }
    let expected: Vec<_> = match &by.sign {
        Sign::Counterexample(scenario, kinds) => {
            command.args(["--scenario", scenario]);
            if by.tool == "shuttle" {
                command.args(["--executions", &SCHEDULES.to_string()]);
            }
            kinds.iter().map(|kind| format!("FAILED: {kind}")).collect()
        }
        Sign::MissedGoal => vec![format!("FAILED: {}: no ", by.lock)],
    };
    let output = command
        .env(tree::SWITCH, number.to_string())
        .output()
        .map_err(|error| format!("{}: {error}", checker.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find(|line| line.contains("FAILED: ")) {
        Some(line) if expected.iter().any(|expected| line.contains(expected)) => {
            Ok(found(line, &by.sign))
        }
        Some(line) => Err(format!("{} was expected: {line}", by.sign)),
        None if output.status.success() => {
            Err(format!("not caught, where {} was expected", by.sign))
        }
        None => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// What a check that failed has to say: after how many executions, or what it missed.
fn found(line: &str, sign: &Sign) -> String {
    match sign {
        Sign::Counterexample(_, kinds) => {
            let words: Vec<_> = line.split_whitespace().collect();
            let at = words.iter().position(|&word| word == "executions").unwrap_or(1);
            let is_found = |kind: &&Kind| line.contains(&format!("FAILED: {kind}"));
            let kind = kinds.iter().find(is_found).map_or("", |kind| kind.name());
            format!("{kind}, {} executions", words[at.saturating_sub(1)])
        }
        Sign::MissedGoal => line.rsplit(": ").next().unwrap_or(line).to_owned(),
    }
}

/// The table of the page.
fn markdown(plants: &[Plant]) -> String {
    let mut text = format!(
        "{} bugs, each an edit of `plants.txt`; each line was seen to hold by `qspin-check plants --markdown`.\n\n\
         | planted | what is wrong | loom | shuttle |\n|---|---|---|---|\n",
        plants.len()
    );
    for plant in plants {
        let by = |tool: &str| {
            let caught = plant.catchers.iter().filter(|by| by.tool == tool);
            let caught = caught.map(|by| match &by.sign {
                Sign::Counterexample(scenario, kinds) => {
                    format!("{}: {} {scenario}", named(kinds), by.lock)
                }
                Sign::MissedGoal => format!("{}: {}", by.sign, by.lock),
            });
            let blind = plant.blind.iter().filter(|(blind, _)| blind == tool);
            let blind = blind.map(|(_, why)| format!("no: {why}"));
            caught.chain(blind).collect::<Vec<_>>().join("; ")
        };
        let Plant { name, about, .. } = plant;
        text.push_str(&format!("| {name} | {about} | {} | {} |\n", by("loom"), by("shuttle")));
    }
    text
}
