//! Who holds which lock, who waits for whom, and whether anything still moves.
//!
//! # Model
//! The workload says when it wants a lock, has it, and is about to leave it. From that come the
//! figures of hand-overs and waits, the check that nobody enters a lock that somebody holds, and
//! the watchdog: simulated time in which nobody enters a lock, or finishes work, ends the run.

use super::strand::Strand;
use super::{State, Time, Wait, to_ns};
use crate::failure::{Failure, Standing};
use crate::timeline::Step;

/// Nobody, in the place of a strand.
const NOBODY: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Held {
    by: u32,
    /// The socket of the last holder.
    socket: u32,
    last: u32,
}

/// How far the workload has come.
#[derive(Debug)]
pub(crate) struct Progress {
    locks: Vec<Held>,
    /// Hand-overs from one CPU to another, and those of them between sockets.
    pub(crate) hand_overs: u64,
    pub(crate) remote_hand_overs: u64,
    /// The last time at which something moved.
    moved: Time,
    watchdog: Time,
    /// Strands that have yet to finish.
    pub(crate) unfinished: usize,
}

impl Progress {
    pub(crate) fn new(locks: usize, watchdog: Time) -> Self {
        Self {
            locks: vec![Held { by: NOBODY, socket: 0, last: NOBODY }; locks],
            hand_overs: 0,
            remote_hand_overs: 0,
            moved: 0,
            watchdog,
            unfinished: 0,
        }
    }

    /// Something has moved, or will by then.
    #[inline]
    pub(crate) fn moved(&mut self, time: Time) {
        self.moved = self.moved.max(time);
    }

    /// For that long, nobody was allowed to move.
    pub(crate) fn stood(&mut self, time: Time) {
        self.moved = self.moved.saturating_add(time);
    }

    /// When the watchdog's patience is at its end.
    pub(crate) fn patience(&self) -> Time {
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

    /// The current strand has it.
    pub(crate) fn entered(&mut self, lock: u32) {
        let me = self.current as u32;
        let it = &mut self.strands[self.current];
        let clock = it.clock;
        let socket = self.shape.socket_of(it.core.into());
        if let Some((_, since)) = it.wants.take() {
            let waited = clock.saturating_sub(since);
            it.figures.waited += waited;
            it.figures.longest_wait = it.figures.longest_wait.max(waited);
        }
        it.figures.sections += 1;
        self.progress.moved(clock);
        let held = &mut self.progress.locks[lock as usize];
        if held.by != NOBODY && self.failure.is_none() {
            let (first, second) = (held.by, me);
            self.failure = Some(Failure::Exclusion { lock, first, second, at_ns: to_ns(clock) });
        }
        if held.last != NOBODY && held.last != me {
            self.progress.hand_overs += 1;
            self.progress.remote_hand_overs += u64::from(held.socket != socket);
        }
        *held = Held { by: me, socket, last: me };
        self.note(clock, me, Step::Enters(lock));
    }

    /// The current strand is about to leave it.
    pub(crate) fn leaves(&mut self, lock: u32) {
        self.progress.locks[lock as usize].by = NOBODY;
        let clock = self.strands[self.current].clock;
        self.note(clock, self.current as u32, Step::Leaves(lock));
    }

    /// Nothing moves any more: who waits for whom.
    pub(crate) fn standstill(&self) -> Failure {
        let standings = self.strands.iter().enumerate().map(|(cpu, strand)| {
            let wants = strand.wants.map(|(lock, since)| {
                let held = self.progress.locks[lock as usize].by;
                let holder = (held != NOBODY).then_some(held);
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
