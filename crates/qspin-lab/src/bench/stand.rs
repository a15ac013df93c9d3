//! Where cells are measured, one after the other: one clock, the surroundings as each cell asks for
//! them, the tuning in force while it is measured, and what the user sees of it all.

use std::time::Duration;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use qspin::tuning::{self, Tuning};
use quanta::Clock;

use crate::contender::catalog::Engine;
use crate::remedy::Remedy;

use super::cell::{Conditions, Measured, Spoiled};
use super::hinted;
use super::interrupt::Interrupt;
use super::plan::{Cell, Job, Plan};
use super::surroundings::Surroundings;

/// The stand of a run.
pub(super) struct Stand<'a> {
    plan: &'a Plan,
    interrupt: &'a Interrupt,
    clock: Clock,
    around: Surroundings,
    bar: ProgressBar,
}

/// Puts a tuning in force for as long as it lives, then the default again.
pub(super) struct InForce;

impl InForce {
    pub(super) fn put(tuning: &'static Tuning) -> Self {
        tuning::set(tuning);
        Self
    }
}

impl Drop for InForce {
    fn drop(&mut self) {
        tuning::set(&Tuning::DEFAULT);
    }
}

impl<'a> Stand<'a> {
    pub(super) fn new(plan: &'a Plan, interrupt: &'a Interrupt) -> anyhow::Result<Self> {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {eta:>4} left  {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let around = Surroundings::start(plan)?;
        Ok(Self { plan, interrupt, clock: Clock::new(), around, bar })
    }

    /// So many measurements follow.
    pub(super) fn expect(&self, measurements: usize) {
        self.bar.reset();
        self.bar.set_length(measurements as u64);
    }

    /// Says what goes on.
    pub(super) fn say(&self, what: &str, cell: Cell) {
        self.bar.set_message(format!("{what}{} × {}", self.plan.short_name(cell), cell.threads));
    }

    /// Measures one cell; `None` when interrupted. `phases` are those of the throughput and of the
    /// waits; `counting`, in the form that counts its events.
    pub(super) fn measure(
        &mut self,
        cell: Cell,
        job: Job,
        (phase, waits): (Duration, Duration),
        counting: bool,
    ) -> anyhow::Result<Option<Measured>> {
        let lock = self.plan.locks[cell.lock];
        self.around.arrange(self.plan, cell)?;
        let conditions = Conditions {
            threads: cell.threads,
            placement: &self.plan.placement,
            phase,
            waits,
            clock: &self.clock,
            interrupt: self.interrupt,
        };
        let _tuned = InForce::put(cell.variant.tuning);
        let result = match (lock.engine, job) {
            (Engine::Mutex(engine), Job::Mutex(work)) => {
                let hinted = (cell.variant.remedy == Some(Remedy::B))
                    .then(|| lock.ours.and_then(hinted::measure))
                    .flatten();
                let counted = engine.count.filter(|_| counting);
                hinted.or(counted).unwrap_or(engine.measure)(work, &conditions)
            }
            (Engine::Rw(engine), Job::Rw(mix)) => {
                engine.count.filter(|_| counting).unwrap_or(engine.measure)(mix, &conditions)
            }
            _ => bail!("{} cannot run this workload", lock.name),
        };
        self.bar.inc(1);
        match result {
            Ok(measured) => Ok(Some(measured)),
            Err(Spoiled::Interrupted) => Ok(None),
            Err(Spoiled::Threads { made, why }) => {
                bail!("the machine made {made} of {} threads: {why}; ask for fewer", cell.threads)
            }
            Err(Spoiled::Broken(what)) => {
                bail!("{} with {} threads: {what}", lock.name, cell.threads)
            }
        }
    }

    /// Nothing stands around the threads any more.
    pub(super) fn clear(&mut self) -> anyhow::Result<()> {
        self.around.clear()
    }
}

impl Drop for Stand<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
