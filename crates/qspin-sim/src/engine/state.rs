//! The state of a simulation, and what each event does to it.

use super::digest::{Digest, Happened};
use super::progress::Progress;
use super::queue::{Queue, What};
use super::strand::{Client, Strand};
use super::{Random, Time, Wait, from_ns};
use crate::failure::Failure;
use crate::hypervisor::Schedule;
use crate::machine::{Distances, Line, Memory, Prices, Shape, WORDS};
use crate::scenario::Scenario;
use crate::timeline::{Step, Timeline};

/// The whole state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Time,
    pub(crate) queue: Queue,
    pub(crate) random: Random,
    pub(crate) digest: Digest,
    pub(crate) shape: Shape,
    pub(crate) distances: Distances,
    memory: Memory,
    pub(crate) prices: Prices,
    /// The factor by which work takes longer than on a machine with one busy core.
    pub(crate) slowdown: f64,
    /// By number, up to the last that was used.
    pub(crate) lines: Vec<Line>,
    /// The value of each word, by place.
    pub(crate) values: Vec<u32>,
    pub(crate) strands: Vec<Strand>,
    /// The strand that runs.
    pub(crate) current: usize,
    /// The strand that goes on next, as found by the last one to run.
    pub(crate) next: Option<Result<Option<usize>, Failure>>,
    pub(crate) schedule: Schedule,
    pub(crate) progress: Progress,
    /// When the workload is told to stop.
    pub(crate) stop_at: Time,
    /// A failure found while a strand ran.
    pub(crate) failure: Option<Failure>,
    /// Whether to check the invariants after every event.
    pub(crate) audits: bool,
    /// Which task did what when, if that is recorded.
    pub(crate) timeline: Option<Timeline>,
    /// How often a coroutine was resumed.
    pub(crate) switches: u64,
}

impl State {
    pub(crate) fn new(scenario: &Scenario, locks: usize, memory: &Memory, seed: u64) -> Self {
        let words = memory.words();
        let cpus = scenario.cpus as usize;
        let slowdown = scenario.slowdown();
        let costs = scenario.machine.costs.times(slowdown);
        let mut state = Self {
            now: 0,
            queue: Queue::default(),
            random: Random::part(seed, 0),
            digest: Digest::default(),
            shape: scenario.machine.shape.clone(),
            memory: memory.clone(),
            distances: scenario.machine.distances(&costs),
            prices: Prices::from(&costs),
            slowdown,
            lines: Vec::new(),
            values: vec![0; words],
            strands: (1..=cpus as u64).map(|cpu| Strand::new(Random::part(seed, cpu))).collect(),
            current: 0,
            next: None,
            schedule: Schedule::new(scenario),
            progress: Progress::new(locks, scenario.watchdog()),
            stop_at: scenario.stop_at(),
            failure: None,
            audits: false,
            timeline: None,
            switches: 0,
        };
        let spread = from_ns(scenario.start_ns);
        for strand in &mut state.strands {
            // Counts as work that is done when the strand is first on a processor.
            strand.backlog = (spread as f64 * strand.random.unit()) as Time;
        }
        state
    }

    /// Gives every strand a processor.
    pub(crate) fn begin(&mut self) {
        self.begin_schedule();
        self.queue.push(self.progress.limit(), What::Watchdog);
    }

    /// Processes events until one of them resumes a strand. `None` when all strands are done.
    pub(crate) fn advance(&mut self) -> Result<Option<usize>, Failure> {
        loop {
            if self.progress.unfinished == 0 {
                return Ok(None);
            }
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            let Some((time, what)) = self.queue.pop() else {
                return Err(self.standstill());
            };
            debug_assert!(time >= self.now, "E4");
            self.now = time;
            let strand = self.happen(what)?;
            if self.audits {
                self.audit();
            }
            if let Some(strand) = strand {
                self.current = strand;
                return Ok(Some(strand));
            }
        }
    }

    fn happen(&mut self, what: What) -> Result<Option<usize>, Failure> {
        Ok(match what {
            What::Resume { strand, turn } => self.is_turn(strand, turn),
            What::Look { strand, turn } => {
                self.is_turn(strand, turn).and_then(|strand| self.look(strand))
            }
            What::Expire { strand, turn } => {
                self.is_turn(strand, turn).and_then(|strand| self.expire(strand))
            }
            What::PauseLoop { strand, turn } => {
                if let Some(strand) = self.is_turn(strand, turn) {
                    self.pause_loop_exit(strand);
                }
                None
            }
            What::Granted { line } => self.granted(line as usize),
            What::Free { line } => {
                self.lines[line as usize].free_is_due = false;
                self.serve_next(line as usize);
                None
            }
            What::Delivered { line, strand, turn, core } => {
                self.lines[line as usize].copy_to(core);
                self.is_turn(strand, turn).and_then(|strand| self.delivered(strand))
            }
            What::Wake { strand, turn } => {
                if let Some(strand) = self.is_turn(strand, turn) {
                    self.wake(strand);
                }
                None
            }
            What::Slice { processor, turn } => {
                self.slice_over(processor, turn);
                None
            }
            What::Balance => {
                self.balance();
                None
            }
            What::QuotaSpent { turn } => {
                self.quota_spent(turn);
                None
            }
            What::QuotaPeriod => {
                self.quota_period();
                None
            }
            What::Watchdog => {
                let limit = self.progress.limit();
                if self.now >= limit {
                    return Err(self.standstill());
                }
                self.queue.push(limit, What::Watchdog);
                None
            }
        })
    }

    /// Records that `task` did this.
    #[inline]
    pub(crate) fn note(&mut self, time: Time, task: u32, step: Step) {
        if let Some(timeline) = &mut self.timeline {
            timeline.add(time, task, step);
        }
    }

    /// A word, for messages.
    pub(crate) fn name_of(&self, word: usize) -> String {
        let (region, number, byte) = self.memory.locate(word);
        match region {
            0 => format!("lock {number} (byte {byte})"),
            1 => format!("data line {number} (byte {byte})"),
            2 => format!("the node of CPU {number} (byte {byte})"),
            3 => format!("line {number} of the table of halted waiters (byte {byte})"),
            4 => format!("the hint of bucket {number}"),
            5 => format!("bucket {number} of sleepers (byte {byte})"),
            6 => format!("the records of sleepers {} and the next (byte {byte})", 2 * number),
            _ => "what it costs to wake".to_owned(),
        }
    }

    fn is_turn(&self, strand: u32, turn: u32) -> Option<usize> {
        let strand = strand as usize;
        (self.strands[strand].turn == turn).then_some(strand)
    }

    /// The value at a place. `first` is the initial value of a word there.
    #[inline]
    pub(crate) fn value(&mut self, word: usize, first: u32) -> u32 {
        let line = word / WORDS;
        if line >= self.lines.len() {
            self.lines.resize_with(line + 1, Line::default);
        }
        let (used, bit) = (&mut self.lines[line].used, 1 << (word % WORDS));
        if *used & bit == 0 {
            *used |= bit;
            self.values[word] = first;
        }
        self.values[word]
    }

    /// `core` changes a word of a line that it owns.
    #[inline]
    pub(crate) fn write(&mut self, word: usize, value: u32, core: u16) {
        self.values[word] = value;
        self.digest.add(self.now, Happened::Wrote, word, value);
        if !self.lines[word / WORDS].watchers.is_empty() {
            self.tell_siblings(word / WORDS, core);
        }
    }

    /// A line has come to the core that asked to own it.
    fn granted(&mut self, line: usize) -> Option<usize> {
        let request = self.lines[line].serving.take()?;
        self.lines[line].give_to(request.core);
        self.tell_watchers(line, request.core);
        // The strand that has waited for the line does its operation on it, then goes on.
        match request.client {
            Client::Strand { strand, turn } => {
                self.free_if_wanted(line);
                self.is_turn(strand, turn).map(|strand| self.transferred(strand))
            }
            Client::Store { strand } => {
                let strand = self.stored(strand as usize, line);
                self.free_if_wanted(line);
                strand
            }
        }
    }

    /// A copy of a line has come for `strand`.
    fn delivered(&mut self, strand: usize) -> Option<usize> {
        match self.strands[strand].wait {
            Wait::Transfer => {
                let it = &mut self.strands[strand];
                it.awaits = it.awaits.saturating_sub(1);
                (it.awaits == 0).then(|| self.transferred(strand))
            }
            Wait::Watch => self.read_arrived(strand),
            _ => None,
        }
    }

    /// `strand` has what it waited for, and resumes now.
    pub(crate) fn transferred(&mut self, strand: usize) -> usize {
        let now = self.now;
        let it = &mut self.strands[strand];
        it.clock = now;
        it.wait = Wait::Clock;
        if it.leaves {
            it.leaves = false;
            let processor = it.processor;
            // After this operation, and before the next.
            self.queue.push(now, What::Slice { processor, turn: Schedule::AT_ONCE });
        }
        strand
    }

    /// A coroutine has ended.
    pub(crate) fn finished(&mut self, strand: usize) {
        let it = &mut self.strands[strand];
        let clock = it.clock;
        it.wait = Wait::Finished;
        it.turn = it.turn.wrapping_add(1);
        it.figures.finished_at = clock;
        self.progress.unfinished -= 1;
        self.progress.moved(clock);
        self.leave_for_ever(strand);
    }
}
