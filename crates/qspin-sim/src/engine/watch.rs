//! Waiting for a word to change.
//!
//! # Model
//! A watcher's loop is a load and a pause. While its core has a copy of the line its polls cost no other core
//! anything, so they are not simulated: the watcher sleeps. When the line goes to another core, or a hardware
//! thread of the same core writes it, the watcher polls at the next whole period of its loop: it reads the line
//! anew, and pays for that, whether or not it was the watched word that had changed.
//!
//! A watcher whose virtual CPU is not running does not poll until it runs again.
//!
//! # Invariants
//! * **WATCH-1** LINE-2 and LINE-3 of [`crate::machine`]'s lines: every running strand that waits for a word
//!   has a copy of it, or a poll or read in progress. So no change is overlooked.

use std::sync::atomic::Ordering;

use qspin_core::platform::{Budget, Until};

#[cfg(test)]
use super::audit::{Bug, planted};
use super::strand::Watch;
use super::{Happened, Pending, State, Time, Wait, What, World};
use crate::machine::WORDS;

impl World {
    /// [`qspin_core::platform::Platform::wait_until`].
    pub(crate) fn watch(&self, word: usize, first: u32, until: Until, budget: Budget) -> u32 {
        let seen = self.load(word, first);
        if until.met_by(seen) {
            return seen;
        }
        let mut state = self.state.borrow_mut();
        let me = state.current;
        if state.strands[me].own_store(word).is_some() {
            // It has seen a store of its own that other cores have yet to see.
            drop(state);
            drop(self.drained(self.synchronise()));
            return self.watch(word, first, until, budget);
        }
        let period = state.period();
        let clock = state.strands[me].clock;
        let deadline = match budget {
            Budget::Unbounded => None,
            Budget::Polls(0 | 1) => return seen,
            Budget::Polls(polls) => Some(clock + period * Time::from(polls - 1)),
        };
        let pending = Pending::Nothing;
        let base = clock;
        state.strands[me].watch = Watch { word, until, base, deadline, pending, expired: false };
        state.strands[me].wait = Wait::Watch;
        state.lines[word / WORDS].watchers.push(me as u32);
        state.begin_watch(me);
        let mut state = self.suspend(state);
        let (value, now) = (state.values[word], state.now);
        state.strands[me].figures.operations += 1;
        state.digest.add(now, Happened::Read, word, value);
        value
    }

    /// [`qspin_core::platform::Platform::fence`].
    pub(crate) fn fence_as(&self, order: Ordering) {
        if order == Ordering::SeqCst {
            self.fence();
        }
    }
}

impl State {
    /// From one poll of a watcher to its next.
    fn period(&self) -> Time {
        self.prices.pause + self.prices.load_hit
    }

    /// The strand, on its processor, begins to watch, or goes on watching.
    pub(crate) fn begin_watch(&mut self, strand: usize) {
        let it = &self.strands[strand];
        let (clock, core, watch) = (it.clock, it.core, it.watch);
        let (number, turn) = (strand as u32, it.turn);
        if let Some(deadline) = watch.deadline {
            self.queue.push(deadline, What::Expire { strand: number, turn });
        }
        if let Some(window) = self.schedule.pause_loop_window() {
            self.queue.push(clock + window, What::PauseLoop { strand: number, turn });
        }
        if watch.pending == Pending::Nothing && !self.lines[watch.word / WORDS].is_at(core) {
            self.look_later(strand);
        }
    }

    /// The strand polls when its loop comes round.
    pub(crate) fn look_later(&mut self, strand: usize) {
        let period = self.period();
        let now = self.now;
        let it = &mut self.strands[strand];
        it.watch.pending = Pending::Look;
        let passed = now.saturating_sub(it.watch.base);
        let next = it.watch.base + (passed / period + 1) * period;
        let what = What::Look { strand: strand as u32, turn: it.turn };
        self.queue.push(next, what);
    }

    /// A line goes to `core`: watchers of its words on other cores must read it anew.
    pub(crate) fn tell_watchers(&mut self, line: usize, core: u16) {
        self.tell(line, |other| other != core);
    }

    /// Another hardware thread of `core` has changed a word.
    pub(crate) fn tell_siblings(&mut self, line: usize, core: u16) {
        self.tell(line, |other| other == core);
    }

    fn tell(&mut self, line: usize, whom: impl Fn(u16) -> bool) {
        for place in 0..self.lines[line].watchers.len() {
            let strand = self.lines[line].watchers[place] as usize;
            #[cfg(test)]
            if planted(Bug::NobodyIsTold) {
                continue;
            }
            let it = &self.strands[strand];
            if it.on && it.watch.pending == Pending::Nothing && whom(it.core) {
                self.look_later(strand);
            }
        }
    }

    /// A watcher polls.
    pub(crate) fn look(&mut self, strand: usize) -> Option<usize> {
        let it = &mut self.strands[strand];
        it.watch.pending = Pending::Nothing;
        let (line, core) = (it.watch.word / WORDS, it.core);
        if self.lines[line].is_at(core) {
            return self.judge(strand);
        }
        it.watch.pending = Pending::Read;
        self.ask(strand, line, false);
        None
    }

    /// The read of a watcher has arrived.
    pub(crate) fn read_arrived(&mut self, strand: usize) -> Option<usize> {
        let it = &mut self.strands[strand];
        it.watch.pending = Pending::Nothing;
        let (line, core) = (it.watch.word / WORDS, it.core);
        let goes_on = self.judge(strand);
        #[cfg(test)]
        if planted(Bug::AReadIsTheLastLook) {
            return goes_on;
        }
        if goes_on.is_none() && !self.lines[line].is_at(core) {
            self.look_later(strand);
        }
        goes_on
    }

    /// A watcher sees its word.
    fn judge(&mut self, strand: usize) -> Option<usize> {
        let watch = self.strands[strand].watch;
        let value = self.values[watch.word];
        if watch.until.met_by(value) || watch.expired {
            return Some(self.end_watch(strand));
        }
        self.strands[strand].figures.operations += 1;
        self.digest.add(self.now, Happened::Read, watch.word, value);
        None
    }

    /// A watcher's budget is spent.
    pub(crate) fn expire(&mut self, strand: usize) -> Option<usize> {
        let it = &mut self.strands[strand];
        let (line, core) = (it.watch.word / WORDS, it.core);
        if it.watch.pending == Pending::Read || !self.lines[line].is_at(core) {
            // It returns what its last poll finds.
            it.watch.expired = true;
            return None;
        }
        Some(self.end_watch(strand))
    }

    fn end_watch(&mut self, strand: usize) -> usize {
        let now = self.now;
        let it = &mut self.strands[strand];
        it.figures.spun += now.saturating_sub(it.watch.base);
        it.turn = it.turn.wrapping_add(1);
        it.wait = Wait::Clock;
        it.clock = now + self.prices.load_hit;
        let line = it.watch.word / WORDS;
        #[cfg(test)]
        if planted(Bug::WatchersStay) {
            return strand;
        }
        self.lines[line].forget_watcher(strand as u32);
        strand
    }

    /// The strand leaves its processor while it watches.
    pub(crate) fn interrupt_watch(&mut self, strand: usize) {
        let now = self.now;
        let it = &mut self.strands[strand];
        it.figures.spun += now.saturating_sub(it.watch.base);
        it.backlog = it.watch.deadline.map_or(0, |deadline| deadline.saturating_sub(now));
        it.watch.pending = Pending::Nothing;
    }

    /// The strand is back on a processor.
    pub(crate) fn resume_watch(&mut self, strand: usize) {
        let it = &mut self.strands[strand];
        let clock = it.clock;
        it.watch.base = clock;
        it.watch.pending = Pending::Look;
        if it.watch.deadline.is_some() {
            it.watch.deadline = Some(clock + it.backlog);
        }
        let what = What::Look { strand: strand as u32, turn: it.turn };
        self.queue.push(clock, what);
        self.begin_watch(strand);
    }
}
