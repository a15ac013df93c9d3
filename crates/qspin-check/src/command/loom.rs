//! `qspin-check loom`

use std::time::Duration;

use qspin_core::events::Event;

use super::arguments::Arguments;
use super::report::{Report, bound};
use crate::battery::for_loom;
use crate::checks::under_loom;
use crate::ledger::Coverage;

/// The most that one check may take, on a machine that has something else to do.
const SECONDS: u64 = 120;

pub(super) fn run(mut arguments: Arguments) -> Result<bool, String> {
    let subjects = arguments.subjects()?;
    let time = Duration::from_secs(arguments.number("seconds", SECONDS)?);
    arguments.nothing_else()?;
    let mut report = Report::new("loom");
    for subject in subjects {
        let mut coverage = Coverage::default();
        for check in for_loom(subject.traits()) {
            let outcome = under_loom(subject, &check, None, None, time);
            coverage.merge(&outcome.coverage);
            report.must_pass(subject.name(), &check.name(), &bound(check.preemptions), &outcome);
        }
        if coverage.interrupts == 0 {
            report.complain(format!("{}: no interrupt came", subject.name()));
        }
        for event in expected_events(subject.name()) {
            if !coverage.events.contains_key(event) {
                report.complain(format!("{}: {} never happened", subject.name(), event.name()));
            }
        }
    }
    Ok(report.end())
}

/// The events that the scenarios of a lock must reach, or they miss the paths they are made for.
fn expected_events(lock: &str) -> &'static [Event] {
    match lock {
        "native" => &[
            Event::LockSlowpath,
            Event::LockPending,
            Event::LockUseNode4,
            Event::LockNoNode,
        ],
        "native-no-pending" | "mcs" => {
            &[Event::LockUseNode2, Event::LockUseNode4, Event::LockNoNode]
        }
        "queued-rw" => &[Event::LockSlowpath, Event::LockPending, Event::LockNoNode],
        _ => &[],
    }
}
