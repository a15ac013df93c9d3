//! Every lock that is checked: those of the crate, and variants that open more of their paths.

use qspin_core::admission::Admission;
use qspin_core::backoff::{BackoffLock, TasLock};
use qspin_core::mcs::McsLock;
use qspin_core::order::Fifo;
use qspin_core::platform::Platform;
use qspin_core::queued::{NativeLock, QueuedLock};
use qspin_core::rwlock::QueuedRwLock;
use qspin_core::simple::SimpleLock;
use qspin_core::ticket::TicketLock;
use qspin_core::waiting::{Spin, Waiting};
use qspin_core::word::{LOCKED_MASK, PENDING};
use qspin_core::yielding::YieldLock;

use super::{
    Exclusive, Family, Of, PLAIN, READERS, Shared, Subject, Traits, WITH_NODES, family, rules,
};
use crate::ledger::Rules;
use crate::machine::Machine;
use crate::word::Word;

family!(
    /// `Spin × Fifo × Queued`.
    Native = "native", WITH_NODES, rules::QUEUED, Exclusive<NativeLock<Word<M>>>
);
family!(
    /// The same with an admission that always queues.
    NativeQueue = "native-no-pending", WITH_NODES, rules::QUEUED,
    Exclusive<QueuedLock<Word<M>, Spin, Fifo, NoPending>>
);
family!(
    /// Test-and-set with backoff.
    Backoff = "backoff", PLAIN, rules::FLAG, Exclusive<BackoffLock<Word<M>>>
);
family!(
    /// Plain test-and-set.
    Tas = "tas", PLAIN, rules::FLAG, Exclusive<TasLock<Word<M>>>
);
family!(
    /// The ticket lock.
    Ticket = "ticket", PLAIN, rules::TICKET, Exclusive<TicketLock<Word<M>>>
);
family!(
    /// The MCS lock.
    Mcs = "mcs", Traits { release_waits: true, ..WITH_NODES }, rules::MCS, Exclusive<McsLock<Word<M>>>
);
family!(
    /// The simple lock.
    Simple = "simple", PLAIN, rules::FLAG, Exclusive<SimpleLock<Word<M>>>
);
family!(
    /// The yielding lock.
    Yielding = "yield", PLAIN, rules::FLAG, Exclusive<YieldLock<Word<M>>>
);
family!(
    /// The queued reader-writer lock.
    QueuedRw = "queued-rw", READERS, rules::RW, Shared<QueuedRwLock<Word<M>>>
);

/// Admission without the pending bit: whoever does not find the lock free queues at once. It
/// takes two contexts instead of three to fill a queue.
#[derive(Debug, Clone, Copy)]
pub struct NoPending;

impl Admission for NoPending {
    const OCCUPIED: u32 = LOCKED_MASK | PENDING;

    fn newcomer<P: Platform, W: Waiting>(_: &P, _: &P::Word, _: u32) -> bool {
        false
    }
}

/// The locks of the crate.
#[must_use]
pub fn locks() -> Vec<&'static dyn Subject> {
    vec![
        Of::<Native>::VALUE,
        Of::<Backoff>::VALUE,
        Of::<Tas>::VALUE,
        Of::<Ticket>::VALUE,
        Of::<Mcs>::VALUE,
        Of::<Simple>::VALUE,
        Of::<Yielding>::VALUE,
        Of::<QueuedRw>::VALUE,
    ]
}

/// The locks, and variants of them that only the checkers have.
#[must_use]
pub fn variants() -> Vec<&'static dyn Subject> {
    let mut all = locks();
    all.push(Of::<NativeQueue>::VALUE);
    all
}

/// The lock of this name, planted bugs included.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static dyn Subject> {
    let planted = crate::planted::all().into_iter().map(|bug| bug.subject);
    variants().into_iter().chain(planted).find(|subject| subject.name() == name)
}
