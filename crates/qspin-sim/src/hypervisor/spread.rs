//! Where ready tasks go: on which processor a task wakes, what an idle processor pulls, how queues are
//! levelled.
//!
//! # Source
//! Linux's fair scheduler of the documents' time: `select_idle_sibling`, idle balancing and periodic balancing;
//! the rule of each, without the heuristics.
//!
//! # Invariants
//! SCHEDULE-1 to SCHEDULE-3 of [`schedule`](super::schedule). And:
//! * **SPREAD-1** The time that a task has had is counted relative to the least that a task of its processor
//!   has had; a task that moves keeps its difference.

use super::schedule::{Processor, Standing};
use crate::engine::{State, What};
use crate::hypervisor::Schedule;
use crate::timeline::Step;

impl State {
    /// A blocked task is ready.
    pub(super) fn make_ready(&mut self, task: u32) {
        let now = self.now;
        if (task as usize) < self.schedule.cpus && self.is_throttled() {
            let it = &mut self.schedule.tasks[task as usize];
            it.standing = Standing::Throttled;
            it.since = now;
            return;
        }
        let processor = self.choose_processor(task);
        let calls = self.schedule.calls;
        let from = usize::from(self.schedule.tasks[task as usize].processor);
        if from != processor {
            self.move_task(task, from, processor);
        }
        let least = match self.schedule.processors[processor].running {
            Some(running) => self.schedule.had(running, now),
            None => self.schedule.processors[processor].least,
        };
        let it = &mut self.schedule.tasks[task as usize];
        it.standing = Standing::Ready;
        it.since = now;
        it.processor = processor as u16;
        // A sleeper's credit is bounded.
        it.had = it.had.max(least.saturating_sub(calls.latency / 2));
        let had = it.had;
        self.note(now, task, Step::Wakes);
        self.schedule.line_up(processor, task);
        match self.schedule.processors[processor].running {
            None => self.dispatch(processor, None),
            Some(running) => {
                if self.schedule.had(running, now) > had + calls.wake_granularity {
                    let processor = processor as u16;
                    self.queue.push(now, What::Slice { processor, turn: Schedule::AT_ONCE });
                }
                self.end_slice_in_time(processor);
            }
        }
    }

    /// Where a waking task goes: to its last processor if that is idle; else to the nearest idle one.
    fn choose_processor(&self, task: u32) -> usize {
        let schedule = &self.schedule;
        let last = usize::from(schedule.tasks[task as usize].processor);
        let idle = |processor: usize| schedule.processors[processor].running.is_none();
        if idle(last) {
            return last;
        }
        let here = self.shape.core_of(last as u32);
        let free = (0..schedule.processors.len())
            .filter(|&processor| idle(processor) && schedule.may_run(task, processor));
        free.min_by_key(|&other| {
            (self.shape.distance(here, self.shape.core_of(other as u32)), other)
        })
        .unwrap_or(last)
    }

    /// A task that the quota had stopped becomes ready where it was. It has slept no more than the others: it
    /// keeps its place among them.
    pub(super) fn line_up_again(&mut self, task: u32) {
        let (now, credit) = (self.now, self.schedule.calls.latency / 2);
        let processor = usize::from(self.schedule.tasks[task as usize].processor);
        let least = self.schedule.processors[processor].least;
        let it = &mut self.schedule.tasks[task as usize];
        it.standing = Standing::Ready;
        it.since = now;
        it.had = it.had.max(least.saturating_sub(credit));
        self.schedule.line_up(processor, task);
    }

    /// Makes sure that a processor with a queue runs a task, and not for longer than that task's slice.
    pub(super) fn settle(&mut self, processor: usize) {
        self.dispatch(processor, None);
        self.end_slice_in_time(processor);
    }

    /// A task of the longest queue that may run here.
    pub(super) fn pull(&mut self, processor: usize) -> Option<u32> {
        if !self.schedule.calls.pulls || self.schedule.ready == 0 {
            return None;
        }
        let schedule = &self.schedule;
        let movable = |from: &Processor| {
            from.ready.iter().position(|&task| schedule.may_run(task, processor))
        };
        let (from, place) = schedule
            .processors
            .iter()
            .enumerate()
            .filter_map(|(from, it)| Some((from, movable(it)?)))
            .max_by_key(|&(from, _)| (schedule.processors[from].ready.len(), usize::MAX - from))?;
        let task = self.schedule.call_up(from, place);
        self.move_task(task, from, processor);
        Some(task)
    }

    /// SPREAD-1.
    fn move_task(&mut self, task: u32, from: usize, to: usize) {
        let (from, to) = (self.schedule.processors[from].least, self.schedule.processors[to].least);
        let it = &mut self.schedule.tasks[task as usize];
        it.had = (it.had + to).saturating_sub(from);
    }

    /// Moves one ready task from the longest queue to the shortest, as often as that levels them.
    pub(crate) fn balance(&mut self) {
        let load = |it: &Processor| it.ready.len() + usize::from(it.running.is_some());
        for _ in 0..self.schedule.processors.len() {
            let schedule = &self.schedule;
            let mut best: Option<(usize, usize, usize, usize)> = None;
            for (from, busy) in schedule.processors.iter().enumerate() {
                for (place, &task) in busy.ready.iter().enumerate() {
                    for (to, free) in schedule.processors.iter().enumerate() {
                        let gain = load(busy).saturating_sub(load(free));
                        let better = best.is_none_or(|(most, ..)| gain > most);
                        if gain >= 2 && better && schedule.may_run(task, to) {
                            best = Some((gain, from, place, to));
                        }
                    }
                }
            }
            let Some((_, from, place, to)) = best else { break };
            let task = self.schedule.call_up(from, place);
            self.move_task(task, from, to);
            self.schedule.tasks[task as usize].processor = to as u16;
            self.schedule.line_up(to, task);
            self.dispatch(to, None);
            self.end_slice_in_time(to);
        }
        let next = self.now + self.schedule.calls.balance;
        self.queue.push(next, What::Balance);
    }
}
