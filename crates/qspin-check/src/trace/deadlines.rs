//! Deadlines, and forks: what a context sees of the time and of its process.

use super::{coverage, current, with};

/// The running context has a deadline, which is over at its look at the clock of this number, counted from 0.
pub fn set_deadline(looks: u32) {
    let slot = current();
    with(|trace| trace.slots[slot].deadline = Some((looks, !looks.is_multiple_of(2))));
}

/// The running context has no deadline any more.
pub fn forget_deadline() {
    let slot = current();
    with(|trace| trace.slots[slot].deadline = None);
}

/// The running context looks at the clock: whether its deadline is over.
pub fn is_late() -> bool {
    let slot = current();
    let (late, now) = with(|trace| match &mut trace.slots[slot].deadline {
        None => (false, false),
        Some((u32::MAX, _)) => (true, false),
        Some((left, _)) if *left == 0 => {
            *left = u32::MAX;
            (true, true)
        }
        Some((left, _)) => {
            *left -= 1;
            (false, false)
        }
    });
    if now {
        coverage::interrupted();
    }
    late
}

/// The running context sleeps until its deadline, which is over afterwards. Whether others run before that.
pub fn oversleeps() -> bool {
    let slot = current();
    with(|trace| match &mut trace.slots[slot].deadline {
        Some((left, odd)) if *left != u32::MAX => {
            *left = u32::MAX;
            *odd
        }
        _ => false,
    })
}

/// What runs from now on is a child.
pub fn fork() {
    with(|trace| trace.forks += 1);
}

/// The running context is gone, and unwinds; or that is done.
pub fn set_gone(gone: bool) {
    with(|trace| trace.gone = gone);
}

/// Whether the running context is one that is gone.
#[must_use]
pub fn is_gone() -> bool {
    with(|trace| trace.gone)
}

/// Which process of a line of forks this is.
#[must_use]
pub fn generation() -> u32 {
    with(|trace| trace.forks)
}
