//! The tunables under which the locks are checked.
//!
//! Bounded waits are one look long: a longer one is the same with more executions. Where a
//! waiter does something after its first looks and goes on looking, they are two.

use qspin_core::locks::Lock;
use qspin_core::tuning::{Adaptive, Defer, KICK_AHEAD_MAX, Part, Tuning};

use crate::platform::TICK;

/// What a lock of the register is tuned to.
pub(super) fn of(lock: &Lock) -> Tuning {
    let reads = |part| lock.reads.contains(&part);
    match () {
        () if reads(Part::Culled) => IMPATIENT,
        () if reads(Part::Mutex) => MUTEX,
        () => ONE_LOOK,
    }
}

/// What every lock begins with.
pub(crate) const ONE_LOOK: Tuning = Tuning {
    owner_polls: 1,
    // No pause before it: a pause waits here until something changes, which this bounded wait
    // does not.
    owner_pauses: 0,
    pending_polls: 1,
    simple_polls: 1,
    yield_polls: 1,
    queue_polls: 1,
    head_polls: 1,
    pending_wait_polls: 1,
    short_divisor: 1,
    check_polls: 1,
    steal_polls: 1,
    cull_polls: 0,
    awake_polls: 1,
    forbid_polls: 0,
    // Each head arranges the queue; the clock, which ticks once a section, never reaches the threshold.
    numa_skip_bits: 0,
    ..Tuning::DEFAULT
};

/// CNA, with a secondary queue that is flushed by the first head that finds one.
pub(crate) const FLUSH: Tuning = Tuning { numa_threshold_ns: 0, ..ONE_LOOK };

/// The same after two sections.
pub(crate) const FLUSH_LATER: Tuning = Tuning { numa_threshold_ns: 2 * TICK as u32, ..ONE_LOOK };

/// CNA where waiters halt, with kicks ahead and a secondary queue that is flushed at once.
pub(crate) const FLUSH_HALTING: Tuning = Tuning { numa_threshold_ns: 0, ..KICK_AHEAD };

/// CNA where waiters halt, with kicks ahead. A head looks twice: it arranges, and looks again.
pub(crate) const KICK_AHEAD_TWO_POLLS: Tuning = Tuning { head_polls: 2, ..KICK_AHEAD };

/// Culled, with a look before a waiter forbids stealing and one after, a second look of newcomers,
/// and a rotation after two turns.
pub(crate) const IMPATIENT: Tuning = Tuning {
    head_polls: 2,
    cull_polls: 1,
    awake_polls: 2,
    forbid_polls: 1,
    rotate_turns: 2,
    ..ONE_LOOK
};

/// Culled, with waiters that give up at once.
pub(crate) const RESIGNED: Tuning = Tuning { rotate_turns: 1, ..ONE_LOOK };

/// Newcomers never pass a head that sleeps.
pub(crate) const HEIR: Tuning = Tuning { mutex_heir_us: 0, ..ONE_LOOK };

/// The default mutex, with one look before a waiter sleeps, a bucket that is quiet again at once, an heir
/// that has slept once, and a rotation after two turns.
pub(crate) const MUTEX: Tuning = Tuning {
    mutex_spin_ns: 3,
    mutex_awake_us: 0,
    mutex_heir_us: 0,
    sleep_idle: 1,
    rotate_turns: 2,
    mutex_short_ns: 0,
    ..ONE_LOOK
};

/// The same where waiters look twice before they sleep.
pub(crate) const MUTEX_TWO_POLLS: Tuning = Tuning { mutex_spin_ns: 4000, ..MUTEX };

/// The same where all turns are short.
pub(crate) const MUTEX_SHORT: Tuning = Tuning { mutex_short_ns: 1 << 30, ..MUTEX };

/// The same where no waiter polls before it sleeps, or is ever the heir: that time is later than each deadline.
pub(crate) const MUTEX_SLEEPY: Tuning =
    Tuning { mutex_spin_ns: 0, mutex_heir_us: u32::MAX, rotate_turns: 1, ..MUTEX };

/// The same where a waiter starves that has seen two sections of others.
pub(crate) const MUTEX_STARVING: Tuning = Tuning { mutex_heir_us: 1, ..MUTEX_SLEEPY };

/// The same where each reader that sleeps has starved.
pub(crate) const MUTEX_STARVING_AT_ONCE: Tuning = Tuning { mutex_heir_us: 0, ..MUTEX_SLEEPY };

/// Without any step of the series: no pending waiter, a conditional kick by the context that hands over or
/// releases.
pub(crate) const BEFORE_THE_SERIES: Tuning = Tuning { pending: false, ..CONDITIONAL_KICK };

/// Without patch 1 and patch 5: the kick of a release is conditional, that of a hand-over at once.
pub(crate) const CONDITIONAL_KICK: Tuning =
    Tuning { kick_unconditionally: false, defer: Defer::Never, ..ONE_LOOK };

/// Without patch 1: the kick of a release is conditional, and every kick is that of a release.
pub(crate) const CONDITIONAL_KICK_DEFERRED: Tuning =
    Tuning { kick_unconditionally: false, ..ONE_LOOK };

/// The same with patch 4: a head that is awake is not kicked, those behind it are.
pub(crate) const CONDITIONAL_KICK_AHEAD: Tuning =
    Tuning { kick_unconditionally: false, kick_ahead: 2, ..NO_PENDING };

/// Culled, with kicks ahead.
pub(crate) const CULLED_KICK_AHEAD: Tuning = Tuning { kick_ahead: 2, ..IMPATIENT };

/// Culled, with a conditional kick.
pub(crate) const CULLED_CONDITIONAL_KICK: Tuning =
    Tuning { kick_unconditionally: false, ..IMPATIENT };

/// Stealing, with kicks ahead.
pub(crate) const STEALING_KICK_AHEAD: Tuning = Tuning { kick_ahead: 2, ..ONE_LOOK };

/// Without patch 2.
pub(crate) const NO_PENDING: Tuning = Tuning { pending: false, ..ONE_LOOK };

/// Patch 4, as far as it goes.
pub(crate) const KICK_AHEAD: Tuning =
    Tuning { kick_ahead: KICK_AHEAD_MAX as u32, pending: false, ..ONE_LOOK };

/// Without patch 5.
pub(crate) const DEFER_NEVER: Tuning = Tuning { defer: Defer::Never, kick_ahead: 1, ..NO_PENDING };

/// Patch 5 as in the document.
pub(crate) const DEFER_CONDITIONS: Tuning =
    Tuning { defer: Defer::Conditions, kick_ahead: 2, ..NO_PENDING };

/// Patch 6, with a history that one halt makes long enough.
pub(crate) const ADAPTIVE_HISTORY: Tuning = Tuning {
    adaptive: Adaptive::History,
    history_increment: 1,
    // Does not fall below the threshold again.
    history_min: 1,
    history_threshold: 0,
    queue_polls: 2,
    ..NO_PENDING
};

/// The same where a waiter whose neighbour comes to halt does so at once.
pub(crate) const ADAPTIVE_HISTORY_KICK_AHEAD: Tuning = Tuning { kick_ahead: 1, ..ADAPTIVE_HISTORY };

/// What patch 6's reviewer proposed.
pub(crate) const ADAPTIVE_NEIGHBOUR: Tuning =
    Tuning { adaptive: Adaptive::Neighbour, ..NO_PENDING };

/// As Linux ended up: a look at the one before, then one at the lock, twice.
pub(crate) const ADAPTIVE_PERIODIC: Tuning =
    Tuning { adaptive: Adaptive::Periodic, queue_polls: 2, check_polls: 1, ..NO_PENDING };

/// Document 004: a waiter yields to the one before it, and looks again, before it halts.
pub(crate) const QUEUE_YIELDS: Tuning = Tuning { queue_yields: 1, ..NO_PENDING };

/// Each neighbour is taken for one that does not run.
pub(crate) const HEED_PREEMPTED: Tuning = Tuning { heed_preempted: true, ..NO_PENDING };
