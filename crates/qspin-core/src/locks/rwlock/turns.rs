//! Turns past the threads that sleep at the gate.
//!
//! A release of the gate wakes one of them, which has to wait for a CPU; only its own release wakes the next one. The
//! threads that run acquire the lock meanwhile, and no release tells them of the gate: it would have to read it. A
//! thread that finds the lock taken has time for that, so there it yields once its [barging quantum](crate::quantum) is
//! used up. If it then has to go to the gate as well, it sleeps there at once, behind the others. One that never finds
//! the lock taken has its CPU for a time slice of the scheduler.

use crate::quantum::Quantum;
use crate::sleepers::SleepPlatform;

/// Before a wait for the lock, at whose gate so many threads sleep. Returns whether the thread's quantum is used up.
pub(super) fn give_way<P: SleepPlatform>(p: &P, sleepers: u32) -> bool {
    let quantum = Quantum::of(p);
    let is_over = sleepers != 0 && (quantum.is_over() || quantum.count_past(sleepers));
    if is_over {
        quantum.give_way_each(1, false);
    }
    is_over
}

/// After a wait without the gate, of a thread that had to give way.
pub(super) fn gave_way<P: SleepPlatform>(p: &P) {
    Quantum::of(p).begin_anew();
}
