//! Calls of a simulated CPU to its hypervisor: to halt, to kick, to yield, and not to be preempted.

use super::schedule::Standing;
use crate::engine::{Happened, State, Time, Wait, What, World, from_ns, to_ns};

impl World {
    /// Works for that long; slower if the core's other hardware thread works as well when it begins.
    pub(crate) fn work(&self, time: Time) {
        let mut state = self.state.borrow_mut();
        let me = state.current;
        let factor = state.prices.sibling_factor;
        let mut time = time;
        if state.slowdown > 1.0 {
            time = (time as f64 * state.slowdown) as Time;
        }
        if factor > 1.0 {
            if state.has_working_sibling(me) {
                time = (time as f64 * factor) as Time;
            }
            let it = &mut state.strands[me];
            it.works_until = it.clock + time;
        }
        state.strands[me].clock += time;
        let clock = state.strands[me].clock;
        state.progress.moved(clock);
    }

    /// A blind delay.
    pub(crate) fn relax(&self, pauses: u32) {
        let mut state = self.state.borrow_mut();
        let me = state.current;
        let time = state.prices.pause * Time::from(pauses);
        let it = &mut state.strands[me];
        it.clock += time;
        if it.wants.is_some() {
            it.figures.spun += time;
        }
    }

    /// How long a pause takes, in whole nanoseconds, at least one.
    pub(crate) fn pause_ns(&self) -> u32 {
        (to_ns(self.state.borrow().prices.pause) as u32).max(1)
    }

    /// The clock in nanoseconds.
    pub(crate) fn look_at_the_clock(&self) -> u64 {
        let mut state = self.state.borrow_mut();
        let (me, price) = (state.current, state.prices.clock);
        state.strands[me].clock += price;
        to_ns(state.strands[me].clock) as u64
    }

    /// Halts until a kick of this CPU's node at `level`, at the latest until this time in nanoseconds.
    pub(crate) fn halt_until(&self, level: u32, deadline_ns: Option<u64>) {
        let mut state = self.synchronise();
        state = self.drained(state);
        let (me, price) = (state.current, state.schedule.calls.halt);
        state.strands[me].clock += price;
        drop(state);
        let mut state = self.synchronise();
        let place = level as usize;
        if !state.strands[me].kicked[place] {
            let it = &mut state.strands[me];
            it.figures.halts += 1;
            it.level = level;
            it.kicked_at = None;
            state.block(me);
            if let Some(deadline_ns) = deadline_ns {
                let at = from_ns(deadline_ns as f64).max(state.now);
                let turn = state.strands[me].turn;
                state.queue.push(at, What::Wake { strand: me as u32, turn });
            }
            state = self.suspend(state);
        }
        let it = &mut state.strands[me];
        it.kicked[place] = false;
        if let Some(kicked) = it.kicked_at.take() {
            let clock = it.clock;
            it.figures.wakes += 1;
            it.figures.wake_time += clock.saturating_sub(kicked);
        }
    }

    /// Kicks the node of a CPU.
    pub(crate) fn kick(&self, cpu: usize, level: u32) {
        let state = self.synchronise();
        let mut state = self.drained(state);
        let me = state.current;
        let calls = state.schedule.calls;
        state.strands[me].clock += calls.kick;
        state.strands[me].figures.kicks += 1;
        let now = state.now;
        state.digest.add(now, Happened::Kicked, cpu, level);
        let Some(it) = state.strands.get_mut(cpu) else { return };
        let halted = it.wait == Wait::Halt && it.level == level;
        let first = !std::mem::replace(&mut it.kicked[level as usize], true);
        if halted && first {
            it.kicked_at = Some(now);
            let what = What::Wake { strand: cpu as u32, turn: it.turn };
            state.queue.push(now + calls.wake, what);
        }
    }

    /// Sleeps: the processor is free meanwhile.
    pub(crate) fn sleep(&self, time: Time) {
        let state = self.synchronise();
        let mut state = self.drained(state);
        let me = state.current;
        let until = state.now + time;
        state.progress.moved(until);
        // A kick does not end it.
        state.strands[me].level = u32::MAX;
        state.block(me);
        let what = What::Wake { strand: me as u32, turn: state.strands[me].turn };
        state.queue.push(until, what);
        drop(self.suspend(state));
    }

    /// Every CPU passes a full fence: all of them are interrupted, and the caller waits for the last.
    pub(crate) fn fence_everywhere(&self) {
        /// Between two polls of the other CPUs' store buffers.
        const LOOK_NS: f64 = 20.0;
        self.fence();
        let mut state = self.synchronise();
        let me = state.current;
        state.strands[me].clock += state.schedule.calls.kick;
        drop(state);
        let mut state = self.synchronise();
        let mut left: Vec<usize> =
            (0..state.strands.len()).filter(|&strand| strand != me).collect();
        loop {
            left.retain(|&strand| !state.strands[strand].stores.is_empty());
            if left.is_empty() {
                return;
            }
            state.strands[me].clock += from_ns(LOOK_NS);
            drop(state);
            state = self.synchronise();
        }
    }

    /// Yields to any other task.
    pub(crate) fn yield_cpu(&self) {
        let state = self.synchronise();
        let mut state = self.drained(state);
        let me = state.current;
        let price = state.schedule.calls.yields.max(state.prices.pause);
        let it = &mut state.strands[me];
        it.clock += price;
        it.figures.yields += 1;
        if it.wants.is_some() {
            it.figures.spun += price;
        }
        drop(state);
        let mut state = self.synchronise();
        if state.steps_aside(me) {
            drop(self.suspend(state));
        }
    }

    /// Yields to `cpu` in particular, where that is possible.
    pub(crate) fn yield_to(&self, cpu: usize) {
        let mut state = self.synchronise();
        if state.schedule.calls.directed_yield {
            state.favour(cpu);
        }
        drop(state);
        self.yield_cpu();
    }

    /// The current CPU holds one more lock.
    pub(crate) fn holder_enter(&self) {
        let mut state = self.state.borrow_mut();
        let me = state.current;
        state.schedule.tasks[me].holds += 1;
    }

    /// The current CPU holds one lock less. If it was only kept on its processor for that, it leaves.
    pub(crate) fn holder_exit(&self) {
        let mut state = self.state.borrow_mut();
        let me = state.current;
        let it = &mut state.schedule.tasks[me];
        it.holds = it.holds.saturating_sub(1);
        if it.holds == 0 && it.in_grace {
            drop(state);
            self.yield_cpu();
        }
    }

    /// Whether `cpu` is known not to be running.
    pub(crate) fn is_preempted(&self, cpu: usize) -> bool {
        let calls = self.state.borrow().schedule.calls;
        if !calls.run_status {
            return false;
        }
        let mut state = self.synchronise();
        let me = state.current;
        state.strands[me].clock += calls.run_status_look;
        state.schedule.tasks.get(cpu).is_some_and(|task| task.standing != Standing::Running)
    }
}

impl State {
    /// The running strand leaves its processor until it is woken.
    fn block(&mut self, strand: usize) {
        let processor = usize::from(self.strands[strand].processor);
        self.take_off(strand as u32, Standing::Blocked);
        self.strands[strand].wait = Wait::Halt;
        self.strands[strand].backlog = 0;
        self.dispatch(processor, None);
    }

    /// A kick has reached a halted strand.
    pub(crate) fn wake(&mut self, strand: usize) {
        if self.strands[strand].wait == Wait::Halt {
            self.strands[strand].wait = Wait::Clock;
            self.make_ready(strand as u32);
        }
    }

    /// The running strand goes to the end of the queue, if there is one. Returns whether it did.
    fn steps_aside(&mut self, strand: usize) -> bool {
        let processor = usize::from(self.strands[strand].processor);
        self.schedule.tasks[strand].in_grace = false;
        if self.schedule.processors[processor].ready.is_empty() {
            return false;
        }
        self.take_off(strand as u32, Standing::Ready);
        self.dispatch(processor, Some(strand as u32));
        true
    }

    /// If `cpu` is ready and not running, it runs next on its processor: at once, unless the task that runs
    /// there has only just begun. (Otherwise tasks that favour each other in step could keep one from ever
    /// doing anything.)
    fn favour(&mut self, cpu: usize) {
        let now = self.now;
        let Some(task) = self.schedule.tasks.get_mut(cpu) else { return };
        if task.standing != Standing::Ready {
            return;
        }
        task.favoured = true;
        let processor = task.processor;
        let mine = self.strands.get(self.current).map(|it| it.processor);
        let running = self.schedule.processors[usize::from(processor)].running;
        let least = self.schedule.calls.least_slice;
        let may_go =
            running.is_none_or(|task| now >= self.schedule.tasks[task as usize].since + least);
        if mine != Some(processor) && may_go {
            self.queue.push(now, What::Slice { processor, turn: super::Schedule::AT_ONCE });
        }
    }

    /// A watcher has spun through the window: the hypervisor looks for a better task to run.
    pub(crate) fn pause_loop_exit(&mut self, strand: usize) {
        let it = &mut self.strands[strand];
        if it.wait != Wait::Watch || !it.on {
            return;
        }
        it.figures.pause_loop_exits += 1;
        let (turn, number) = (it.turn, strand as u32);
        let calls = self.schedule.calls;
        let cpus = self.schedule.cpus;
        let after = self.schedule.last_favoured;
        let candidate = (1..=cpus)
            .map(|step| (after + step) % cpus)
            .find(|&cpu| cpu != strand && self.schedule.tasks[cpu].standing == Standing::Ready);
        if let Some(cpu) = candidate {
            self.schedule.last_favoured = cpu;
            self.favour_from(cpu, strand);
            if self.steps_aside(strand) {
                return;
            }
        }
        // It is away for the time of the exit, and does not poll.
        let now = self.now;
        let back = now + calls.pause_loop_exit;
        let it = &mut self.strands[strand];
        it.figures.spun += now.saturating_sub(it.watch.base);
        it.watch.base = back;
        let again = back + calls.pause_loop_window;
        self.queue.push(again, What::PauseLoop { strand: number, turn });
    }

    fn favour_from(&mut self, cpu: usize, by: usize) {
        let current = std::mem::replace(&mut self.current, by);
        self.favour(cpu);
        self.current = current;
    }

    fn has_working_sibling(&self, strand: usize) -> bool {
        let (core, cores) = (u32::from(self.strands[strand].core), self.shape.cores());
        let clock = self.strands[strand].clock;
        (0..self.shape.threads_per_core).any(|thread| {
            let processor = core + thread * cores;
            let running = self.schedule.processors[processor as usize].running;
            running.is_some_and(|task| {
                let task = task as usize;
                // A hog always works.
                let works = self.strands.get(task).is_none_or(|it| it.works_until > clock);
                task != strand && works
            })
        })
    }
}
