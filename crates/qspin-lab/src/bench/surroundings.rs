//! What stands around the measured threads: hogs inside the process and outside it, and a quota.

use anyhow::{Context, anyhow};
use qspin::platform::cpu_quota;

use super::hog_threads::HogThreads;
use super::hogs::Hogs;
use super::plan::{Beside, Cell, Plan};
use crate::this_machine::QuotaGroup;

/// The surroundings of a run, arranged anew for each cell.
#[derive(Debug, Default)]
pub struct Surroundings {
    outside: Hogs,
    inside: HogThreads,
    quotas: Vec<(f64, QuotaGroup)>,
}

impl Surroundings {
    /// Everything that a plan needs; it stands still until a cell asks for it.
    pub fn start(plan: &Plan) -> anyhow::Result<Self> {
        let most_hogs = plan.cells.iter().map(|cell| cell.hogs).max().unwrap_or(0);
        let settings = plan.settings.iter();
        let most_threads = settings.map(|setting| setting.beside.hogs).max().unwrap_or(0);
        let mut quotas: Vec<(f64, QuotaGroup)> = Vec::new();
        for cpus in plan.settings.iter().filter_map(|setting| setting.beside.quota_cpus) {
            if !quotas.iter().any(|(made, _)| *made == cpus) {
                let group = QuotaGroup::make(cpus).map_err(|why| anyhow!(why));
                quotas.push((cpus, group.with_context(|| format!("no quota of {cpus} CPUs"))?));
            }
        }
        Ok(Self {
            outside: Hogs::start(most_hogs).context("cannot start the hogs")?,
            inside: HogThreads::start(most_threads).context("cannot start the hogs")?,
            quotas,
        })
    }

    /// Arranges what a cell asks for.
    /// Fails when a control group cannot be entered or left.
    pub fn arrange(&mut self, plan: &Plan, cell: Cell) -> anyhow::Result<()> {
        let beside = plan.settings[cell.setting].beside;
        self.set(cell.hogs, beside)
    }

    /// Nothing stands around the threads any more.
    /// Fails when a control group cannot be left.
    pub fn clear(&mut self) -> anyhow::Result<()> {
        self.set(0, Beside::default())
    }

    fn set(&mut self, hogs: usize, beside: Beside) -> anyhow::Result<()> {
        self.outside.run(hogs);
        self.inside.run(beside.hogs);
        // Out of one before into another: each remembers home, not where the process was.
        for (_, group) in &mut self.quotas {
            group.leave().map_err(|why| anyhow!(why))?;
        }
        for (cpus, group) in &mut self.quotas {
            if beside.quota_cpus == Some(*cpus) {
                group.enter().map_err(|why| anyhow!(why))?;
            }
        }
        if !self.quotas.is_empty() {
            // As programs find it that are started there.
            cpu_quota::look();
        }
        Ok(())
    }
}

impl Drop for Surroundings {
    /// What is measured later in this process must not believe in a quota that is gone.
    fn drop(&mut self) {
        // A group that cannot be left is left with the end of the process.
        let _ = self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use super::*;
    use crate::this_machine::quota::IN_TESTS;

    #[test]
    fn locks_know_of_a_quota_while_there_is_one_and_not_longer() {
        let _alone = IN_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let before = cpu_quota::look();
        let group = match QuotaGroup::make(0.5) {
            Ok(group) => group,
            Err(why) => return println!("skipped: a quota of CPU time ({why})"),
        };
        let mut surroundings = Surroundings::default();
        surroundings.quotas.push((0.5, group));
        surroundings.set(0, Beside { quota_cpus: Some(0.5), ..Beside::default() }).unwrap();
        assert!(cpu_quota::has_cpu_quota());
        drop(surroundings);
        assert_eq!(cpu_quota::has_cpu_quota(), before);
    }
}
