//! A strand: the engine's state of one simulated CPU.

use std::collections::VecDeque;

use qspin_core::node::LEVELS;
use qspin_core::platform::Until;

use super::{Random, Time};
use crate::machine::WORDS;

/// The party for which a line is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// A strand that waits for it, or watches it.
    Strand {
        /// The strand.
        strand: u32,
        /// In which of its waits.
        turn: u32,
    },
    /// A strand's store buffer.
    Store {
        /// The strand.
        strand: u32,
    },
}

/// What a strand waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For its clock, or for nothing: it runs.
    Clock,
    /// A line.
    Transfer,
    /// Its store buffer.
    Drain,
    /// A word.
    Watch,
    /// A kick.
    Halt,
    /// For nothing any more.
    Finished,
}

/// What a watcher has in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    /// Nothing: its core has a copy.
    Nothing,
    /// A poll: its loop comes round again soon.
    Look,
    /// A read: the line is on its way.
    Read,
}

/// A store that other cores do not see yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Store {
    /// Half as wide as other places: every simulated CPU has room for some stores.
    pub(crate) word: u32,
    pub(crate) value: u32,
    /// The core in whose buffer it is.
    pub(crate) core: u16,
    /// Its line has been asked for.
    pub(crate) requested: bool,
}

impl Store {
    pub(crate) fn line(self) -> usize {
        self.word as usize / WORDS
    }
}

/// A word that a strand watches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch {
    pub(crate) word: usize,
    pub(crate) until: Until,
    /// The time of the first poll; the others are whole periods later.
    pub(crate) base: Time,
    /// When it gives up.
    pub(crate) deadline: Option<Time>,
    pub(crate) pending: Pending,
    /// It has given up, and returns when the read in progress arrives.
    pub(crate) expired: bool,
}

/// The measurements of a strand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Operations on words: loads, stores, read-modify-writes, polls of a watcher that read.
    pub(crate) operations: u64,
    /// Time on a processor spent watching a word, or pausing while it wants a lock.
    pub(crate) spun: Time,
    pub(crate) halts: u64,
    pub(crate) kicks: u64,
    /// Kicks that found a halted strand, and their time to the end of the halt.
    pub(crate) wakes: u64,
    pub(crate) wake_time: Time,
    pub(crate) yields: u64,
    pub(crate) pause_loop_exits: u64,
    pub(crate) sections: u64,
    /// Operations of the workload, if it counts them.
    pub(crate) done: u64,
    pub(crate) waited: Time,
    pub(crate) longest_wait: Time,
    /// When it had done its work.
    pub(crate) finished_at: Time,
}

/// A simulated CPU.
#[derive(Debug)]
pub(crate) struct Strand {
    /// Its next operation takes place at this time at the earliest.
    pub(crate) clock: Time,
    /// Counts its waits: an event of an earlier one is void.
    pub(crate) turn: u32,
    pub(crate) wait: Wait,
    pub(crate) processor: u16,
    pub(crate) core: u16,
    /// It is on its processor.
    pub(crate) on: bool,
    /// While it is not on its processor: how far its clock was ahead, or what is left of its budget.
    pub(crate) backlog: Time,
    /// It must leave its processor as soon as the operation in progress is done.
    pub(crate) leaves: bool,
    /// Until when it works, which slows down the other thread of its core.
    pub(crate) works_until: Time,
    /// How many copies it waits for; 0 and 1 are treated alike.
    pub(crate) awaits: u32,
    pub(crate) stores: VecDeque<Store>,
    pub(crate) watch: Watch,
    /// Kicks that no halt has consumed yet, by level (PLATFORM-4 of the platform).
    pub(crate) kicked: [bool; LEVELS as usize],
    /// The level at which it halts, and when it was kicked.
    pub(crate) level: u32,
    pub(crate) kicked_at: Option<Time>,
    /// The lock that it wants, and since when.
    pub(crate) wants: Option<(u32, Time)>,
    pub(crate) random: Random,
    pub(crate) figures: Figures,
}

impl Strand {
    pub(crate) fn new(random: Random) -> Self {
        let until = Until::is(0);
        let pending = Pending::Nothing;
        let watch = Watch { word: 0, until, base: 0, deadline: None, pending, expired: false };
        Self {
            clock: 0,
            turn: 0,
            wait: Wait::Clock,
            processor: 0,
            core: 0,
            on: false,
            backlog: 0,
            leaves: false,
            works_until: 0,
            awaits: 0,
            stores: VecDeque::new(),
            watch,
            kicked: [false; LEVELS as usize],
            level: 0,
            kicked_at: None,
            wants: None,
            random,
            figures: Figures::default(),
        }
    }

    /// The newest store to `word` that other cores do not see yet.
    #[inline]
    pub(crate) fn own_store(&self, word: usize) -> Option<u32> {
        if self.stores.is_empty() {
            return None;
        }
        self.stores.iter().rev().find(|store| store.word as usize == word).map(|store| store.value)
    }
}
