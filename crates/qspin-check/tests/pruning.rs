//! Leaving out equal executions loses no outcome.
//!
//! Without it loom does not come to an end where two waiters wait at once, so that two contexts
//! and the locks that wait by `wait_until` alone have to do.

use std::time::Duration;

use qspin_check::checks::{loom_check, under_loom};
use qspin_check::planted::lookup;
use qspin_check::trace::{set_pruning, take_outcomes};

fn outcomes(lock: &str, scenario: &str, pruning: bool) -> (u64, std::collections::BTreeSet<u64>) {
    let subject = lookup(lock).unwrap();
    let check = loom_check(&subject, scenario).unwrap();
    set_pruning(pruning);
    drop(take_outcomes());
    let outcome = under_loom(&subject, &check, None, None, Duration::from_secs(60));
    set_pruning(true);
    assert_eq!(outcome.failure, None, "{lock} {scenario}");
    (outcome.executions, take_outcomes())
}

#[test]
fn equal_executions_are_left_out_and_no_outcome_is_lost() {
    let (mut executions, mut explored) = (0, 0);
    for lock in ["native", "native-no-pending", "ticket", "mcs", "queued-rw", "small-flag"] {
        for scenario in ["two", "try", "try-twice", "write-read", "try-read"] {
            if lock != "queued-rw" && scenario.contains("read") {
                continue;
            }
            let (all, wanted) = outcomes(lock, scenario, false);
            let (some, found) = outcomes(lock, scenario, true);
            assert!(!wanted.is_empty());
            assert_eq!(found, wanted, "{lock} {scenario}: {some} of {all} executions");
            executions += all;
            explored += some;
        }
    }
    assert!(explored < executions, "nothing was left out: {explored} of {executions}");
}
