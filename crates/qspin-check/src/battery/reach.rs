//! What a battery must get to: a scenario that misses the paths it is made for checks nothing.

use qspin_core::events::Event::{
    self, LockNoNode, LockPending, LockSlowpath, LockUseNode2, LockUseNode3, LockUseNode4,
};

use crate::ledger::Coverage;
use crate::subject::Subject;

/// What the battery of loom should have reached with this lock, and has not.
#[must_use]
pub fn missed_by_loom(subject: &dyn Subject, coverage: &Coverage) -> Vec<String> {
    let events: &[Event] = match subject.name() {
        "native" => &[LockSlowpath, LockPending, LockUseNode4, LockNoNode],
        "native-no-pending" | "mcs" => &[LockUseNode2, LockUseNode4, LockNoNode],
        "queued-rw" => &[LockSlowpath, LockPending],
        _ => &[],
    };
    missed(events, coverage)
}

/// The same for the battery of shuttle.
#[must_use]
pub fn missed_by_shuttle(subject: &dyn Subject, coverage: &Coverage) -> Vec<String> {
    let events: &[Event] = match subject.name() {
        "native" => {
            &[LockSlowpath, LockPending, LockUseNode2, LockUseNode3, LockUseNode4, LockNoNode]
        }
        "queued-rw" => &[LockSlowpath, LockPending, LockUseNode4, LockNoNode],
        "native-no-pending" | "mcs" => &[LockUseNode2, LockUseNode3, LockUseNode4, LockNoNode],
        _ => &[],
    };
    missed(events, coverage)
}

fn missed(events: &[Event], coverage: &Coverage) -> Vec<String> {
    let absent = |event: &&Event| !coverage.events.contains_key(event);
    let mut missed: Vec<_> =
        events.iter().filter(absent).map(|event| format!("no {}", event.name())).collect();
    if coverage.interrupts == 0 {
        missed.push("no interrupt".to_owned());
    }
    missed
}
