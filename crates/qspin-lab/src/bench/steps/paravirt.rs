//! The steps of the paravirt lock.
//!
//! The order is that of document 000's patches, from a lock that does nothing but halt; each step
//! keeps what the steps before it have brought. The review wanted the deferral of kicks before
//! kick-ahead, since a release that finds no waiter left to kick has none to kick ahead of. What came
//! after the series, in Linux and here, follows: the look at the one before that Linux ended up with,
//! every kick deferred, run status, the yield of document 004, stealing and culling.

use qspin::tuning::{Adaptive, Defer, Tuning, kick_ahead_level};

use super::{Step, step};

/// The tunables that the steps set.
pub(super) const SETS: [&str; 7] = [
    "kick_unconditionally",
    "pending",
    "kick_ahead",
    "defer",
    "adaptive",
    "heed_preempted",
    "queue_yields",
];

const QUEUED: &str = "paravirt-queued";

/// The step whose lock has the tuning that it has by default.
const CULLED: Step = step("10-culled", "10 culled: the default", "paravirt", |tuning, _| {
    let Tuning {
        kick_unconditionally,
        pending,
        kick_ahead,
        defer,
        adaptive,
        heed_preempted,
        queue_yields,
        ..
    } = Tuning::DEFAULT;
    *tuning = Tuning {
        kick_unconditionally,
        pending,
        kick_ahead,
        defer,
        adaptive,
        heed_preempted,
        queue_yields,
        ..*tuning
    };
});

/// All steps in their order; or in that which their review wanted.
pub(super) fn steps(reviewed: bool) -> Vec<Step> {
    let halt = step("0-halt", "0 halt", QUEUED, |tuning, _| {
        *tuning = Tuning {
            kick_unconditionally: false,
            pending: false,
            kick_ahead: 0,
            defer: Defer::Never,
            adaptive: Adaptive::Off,
            heed_preempted: false,
            queue_yields: 0,
            ..*tuning
        };
    });
    let unconditional = step("1-unconditional", "1 unconditional kick", QUEUED, |tuning, _| {
        tuning.kick_unconditionally = true;
    });
    let pending = step("2-pending", "2 pending bit", QUEUED, |tuning, _| tuning.pending = true);
    let statistics =
        Step { counting: true, ..step("3-statistics", "3 statistics", QUEUED, |_, _| {}) };
    let ahead = step("4-kick-ahead", "4 kick-ahead", QUEUED, |tuning, cpus| {
        tuning.kick_ahead = kick_ahead_level(cpus);
    });
    let deferral = step("5-deferral", "5 deferred kick", QUEUED, |tuning, _| {
        tuning.defer = Defer::Conditions;
    });
    let history = step("6-history", "6 adaptive: history", QUEUED, |tuning, _| {
        tuning.adaptive = Adaptive::History;
    });
    let neighbour = step("6b-neighbour", "6' adaptive: neighbour", QUEUED, |tuning, _| {
        tuning.adaptive = Adaptive::Neighbour;
    });
    let periodic = step("6c-periodic", "6'' adaptive: periodic", QUEUED, |tuning, _| {
        tuning.adaptive = Adaptive::Periodic;
    });
    let always = step("7-always", "7 always deferred", QUEUED, |tuning, _| {
        tuning.defer = Defer::Always;
    });
    let preempted = step("8-preempted", "8 heed preempted", QUEUED, |tuning, _| {
        tuning.heed_preempted = true;
    });
    let yields = step("8b-yields", "8' yield to the one before", QUEUED, |tuning, _| {
        tuning.queue_yields = 1;
    });
    let stealing = step("9-stealing", "9 stealing", "paravirt-stealing", |_, _| {});
    let (fourth, fifth) = if reviewed { (deferral, ahead) } else { (ahead, deferral) };
    vec![
        halt,
        unconditional,
        pending,
        statistics,
        fourth,
        fifth,
        history,
        neighbour,
        periodic,
        always,
        preempted,
        yields,
        stealing,
        CULLED,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{Series, base, steps, tuning};
    use super::*;
    use crate::tune::away_from_default;

    fn names(series: Series) -> Vec<&'static str> {
        steps(series).iter().map(|step| step.name).collect()
    }

    #[test]
    fn the_review_wanted_deferral_before_kick_ahead_and_nothing_else() {
        let (series, mut reviewed) = (names(Series::Paravirt), names(Series::Reviewed));
        let at = |names: &[&str], name| names.iter().position(|other| *other == name).unwrap();
        let (ahead, deferral) = (at(&reviewed, "4-kick-ahead"), at(&reviewed, "5-deferral"));
        assert!(deferral < ahead);
        reviewed.swap(ahead, deferral);
        assert_eq!(series, reviewed);
    }

    #[test]
    fn the_first_step_does_nothing_but_halt_and_the_last_is_the_default() {
        let steps = steps(Series::Paravirt);
        let halt = tuning(&steps[..1], Tuning::DEFAULT, 32);
        assert!(!halt.kick_unconditionally && !halt.pending && !halt.heed_preempted);
        assert_eq!((halt.kick_ahead, halt.defer, halt.adaptive), (0, Defer::Never, Adaptive::Off));
        assert_eq!(halt.queue_yields, 0);
        let last = tuning(&steps, Tuning::DEFAULT, 32);
        assert!(away_from_default(&last).is_empty());
        // What the user has tuned beside the steps stays.
        let base = Tuning { queue_polls: 7, ..Tuning::DEFAULT };
        assert_eq!(tuning(&steps, base, 32), base);
    }

    #[test]
    fn kick_ahead_grows_with_the_cpus_and_the_step_after_statistics_builds_on_the_one_before() {
        let steps = steps(Series::Paravirt);
        let level = |cpus| tuning(&steps[..5], Tuning::DEFAULT, cpus).kick_ahead;
        assert_eq!([2, 4, 8, 32].map(level), [0, 1, 2, 4]);
        assert_eq!((base(&steps, 3), base(&steps, 4), base(&steps, 0)), (Some(2), Some(2), None));
    }
}
