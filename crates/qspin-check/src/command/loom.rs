//! `qspin-check loom`

use std::time::Duration;

use super::arguments::Arguments;
use super::report::{Report, in_words};
use crate::battery::for_loom;
use crate::checks::{self, under_loom};
use crate::subject::{Checker, Subject};
use crate::trace::Coverage;
use crate::workers;

/// The most that one check may take, on a machine that has something else to do.
const SECONDS: u64 = 600;

/// What each lock is checked with.
struct Options {
    seconds: u64,
    preemptions: Option<usize>,
    scenario: Option<String>,
    deeper: usize,
}

impl Options {
    /// As they are written.
    fn words(&self) -> Vec<String> {
        let mut words =
            vec![("seconds", self.seconds.to_string()), ("deeper", self.deeper.to_string())];
        words.extend(self.preemptions.map(|most| ("preemptions", most.to_string())));
        words.extend(self.scenario.clone().map(|name| ("scenario", name)));
        words.into_iter().flat_map(|(name, value)| [format!("--{name}"), value]).collect()
    }
}

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let subjects = arguments.subjects()?;
    let options = Options {
        seconds: arguments.number("seconds", SECONDS)?,
        preemptions: arguments.some_number("preemptions")?,
        scenario: arguments.take("scenario"),
        deeper: arguments.number("deeper", 0)?,
    };
    arguments.nothing_else()?;
    let report = Report::new("loom");
    match &subjects[..] {
        [subject] => check(&report, subject, &options),
        // A process each: loom maps and unmaps stacks all the time, and with threads each waits for the other's CPU to
        // learn of that. Two fifths of the time went into it.
        several => {
            workers::each(several.len(), |number| {
                report.part(several[number].name, &options.words());
            });
        }
    }
    Ok(report.end())
}

/// The scenarios of one lock, or the one that is named.
fn check(report: &Report, subject: &Subject, options: &Options) {
    let Options { seconds, preemptions, scenario, deeper } = options;
    let time = Duration::from_secs(*seconds);
    let mut coverage = Coverage::default();
    let mut checks = for_loom(subject.traits());
    checks.retain(|check| scenario.as_ref().is_none_or(|only| check.name() == *only));
    for mut check in checks {
        check.preemptions = check.preemptions.map(|own| own + deeper);
        let outcome = under_loom(subject, &check, None, *preemptions, time);
        coverage.merge(&outcome.coverage);
        let bound = in_words(checks::bound(&check, *preemptions));
        report.must_pass(subject.name, &check.name(), &bound, &outcome);
    }
    // A waiter is requeued where another holds the mutex between the release of the thread that opens the latch and its
    // notification: that takes two preemptions.
    let too_few = subject.traits().latch && preemptions.is_some_and(|most| most < 2);
    if scenario.is_none() && !too_few {
        for missed in subject.missed(Checker::Loom, &coverage) {
            report.complain(format!("{}: {missed} in any execution", subject.name));
        }
    }
}
