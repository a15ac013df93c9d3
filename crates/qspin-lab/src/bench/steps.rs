//! The steps of the paravirt lock, each of which shows its own gain.
//!
//! The order is that of document 000's patches, from a lock that does nothing but halt; each step
//! keeps what the steps before it have brought. The review wanted the deferral of kicks before
//! kick-ahead, since a release that finds nobody left to kick has nobody to kick ahead of: that is
//! [`Order::Reviewed`]. What came after the series, in Linux and here, follows.

use qspin::tuning::{Adaptive, Defer, Tuning, kick_ahead_level};

/// In which order the patches of the series are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// As they were sent: kick-ahead, then deferral.
    Series,
    /// As their review wanted them: deferral, then kick-ahead.
    Reviewed,
}

/// One step.
#[derive(Clone, Copy)]
pub struct Step {
    /// Its name in rows.
    pub name: &'static str,
    /// Its name in the table.
    pub label: &'static str,
    /// The lock that it is measured with.
    pub lock: &'static str,
    /// What it changes where there are so many virtual CPUs.
    change: fn(&mut Tuning, u32),
    /// Whether it is measured counting; the steps after it count no more.
    pub counting: bool,
}

/// The tunables that steps set.
pub const SET: [&str; 6] =
    ["kick_unconditionally", "pending", "kick_ahead", "defer", "adaptive", "heed_preempted"];

const QUEUED: &str = "paravirt-queued";

/// The step whose lock has the tuning that it has by default.
const CULLED: Step = step("10-culled", "10 culled: the default", "paravirt", |tuning, _| {
    let Tuning {
        kick_unconditionally, pending, kick_ahead, defer, adaptive, heed_preempted, ..
    } = Tuning::DEFAULT;
    *tuning = Tuning {
        kick_unconditionally,
        pending,
        kick_ahead,
        defer,
        adaptive,
        heed_preempted,
        ..*tuning
    };
});

const fn step(
    name: &'static str,
    label: &'static str,
    lock: &'static str,
    change: fn(&mut Tuning, u32),
) -> Step {
    Step { name, label, lock, change, counting: false }
}

/// All steps in their order.
#[must_use]
pub fn steps(order: Order) -> Vec<Step> {
    let halt = step("0-halt", "0 halt", QUEUED, |tuning, _| {
        *tuning = Tuning {
            kick_unconditionally: false,
            pending: false,
            kick_ahead: 0,
            defer: Defer::Never,
            adaptive: Adaptive::Off,
            heed_preempted: false,
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
    let always = step("7-always", "7 always deferred", QUEUED, |tuning, _| {
        tuning.defer = Defer::Always;
    });
    let preempted = step("8-preempted", "8 heed preempted", QUEUED, |tuning, _| {
        tuning.heed_preempted = true;
    });
    let stealing = step("9-stealing", "9 stealing", "paravirt-stealing", |_, _| {});
    let (fourth, fifth) = match order {
        Order::Series => (ahead, deferral),
        Order::Reviewed => (deferral, ahead),
    };
    vec![
        halt,
        unconditional,
        pending,
        statistics,
        fourth,
        fifth,
        history,
        neighbour,
        always,
        preempted,
        stealing,
        CULLED,
    ]
}

/// The tuning of the last of `steps`, which builds on all before it, where there are `cpus`
/// virtual CPUs and `base` is in force otherwise.
#[must_use]
pub fn tuning(steps: &[Step], base: Tuning, cpus: u32) -> Tuning {
    steps.iter().fold(base, |mut tuning, step| {
        (step.change)(&mut tuning, cpus);
        tuning
    })
}

/// The place of the step that step `index` builds on: the one before it, unless that counts.
#[must_use]
pub fn base(steps: &[Step], index: usize) -> Option<usize> {
    (0..index).rev().find(|&before| !steps[before].counting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::away_from_default;

    fn names(order: Order) -> Vec<&'static str> {
        steps(order).iter().map(|step| step.name).collect()
    }

    #[test]
    fn the_review_wanted_deferral_before_kick_ahead_and_nothing_else() {
        let (series, mut reviewed) = (names(Order::Series), names(Order::Reviewed));
        let at = |names: &[&str], name| names.iter().position(|other| *other == name).unwrap();
        let (ahead, deferral) = (at(&reviewed, "4-kick-ahead"), at(&reviewed, "5-deferral"));
        assert!(deferral < ahead);
        reviewed.swap(ahead, deferral);
        assert_eq!(series, reviewed);
    }

    #[test]
    fn each_step_on_the_same_lock_changes_one_tunable_or_counts() {
        for order in [Order::Series, Order::Reviewed] {
            let steps = steps(order);
            for index in 1..steps.len() {
                let below = base(&steps, index).unwrap();
                if steps[index].lock != steps[below].lock {
                    continue;
                }
                let one = tuning(&steps[..=below], Tuning::DEFAULT, 32);
                let other = tuning(&steps[..=index], Tuning::DEFAULT, 32);
                let changed = Tuning::ALL.iter().filter(|t| (t.get)(&one) != (t.get)(&other));
                let changed: Vec<&str> = changed.map(|tunable| tunable.name).collect();
                assert_eq!(changed.len(), usize::from(!steps[index].counting), "{changed:?}");
                assert!(changed.iter().all(|name| SET.contains(name)), "{changed:?}");
            }
        }
    }

    #[test]
    fn the_first_step_does_nothing_but_halt_and_the_last_is_the_default() {
        let steps = steps(Order::Series);
        let halt = tuning(&steps[..1], Tuning::DEFAULT, 32);
        assert!(!halt.kick_unconditionally && !halt.pending && !halt.heed_preempted);
        assert_eq!((halt.kick_ahead, halt.defer, halt.adaptive), (0, Defer::Never, Adaptive::Off));
        let last = tuning(&steps, Tuning::DEFAULT, 32);
        assert!(away_from_default(&last).is_empty());
        // What the user has tuned beside the steps stays.
        let base = Tuning { queue_looks: 7, ..Tuning::DEFAULT };
        assert_eq!(tuning(&steps, base, 32), base);
    }

    #[test]
    fn kick_ahead_grows_with_the_cpus_and_the_step_after_statistics_builds_on_the_one_before() {
        let steps = steps(Order::Series);
        let level = |cpus| tuning(&steps[..5], Tuning::DEFAULT, cpus).kick_ahead;
        assert_eq!([2, 4, 8, 32].map(level), [0, 1, 2, 4]);
        assert_eq!((base(&steps, 3), base(&steps, 4), base(&steps, 0)), (Some(2), Some(2), None));
    }
}
