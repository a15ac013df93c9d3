//! An admission that only the checkers have.

use qspin_core::admission::Admission;
use qspin_core::platform::{Budget, Platform};
use qspin_core::word::{LOCKED_MASK, PENDING};

/// Admission without the pending bit: one that does not find the lock free queues at once. It
/// takes two contexts instead of three to fill a queue.
#[derive(Debug, Clone, Copy)]
pub struct NoPending;

impl Admission for NoPending {
    const OCCUPIED: u32 = LOCKED_MASK | PENDING;

    fn newcomer<P: Platform>(
        _: &P,
        _: &P::Word,
        _: u32,
        _: impl FnOnce(&P) -> Option<Budget>,
    ) -> bool {
        false
    }
}
