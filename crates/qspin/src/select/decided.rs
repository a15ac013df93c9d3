//! What was decided, in one byte: proposed until the first lock operation, fixed from then on.
//!
//! # Problem
//! Deciding takes files, memory and time. A lock operation may have none of these, and may run in a signal
//! handler, or before `main`. So the decision is *made* when the program asks for it, and locks only *look it
//! up*. The first lock operation of the process fixes what it finds, since a word that one algorithm has
//! touched must not be read by another.
//!
//! # States
//! ```text
//!  FALLBACK ──at load, QSPIN_LOCK──► noted ──by the program, any number of times──► proposal
//!      │                               │                                              │
//!      └──── first lock operation ─────┴──────────────────────────────────────────────┴──► fixed
//! ```
//!
//! # Invariants
//! * **DECIDED-1** Apart from OPEN and UNDECIDED, the byte is a [`Choice`] whose lock exists, at any time.
//! * **DECIDED-2** OPEN is cleared once and never set again, and the choice never changes after that.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8};

use super::choice::Choice;
use crate::platform::system::{load, say_unless_blocked};

/// The choice may still change. A byte with this bit is the number of no choice, so a lock that finds it takes
/// the slow path.
const OPEN: u8 = 1 << 7;

/// There was no decision yet. The choice beside it is what the first lock operation would fix.
const UNDECIDED: u8 = 1 << 6;

/// What the first lock operation fixes if it comes before any decision. Paravirt is never the worst choice by
/// much, whatever the machine.
pub const FALLBACK: Choice = Choice::Paravirt;

static STATE: State = State::new();

/// On a cache line of its own: every lock operation reads it, so nothing beside it may be written.
#[repr(align(128))]
struct State(AtomicU8);

impl State {
    const fn new() -> Self {
        Self(AtomicU8::new(FALLBACK as u8 | OPEN | UNDECIDED))
    }

    /// DECIDED-2. Returns whether it could still be changed.
    fn propose(&self, choice: Choice) -> bool {
        self.change(OPEN, choice as u8 | OPEN)
    }

    /// Notes the choice to be fixed if there is no decision.
    fn note(&self, choice: Choice) {
        self.change(UNDECIDED, choice as u8 | OPEN | UNDECIDED);
    }

    /// Changes the byte if it still has `bit`. Returns whether it did.
    fn change(&self, bit: u8, new: u8) -> bool {
        let propose = |seen| (seen & bit != 0).then_some(new);
        // ORDERING: Release pairs with the Acquire of `fix`, which says what was complained about.
        self.0.fetch_update(Release, Relaxed, propose).is_ok()
    }

    /// Fixes the choice. The second value is whether this call did so.
    fn fix(&self) -> (Choice, bool) {
        // ORDERING: Acquire pairs with the Release of `propose`.
        let before = self.0.fetch_and(!(OPEN | UNDECIDED), Acquire);
        (of(before), before & OPEN != 0)
    }
}

/// DECIDED-1.
fn of(state: u8) -> Choice {
    Choice::numbered(state & !(OPEN | UNDECIDED)).unwrap_or(FALLBACK)
}

/// What all locks are: the number of a [`Choice`], or of none before the choice is fixed.
#[inline]
pub(super) fn glance() -> u8 {
    // Relaxed: a fixed choice is final (DECIDED-2), and it publishes no other memory.
    STATE.0.load(Relaxed)
}

/// Whether no lock operation has fixed the choice yet.
#[inline]
pub(super) fn is_open() -> bool {
    glance() & OPEN != 0
}

/// What all locks are, from this call on at the latest.
pub(super) fn decided() -> Choice {
    Choice::numbered(glance()).unwrap_or_else(fix)
}

/// The first lock operation of the process. Async-signal-safe.
#[cold]
#[inline(never)]
fn fix() -> Choice {
    if is_undecided() {
        load::before_the_first_choice();
    }
    let (choice, just_now) = STATE.fix();
    if just_now {
        // SAFETY: null, or a text for the whole program.
        // ORDERING: Acquire pairs with the Release of `complain`.
        if let Some(text) = unsafe { COMPLAINT.load(Acquire).as_ref() } {
            say_unless_blocked(text);
        }
    }
    choice
}

/// What is wrong with the environment: one line. The first lock operation writes it, because before that it is
/// not known whether the program heeds the environment at all.
static COMPLAINT: AtomicPtr<&'static [u8]> = AtomicPtr::new(core::ptr::null_mut());

/// The complaint about `QSPIN_LOCK` where there is no decision: there is no memory there for a longer one.
static OF_NAME: &[u8] =
    b"qspin: QSPIN_LOCK is not native, paravirt, backoff, cna or cna-paravirt; it is ignored\n";

/// Schedules that complaint.
pub(super) fn complain_of_name() {
    COMPLAINT.store((&raw const OF_NAME).cast_mut(), Release);
}

/// Schedules `text` for stderr, on one line and once, if a lock is chosen in this process.
pub(super) fn complain(text: &str) {
    let line = format!("{}\n", text.replace(char::is_control, " ")).into_bytes();
    // SAFETY: as in `fix`. ORDERING: as there.
    let before = unsafe { COMPLAINT.load(Acquire).as_ref() };
    // A line that stays for ever is made once, however often the program decides.
    if before.is_none_or(|before| **before != *line) {
        COMPLAINT.store(Box::leak(Box::new(&*line.leak())), Release);
    }
}

/// Notes `choice` as what is to be fixed if there is no decision.
pub(super) fn note(choice: Choice) {
    STATE.note(choice);
}

/// Whether the choice may change, and there was no decision.
pub(super) fn is_undecided() -> bool {
    STATE.0.load(Relaxed) & UNDECIDED != 0
}

/// Makes `choice` the choice from now on, unless another was fixed before: then returns that one.
pub(super) fn propose(choice: Choice) -> Result<(), Choice> {
    if STATE.propose(choice) { Ok(()) } else { Err(current().0) }
}

/// The choice as of now, and whether it is fixed.
pub(super) fn current() -> (Choice, bool) {
    let seen = STATE.0.load(Relaxed);
    (of(seen), seen & OPEN == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_may_change_and_what_is_fixed_may_not() {
        let state = State::new();
        assert!(state.propose(Choice::Native) && state.propose(Choice::Backoff));
        assert_eq!(state.fix(), (Choice::Backoff, true));
        assert!(!state.propose(Choice::Native));
        assert_eq!(state.fix(), (Choice::Backoff, false), "fixed once");
    }

    #[test]
    fn what_comes_before_any_proposal_finds_the_fallback() {
        let state = State::new();
        assert_eq!(state.fix(), (FALLBACK, true));
        assert!(!state.propose(Choice::Native));
    }

    #[test]
    fn what_was_noted_counts_where_nothing_is_decided() {
        let state = State::new();
        state.note(Choice::Backoff);
        assert!(state.propose(Choice::Native));
        state.note(Choice::Cna);
        assert_eq!(of(state.0.load(Relaxed)), Choice::Native, "it was decided");
        let state = State::new();
        state.note(Choice::Backoff);
        assert_eq!(state.fix(), (Choice::Backoff, true));
        state.note(Choice::Cna);
        assert_eq!(state.fix(), (Choice::Backoff, false));
    }

    #[test]
    fn the_complaint_names_all_choices() {
        let names = format!("is not {};", Choice::names());
        assert!(String::from_utf8_lossy(OF_NAME).contains(&names), "{names}");
    }

    #[test]
    fn a_lock_that_does_not_exist_is_never_decided() {
        let state = State::new();
        for &choice in Choice::ALL {
            state.propose(choice);
            assert_eq!(of(state.0.load(Relaxed)), choice);
        }
    }
}
