//! The steps of a series, each of which shows its own gain: a row a step, each on top of those before.

mod numa;
mod paravirt;

use qspin::tuning::Tuning;

/// Which series, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Series {
    /// The paravirt lock's, as its patches were sent: kick-ahead, then deferral.
    #[value(name = "series")]
    Paravirt,
    /// The same as its review wanted it: deferral, then kick-ahead.
    Reviewed,
    /// The NUMA-aware lock's.
    Numa,
}

impl Series {
    /// The tunables that its steps set.
    pub fn sets(self) -> &'static [&'static str] {
        match self {
            Self::Paravirt | Self::Reviewed => &paravirt::SETS,
            Self::Numa => &numa::SETS,
        }
    }

    /// The locks that stand above it, to show where its lines are.
    pub fn references(self) -> [&'static str; 2] {
        match self {
            Self::Paravirt | Self::Reviewed => ["native", "std"],
            Self::Numa => ["std", "paravirt"],
        }
    }
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

const fn step(
    name: &'static str,
    label: &'static str,
    lock: &'static str,
    change: fn(&mut Tuning, u32),
) -> Step {
    Step { name, label, lock, change, counting: false }
}

/// All steps in their order.
pub fn steps(series: Series) -> Vec<Step> {
    match series {
        Series::Paravirt => paravirt::steps(false),
        Series::Reviewed => paravirt::steps(true),
        Series::Numa => numa::steps(),
    }
}

/// The label of the step of this name, of whichever series.
pub fn labelled(name: &str) -> Option<&'static str> {
    let all = [Series::Paravirt, Series::Numa].into_iter().flat_map(steps);
    all.into_iter().find(|step| step.name == name).map(|step| step.label)
}

/// The tuning of the last of `steps`, which builds on all before it, where there are `cpus`
/// virtual CPUs and `base` is in force otherwise.
pub fn tuning(steps: &[Step], base: Tuning, cpus: u32) -> Tuning {
    steps.iter().fold(base, |mut tuning, step| {
        (step.change)(&mut tuning, cpus);
        tuning
    })
}

/// The place of the step that step `index` builds on: the one before it, unless that counts.
pub fn base(steps: &[Step], index: usize) -> Option<usize> {
    (0..index).rev().find(|&before| !steps[before].counting)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn each_step_on_the_same_lock_changes_one_tunable_or_counts() {
        for &series in Series::value_variants() {
            let steps = steps(series);
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
                assert!(changed.iter().all(|name| series.sets().contains(name)), "{changed:?}");
            }
        }
    }
}
