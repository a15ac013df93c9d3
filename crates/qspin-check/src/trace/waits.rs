//! What each context waits for, and whether any can go on.

use super::{Slot, Trace, WordId, current, outcomes, with};
use crate::failure::{Failure, Kind};

/// What a context waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A change of one word since it had this version.
    Word(WordId, u64),
    /// A change of any word since this time.
    Any(u64),
    /// So many others that wait for a lock.
    Arrivals(usize, usize),
    /// Every other context has ended or waits: those that wait for that go on in their turn.
    Others(Turn),
    /// So many signals.
    Signals(u32),
    /// A waiter was moved from one queue to another, or every other context has ended or waits.
    Moved,
}

/// When a context goes on that waits for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// Before all others that wait for that.
    First,
    /// Behind those.
    Second,
    /// Behind all others.
    Last,
}

fn is_stuck(trace: &Trace, wait: Wait) -> bool {
    match wait {
        Wait::Word(id, version) => trace.words[id].version == version,
        Wait::Any(clock) => trace.clock == clock,
        Wait::Arrivals(lock, count) => trace.locks[lock].arrivals.len() < count,
        Wait::Signals(count) => trace.signals < count,
        Wait::Moved => trace.moved == 0 && is_stuck(trace, Wait::Others(Turn::Last)),
        Wait::Others(turn) => {
            let goes_on = |slot: &Slot| match slot.wait {
                _ if slot.done => false,
                Some(Wait::Others(other)) => other < turn,
                Some(Wait::Moved) => trace.moved > 0,
                Some(wait) => !is_stuck(trace, wait),
                None => true,
            };
            trace.slots.iter().any(goes_on)
        }
    }
}

fn check(trace: &Trace) -> Result<(), Failure> {
    let mut waiting = Vec::new();
    for (number, slot) in trace.slots.iter().enumerate() {
        match slot.wait {
            Some(wait) if !slot.done && is_stuck(trace, wait) => waiting.push(number),
            _ if slot.done => {}
            _ => return Ok(()),
        }
    }
    if waiting.is_empty() {
        return Ok(());
    }
    let halted: Vec<_> = waiting.iter().copied().filter(|&slot| trace.slots[slot].halted).collect();
    if !halted.is_empty() {
        let message = format!(
            "contexts {waiting:?} wait and no other is left, to kick the halted {halted:?}"
        );
        return Err(Failure::new(Kind::LostWakeup, message));
    }
    let message = format!("contexts {waiting:?} wait, and no other is left");
    Err(Failure::new(Kind::Deadlock, message))
}

/// Looks at old values after which a waiter will see no other. Loom keeps seven values of a
/// word, and does not return one again that was seen before a yield if it has a newer one. Two
/// stores that are not ordered have no newer one: the last one executed may be the older, and
/// a context that waits for it waits for ever.
const OLD_POLLS: u32 = 16;

fn begin(trace: &mut Trace, wait: Wait) -> Result<(), Failure> {
    let slot = &mut trace.slots[current()];
    if slot.trying {
        return Err(Failure::new(Kind::TryWaited, "an attempt waits for another context"));
    }
    outcomes::failed_look(slot);
    slot.old_polls = if slot.saw_latest { 0 } else { slot.old_polls + 1 };
    // What is not the latest value may be looked at again at once.
    slot.wait = (slot.saw_latest || slot.old_polls > OLD_POLLS).then_some(wait);
    check(trace)
}

/// The running context has looked at `id` and goes on waiting for it.
///
/// # Errors
/// It may not wait, or no context is left to end the wait.
pub fn waits_for(id: WordId) -> Result<(), Failure> {
    waits_for_change(id, false)
}

/// The running context is halted, and waits for the kick that would change `id`.
///
/// # Errors
/// As [`waits_for`].
pub fn waits_for_kick(id: WordId) -> Result<(), Failure> {
    waits_for_change(id, true)
}

fn waits_for_change(id: WordId, halted: bool) -> Result<(), Failure> {
    let slot = current();
    with(|trace| {
        let version = trace.words[id].version;
        trace.slots[slot].halted = halted;
        begin(trace, Wait::Word(id, version))
    })
}

/// The running context pauses: it goes on when anything has changed since its last operation.
///
/// # Errors
/// As [`waits_for`].
pub fn waits_for_any() -> Result<(), Failure> {
    with(|trace| {
        let slot = &mut trace.slots[current()];
        slot.halted = false;
        let clock = slot.clock;
        begin(trace, Wait::Any(clock))
    })
}

/// The running context, which holds lock `lock`, waits until `count` others wait for it. Returns
/// whether it has to.
///
/// # Errors
/// No context is left that would come.
pub fn waits_for_arrivals(lock: usize, count: usize) -> Result<bool, Failure> {
    waits_unseen(Wait::Arrivals(lock, count))
}

/// The running context waits until every other one has ended or waits. Returns whether it has to.
///
/// # Errors
/// None: where all others wait in vain, it goes on.
pub fn waits_for_others(turn: Turn) -> Result<bool, Failure> {
    waits_unseen(Wait::Others(turn))
}

/// The running context waits until there were so many signals. Returns whether it has to.
///
/// # Errors
/// No context is left that would give one.
pub fn waits_for_signals(count: u32) -> Result<bool, Failure> {
    waits_unseen(Wait::Signals(count))
}

/// The running context waits until a waiter was moved from one queue to another, or every other context has ended or
/// waits. Returns whether it has to.
///
/// # Errors
/// None: where all others wait in vain, it goes on.
pub fn waits_for_moved() -> Result<bool, Failure> {
    waits_unseen(Wait::Moved)
}

/// The running context gives a signal.
pub fn signal() {
    with(|trace| trace.signals += 1);
}

/// So many waiters were moved from one queue to another.
pub(super) fn moved(count: u64) {
    with(|trace| trace.moved += count);
}

/// A wait that is not the lock's.
fn waits_unseen(wait: Wait) -> Result<bool, Failure> {
    let slot = current();
    with(|trace| {
        trace.slots[slot].halted = false;
        trace.slots[slot].wait = Some(wait);
        if !is_stuck(trace, wait) {
            trace.slots[slot].wait = None;
            return Ok(false);
        }
        check(trace)?;
        Ok(true)
    })
}

/// The running context has spent a bounded wait on `id`. Returns whether it has done so more than
/// `most` times since the word has changed and since it has last been halted.
///
/// Such a context goes round in a loop in which nothing has happened to it: what follows differs
/// from what followed before only in how often.
pub fn looked_in_vain(id: WordId, most: u32) -> bool {
    let slot = current();
    with(|trace| {
        let version = trace.words[id].version;
        let vain = &mut trace.slots[slot].vain;
        let times = match *vain {
            Some((word, seen, times)) if (word, seen) == (id, version) => times + 1,
            _ => 1,
        };
        *vain = Some((id, version, times));
        times > most
    })
}

/// A halt that returns for no reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VainHalt {
    /// At once.
    Short,
    /// Once every other context has ended or waits.
    Long,
}

/// The running context halts. Returns how, if that halt returns for no reason.
pub fn halts_in_vain() -> Option<VainHalt> {
    let slot = current();
    with(|trace| {
        let slot = &mut trace.slots[slot];
        slot.vain = None;
        let left = slot.vain_halts;
        slot.vain_halts = left.saturating_sub(1);
        (left > 0).then_some(if slot.late { VainHalt::Long } else { VainHalt::Short })
    })
}

/// How often a context backs off while no other changes anything, before it finds nothing new: it goes
/// through what it looks at, and may see old values.
const VAIN_DOZES: u32 = 3;

/// The running context sleeps for a short time. Returns whether it would find what it has found before.
pub fn backs_off_in_vain() -> bool {
    let slot = current();
    with(|trace| {
        let clock = trace.clock;
        let slot = &mut trace.slots[slot];
        let others = clock - slot.own_changes;
        let times = if slot.dozed.0 == others { slot.dozed.1 + 1 } else { 1 };
        slot.dozed = (others, times);
        times > VAIN_DOZES
    })
}

/// Whether the wait of the running context may have ended. Ends it if so.
pub fn may_look() -> bool {
    let slot = current();
    with(|trace| {
        let stuck = trace.slots[slot].wait.is_some_and(|wait| is_stuck(trace, wait));
        if !stuck {
            trace.slots[slot].wait = None;
        }
        !stuck
    })
}

/// The running context has ended.
///
/// # Errors
/// All others wait for it in vain.
pub fn finished() -> Result<(), Failure> {
    let slot = current();
    with(|trace| {
        trace.slots[slot].done = true;
        check(trace)
    })
}

/// Whether the running context makes an attempt that may not wait.
pub fn set_trying(trying: bool) {
    let slot = current();
    with(|trace| trace.slots[slot].trying = trying);
}

/// Whether the last value that the running context has read was the latest.
#[must_use]
pub fn saw_latest() -> bool {
    let slot = current();
    with(|trace| trace.slots[slot].saw_latest)
}
