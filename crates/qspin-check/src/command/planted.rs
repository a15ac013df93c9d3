//! `qspin-check planted`

use std::time::Duration;

use super::arguments::Arguments;
use super::report::{Report, in_words};
use super::shuttle::replay_line;
use crate::battery::{for_loom, for_shuttle};
use crate::checks::{self, loom_check, shuttle_scenario, under_loom};
use crate::explore::{Outcome, ShuttlePlan, Strategy};
use crate::failure::Kind;
use crate::planted::{Catcher, Planted, all};

const SECONDS: u64 = 60;
/// Schedules in which a bug must show.
const SCHEDULES: u64 = 2000;
/// Schedules that a lock without a bug must stand.
const SOUND_SCHEDULES: u64 = 100;
const SOUND_PREEMPTIONS: Option<usize> = Some(2);
const RANDOM: Strategy = Strategy::Random;

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let time = Duration::from_secs(arguments.number("seconds", SECONDS)?);
    arguments.nothing_else()?;
    let report = Report::new("planted");
    for planted in all() {
        if planted.catchers.is_empty() {
            must_pass(&planted, time, &report);
        }
        for &(catcher, kind) in planted.catchers {
            must_catch(&planted, catcher, kind, time, &report);
        }
    }
    Ok(report.end())
}

fn must_catch(
    planted: &Planted,
    catcher: Catcher,
    expected: Kind,
    time: Duration,
    report: &Report,
) {
    let subject = &planted.subject;
    let (outcome, scenario, how) = match catcher {
        Catcher::Loom(name) => match loom_check(subject, name) {
            Some(check) => {
                let outcome = under_loom(subject, &check, planted.weakening, None, time);
                (outcome, name, "loom")
            }
            None => return report.complain(format!("loom has no scenario {name}")),
        },
        Catcher::Shuttle(name) => match shuttle_scenario(subject, name) {
            Some(scenario) => {
                let plan = ShuttlePlan { strategy: RANDOM, seed: 1, executions: SCHEDULES };
                (subject.shuttle(&scenario, plan), name, "shuttle")
            }
            None => return report.complain(format!("shuttle has no scenario {name}")),
        },
    };
    let good = outcome.failure.as_ref().is_some_and(|failure| failure.kind == expected);
    let result = match &outcome.failure {
        None => format!("not caught, where {expected} was expected"),
        Some(failure) if good => format!("caught: {failure}"),
        Some(failure) => format!("{failure}, where {expected} was expected"),
    };
    let name = match planted.weakening {
        None => subject.name.to_owned(),
        Some(weakening) => weakening.to_string(),
    };
    report.line(&name, scenario, how, outcome.executions, good, result);
    if let Some(seed) = outcome.seed {
        must_replay(planted, scenario, seed, &outcome, report);
    }
}

/// A replay line is worth nothing if it gives another execution.
fn must_replay(planted: &Planted, scenario: &str, seed: u64, first: &Outcome, report: &Report) {
    let Some(found) = shuttle_scenario(&planted.subject, scenario) else { return };
    let plan = ShuttlePlan { strategy: RANDOM, seed, executions: 1 };
    let again = planted.subject.shuttle(&found, plan);
    let line = replay_line(planted.subject.name, scenario, RANDOM, seed);
    if again.failure == first.failure {
        println!("         {line}");
    } else {
        report.complain(format!("{line}: gives {:?}", again.failure));
    }
}

fn must_pass(planted: &Planted, time: Duration, report: &Report) {
    let subject = &planted.subject;
    for check in for_loom(subject.traits()) {
        let outcome = under_loom(subject, &check, None, SOUND_PREEMPTIONS, time);
        let bound = in_words(checks::bound(&check, SOUND_PREEMPTIONS));
        report.must_pass(subject.name, &check.name(), &bound, &outcome);
    }
    for scenario in for_shuttle(subject.traits()) {
        let plan = ShuttlePlan { strategy: RANDOM, seed: 1, executions: SOUND_SCHEDULES };
        let outcome = subject.shuttle(&scenario, plan);
        report.must_pass(subject.name, &scenario.name, "shuttle", &outcome);
    }
}
