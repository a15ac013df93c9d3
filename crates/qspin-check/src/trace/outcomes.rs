//! What executions come to, so that exploring fewer of them can be held against exploring all.
//!
//! An outcome is, for each context, what it did and what it saw, without the looks of a waiter
//! that failed. Leaving out equal executions must not lose one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::paths::mix;
use super::{Slot, Trace, WordId, with};

thread_local! {
    static PRUNING: Cell<bool> = const { Cell::new(true) };
    static OUTCOMES: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
}

/// Whether equal executions are left out: a test turns it off.
pub fn set_pruning(on: bool) {
    PRUNING.set(on);
}

/// Whether equal executions are left out.
#[must_use]
pub fn prunes() -> bool {
    PRUNING.get()
}

/// What one context has done and seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct History {
    now: u64,
    before: u64,
}

pub(super) fn did(slot: &mut Slot, id: WordId, value: u32) {
    slot.history.before = slot.history.now;
    slot.history.now = mix(slot.history.now, (id as u64) << 32 | u64::from(value));
}

/// The last thing that it did was a look that failed.
pub(super) fn failed_look(slot: &mut Slot) {
    slot.history.now = slot.history.before;
}

pub(super) fn note(trace: &Trace) {
    let all = trace.slots.iter().fold(0, |all, slot| mix(all, slot.history.now));
    OUTCOMES.with(|outcomes| outcomes.borrow_mut().insert(all));
}

/// Notes what the execution has come to.
pub fn came_to_an_end() {
    with(|trace| note(trace));
}

/// The outcomes of all executions since this was last called.
#[must_use]
pub fn take_outcomes() -> BTreeSet<u64> {
    OUTCOMES.take()
}
