//! The CPU quota: processor time in a period for all CPUs of the guest together.
//!
//! # Source
//! Linux's bandwidth control for groups of tasks (`kernel/sched/fair.c`, `cfs_bandwidth`), which is
//! what limits a container's CPUs.
//!
//! # Limits
//! Linux hands time out to processors in chunks of some milliseconds, so a group may overrun; here all tasks
//! stop the moment the time is used up.

use super::schedule::Standing;
use crate::engine::{State, Time, What};

impl State {
    fn running_cpus(&self) -> Time {
        let cpus = &self.schedule.tasks[..self.schedule.cpus];
        cpus.iter().filter(|task| task.standing == Standing::Running).count() as Time
    }

    pub(super) fn is_throttled(&self) -> bool {
        self.schedule.calls.quota > 0 && self.schedule.quota_left == 0
    }

    /// A task begins or ceases to run.
    pub(super) fn quota_changed(&mut self) {
        if self.schedule.calls.quota == 0 {
            return;
        }
        // The task that has changed is counted from now on, or was until now. Counting it with the others' time
        // makes no error, since no time has passed for it.
        self.count_quota();
        let running = self.running_cpus();
        self.schedule.quota_turn = self.schedule.quota_turn.wrapping_add(1);
        if running > 0 {
            let turn = self.schedule.quota_turn;
            let spent = self.now + self.schedule.quota_left.div_ceil(running);
            self.queue.push(spent, What::QuotaSpent { turn });
        }
    }

    /// Subtracts the time used since the last call from the quota.
    fn count_quota(&mut self) {
        let passed = self.now - self.schedule.quota_seen;
        self.schedule.quota_seen = self.now;
        let used = passed * self.schedule.quota_running;
        self.schedule.quota_left = self.schedule.quota_left.saturating_sub(used);
        self.schedule.quota_running = self.running_cpus();
    }

    /// The quota may be used up.
    pub(crate) fn quota_spent(&mut self, turn: u32) {
        if turn != self.schedule.quota_turn {
            return;
        }
        self.count_quota();
        if self.schedule.quota_left > 0 {
            return self.quota_changed();
        }
        self.schedule.quota_spent_at = Some(self.now);
        for task in 0..self.schedule.cpus {
            let processor = usize::from(self.schedule.tasks[task].processor);
            match self.schedule.tasks[task].standing {
                // A task in the middle of an operation overruns: it leaves in a moment.
                Standing::Running => {
                    if self.take_off(task as u32, Standing::Throttled) {
                        self.dispatch(processor, None);
                    }
                }
                Standing::Ready => {
                    self.schedule.strike(task as u32);
                    self.schedule.tasks[task].standing = Standing::Throttled;
                }
                Standing::Blocked | Standing::Throttled | Standing::Gone => {}
            }
        }
    }

    /// A new period begins.
    pub(crate) fn quota_period(&mut self) {
        self.count_quota();
        let calls = self.schedule.calls;
        self.schedule.quota_left = calls.quota;
        if let Some(spent) = self.schedule.quota_spent_at.take() {
            // No task could have moved meanwhile: that is no standstill.
            self.progress.stood(self.now - spent);
        }
        self.queue.push(self.now + calls.period, What::QuotaPeriod);
        // All of them are queued before any of them runs, so that the task that has had the least time is
        // first. If they came one by one, as waking tasks do, the first of a processor would run until the
        // quota is used up again, the same one in every period, and a holder queued behind it would never run.
        for task in 0..self.schedule.cpus {
            if self.schedule.tasks[task].standing == Standing::Throttled {
                self.line_up_again(task as u32);
            }
        }
        for processor in 0..self.schedule.processors.len() {
            self.settle(processor);
        }
        self.quota_changed();
    }
}
