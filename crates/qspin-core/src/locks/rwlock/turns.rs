//! Turns past the threads that sleep at the gate.
//!
//! A release of the gate wakes one of them, which has to wait for a CPU; only its own release wakes the next one. The
//! threads that run acquire the lock meanwhile, and no release tells them of the gate: it would have to read it. A
//! thread that finds the lock taken has time for that, so there it yields once its [barging quantum](crate::quantum) is
//! used up. One that never finds it taken has the CPU for a time slice of the scheduler.

use crate::quantum::Quantum;
use crate::sleepers::SleepPlatform;

/// Before a wait for the lock, at whose gate so many threads sleep.
pub(super) fn give_way<P: SleepPlatform>(p: &P, sleepers: u32) {
    let quantum = Quantum::of(p);
    if sleepers != 0 && quantum.count_past(sleepers) {
        quantum.give_way_each(1);
        quantum.begin_anew();
    }
}
