//! The threads of a torture: they are born, pestered and buried.

use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::Context;
use fastrand::Rng;

use crate::bench::cell::STACK;

use super::arena::Arena;
use super::{Torment, signals};

/// The most signals between two looks.
const SIGNALS: u32 = 2;

/// The threads, by their places.
pub(super) struct Crowd {
    places: Vec<Option<JoinHandle<()>>>,
    born: u64,
    random: Rng,
}

impl Crowd {
    pub(super) fn new(torment: &Torment) -> Self {
        let places = (0..torment.threads).map(|_| None).collect();
        // Not the stream that the places' dice come from.
        Self { places, born: 0, random: Rng::with_seed(!torment.seed) }
    }

    /// How many were born so far.
    pub(super) fn born(&self) -> u64 {
        self.born
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    /// Clears the places of those that have ended; says whether one of them died of a panic.
    pub(super) fn bury(&mut self) -> bool {
        let mut died = false;
        for place in &mut self.places {
            if let Some(ended) = place.take_if(|thread| thread.is_finished()) {
                died |= ended.join().is_err();
            }
        }
        died
    }

    /// A new thread for every empty place. A machine that makes no more at the moment is asked
    /// again later, as long as some thread lives.
    pub(super) fn fill(&mut self, arena: &Arc<Arena>) -> anyhow::Result<()> {
        for place in 0..self.places.len() {
            if self.places[place].is_some() {
                continue;
            }
            let arena = Arc::clone(arena);
            let life = move || arena.live(place);
            match thread::Builder::new().stack_size(STACK).spawn(life) {
                Ok(thread) => {
                    self.places[place] = Some(thread);
                    self.born += 1;
                }
                Err(why) if self.is_empty() => {
                    return Err(why).context("the machine makes no thread");
                }
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Sends a signal or two, half of them to a thread that is in a handler already. Where a
    /// quarter as many handlers as threads are under way it waits: a lock that serves slowly would
    /// be buried under its handlers.
    ///
    /// Threads at odd places are spared: a signal also wakes a sleeper that no other thread would
    /// have woken, and so hides the very fault that is looked for.
    pub(super) fn pester(&mut self, arena: &Arena) {
        let places = self.places.len();
        let under_way: u32 = (0..places).map(|place| arena.depth(place)).sum();
        let room = (places as u32 / 4 + 1).saturating_sub(under_way);
        for _ in 0..self.random.u32(0..=SIGNALS).min(room) {
            let any = self.random.usize(..places.div_ceil(2)) * 2;
            let nested = (0..places).find(|place| arena.depth(*place) > 0);
            let place = nested.filter(|_| self.random.bool()).unwrap_or(any);
            if let Some(thread) = &self.places[place] {
                signals::interrupt(thread.as_pthread_t());
            }
        }
    }
}
