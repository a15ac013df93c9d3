//! The NUMA-aware order once more, as its page describes it: on plain lists, by one hand.

use std::collections::VecDeque;

use super::Counts;

/// Of so many waiters the nearest is looked for when the main queue has run empty.
const NEAREST_OF: usize = 4;

/// What the threads are like, and how the order is tuned.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The place of each thread.
    pub(crate) places: Vec<u32>,
    /// The waiters that are never moved.
    pub(crate) urgent: Vec<bool>,
    /// How far it is from a place to a place.
    pub(crate) distance: fn(u32, u32) -> u32,
    /// Hand-overs after which the secondary queue is flushed.
    pub(crate) threshold: u64,
    /// One in 2 to the power of this heads arranges.
    pub(crate) skip_bits: u32,
    /// Whether a head arranges until there is nothing to do; else it takes one step.
    pub(crate) awake: bool,
}

/// The queue of one lock.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) setting: Setting,
    /// The main queue; its first is the head.
    pub(crate) main: VecDeque<usize>,
    pub(crate) second: VecDeque<usize>,
    /// When the first of the secondary queue came there.
    since: Option<u64>,
    near_to: u32,
    flushes: bool,
    arranges: bool,
    dice: Vec<u32>,
    pub(crate) counts: Counts,
}

impl Model {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            dice: vec![0x9e37_79b9; setting.places.len()],
            setting,
            main: VecDeque::new(),
            second: VecDeque::new(),
            since: None,
            near_to: 0,
            flushes: false,
            arranges: false,
            counts: Counts::default(),
        }
    }

    /// Time is hand-overs.
    fn now(&self) -> u64 {
        self.counts.local + self.counts.remote
    }

    fn is_near(&self, thread: usize, most: u32) -> bool {
        let place = self.setting.places[thread];
        self.setting.urgent[thread] || (self.setting.distance)(self.near_to, place) <= most
    }

    /// `thread` comes as the last.
    pub(crate) fn comes(&mut self, thread: usize) {
        self.main.push_back(thread);
        if self.main.len() == 1 {
            self.near_to = self.setting.places[thread];
            self.begins(thread);
        }
    }

    /// `thread` has become the head.
    fn begins(&mut self, thread: usize) {
        self.flushes = false;
        self.arranges = true;
        if let Some(since) = self.since {
            self.flushes = self.now() - since >= self.setting.threshold;
            self.arranges = !self.flushes;
        } else if self.setting.skip_bits > 0 {
            let dice = &mut self.dice[thread];
            *dice ^= *dice << 13;
            *dice ^= *dice >> 17;
            *dice ^= *dice << 5;
            if *dice >> (32 - self.setting.skip_bits) != 0 {
                self.counts.skips += 1;
                self.arranges = false;
            }
        }
    }

    /// The head arranges as far as it gets; all waiters have come.
    pub(crate) fn arrange(&mut self) {
        while self.arranges && self.main.len() > 2 {
            if self.is_near(self.main[1], 0) {
                self.arranges = false;
            } else {
                self.moves(1);
                if !self.setting.awake {
                    break;
                }
            }
        }
    }

    fn moves(&mut self, at: usize) {
        let moved = self.main.remove(at).expect("there is one");
        self.since = self.since.or(Some(self.now()));
        self.second.push_back(moved);
        self.counts.splices += 1;
    }

    /// The head takes the lock and hands its place over; returns which waiter it was.
    pub(crate) fn takes(&mut self) -> Option<usize> {
        if !self.setting.awake {
            self.arrange();
        }
        let head = self.main.pop_front()?;
        if self.main.is_empty() {
            std::mem::swap(&mut self.main, &mut self.second);
            if self.flushes {
                self.counts.flushes += 1;
            } else {
                let distance = |&thread: &usize| {
                    let place = self.setting.places[thread];
                    let urgent = self.setting.urgent[thread];
                    if urgent { 0 } else { (self.setting.distance)(self.near_to, place) }
                };
                let nearest = self.main.iter().take(NEAREST_OF).map(distance).min().unwrap_or(0);
                while self.main.len() > 1 && !self.is_near(self.main[0], nearest) {
                    self.moves(0);
                }
            }
            self.near_to = self.main.front().map_or(0, |&next| self.setting.places[next]);
        } else if self.second.is_empty() {
            self.near_to = self.setting.places[self.main[0]];
        } else if self.flushes {
            self.counts.flushes += 1;
            self.second.append(&mut self.main);
            std::mem::swap(&mut self.main, &mut self.second);
            self.near_to = self.setting.places[self.main[0]];
        }
        if self.second.is_empty() {
            self.since = None;
        }
        if let Some(&next) = self.main.front() {
            let places = &self.setting.places;
            match (self.setting.distance)(places[head], places[next]) {
                0 => self.counts.local += 1,
                _ => self.counts.remote += 1,
            }
            self.counts.prioritised += u64::from(self.setting.urgent[next]);
            self.begins(next);
        }
        Some(head)
    }
}
