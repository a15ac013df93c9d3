//! The schedules of shuttle, each made of one number.
//!
//! Shuttle's own schedulers draw all executions of a run from one generator, and learn from
//! earlier ones; the failing execution is then the n-th of a run that must be repeated whole.
//! Here an execution is a function of its own seed.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use crate::trace;

/// How the next task is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Any task, at every step.
    Random,
    /// The task of highest priority; priorities are random and change at `depth - 1` random steps
    /// (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding
    /// bugs", 2010). A task that yields falls to the lowest.
    Pct {
        /// The depth of the bugs that are found with a known probability.
        depth: u32,
    },
}

impl Strategy {
    /// The name under which it is shown and replayed.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Strategy::Random => "random".to_owned(),
            Strategy::Pct { depth } => format!("pct{depth}"),
        }
    }

    /// The strategy of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "random" => Some(Strategy::Random),
            _ => {
                let depth = name.strip_prefix("pct")?.parse().ok()?;
                (depth > 0).then_some(Strategy::Pct { depth })
            }
        }
    }
}

/// Steps of an execution among which priorities change. About the length of the executions of
/// this crate: a change after the end of one is a change wasted.
const CHANGES_WITHIN: u64 = 300;

/// A schedule per seed: `first`, `first + 1`, … until an execution fails.
pub(super) struct Seeded {
    strategy: Strategy,
    next: u64,
    left: u64,
    /// How many executions have begun.
    begun: Arc<AtomicU64>,
    random: u64,
    steps: u64,
    changes: Vec<u64>,
    priorities: Vec<u64>,
    lowest: u64,
}

impl Seeded {
    pub(super) fn new(
        strategy: Strategy,
        first: u64,
        executions: u64,
        begun: Arc<AtomicU64>,
    ) -> Self {
        Self {
            strategy,
            next: first,
            left: executions,
            begun,
            random: 0,
            steps: 0,
            changes: Vec::new(),
            priorities: Vec::new(),
            lowest: 0,
        }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Priorities are drawn high; a context that is lowered gets one below all others.
    fn priority(&mut self, task: TaskId) -> &mut u64 {
        let index = usize::from(task);
        while self.priorities.len() <= index {
            let drawn = self.draw() | 1 << 63;
            self.priorities.push(drawn);
        }
        &mut self.priorities[index]
    }

    fn lower(&mut self, task: TaskId) {
        self.lowest -= 1;
        let lowest = self.lowest;
        *self.priority(task) = lowest;
    }
}

impl Scheduler for Seeded {
    fn new_execution(&mut self) -> Option<Schedule> {
        // The execution before ends here: its record is either a counterexample, or dropped.
        if trace::has_failed() {
            return None;
        }
        trace::end();
        self.left = self.left.checked_sub(1)?;
        self.begun.fetch_add(1, Relaxed);
        self.random = self.next;
        self.next = self.next.wrapping_add(1);
        self.steps = 0;
        self.priorities.clear();
        self.lowest = 1 << 62;
        self.changes.clear();
        if let Strategy::Pct { depth } = self.strategy {
            for _ in 1..depth {
                let change = self.draw() % CHANGES_WITHIN;
                self.changes.push(change);
            }
        }
        Some(Schedule::new(self.random))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        yields: bool,
    ) -> Option<TaskId> {
        if trace::has_failed() {
            return None;
        }
        self.steps += 1;
        match self.strategy {
            Strategy::Random => {
                let index = self.draw() % runnable.len() as u64;
                runnable.get(index as usize).map(|task| task.id())
            }
            Strategy::Pct { .. } => {
                if let Some(current) = current
                    && (yields || self.changes.contains(&self.steps))
                {
                    self.lower(current);
                }
                let ids: Vec<_> = runnable.iter().map(|task| task.id()).collect();
                ids.into_iter().max_by_key(|&task| *self.priority(task))
            }
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.draw()
    }
}
