//! Locks whose owners ask not to be preempted: remedy (b) of document 001.
//!
//! Each takes loops of its own, so only the locks that the remedies are compared on have them.

use qspin_core::locks::Id;

use crate::contender::Raw;

use super::engine::{MeasureMutex, measure_mutex};

/// What measures the lock in the form whose owners ask, where this build has it.
pub fn measure(lock: Id) -> Option<MeasureMutex> {
    Some(match lock {
        Id::Ticket => measure_mutex::<Raw<qspin::ticket::HintedRawMutex>>,
        Id::Simple => measure_mutex::<Raw<qspin::simple::HintedRawMutex>>,
        Id::Yield => measure_mutex::<Raw<qspin::yielding::HintedRawMutex>>,
        Id::Paravirt => measure_mutex::<Raw<qspin::paravirt::HintedRawMutex>>,
        _ => return None,
    })
}
