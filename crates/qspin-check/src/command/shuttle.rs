//! `qspin-check shuttle`

use super::arguments::Arguments;
use super::report::Report;
use crate::battery::for_shuttle;
use crate::explore::{ShuttlePlan, Strategy};
use crate::subject::Checker;
use crate::trace::Coverage;
use crate::workers;

/// Executions of each scenario with each strategy.
const EXECUTIONS: u64 = 500;
/// The seed unless another one is given: a run is the same every time.
const SEED: u64 = 1;

const STRATEGIES: [Strategy; 2] = [Strategy::Random, Strategy::Pct { depth: 4 }];

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let subjects = arguments.subjects()?;
    let seed = arguments.number("seed", SEED)?;
    let executions = arguments.number("executions", EXECUTIONS)?;
    let only = arguments.take("scenario");
    arguments.nothing_else()?;
    let report = Report::new("shuttle");
    workers::each(subjects.len(), |number| {
        let subject = &subjects[number];
        let mut coverage = Coverage::default();
        let mut scenarios = for_shuttle(subject.traits());
        scenarios.retain(|scenario| only.as_ref().is_none_or(|only| scenario.name == *only));
        for scenario in scenarios {
            for strategy in STRATEGIES {
                let outcome =
                    subject.shuttle(&scenario, ShuttlePlan { strategy, seed, executions });
                coverage.merge(&outcome.coverage);
                let (lock, name) = (subject.name, strategy.name());
                report.must_pass(lock, &scenario.name, &name, &outcome);
                if let Some(seed) = outcome.seed {
                    println!("{}", replay_line(lock, &scenario.name, strategy, seed));
                }
            }
        }
        if only.is_none() {
            for missed in subject.missed(Checker::Shuttle, &coverage) {
                report.complain(format!("{}: {missed} in any execution", subject.name));
            }
        }
    });
    Ok(report.end())
}

/// The command that gives a failing execution again.
pub(super) fn replay_line(lock: &str, scenario: &str, strategy: Strategy, seed: u64) -> String {
    let strategy = strategy.name();
    format!(
        "replay: qspin-check replay --lock {lock} --scenario {scenario} --strategy {strategy} \
         --seed {seed}"
    )
}
