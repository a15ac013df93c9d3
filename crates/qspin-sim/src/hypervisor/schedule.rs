//! Which task runs: queues of ready tasks, and slices. `spread` decides which queue a task is in.
//!
//! # Invariants
//! * **SCHEDULE-1** A task is running on one processor, or ready in the queue of one, or in no queue because it
//!   is halted, throttled or gone.
//! * **SCHEDULE-2** While a task is ready on a processor that runs another one, an event is due at which that
//!   slice ends.
//! * **SCHEDULE-3** A strand leaves its processor only between two of its operations. A strand that waits for a
//!   line is flagged ([`leaves`](crate::engine) of the strand), and leaves when it has done its operation on
//!   the line.

use super::{Calls, Pinning};
use crate::engine::{Happened, State, Time, Wait, What};
use crate::scenario::Scenario;
use crate::timeline::Step;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Running,
    Ready,
    /// Halted, or asleep.
    Blocked,
    /// Ready but for the quota.
    Throttled,
    Gone,
}

/// Where a task may run.
#[derive(Debug, Clone)]
pub(super) enum Allowed {
    Everywhere,
    On(u16),
    OnThese(Vec<u16>),
}

/// A CPU of the guest, or a hog.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) standing: Standing,
    pub(super) processor: u16,
    pub(super) allowed: Allowed,
    /// The time it has had, by the scheduler's account.
    pub(super) had: Time,
    /// Since when it is in its present state.
    pub(super) since: Time,
    /// It is to run next.
    pub(super) favoured: bool,
    /// Locks that it holds, as it has reported.
    pub(super) holds: u32,
    /// It is still on its processor only because of those.
    pub(super) in_grace: bool,
    /// Time ready, but not running.
    pub(super) stolen: Time,
    pub(super) ran: Time,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Processor {
    pub(super) running: Option<u32>,
    pub(super) ready: Vec<u32>,
    /// Of the slice; counts up.
    turn: u32,
    slice_is_due: bool,
    /// The least time that a task here has had.
    pub(super) least: Time,
    /// The last task that ran.
    last: Option<u32>,
}

/// The whole schedule.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(super) calls: Calls,
    pub(super) tasks: Vec<Task>,
    pub(super) processors: Vec<Processor>,
    /// Ready tasks in all queues.
    pub(super) ready: usize,
    pub(super) cpus: usize,
    pub(super) quota_left: Time,
    pub(super) quota_seen: Time,
    pub(super) quota_turn: u32,
    /// CPUs that have run since then.
    pub(super) quota_running: Time,
    /// When it was used up, if it is.
    pub(super) quota_spent_at: Option<Time>,
    /// The task that the last pause-loop exit favoured.
    pub(super) last_favoured: usize,
    pub(super) preemptions: u64,
}

impl Schedule {
    /// In place of a slice's turn: now, whichever slice it is.
    pub(crate) const AT_ONCE: u32 = u32::MAX;

    pub(crate) fn new(scenario: &Scenario) -> Self {
        let cpus = scenario.cpus as usize;
        let task = |place: u32, pinning: &Pinning| Task {
            standing: Standing::Ready,
            processor: place as u16,
            allowed: match pinning {
                Pinning::Own => Allowed::On(place as u16),
                Pinning::Any => Allowed::Everywhere,
                Pinning::To(processors) => {
                    Allowed::OnThese(processors.iter().map(|&one| one as u16).collect())
                }
            },
            had: 0,
            since: 0,
            favoured: false,
            holds: 0,
            in_grace: false,
            stolen: 0,
            ran: 0,
        };
        let places = scenario.places();
        let mut tasks: Vec<_> =
            places.iter().map(|&place| task(place, &scenario.pinning)).collect();
        let hogs = scenario.hog_places();
        tasks.extend(hogs.iter().map(|&place| task(place, &scenario.hog_pinning)));
        let processors = scenario.machine.shape.processors() as usize;
        let calls = scenario.hypervisor.as_ref().map(Calls::from).unwrap_or_default();
        Self {
            calls,
            tasks,
            processors: vec![Processor::default(); processors],
            ready: 0,
            cpus,
            quota_left: calls.quota,
            quota_seen: 0,
            quota_turn: 0,
            quota_running: 0,
            quota_spent_at: None,
            last_favoured: 0,
            preemptions: 0,
        }
    }

    pub(crate) fn pause_loop_window(&self) -> Option<Time> {
        (self.calls.pause_loop_window > 0).then_some(self.calls.pause_loop_window)
    }

    pub(crate) fn stolen(&self, cpu: usize) -> Time {
        self.tasks[cpu].stolen
    }

    pub(crate) fn preemptions(&self) -> u64 {
        self.preemptions
    }

    pub(super) fn line_up(&mut self, processor: usize, task: u32) {
        self.processors[processor].ready.push(task);
        self.ready += 1;
    }

    pub(super) fn call_up(&mut self, processor: usize, place: usize) -> u32 {
        self.ready -= 1;
        self.processors[processor].ready.remove(place)
    }

    /// Takes a ready task out of its queue.
    pub(super) fn strike(&mut self, task: u32) {
        let processor = usize::from(self.tasks[task as usize].processor);
        let place = self.processors[processor].ready.iter().position(|&it| it == task);
        if let Some(place) = place {
            self.call_up(processor, place);
        }
    }

    pub(super) fn may_run(&self, task: u32, processor: usize) -> bool {
        match &self.tasks[task as usize].allowed {
            Allowed::Everywhere => true,
            Allowed::On(one) => usize::from(*one) == processor,
            // No place listed means everywhere.
            Allowed::OnThese(these) => these.is_empty() || these.contains(&(processor as u16)),
        }
    }

    /// The time that the task on a processor has had by `now`.
    pub(super) fn had(&self, task: u32, now: Time) -> Time {
        let it = &self.tasks[task as usize];
        let runs = it.standing == Standing::Running;
        it.had + if runs { now.saturating_sub(it.since) } else { 0 }
    }
}

impl State {
    /// Every task begins on the processor where it is placed.
    pub(crate) fn begin_schedule(&mut self) {
        for task in 0..self.schedule.tasks.len() {
            let processor = self.schedule.tasks[task].processor;
            self.schedule.line_up(usize::from(processor), task as u32);
        }
        for processor in 0..self.schedule.processors.len() {
            self.dispatch(processor, None);
        }
        let calls = self.schedule.calls;
        if calls.balance > 0 {
            self.queue.push(calls.balance, What::Balance);
        }
        if calls.quota > 0 {
            self.queue.push(calls.period, What::QuotaPeriod);
        }
    }

    /// Puts the next task on a free processor; `after` only if no other task is ready.
    pub(super) fn dispatch(&mut self, processor: usize, after: Option<u32>) {
        if self.schedule.processors[processor].running.is_some() {
            return;
        }
        let Some(task) = self.take_next(processor, after).or_else(|| self.pull(processor)) else {
            return;
        };
        let now = self.now;
        let it = &mut self.schedule.processors[processor];
        let switches = it.last.is_some_and(|last| last != task);
        it.running = Some(task);
        it.last = Some(task);
        let schedule = &mut self.schedule;
        let cost = if switches { schedule.calls.switch } else { 0 };
        let had = schedule.tasks[task as usize].had;
        let least = &mut schedule.processors[processor].least;
        *least = (*least).max(had);
        let it = &mut schedule.tasks[task as usize];
        it.standing = Standing::Running;
        it.stolen += now.saturating_sub(it.since);
        it.since = now;
        it.processor = processor as u16;
        it.favoured = false;
        self.begin_slice(processor);
        self.digest.add(now, Happened::Ran, task as usize, processor as u32);
        self.note(now, task, Step::Runs(processor as u16));
        if (task as usize) < self.schedule.cpus {
            self.put_on(task as usize, processor, now + cost);
            self.quota_changed();
        }
    }

    /// The next of a processor's queue: the favoured task, or the one that has had the least time.
    fn take_next(&mut self, processor: usize, after: Option<u32>) -> Option<u32> {
        let tasks = &self.schedule.tasks;
        let ready = &self.schedule.processors[processor].ready;
        let rank = |&(_, task): &(usize, &u32)| {
            let it = &tasks[*task as usize];
            // Among tasks that come back from a long absence, which count alike, the one that has run least
            // goes first.
            (Some(*task) == after, !it.favoured, it.had, it.ran)
        };
        let (place, _) = ready.iter().enumerate().min_by_key(rank)?;
        Some(self.schedule.call_up(processor, place))
    }

    fn begin_slice(&mut self, processor: usize) {
        let it = &mut self.schedule.processors[processor];
        it.turn = (it.turn + 1) % Schedule::AT_ONCE;
        it.slice_is_due = false;
        self.end_slice_in_time(processor);
    }

    /// SCHEDULE-2.
    pub(super) fn end_slice_in_time(&mut self, processor: usize) {
        let now = self.now;
        let calls = self.schedule.calls;
        let it = &mut self.schedule.processors[processor];
        let Some(task) = it.running else { return };
        if it.ready.is_empty() || it.slice_is_due {
            return;
        }
        it.slice_is_due = true;
        let tasks = it.ready.len() as Time + 1;
        let slice = (calls.latency / tasks).max(calls.least_slice).max(1);
        let slice = if calls.slice_jitter > 0.0 {
            (slice as f64 * (1.0 + calls.slice_jitter * (2.0 * self.random.unit() - 1.0))) as Time
        } else {
            slice
        };
        let it = &mut self.schedule.processors[processor];
        let what = What::Slice { processor: processor as u16, turn: it.turn };
        let since = self.schedule.tasks[task as usize].since;
        self.queue.push((since + slice).max(now), what);
    }

    /// The slice of a processor's task is over, or it has to go at once.
    pub(crate) fn slice_over(&mut self, processor: u16, turn: u32) {
        let number = usize::from(processor);
        let it = &mut self.schedule.processors[number];
        if turn != Schedule::AT_ONCE {
            if turn != it.turn {
                return;
            }
            it.slice_is_due = false;
        }
        let Some(task) = it.running else { return };
        let nobody_else = it.ready.is_empty();
        if (task as usize) < self.schedule.cpus && self.is_throttled() {
            if self.take_off(task, Standing::Throttled) {
                self.dispatch(number, None);
            }
            return;
        }
        // Of several tasks that wake at one moment, each displaces the task that ran before, not another of
        // them.
        let just_begun = self.schedule.tasks[task as usize].since == self.now;
        if nobody_else || turn == Schedule::AT_ONCE && just_begun {
            return;
        }
        let (grace, now) = (self.schedule.calls.holder_grace, self.now);
        let it = &mut self.schedule.tasks[task as usize];
        if grace > 0 && it.holds > 0 && !it.in_grace {
            it.in_grace = true;
            let it = &mut self.schedule.processors[number];
            it.slice_is_due = true;
            self.queue.push(now + grace, What::Slice { processor, turn: it.turn });
            return;
        }
        if self.take_off(task, Standing::Ready) {
            self.schedule.preemptions += 1;
            // It is another task's turn, even if this one has had the least by a hair: otherwise nanoseconds
            // would decide which of the two runs for a whole slice.
            self.dispatch(number, Some(task));
        }
    }

    /// Takes the task off its processor, if that is possible now (SCHEDULE-3).
    pub(super) fn take_off(&mut self, task: u32, to: Standing) -> bool {
        let now = self.now;
        let strand = task as usize;
        if strand < self.schedule.cpus {
            let it = &mut self.strands[strand];
            if matches!(it.wait, Wait::Transfer | Wait::Drain) {
                it.leaves = true;
                return false;
            }
            self.take_strand_off(strand);
        }
        let it = &mut self.schedule.tasks[task as usize];
        let ran = now.saturating_sub(it.since);
        it.had += ran;
        it.ran += ran;
        it.since = now;
        it.standing = to;
        it.in_grace = false;
        let processor = usize::from(it.processor);
        self.schedule.processors[processor].running = None;
        if to == Standing::Ready {
            self.schedule.line_up(processor, task);
        }
        self.digest.add(now, Happened::Left, task as usize, processor as u32);
        let why = if to == Standing::Blocked { Step::Halts } else { Step::Stops };
        self.note(now, task, why);
        if strand < self.schedule.cpus {
            self.quota_changed();
        }
        true
    }

    fn take_strand_off(&mut self, strand: usize) {
        let now = self.now;
        if self.strands[strand].wait == Wait::Watch {
            self.interrupt_watch(strand);
        }
        let it = &mut self.strands[strand];
        it.on = false;
        // Events that were due are void; they are made anew when the strand is back.
        it.turn = it.turn.wrapping_add(1);
        if it.wait == Wait::Clock {
            it.backlog = it.clock.saturating_sub(now);
        }
    }

    fn put_on(&mut self, strand: usize, processor: usize, at: Time) {
        let core = self.shape.core_of(processor as u32) as u16;
        let it = &mut self.strands[strand];
        it.on = true;
        it.processor = processor as u16;
        it.core = core;
        it.clock = at;
        match it.wait {
            Wait::Watch => self.resume_watch(strand),
            Wait::Clock => {
                it.clock += std::mem::take(&mut it.backlog);
                let what = What::Resume { strand: strand as u32, turn: it.turn };
                self.queue.push(it.clock, what);
            }
            // SCHEDULE-3, and a halted or finished strand is never ready.
            Wait::Transfer | Wait::Drain | Wait::Halt | Wait::Finished => {
                unreachable!("only those run that can")
            }
        }
    }

    /// A strand has ended, at its clock.
    pub(crate) fn leave_for_ever(&mut self, strand: usize) {
        let processor = usize::from(self.strands[strand].processor);
        self.take_off(strand as u32, Standing::Gone);
        self.dispatch(processor, None);
    }
}
