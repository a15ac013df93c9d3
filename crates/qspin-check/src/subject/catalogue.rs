//! Every lock that is checked: those of the register, and variants that open more of their paths.

use qspin_core::events::Event::{
    CnaFlush, CnaPrioritised, HashCount, KickAheadCount, LockKickCount, LockNoNode, LockUseNode2,
    LockUseNode3, LockUseNode4, PendingFailCount, PendingLockCount, PvLockStealing, SleepRequeue,
    WaitEarlyCount,
};
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::locks::queued::QueuedLock;
use qspin_core::locks::rwlock::DefaultRwLock;
use qspin_core::locks::{Id, LOCKS};
use qspin_core::order::{Fifo, Numa};
use qspin_core::waiting::{Halt, Spin};

use super::Goal::{Counts, Never, Passes, Reaches};
use super::beside::{ALL, Fair, Monitor, Notified, ONE, PlainGate, TwoMutexes, Undone};
use super::convert::{
    Converted, DOWNGRADES, DOWNGRADES_TWICE, FAIRLY, FAIRLY_UPGRADABLE, UPGRADES,
    UPGRADES_AND_DOWNGRADES, UPGRADES_FAIRLY, Upgradable,
};
use super::timed::{Done, Latch, Timed, TimedLatch, TimedRw};
use super::{NoPending, Runs, Source, Subject, rules, runs, tunings};
use crate::contend::{Exclusive, Shared};
use crate::model::{Buckets, Model, Traits};
use crate::platform::Address;
use crate::trace::Reached::{
    ClaimedArranged, FartherStay, FlushedInFront, HaltedAside, HeirReads, KickedAheadPast,
    TailRaceLost, TailReplaced,
};
use crate::word::Word;

/// How the types of the register are run, in its order.
macro_rules! all_runs {
    (() $($group:ident { $($id:ident: $module:ident = $lock:path, $about:literal;)* })*) => {
        [$($({
            use $lock as Lock;
            all_runs!($group Lock)
        },)*)*]
    };
    (sleeping $lock:ident) => { runs!(Exclusive<$lock<Word<M>>>) };
    (spinning $lock:ident) => { runs!(Exclusive<$lock<Word<M>>>) };
    ($shared:ident $lock:ident) => { runs!(Shared<$lock<Word<M>>>) };
}

const RUNS: [Runs; LOCKS.len()] = qspin_core::for_each_lock!(all_runs);

/// A lock of the register.
#[must_use]
pub fn of(id: Id) -> Subject {
    let lock = id.lock();
    let (traits, rules, tuning) = (Traits::of(lock), rules::of(lock), tunings::of(lock));
    Subject {
        name: lock.name,
        id,
        model: Model { traits, rules, tuning },
        source: Source::Register(lock.reads),
        goals: [&[]; 3],
        runs: RUNS[id as usize],
    }
}

/// The locks of the register; those that sleep beside their word last, whose batteries are the longest.
#[must_use]
pub fn locks() -> Vec<Subject> {
    let mut locks: Vec<_> = LOCKS.iter().map(|lock| of(lock.id)).collect();
    locks.sort_by_key(|lock| lock.traits().sleeps);
    locks
}

/// The locks, and variants of them that only the checkers have.
#[must_use]
pub fn variants() -> Vec<Subject> {
    [locks(), of_native(), of_numa(), of_halting(), of_mutex(), of_rwlock(), beside()].concat()
}

fn of_native() -> Vec<Subject> {
    // An admission that always queues.
    vec![
        of(Id::Native)
            .variant("native-no-pending")
            .made(runs!(Exclusive<QueuedLock<Word<M>, Spin, Fifo, NoPending>>))
            .must(&[Counts(LockUseNode2), Counts(LockUseNode4), Counts(LockNoNode)])
            .must_each(&[], &[Counts(LockUseNode3)]),
    ]
}

/// An admission that always queues takes one context less to fill a queue. What bounds how often a waiter is passed
/// are the places of a scenario and the threshold: flushed at once it is 1 with two places and 2 with three, flushed
/// after two sections 3 and 6.
fn of_numa() -> Vec<Subject> {
    let spinning = |name| {
        of(Id::Cna).step(name).made(runs!(Exclusive<QueuedLock<Word<M>, Spin, Numa, NoPending>>))
    };
    let halting = |name| {
        let strict = runs!(Exclusive<QueuedLock<Word<M>, Halt, Numa, NoPending>>);
        of(Id::CnaParavirt).step(name).made(strict).ruled(rules::CNA_HALTING)
    };
    vec![
        spinning("cna-no-pending")
            .must(&[
                Counts(CnaPrioritised),
                Reaches(TailReplaced),
                Reaches(TailRaceLost),
                Passes(2),
            ])
            .must_each(&[], &[Reaches(FartherStay), Passes(4)]),
        // A secondary queue that is flushed at once.
        spinning("cna-flush")
            .tuned(tunings::FLUSH)
            .must(&[
                Counts(CnaFlush),
                Counts(CnaPrioritised),
                Reaches(TailReplaced),
                Reaches(TailRaceLost),
                Reaches(FlushedInFront),
                Passes(1),
            ])
            .must_each(&[], &[Passes(2)]),
        // One that is flushed after two sections.
        spinning("cna-flush-later")
            .tuned(tunings::FLUSH_LATER)
            .must(&[Counts(CnaPrioritised), Reaches(TailReplaced), Passes(2)])
            .must_each(
                &[Reaches(TailRaceLost)],
                &[Counts(CnaFlush), Reaches(FlushedInFront), Reaches(FartherStay), Passes(3)],
            ),
        // The strict one, whose queue is full sooner, with kicks ahead.
        halting("cna-halting")
            .tuned(tunings::KICK_AHEAD_TWO_POLLS)
            .must(&[
                Counts(KickAheadCount),
                Reaches(TailReplaced),
                Reaches(HaltedAside),
                Reaches(ClaimedArranged),
                Reaches(KickedAheadPast),
                Passes(1),
            ])
            .must_each(&[], &[Reaches(TailRaceLost), Reaches(FartherStay), Passes(4)]),
        // The same with a secondary queue that is flushed at once.
        halting("cna-halting-flush").tuned(tunings::FLUSH_HALTING).must(&[
            Counts(KickAheadCount),
            Counts(CnaFlush),
            Reaches(TailReplaced),
            Reaches(FlushedInFront),
            Reaches(HaltedAside),
            Reaches(KickedAheadPast),
            Passes(1),
        ]),
    ]
}

/// Culled waiters that give up at once, and the strict lock with steps of the series on or off. With every kick
/// deferred, a kick at the hand-over means that the table of halted waiters was full.
fn of_halting() -> Vec<Subject> {
    let strict = |name, tuning| of(Id::ParavirtQueued).step(name).tuned(tuning);
    let brief = Traits { brief: true, ..of(Id::ParavirtQueued).step("").traits() };
    // It takes a waiter with a past, behind one that halts in the queue.
    let early = &[Counts(WaitEarlyCount)];
    vec![
        of(Id::Paravirt).step("paravirt-resigned").tuned(tunings::RESIGNED).must(&[
            Counts(PendingFailCount),
            Counts(PvLockStealing),
            Never(LockKickCount),
        ]),
        // What the steps of document 000 come to together, and with admissions that are not its own.
        of(Id::Paravirt).step("paravirt-kick-ahead").tuned(tunings::CULLED_KICK_AHEAD),
        of(Id::Paravirt).step("paravirt-conditional-kick").tuned(tunings::CULLED_CONDITIONAL_KICK),
        of(Id::ParavirtStealing)
            .step("paravirt-stealing-kick-ahead")
            .tuned(tunings::STEALING_KICK_AHEAD),
        strict("paravirt-queued-conditional-kick-ahead", tunings::CONDITIONAL_KICK_AHEAD)
            .must(&[Counts(KickAheadCount), Never(LockKickCount)]),
        // With no room in the table of halted waiters: a head does not halt, and is kicked at once.
        strict("paravirt-queued-no-room", tunings::NO_PENDING)
            .with(Traits { no_room: true, ..brief })
            .must(&[Counts(LockKickCount), Never(HashCount)]),
        strict("paravirt-queued-before-the-series", tunings::BEFORE_THE_SERIES)
            .must(&[Counts(LockKickCount), Never(PendingLockCount)]),
        strict("paravirt-queued-conditional-kick", tunings::CONDITIONAL_KICK)
            .must(&[Counts(LockKickCount), Counts(PendingFailCount)]),
        strict("paravirt-queued-conditional-kick-deferred", tunings::CONDITIONAL_KICK_DEFERRED)
            .must(&[Counts(PendingFailCount), Never(LockKickCount)]),
        strict("paravirt-queued-no-pending", tunings::NO_PENDING)
            .with(brief)
            .must(&[Never(PendingLockCount), Never(LockKickCount)]),
        strict("paravirt-queued-kick-ahead", tunings::KICK_AHEAD)
            .must(&[Counts(KickAheadCount), Never(LockKickCount)]),
        strict("paravirt-queued-defer-never", tunings::DEFER_NEVER)
            .must(&[Counts(KickAheadCount), Counts(LockKickCount)]),
        strict("paravirt-queued-defer-conditions", tunings::DEFER_CONDITIONS)
            .must(&[Counts(KickAheadCount), Counts(LockKickCount)]),
        strict("paravirt-queued-adaptive-history", tunings::ADAPTIVE_HISTORY)
            .must(&[Never(LockKickCount)])
            .must_each(&[], early),
        strict("paravirt-queued-adaptive-history-kick-ahead", tunings::ADAPTIVE_HISTORY_KICK_AHEAD)
            .must_each(&[Never(LockKickCount)], early),
        strict("paravirt-queued-adaptive-neighbour", tunings::ADAPTIVE_NEIGHBOUR)
            .must(&[Never(LockKickCount)])
            .must_each(&[], early),
        strict("paravirt-queued-adaptive-periodic", tunings::ADAPTIVE_PERIODIC)
            .must(&[Never(LockKickCount)])
            .must_each(&[], early),
        strict("paravirt-queued-queue-yields", tunings::QUEUE_YIELDS)
            .must(&[Never(PendingLockCount), Never(LockKickCount)]),
        strict("paravirt-queued-heed-preempted", tunings::HEED_PREEMPTED)
            .must(&[Counts(WaitEarlyCount), Never(LockKickCount)]),
        // A head of readers and writers that is the heir at once.
        of(Id::ParavirtRw).step("paravirt-rw-heir").tuned(tunings::HEIR).ruled(rules::RW_HEIR),
        // With no room in the table a head does not halt. One that is not the heir would come and go for ever.
        of(Id::ParavirtRw)
            .step("paravirt-rw-no-room")
            .tuned(tunings::HEIR)
            .ruled(rules::RW_HEIR)
            .with(Traits { no_room: true, ..of(Id::ParavirtRw).step("").traits() })
            .must(&[Never(HashCount)]),
    ]
}

/// With deadlines.
fn timed(traits: Traits) -> Traits {
    Traits { timed: true, ..traits }
}

fn of_mutex() -> Vec<Subject> {
    let step = |name| of(Id::Mutex).step(name);
    let fenced = Traits { asymmetric: false, ..step("").traits() };
    vec![
        // No waiter polls before it sleeps.
        step("mutex-sleepy")
            .tuned(tunings::MUTEX_SLEEPY)
            .with(Traits { brief: true, ..step("").traits() }),
        // After short turns only: a waiter that acquires the lock clears all state bits.
        step("mutex-short").tuned(tunings::MUTEX_SHORT),
        // Without a heavy barrier.
        step("mutex-fenced").with(fenced),
        // The same where no waiter polls before it sleeps.
        step("mutex-fenced-sleepy")
            .tuned(tunings::MUTEX_SLEEPY)
            .with(Traits { brief: true, ..fenced }),
        // With a heavy barrier that is obtained while others sleep.
        step("mutex-late-barrier")
            .tuned(tunings::MUTEX_SLEEPY)
            .with(Traits { late: true, ..step("").traits() }),
        // With two looks before it sleeps.
        step("mutex-two-polls").tuned(tunings::MUTEX_TWO_POLLS),
        // With deadlines: of waiters that sleep at once, and of those that have marked the word before.
        step("mutex-timed")
            .tuned(tunings::MUTEX_SLEEPY)
            .made(runs!(Timed<DefaultLock<Word<M>>>))
            .with(Traits { brief: true, ..timed(step("").traits()) }),
        step("mutex-timed-awake")
            .made(runs!(Timed<DefaultLock<Word<M>>>))
            .with(timed(step("").traits())),
        // The same without a heavy barrier.
        step("mutex-fenced-timed").made(runs!(Timed<DefaultLock<Word<M>>>)).with(timed(fenced)),
        // With state bits of another process. Its hint is never quiet, so that they are set where no waiter sleeps yet.
        step("mutex-inherited")
            .ruled(rules::ANYTHING)
            .made(runs!(Timed<DefaultLock<Word<M>>>))
            .with(Traits { inherited: true, ..fenced }),
        // Waiters come from a condition variable that is not this crate's. Each first looks at a word of which it may see
        // what is past, so four of them are too many.
        step("mutex-notified")
            .tuned(tunings::MUTEX_SLEEPY)
            .made(runs!(Notified<Word<M>>))
            .with(Traits { crowded: true, ..step("").traits() }),
        // With fair releases only.
        step("mutex-fair")
            .made(runs!(Fair<DefaultLock<Word<M>>>))
            .with(Traits { long: true, ..step("").traits() }),
    ]
}

/// The default reader-writer lock, in all its turns.
fn of_rwlock() -> Vec<Subject> {
    let step = |name| of(Id::Rwlock).step(name).tuned(tunings::MUTEX_SLEEPY);
    let alone = Traits { interrupted: false, ..step("").traits() };
    let reads_on = Traits { reads_on: true, ..alone };
    let long = Traits { long: true, ..alone };
    let rw = |name| step(name).with(alone).ruled(rules::RWLOCK_ALONE);
    vec![
        step("rwlock-sleepy"),
        // Writers read upgradably before.
        rw("rwlock-upgraded").made(runs!(Converted<Word<M>, UPGRADES>)).with(long),
        // All read upgradably, one at a time.
        rw("rwlock-upgradable")
            .made(runs!(Exclusive<Upgradable<Word<M>>>))
            .with(Traits { shared: false, ..alone }),
        // Writers read on after they have written.
        rw("rwlock-downgraded").made(runs!(Converted<Word<M>, DOWNGRADES>)).with(reads_on),
        rw("rwlock-downgraded-twice")
            .made(runs!(Converted<Word<M>, DOWNGRADES_TWICE>))
            .with(reads_on),
        // A reader that starves goes through the gate, while others sleep beside the word.
        rw("rwlock-starving").tuned(tunings::MUTEX_STARVING).must_each(&[], &[Reaches(HeirReads)]),
        rw("rwlock-fair").made(runs!(Converted<Word<M>, FAIRLY>)),
        // All of it: from upgradable to writing and back, and left fairly, or read on.
        rw("rwlock-upgraded-fair")
            .made(runs!(Converted<Word<M>, UPGRADES_FAIRLY>))
            .with(Traits { reads_on: true, ..long }),
        rw("rwlock-upgraded-downgraded")
            .made(runs!(Converted<Word<M>, UPGRADES_AND_DOWNGRADES>))
            .with(Traits { longer: true, reads_on: true, ..long }),
        rw("rwlock-fair-upgradable")
            .made(runs!(Converted<Word<M>, FAIRLY_UPGRADABLE>))
            .with(reads_on),
        rw("rwlock-plain-gate").made(runs!(Shared<DefaultRwLock<Word<M>, PlainGate<Word<M>>>>)),
        // With deadlines.
        rw("rwlock-timed").made(runs!(TimedRw<Word<M>, false>)).with(timed(alone)),
        // Conversions in the scenarios themselves; a waiter that goes through the gate does so at once.
        rw("rwlock-converting")
            .tuned(tunings::MUTEX_STARVING_AT_ONCE)
            .made(runs!(TimedRw<Word<M>, false>))
            .with(Traits { converts: true, ..timed(alone) }),
        rw("rwlock-upgradable-timed")
            .made(runs!(Timed<Upgradable<Word<M>>>))
            .with(timed(Traits { shared: false, ..alone })),
        rw("rwlock-upgraded-timed").made(runs!(TimedRw<Word<M>, true>)).with(timed(long)),
    ]
}

/// What sleeps beside the default mutex, and shares its pieces.
fn beside() -> Vec<Subject> {
    let step = |name| of(Id::Rwlock).step(name).tuned(tunings::MUTEX_SLEEPY);
    let excludes = Traits { shared: false, interrupted: false, ..step("").traits() };
    // A monitor acquires its mutex twice.
    let monitor = Traits { long: true, freed: false, ..excludes };
    let opened = Traits { latch: true, ..excludes };
    let of_mutex = |name| step(name).with(monitor).ruled(rules::WITH_MUTEX);
    let of_word = |name| step(name).with(excludes).ruled(rules::ANYTHING);
    let all = runs!(Exclusive<Monitor<Word<M>, Address<M>, ALL>>);
    let latch = runs!(Shared<Latch<Word<M>, Address<M>>>);
    vec![
        of_mutex("condvar-one").made(runs!(Exclusive<Monitor<Word<M>, Address<M>, ONE>>)),
        of_mutex("condvar-all").made(all),
        of_mutex("condvar-two-mutexes").made(runs!(Exclusive<TwoMutexes<Word<M>, Address<M>>>)),
        of_word("once")
            .made(runs!(Exclusive<Undone<Word<M>>>))
            .with(Traits { wakes_all: true, ..excludes }),
        // Done once and for all.
        of_word("once-done").made(runs!(Shared<Done<Word<M>>>)).with(opened),
        // With deadlines.
        of_mutex("condvar-timed")
            .made(runs!(Timed<Monitor<Word<M>, Address<M>, ONE>>))
            .with(timed(monitor)),
        of_mutex("condvar-timed-all")
            .made(runs!(Timed<Monitor<Word<M>, Address<M>, ALL>>))
            .with(Traits { buckets: Buckets::Two, ..timed(monitor) }),
        // A condition and its mutex in two buckets, in both orders.
        of_mutex("condvar-two-buckets").made(all).with(Traits { buckets: Buckets::Two, ..monitor }),
        of_mutex("condvar-swapped-buckets")
            .made(all)
            .with(Traits { buckets: Buckets::Swapped, ..monitor }),
        // Opened once, for all: there is no later notification.
        of_mutex("latch").made(latch).with(opened).must(&[Counts(SleepRequeue)]),
        of_mutex("latch-two-buckets")
            .made(latch)
            .with(Traits { buckets: Buckets::Two, ..opened })
            .must(&[Counts(SleepRequeue)]),
        of_mutex("latch-swapped-buckets")
            .made(latch)
            .with(Traits { buckets: Buckets::Swapped, ..opened })
            .must(&[Counts(SleepRequeue)]),
        // With deadlines.
        of_mutex("latch-timed")
            .made(runs!(TimedLatch<Word<M>, Address<M>>))
            .with(Traits { buckets: Buckets::Two, ..timed(opened) })
            .must(&[Counts(SleepRequeue)]),
    ]
}

/// The lock of this name, or the variant.
#[must_use]
pub fn lookup(name: &str) -> Option<Subject> {
    let known = Id::named(name).map(of);
    known.or_else(|| variants().into_iter().find(|subject| subject.name == name))
}
