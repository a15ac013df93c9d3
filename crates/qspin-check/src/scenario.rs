//! A small program of lock operations: what each context of an execution does.

use qspin_core::node::LEVELS;

use crate::trace::Turn;

/// How a lock is acquired. A lock that only excludes knows only [`Mode::Write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Excluding all others.
    Write,
    /// Sharing with other readers.
    Read,
    /// The same, as the one among them that may become the writer.
    Upgradable,
}

/// One step of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Acquire, use the data, release.
    Section(usize, Mode),
    /// The same, with a look at `is_locked` while inside: one more point to be interrupted at.
    Watched(usize, Mode),
    /// Acquire without waiting, and if that succeeds use the data and release.
    Try(usize, Mode),
    /// Acquire with a deadline, which is over at its look at the clock of this number, or when it halts before that; and
    /// if that succeeds use the data and release.
    Timed(u32, usize, Mode),
    /// From here on this is the child of a fork, without the waiters of its parent.
    Fork,
    /// On a CPU of its own, begin this, and stop for good: what a thread leaves behind that the child of a fork does not
    /// have.
    Vanished(When, Box<Step>),
    /// There is a heavy barrier from here on.
    Obtain,
    /// Do the last of these: with the first before its first heavy barrier, and the second after that.
    Barrier(Vec<Step>, Vec<Step>, Box<Step>),
    /// Acquire, and keep it.
    Enter(usize, Mode),
    /// Release what [`Step::Enter`] acquired, after using the data.
    Leave(usize, Mode),
    /// The same, once so many others have come to wait for it.
    LeaveAfter(usize, Mode, usize),
    /// Hold it in the second mode from here on, without giving it up between.
    Downgrade(usize, Mode, Mode),
    /// Of a lock that is held [`Mode::Upgradable`]: become the writer if that takes no wait, or, where there is a number,
    /// until a deadline as that of [`Step::Timed`]. Then use the data, and read on.
    Upgrade(usize, Option<u32>),
    /// Acquire for reading, and stay inside until this many readers are inside.
    Together(usize, u32),
    /// This context will not use the lock any more; the last of so many contexts frees it.
    Free(usize, u32),
    /// Say that this context has come so far.
    Arrive,
    /// The same, and wait until this many have.
    Stay(u32),
    /// Say that this context has come so far. Unlike [`Step::Arrive`] it orders nothing.
    Signal,
    /// Wait until there were so many signals. It orders nothing, either.
    Await(u32),
    /// Wait until every other context has ended or waits.
    Settle(Turn),
    /// Wait until a notification has moved a waiter to the mutex, or every other context has ended or waits.
    Moved,
    /// Release what [`Step::Enter`] acquired, once so many contexts have arrived.
    Outlast(usize, Mode, u32),
    /// Do the second while being interrupted, before its operation of this number, by the first. Where there is
    /// no such operation, what others wait for comes after it: releases and arrivals.
    Interrupted(u32, Vec<Step>, Box<Step>),
}

/// At which point of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before its operation of this number.
    Operation(u32),
    /// Once it has changed a word of the lock.
    Marks,
    /// When it halts until a deadline.
    Halts,
}

/// More looks at the clock than a context has: its deadline is over when it halts.
pub const NEVER_LATE: u32 = u32::MAX - 1;

/// One context: a CPU's number, or none, and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its CPU.
    pub cpu: Option<u32>,
    /// What it does.
    pub steps: Vec<Step>,
}

/// A small program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Its name, unique in its battery.
    pub name: String,
    /// How many locks there are.
    pub locks: usize,
    /// What the first thread does before the others exist.
    pub before: Vec<Step>,
    /// The contexts; the first one is the one that makes the others.
    pub threads: Vec<Thread>,
    /// For each CPU how many of its nesting levels are in use from the beginning.
    pub nesting: Vec<u32>,
    /// Whether every context has a place in a queue, so that the order of service is held against
    /// the order of arrival, and no newcomer passes a waiter that forbids it.
    pub fifo: bool,
    /// How many halts of a context return at once, for no reason.
    pub vain_halts: u32,
    /// Of which context, once others had their turn; `None` for all, at once.
    pub vain_context: Option<usize>,
    /// On how many places the CPUs are, in turn.
    pub places: u32,
    /// Whether interrupts may come while their context has a bucket of sleepers locked.
    pub interrupts_buckets: bool,
}

impl Scenario {
    /// A program whose threads run on CPUs 0, 1, … and share one lock.
    #[must_use]
    pub fn new(name: &str, threads: Vec<Vec<Step>>) -> Self {
        let nesting = vec![0; threads.len()];
        let thread = |(cpu, steps)| Thread { cpu: Some(cpu), steps };
        let threads = (0..).zip(threads).map(thread).collect();
        Self {
            name: name.into(),
            locks: 1,
            before: Vec::new(),
            threads,
            nesting,
            fifo: true,
            vain_halts: 0,
            vain_context: None,
            places: 2,
            interrupts_buckets: true,
        }
    }

    /// With so many halts of each context returning at once. A context may be preempted there, so
    /// that this stands for a return at any later time, too.
    #[must_use]
    pub fn vain_halts(mut self, halts: u32) -> Self {
        self.vain_halts = halts;
        self
    }

    /// With one halt of this context alone that returns for no reason, once others had their turn.
    #[must_use]
    pub fn vain_halt_of(self, context: usize) -> Self {
        Self { vain_context: Some(context), ..self.vain_halts(1) }
    }

    /// With the CPUs on so many places.
    #[must_use]
    pub fn places(mut self, places: u32) -> Self {
        self.places = places;
        self
    }

    /// Nesting levels that may be used on some CPU.
    #[must_use]
    pub fn levels(&self) -> u32 {
        // What only forks, arrives or waits for others needs no node.
        let nodeless =
            |step: &Step| matches!(step, Step::Fork | Step::Arrive | Step::Settle(_) | Step::Moved);
        let nests = |step: &Step| matches!(step, Step::Interrupted(_, handler, _) if !handler.iter().all(nodeless));
        let interrupts = |steps: &[Step]| steps.iter().any(nests);
        let interrupted = self.threads.iter().any(|thread| interrupts(&thread.steps));
        let nested = self.nesting.iter().any(|&levels| levels > 0);
        if interrupted || nested || interrupts(&self.before) { LEVELS } else { 1 }
    }

    /// With one more CPU, on which threads run that are gone after a fork.
    #[must_use]
    pub fn with_parent(mut self) -> Self {
        self.nesting.push(0);
        self
    }

    /// With this done before the other threads exist.
    #[must_use]
    pub fn before(mut self, steps: Vec<Step>) -> Self {
        self.before = steps;
        self
    }

    /// With this many locks.
    #[must_use]
    pub fn locks(mut self, locks: usize) -> Self {
        self.locks = locks;
        self
    }

    /// With this thread having no CPU number. It has no place in a queue, so that no order of
    /// service is promised.
    #[must_use]
    pub fn numberless(mut self, thread: usize) -> Self {
        self.threads[thread].cpu = None;
        self.fifo = false;
        self
    }

    /// With this many nesting levels of a CPU in use. Where all are, it has no place in a queue.
    #[must_use]
    pub fn nested(mut self, cpu: usize, levels: u32) -> Self {
        self.nesting[cpu] = levels;
        self.fifo &= levels < LEVELS;
        self
    }
}
