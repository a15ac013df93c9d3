//! `qspin-check replay`

use super::arguments::{Arguments, subject};
use super::report::Report;
use crate::battery::for_shuttle;
use crate::checks::shuttle_scenario;
use crate::explore::{ShuttlePlan, Strategy};

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let subject = subject(&arguments.need("lock")?)?;
    let name = arguments.need("scenario")?;
    let scenario = shuttle_scenario(&subject, &name).ok_or_else(|| {
        let all: Vec<_> =
            for_shuttle(subject.traits()).iter().map(|scenario| scenario.name.clone()).collect();
        format!("unknown scenario `{name}` of {}; there are {}", subject.name, all.join(", "))
    })?;
    let strategy = arguments.need("strategy")?;
    let strategy = Strategy::parse(&strategy)
        .ok_or(format!("unknown strategy `{strategy}`; there are random, pct1, pct2, …"))?;
    let seed = arguments.need("seed")?;
    let seed = seed.parse().map_err(|_| format!("--seed `{seed}` is not a number"))?;
    arguments.nothing_else()?;

    let outcome = subject.shuttle(&scenario, ShuttlePlan { strategy, seed, executions: 1 });
    let report = Report::new("replay");
    report.must_pass(subject.name, &scenario.name, &strategy.name(), &outcome);
    Ok(report.end())
}
