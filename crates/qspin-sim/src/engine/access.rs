//! Operations on simulated words, as performed by a running strand.
//!
//! # Model
//! An operation takes place at the strand's clock or, if it has to wait for its line, when the line has come. A
//! store goes into the store buffer if the core does not own the line: it takes place later, in order. The
//! strand's own loads see it at once; read-modify-writes and full fences wait until the buffer is empty. That
//! is total store order, as on x86.

use std::cell::RefMut;

use super::strand::Store;
use super::{Client, Happened, State, Wait, What, World};
use crate::machine::{Request, WORDS};

impl World {
    /// Lets everything happen that precedes the current strand's clock, so that the clock is now.
    #[inline]
    pub(crate) fn synchronise(&self) -> RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        let clock = state.strands[state.current].clock;
        if clock < state.queue.next_time() {
            state.now = clock;
            return state;
        }
        self.sleep_until_clock(state)
    }

    #[cold]
    fn sleep_until_clock<'a>(&'a self, mut state: RefMut<'a, State>) -> RefMut<'a, State> {
        let me = state.current;
        let it = &state.strands[me];
        let (clock, what) = (it.clock, What::Resume { strand: me as u32, turn: it.turn });
        state.queue.push(clock, what);
        self.suspend(state)
    }

    /// Suspends the current strand until it has what `wait` names.
    #[inline]
    fn wait_for<'a>(&'a self, mut state: RefMut<'a, State>, wait: Wait) -> RefMut<'a, State> {
        let me = state.current;
        state.strands[me].wait = wait;
        self.suspend(state)
    }

    /// Waits until other cores see every store of the current strand.
    #[inline]
    pub(crate) fn drained<'a>(&'a self, state: RefMut<'a, State>) -> RefMut<'a, State> {
        if state.strands[state.current].stores.is_empty() {
            return state;
        }
        self.wait_for(state, Wait::Drain)
    }

    /// A load of the word at `word`, whose initial value is `first`.
    pub(crate) fn load(&self, word: usize, first: u32) -> u32 {
        let mut state = self.synchronise();
        let me = state.current;
        let value = state.value(word, first);
        let hit = state.prices.load_hit;
        let it = &mut state.strands[me];
        it.figures.operations += 1;
        if let Some(own) = it.own_store(word) {
            it.clock += hit;
            return own;
        }
        let core = it.core;
        let line = word / WORDS;
        if state.lines[line].is_at(core) {
            state.strands[me].clock += hit;
            let now = state.now;
            state.digest.add(now, Happened::Read, word, value);
            return value;
        }
        state.ask(me, line, false);
        let mut state = self.wait_for(state, Wait::Transfer);
        let (value, now) = (state.values[word], state.now);
        state.digest.add(now, Happened::Read, word, value);
        value
    }

    /// Loads that do not depend on each other: a processor has them all in flight at once, and goes on when the
    /// last has come. The words lie in different lines.
    pub(crate) fn load_together(&self, words: impl Iterator<Item = (usize, u32)>) {
        let mut state = self.synchronise();
        let me = state.current;
        let core = state.strands[me].core;
        let mut missing = 0;
        for (word, first) in words {
            let value = state.value(word, first);
            state.strands[me].figures.operations += 1;
            if state.lines[word / WORDS].is_at(core) {
                let now = state.now;
                state.digest.add(now, Happened::Read, word, value);
            } else {
                state.ask(me, word / WORDS, false);
                missing += 1;
            }
        }
        if missing == 0 {
            let hit = state.prices.load_hit;
            state.strands[me].clock += hit;
            return;
        }
        state.strands[me].awaits = missing;
        drop(self.wait_for(state, Wait::Transfer));
    }

    /// A store.
    pub(crate) fn store(&self, word: usize, first: u32, value: u32) {
        let mut state = self.synchronise();
        let me = state.current;
        state.value(word, first);
        let (line, price) = (word / WORDS, state.prices.store);
        let room = state.prices.store_buffer;
        let it = &mut state.strands[me];
        it.figures.operations += 1;
        let core = it.core;
        if it.stores.is_empty() && state.lines[line].is_owned_by(core) {
            state.strands[me].clock += price;
            state.write(word, value, core);
            return;
        }
        if state.strands[me].stores.len() >= room {
            state = self.drained(state);
        }
        let prefetches = state.prices.store_prefetch;
        let it = &mut state.strands[me];
        it.clock += price;
        let asked = it.stores.iter().any(|store| store.requested && store.line() == line);
        let requested = !asked && (prefetches || it.stores.is_empty());
        it.stores.push_back(Store { word: word as u32, value, core, requested });
        if requested {
            let client = Client::Store { strand: me as u32 };
            state.request(line, Request { core, owns: true, client });
        }
    }

    /// A read-modify-write: `change` returns the new value of the word, if any. Returns the old one.
    pub(crate) fn modify(
        &self,
        word: usize,
        first: u32,
        change: impl FnOnce(u32) -> Option<u32>,
    ) -> u32 {
        let state = self.synchronise();
        let mut state = self.drained(state);
        let me = state.current;
        let line = word / WORDS;
        state.value(word, first);
        let hit = state.prices.rmw_hit;
        let core = state.strands[me].core;
        if !state.lines[line].is_owned_by(core) {
            state.ask(me, line, true);
            state = self.wait_for(state, Wait::Transfer);
        }
        // The strand may be on another core by now: the core that asked has done the operation.
        let it = &mut state.strands[me];
        it.clock += hit;
        it.figures.operations += 1;
        let (seen, now) = (state.values[word], state.now);
        match change(seen) {
            Some(value) => state.write(word, value, core),
            None => state.digest.add(now, Happened::Read, word, seen),
        }
        seen
    }

    /// A full fence.
    pub(crate) fn fence(&self) {
        let state = self.synchronise();
        let mut state = self.drained(state);
        let (me, price) = (state.current, state.prices.fence);
        state.strands[me].clock += price;
    }
}

impl State {
    /// The strand asks for a line.
    pub(crate) fn ask(&mut self, strand: usize, line: usize, owns: bool) {
        let it = &self.strands[strand];
        let client = Client::Strand { strand: strand as u32, turn: it.turn };
        self.request(line, Request { core: it.core, owns, client });
    }

    /// A line has come for the store buffer of `strand`. Returns the strand if it has waited for its buffer to
    /// be empty.
    pub(crate) fn stored(&mut self, strand: usize, line: usize) -> Option<usize> {
        for store in &mut self.strands[strand].stores {
            if store.line() == line {
                store.requested = false;
            }
        }
        while let Some(&store) = self.strands[strand].stores.front() {
            let line = store.line();
            if !self.lines[line].is_owned_by(store.core) {
                if !store.requested {
                    self.strands[strand].stores[0].requested = true;
                    let client = Client::Store { strand: strand as u32 };
                    self.request(line, Request { core: store.core, owns: true, client });
                }
                return None;
            }
            self.strands[strand].stores.pop_front();
            self.write(store.word as usize, store.value, store.core);
        }
        (self.strands[strand].wait == Wait::Drain).then(|| self.transferred(strand))
    }
}
