//! `qspin-check loom`

use std::time::Duration;

use super::arguments::Arguments;
use super::report::{Report, in_words};
use crate::battery::for_loom;
use crate::checks::{self, under_loom};
use crate::subject::Checker;
use crate::trace::Coverage;
use crate::workers;

/// The most that one check may take, on a machine that has something else to do.
const SECONDS: u64 = 600;

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let subjects = arguments.subjects()?;
    let time = Duration::from_secs(arguments.number("seconds", SECONDS)?);
    let preemptions = arguments.some_number("preemptions")?;
    let only = arguments.take("scenario");
    let deeper = arguments.number("deeper", 0)?;
    arguments.nothing_else()?;
    let report = Report::new("loom");
    workers::each(subjects.len(), |number| {
        let subject = &subjects[number];
        let mut coverage = Coverage::default();
        let mut checks = for_loom(subject.traits());
        checks.retain(|check| only.as_ref().is_none_or(|only| check.name() == *only));
        for mut check in checks {
            check.preemptions = check.preemptions.map(|own| own + deeper);
            let outcome = under_loom(subject, &check, None, preemptions, time);
            coverage.merge(&outcome.coverage);
            let bound = in_words(checks::bound(&check, preemptions));
            report.must_pass(subject.name, &check.name(), &bound, &outcome);
        }
        // A waiter is requeued where another holds the mutex between the release of the thread that opens the latch and its
        // notification: that takes two preemptions.
        let too_few = subject.traits().latch && preemptions.is_some_and(|most| most < 2);
        if only.is_none() && !too_few {
            for missed in subject.missed(Checker::Loom, &coverage) {
                report.complain(format!("{}: {missed} in any execution", subject.name));
            }
        }
    });
    Ok(report.end())
}
