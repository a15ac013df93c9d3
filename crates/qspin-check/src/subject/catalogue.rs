//! Every lock that is checked: those of the crate, and variants that open more of their paths.

use qspin_core::admission::Admission;
use qspin_core::locks::backoff::{BackoffLock, TasLock};
use qspin_core::locks::mcs::McsLock;
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::locks::paravirt_ticket::ParavirtTicketLock;
use qspin_core::locks::queued::{
    CnaLock, CnaParavirtLock, NativeLock, ParavirtLock, ParavirtQueuedLock, ParavirtStealingLock,
    QueuedLock,
};
use qspin_core::locks::queued_rw::QueuedRwLock;
use qspin_core::locks::rwlock::DefaultRwLock;
use qspin_core::locks::simple::SimpleLock;
use qspin_core::locks::ticket::TicketLock;
use qspin_core::locks::yielding::YieldLock;
use qspin_core::order::{Fifo, Numa};
use qspin_core::platform::{Budget, Platform};
use qspin_core::waiting::{Halt, Spin};
use qspin_core::word::{LOCKED_MASK, PENDING};

use super::beside::{ALL, Fair, Monitor, ONE, PlainGate, Undone, Upgraded};
use super::{
    BESIDE, BESIDE_READERS, BESIDE_READERS_INTERRUPTED, BESIDE_UPGRADED, Exclusive, Family,
    HALTING, NEAR, NEAR_HALTING, NEAR_HALTING_STEP, NEAR_STEP, Of, PLAIN, READERS, SLEEPING,
    SLEEPING_FENCED, SLEEPING_STEP, STEP, Shared, Subject, Traits, WITH_NODES, family, rules,
    tunings,
};
use crate::ledger::Rules;
use crate::machine::Machine;
use crate::platform::Address;
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
    Ticket = "ticket", Traits { one_word: true, ..WITH_NODES }, rules::TICKET,
    Exclusive<TicketLock<Word<M>>>
);
family!(
    /// The ticket lock whose waiters halt.
    ParavirtTicket = "paravirt-ticket", Traits { one_word: true, ..HALTING },
    rules::TICKET_HALTING, Exclusive<ParavirtTicketLock<Word<M>>>
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

family!(
    /// `Halt × Fifo × Culled`.
    Paravirt = "paravirt", HALTING, rules::CULLED, Exclusive<ParavirtLock<Word<M>>>,
    tunings::IMPATIENT
);
family!(
    /// `Halt × Fifo × Stealing`.
    ParavirtStealing = "paravirt-stealing", HALTING, rules::STEALING,
    Exclusive<ParavirtStealingLock<Word<M>>>
);
family!(
    /// `Halt × Fifo × Queued`.
    ParavirtQueued = "paravirt-queued", HALTING, rules::HALTING,
    Exclusive<ParavirtQueuedLock<Word<M>>>
);
family!(
    /// Culled waiters that give up at once and rotate at every turn.
    Resigned = "paravirt-resigned", STEP, rules::CULLED, Exclusive<ParavirtLock<Word<M>>>,
    tunings::RESIGNED
);

family!(
    /// `Spin × Numa × Queued`.
    Cna = "cna", NEAR, rules::CNA, Exclusive<CnaLock<Word<M>>>
);
family!(
    /// The same with an admission that always queues: it takes one context less to fill a queue.
    CnaQueue = "cna-no-pending", NEAR_STEP, rules::CNA,
    Exclusive<QueuedLock<Word<M>, Spin, Numa, NoPending>>
);
family!(
    /// The same with a secondary queue that is flushed at once.
    CnaFlush = "cna-flush", NEAR_STEP, rules::CNA,
    Exclusive<QueuedLock<Word<M>, Spin, Numa, NoPending>>, tunings::FLUSH
);
family!(
    /// The same with a secondary queue that is flushed after two sections.
    CnaFlushLater = "cna-flush-later", NEAR_STEP, rules::CNA,
    Exclusive<QueuedLock<Word<M>, Spin, Numa, NoPending>>, tunings::FLUSH_LATER
);
family!(
    /// `Halt × Numa × Culled`.
    CnaParavirt = "cna-paravirt", NEAR_HALTING, rules::CNA_CULLED,
    Exclusive<CnaParavirtLock<Word<M>>>, tunings::IMPATIENT
);
family!(
    /// The strict one, whose queue is full sooner, with kicks ahead.
    CnaHalting = "cna-halting", NEAR_HALTING_STEP, rules::CNA_HALTING,
    Exclusive<QueuedLock<Word<M>, Halt, Numa, NoPending>>, tunings::KICK_AHEAD_TWO_LOOKS
);
family!(
    /// The same with a secondary queue that is flushed at once.
    CnaHaltingFlush = "cna-halting-flush", NEAR_HALTING_STEP, rules::CNA_HALTING,
    Exclusive<QueuedLock<Word<M>, Halt, Numa, NoPending>>, tunings::FLUSH_HALTING
);

family!(
    /// The default mutex.
    Mutex = "mutex", SLEEPING, rules::MUTEX, Exclusive<DefaultLock<Word<M>>>, tunings::MUTEX
);
family!(
    /// The same where nobody looks before it sleeps.
    MutexSleepy = "mutex-sleepy", SLEEPING_STEP, rules::MUTEX, Exclusive<DefaultLock<Word<M>>>,
    tunings::MUTEX_SLEEPY
);
family!(
    /// The same after short turns only: who takes the lock takes everybody's marks away.
    MutexShort = "mutex-short", SLEEPING_STEP, rules::MUTEX, Exclusive<DefaultLock<Word<M>>>,
    tunings::MUTEX_SHORT
);
family!(
    /// The same without a heavy barrier.
    MutexFenced = "mutex-fenced", SLEEPING_FENCED, rules::MUTEX, Exclusive<DefaultLock<Word<M>>>,
    tunings::MUTEX
);
family!(
    /// The same with fair releases only.
    MutexFair = "mutex-fair", SLEEPING_STEP, rules::MUTEX, Exclusive<Fair<Word<M>>>, tunings::MUTEX
);

/// What sleeps beside the default mutex.
macro_rules! beside {
    ($family:ident = $name:literal, $traits:expr, $lock:ty, $tuning:ident) => {
        family!(
            /// Beside the default mutex.
            $family = $name, $traits, rules::ANYTHING, $lock, tunings::$tuning
        );
    };
}

beside!(DefaultRw = "rwlock", BESIDE_READERS_INTERRUPTED, Shared<DefaultRwLock<Word<M>>>, MUTEX);
beside!(
    DefaultRwSleepy = "rwlock-sleepy",
    BESIDE_READERS_INTERRUPTED,
    Shared<DefaultRwLock<Word<M>>>,
    MUTEX_SLEEPY
);
beside!(
    DefaultRwUpgraded = "rwlock-upgraded",
    BESIDE_UPGRADED,
    Shared<Upgraded<Word<M>>>,
    MUTEX_SLEEPY
);
beside!(
    DefaultRwPlainGate = "rwlock-plain-gate",
    BESIDE_READERS,
    Shared<DefaultRwLock<Word<M>, PlainGate<Word<M>>>>,
    MUTEX_SLEEPY
);
beside!(
    NotifyOne = "condvar-one",
    BESIDE,
    Exclusive<Monitor<Word<M>, Address<M>, ONE>>,
    MUTEX_SLEEPY
);
beside!(
    NotifyAll = "condvar-all",
    BESIDE,
    Exclusive<Monitor<Word<M>, Address<M>, ALL>>,
    MUTEX_SLEEPY
);
beside!(Once = "once", BESIDE, Exclusive<Undone<Word<M>>>, MUTEX_SLEEPY);

/// The strict halting lock with steps of the series on or off.
macro_rules! step {
    ($family:ident = $name:literal, $tuning:expr) => {
        family!(
            /// A step.
            $family = $name, STEP, rules::HALTING, Exclusive<ParavirtQueuedLock<Word<M>>>, $tuning
        );
    };
}

step!(BeforeTheSeries = "paravirt-queued-before-the-series", tunings::BEFORE_THE_SERIES);
step!(ConditionalKick = "paravirt-queued-conditional-kick", tunings::CONDITIONAL_KICK);
step!(
    ConditionalKickDeferred = "paravirt-queued-conditional-kick-deferred",
    tunings::CONDITIONAL_KICK_DEFERRED
);
step!(NoPendingWaiter = "paravirt-queued-no-pending", tunings::NO_PENDING);
step!(KickAhead = "paravirt-queued-kick-ahead", tunings::KICK_AHEAD);
step!(DeferNever = "paravirt-queued-defer-never", tunings::DEFER_NEVER);
step!(DeferConditions = "paravirt-queued-defer-conditions", tunings::DEFER_CONDITIONS);
step!(AdaptiveHistory = "paravirt-queued-adaptive-history", tunings::ADAPTIVE_HISTORY);
step!(
    AdaptiveHistoryKickAhead = "paravirt-queued-adaptive-history-kick-ahead",
    tunings::ADAPTIVE_HISTORY_KICK_AHEAD
);
step!(AdaptiveNeighbour = "paravirt-queued-adaptive-neighbour", tunings::ADAPTIVE_NEIGHBOUR);
step!(HeedPreempted = "paravirt-queued-heed-preempted", tunings::HEED_PREEMPTED);

/// Admission without the pending bit: whoever does not find the lock free queues at once. It
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
        Of::<Paravirt>::VALUE,
        Of::<ParavirtStealing>::VALUE,
        Of::<ParavirtQueued>::VALUE,
        Of::<ParavirtTicket>::VALUE,
        Of::<Cna>::VALUE,
        Of::<CnaParavirt>::VALUE,
        Of::<Mutex>::VALUE,
    ]
}

/// The locks, and variants of them that only the checkers have.
#[must_use]
pub fn variants() -> Vec<&'static dyn Subject> {
    let mut all = locks();
    all.extend([
        Of::<NativeQueue>::VALUE,
        Of::<CnaQueue>::VALUE,
        Of::<CnaFlush>::VALUE,
        Of::<CnaFlushLater>::VALUE,
        Of::<CnaHalting>::VALUE,
        Of::<CnaHaltingFlush>::VALUE,
        Of::<Resigned>::VALUE,
        Of::<BeforeTheSeries>::VALUE,
        Of::<ConditionalKick>::VALUE,
        Of::<ConditionalKickDeferred>::VALUE,
        Of::<NoPendingWaiter>::VALUE,
        Of::<KickAhead>::VALUE,
        Of::<DeferNever>::VALUE,
        Of::<DeferConditions>::VALUE,
        Of::<AdaptiveHistory>::VALUE,
        Of::<AdaptiveHistoryKickAhead>::VALUE,
        Of::<AdaptiveNeighbour>::VALUE,
        Of::<HeedPreempted>::VALUE,
        Of::<MutexSleepy>::VALUE,
        Of::<MutexShort>::VALUE,
        Of::<MutexFenced>::VALUE,
        Of::<MutexFair>::VALUE,
        Of::<DefaultRw>::VALUE,
        Of::<DefaultRwSleepy>::VALUE,
        Of::<DefaultRwUpgraded>::VALUE,
        Of::<DefaultRwPlainGate>::VALUE,
        Of::<NotifyOne>::VALUE,
        Of::<NotifyAll>::VALUE,
        Of::<Once>::VALUE,
    ]);
    all
}

/// The lock of this name, planted bugs included.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static dyn Subject> {
    let planted = crate::planted::all().into_iter().map(|bug| bug.subject);
    variants().into_iter().chain(planted).find(|subject| subject.name() == name)
}
