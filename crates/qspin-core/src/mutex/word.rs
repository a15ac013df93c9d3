//! The word of the default mutex: what stands in it, and what of that counts.
//!
//! ```text
//!   31            12 11          4  3      2       1      0
//!   ┌───────────────┬─────────────┬──────┬────────────┬────────┐
//!   │ generation of │ where the   │ HEIR │ how many   │ LOCKED │
//!   │ the marks     │ owner is    │      │ are awake  │        │
//!   └───────────────┴─────────────┴──────┴────────────┴────────┘
//! ```

use crate::sleepers::SleepPlatform;

/// The lock is held.
pub(super) const LOCKED: u32 = 1;
/// A waiter is awake: one of those that are counted.
pub(super) const AWAKE: u32 = 2;
/// As many as can be counted.
const ALL_AWAKE: u32 = 3 * AWAKE;
/// Nobody may take the lock but those who are awake and have a mark. There is a count beside it.
pub(super) const HEIR: u32 = 8;
const MARKS: u32 = ALL_AWAKE | HEIR;
/// Where the owner took the lock: a bit that says that it is known, and what fits below it of the CPU's number.
/// It goes with the owner.
pub(super) const PLACE: u32 = PLACE_KNOWN | 0x7f << PLACE_SHIFT;
const PLACE_SHIFT: u32 = 4;
const PLACE_KNOWN: u32 = 1 << 11;
/// Where the generation of the marks stands (M5).
const GENERATION_SHIFT: u32 = 12;

/// The marks of `seen` that count in this process (M5).
#[inline]
pub(super) fn marks<P: SleepPlatform>(p: &P, seen: u32) -> u32 {
    if seen & MARKS != 0 { marks_in(generation(p), seen) } else { 0 }
}

/// The same for a process that is of this generation. Who looks at marks and writes them asks for it once:
/// a signal handler may fork in between, and what the parent has seen is not the child's.
#[inline]
pub(super) fn marks_in(generation: u32, seen: u32) -> u32 {
    if seen >> GENERATION_SHIFT == generation { seen & MARKS } else { 0 }
}

/// This process's, as marks have it.
#[inline]
pub(super) fn generation<P: SleepPlatform>(p: &P) -> u32 {
    p.generation() << GENERATION_SHIFT >> GENERATION_SHIFT
}

/// The word of an owner that takes the lock here, without marks.
#[inline]
pub(super) fn locked_here<P: SleepPlatform>(p: &P) -> u32 {
    LOCKED | p.runs_on().map_or(0, |cpu| PLACE_KNOWN | cpu << PLACE_SHIFT & PLACE)
}

/// Whether the owner has taken the lock on this CPU, as far as is known. It is not this context.
#[inline]
pub(super) fn owner_is_here<P: SleepPlatform>(p: &P, seen: u32) -> bool {
    seen & PLACE_KNOWN != 0 && seen & (LOCKED | PLACE) == locked_here(p)
}

/// The word with `locked`, which is 0 or that of an owner, and these marks.
#[inline]
pub(super) fn with_marks(generation: u32, locked: u32, marks: u32) -> u32 {
    if marks == 0 { locked } else { locked | marks | generation << GENERATION_SHIFT }
}

/// The marks with one more that is awake, who has this `mark`. One too many is not counted (M2).
#[inline]
pub(super) fn one_more(marks: u32, mark: u32) -> u32 {
    let awake = (marks & ALL_AWAKE) + AWAKE;
    awake.min(ALL_AWAKE) | (marks | mark) & HEIR
}

/// The marks without one that is not awake any more, or has the lock.
#[inline]
pub(super) fn one_less(marks: u32) -> u32 {
    (marks & ALL_AWAKE).saturating_sub(AWAKE)
}

/// Whether no more can be counted.
#[inline]
pub(super) fn are_enough(marks: u32) -> bool {
    marks & ALL_AWAKE == ALL_AWAKE
}
