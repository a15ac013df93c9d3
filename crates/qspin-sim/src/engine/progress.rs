//! Which strand holds which lock, which strand waits for which, and whether anything still moves.
//!
//! # Model
//! The workload reports when it wants a lock, has acquired it, and is about to release it. From that come the
//! figures of hand-offs and waits, the check that no strand enters a lock that another one holds, and the
//! watchdog: if for a certain simulated time no strand enters a lock or finishes work, the run ends.
//!
//! Readers hold a lock together, and no writer beside them. A hand-off is one from an owner to the next, so that
//! readers are none.

use super::strand::Strand;
use super::{State, Time, Wait, to_ns};
use crate::failure::{Failure, Standing};
use crate::timeline::Step;

/// No strand, in place of a strand's number.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Held {
    by: u32,
    /// Strands that hold it for reading, and the last one that came.
    readers: u32,
    reader: u32,
    /// The socket of the last holder.
    socket: u32,
    last: u32,
}

/// How far the workload has progressed.
#[derive(Debug)]
pub(crate) struct Progress {
    locks: Vec<Held>,
    /// Hand-offs from one CPU to another, and those of them between sockets.
    pub(crate) hand_overs: u64,
    pub(crate) remote_hand_overs: u64,
    /// The time of the last progress.
    moved: Time,
    watchdog: Time,
    /// Strands that have yet to finish.
    pub(crate) unfinished: usize,
}

impl Progress {
    pub(crate) fn new(locks: usize, watchdog: Time) -> Self {
        Self {
            locks: vec![Held { by: NONE, readers: 0, reader: NONE, socket: 0, last: NONE }; locks],
            hand_overs: 0,
            remote_hand_overs: 0,
            moved: 0,
            watchdog,
            unfinished: 0,
        }
    }

    /// There was progress, or there will be by then.
    #[inline]
    pub(crate) fn moved(&mut self, time: Time) {
        self.moved = self.moved.max(time);
    }

    /// For that long no strand was allowed to move.
    pub(crate) fn stood(&mut self, time: Time) {
        self.moved = self.moved.saturating_add(time);
    }

    /// When the watchdog's time runs out.
    pub(crate) fn limit(&self) -> Time {
        self.moved.saturating_add(self.watchdog)
    }
}

impl State {
    /// The current strand wants `lock`.
    pub(crate) fn wants(&mut self, lock: u32) {
        let it = &mut self.strands[self.current];
        let clock = it.clock;
        it.wants = Some((lock, clock));
        self.note(clock, self.current as u32, Step::Wants(lock));
    }

    /// The current strand has acquired it.
    pub(crate) fn entered(&mut self, lock: u32) {
        let me = self.current as u32;
        let (clock, socket) = self.came_in();
        let held = &mut self.progress.locks[lock as usize];
        let inside = [(held.by, held.by != NONE), (held.reader, held.readers > 0)];
        let inside = inside.into_iter().find_map(|(strand, is)| is.then_some(strand));
        if held.last != NONE && held.last != me {
            self.progress.hand_overs += 1;
            self.progress.remote_hand_overs += u64::from(held.socket != socket);
        }
        *held = Held { by: me, socket, last: me, ..*held };
        self.is_alone(lock, inside, clock);
        self.note(clock, me, Step::Enters(lock));
    }

    /// The current strand has acquired it for reading.
    pub(crate) fn entered_shared(&mut self, lock: u32) {
        let me = self.current as u32;
        let (clock, _) = self.came_in();
        let held = &mut self.progress.locks[lock as usize];
        held.readers += 1;
        held.reader = me;
        let inside = (held.by != NONE).then_some(held.by);
        self.is_alone(lock, inside, clock);
        self.note(clock, me, Step::Enters(lock));
    }

    /// The wait of the current strand is over; when, and on which socket it is.
    fn came_in(&mut self) -> (Time, u32) {
        let it = &mut self.strands[self.current];
        let clock = it.clock;
        if let Some((_, since)) = it.wants.take() {
            let waited = clock.saturating_sub(since);
            it.figures.waited += waited;
            it.figures.longest_wait = it.figures.longest_wait.max(waited);
        }
        it.figures.sections += 1;
        let socket = self.shape.socket_of(it.core.into());
        self.progress.moved(clock);
        (clock, socket)
    }

    /// Ends the run if a strand was inside that excludes the current one.
    fn is_alone(&mut self, lock: u32, inside: Option<u32>, clock: Time) {
        if let Some(first) = inside.filter(|_| self.failure.is_none()) {
            let second = self.current as u32;
            self.failure = Some(Failure::Exclusion { lock, first, second, at_ns: to_ns(clock) });
        }
    }

    /// The current strand is about to release it.
    pub(crate) fn leaves(&mut self, lock: u32) {
        self.progress.locks[lock as usize].by = NONE;
        self.goes_out(lock);
    }

    /// The current strand is about to end its reading.
    pub(crate) fn leaves_shared(&mut self, lock: u32) {
        self.progress.locks[lock as usize].readers -= 1;
        self.goes_out(lock);
    }

    fn goes_out(&mut self, lock: u32) {
        let clock = self.strands[self.current].clock;
        self.note(clock, self.current as u32, Step::Leaves(lock));
    }

    /// There is no more progress: which strand waits for which.
    pub(crate) fn standstill(&self) -> Failure {
        let standings = self.strands.iter().enumerate().map(|(cpu, strand)| {
            let wants = strand.wants.map(|(lock, since)| {
                let held = self.progress.locks[lock as usize].by;
                let holder = (held != NONE).then_some(held);
                (lock, holder, to_ns(self.now.saturating_sub(since)))
            });
            let holds: Vec<u32> = (0..self.progress.locks.len() as u32)
                .filter(|&lock| self.progress.locks[lock as usize].by == cpu as u32)
                .collect();
            Standing { cpu: cpu as u32, does: self.describe(strand), wants, holds }
        });
        let standings = standings.filter(|standing| standing.does != "has finished").collect();
        Failure::Standstill { at_ns: to_ns(self.now), standings }
    }

    fn describe(&self, strand: &Strand) -> String {
        let does = match strand.wait {
            Wait::Finished => return "has finished".to_owned(),
            Wait::Halt => return "is halted".to_owned(),
            Wait::Watch => {
                let watch = strand.watch;
                let value = self.values[watch.word];
                format!("watches {}, which is {value:#x}", self.name_of(watch.word))
            }
            Wait::Transfer | Wait::Drain => "waits for a cache line".to_owned(),
            Wait::Clock => "runs".to_owned(),
        };
        if strand.on { does } else { format!("is preempted; else it {does}") }
    }
}
