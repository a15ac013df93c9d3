//! Counting what happens in a lock, where its platform counts.

use crate::events::{Event, Events};
use crate::platform::Platform;

/// Counts `event` where `p` counts.
#[inline(always)]
pub(crate) fn count<P: Platform>(p: &P, event: Event) {
    add(p, event, 1);
}

/// Adds `amount` to `event` where `p` counts.
#[inline(always)]
pub(crate) fn add<P: Platform>(p: &P, event: Event, amount: u64) {
    // The only use of this switch is the test that counting nothing costs nothing: it compares the machine code
    // of a lock with `NoEvents` to that of a lock without this line. (The condition is decided before the
    // optimiser sees it: not even the order in which the optimiser works is changed.)
    #[cfg(not(qspin_without_events))]
    if P::Events::COUNTS {
        p.events().add(event, amount);
    }
    #[cfg(qspin_without_events)]
    let _ = (p, event, amount);
}
