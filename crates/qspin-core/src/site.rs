//! Every memory ordering that a lock relies on, by name.
//!
//! A lock writes `p.ordering(Site::QueueLink, Release)`. Natively that is `Release`; a checker
//! answers with something weaker at one site and must then find a counterexample. What each
//! site pairs with stands beside its use (`// ORDERING:`).

macro_rules! sites {
    ($($(#[$doc:meta])* $site:ident = $name:literal,)*) => {
        /// A named place in a lock at which a memory ordering matters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Site {
            $($(#[$doc])* $site,)*
        }

        impl Site {
            /// Every site.
            pub const ALL: &'static [Site] = &[$(Site::$site,)*];

            /// The name under which it is shown.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Site::$site => $name,)*
                }
            }
        }
    };
}

sites! {
    /// Queued lock: the fast path's compare-exchange.
    QueueTry = "queue.try",
    /// Queued lock: a newcomer acquires a lock that was released while it polled.
    QueueSecondTry = "queue.second-try",
    /// Queued lock: the owner's release.
    QueueRelease = "queue.release",
    /// Queued lock: the pending waiter acquires the lock.
    QueuePendingTake = "queue.pending-take",
    /// Queued lock: a waiter makes its node the tail.
    QueueTail = "queue.tail",
    /// Queued lock: a waiter links its node behind its predecessor's.
    QueueLink = "queue.link",
    /// Queued lock: a waiter sees that it is at the head.
    QueueTurn = "queue.turn",
    /// Queued lock: the head acquires the lock.
    QueueHeadTake = "queue.head-take",
    /// Queued lock: the head reads its successor.
    QueueNext = "queue.next",
    /// Queued lock: the head hands the headship over.
    QueueHandOver = "queue.hand-over",
    /// Queued lock: a waiter without a node acquires the lock.
    QueueNoNodeTake = "queue.no-node-take",
    /// Halt: full fence of a waiter between storing its state and reading whether it has its turn.
    HaltWaiterFence = "halt.waiter-fence",
    /// Halt: full fence between the hand-over and reading the new head's state.
    HaltHandOverFence = "halt.hand-over-fence",
    /// Halt: the predecessor has entered the new head in the hash.
    HaltHashed = "halt.hashed",
    /// Halt: a head that is about to halt checks whether its predecessor is entering it.
    HaltClaimed = "halt.claimed",
    /// Halt: the halting head publishes its entry in the hash.
    HaltSleeper = "halt.sleeper",
    /// Halt: acquire of the owner after its compare-exchange has failed.
    HaltSlow = "halt.slow",
    /// Halt: full fence of the owner before a conditional kick.
    HaltKickFence = "halt.kick-fence",
    /// Halt: full fence of the head whose kick is conditional.
    HaltSleepFence = "halt.sleep-fence",
    /// Halt: the owner follows the queue to kick ahead.
    HaltAheadNext = "halt.ahead-next",
    /// Hash: an entry is claimed.
    HashClaim = "hash.claim",
    /// Hash: an entry is freed.
    HashFree = "hash.free",
    /// CNA: the head reads which waiter is linked behind it, or behind another.
    NumaNext = "numa.next",
    /// Stealing: a newcomer acquires the lock past the queue.
    StealTake = "steal.take",
    /// Culled: the awake waiter acquires the lock.
    CulledTake = "culled.take",
    /// Backoff and test-and-set lock: acquisition.
    BackoffTake = "backoff.take",
    /// Backoff and test-and-set lock: release.
    BackoffRelease = "backoff.release",
    /// Ticket lock: a ticket is drawn, and may be served at once.
    TicketDraw = "ticket.draw",
    /// Ticket lock: the owner of a ticket sees its turn.
    TicketTurn = "ticket.turn",
    /// Ticket lock: acquisition without waiting.
    TicketTry = "ticket.try",
    /// Ticket lock: the next ticket is served.
    TicketServe = "ticket.serve",
    /// Halting ticket lock: a waiter publishes its entry in the hash.
    TicketHaltAsleep = "ticket-halt.asleep",
    /// Halting ticket lock: acquire of the release, before it searches for the waiter to kick.
    TicketHaltKick = "ticket-halt.kick",
    /// Simple lock: acquisition.
    SimpleTake = "simple.take",
    /// Simple lock: release.
    SimpleRelease = "simple.release",
    /// Yielding lock: acquisition.
    YieldTake = "yield.take",
    /// Yielding lock: release.
    YieldRelease = "yield.release",
    /// MCS lock: acquisition of a free lock.
    McsTry = "mcs.try",
    /// MCS lock: a waiter makes its node the tail.
    McsTail = "mcs.tail",
    /// MCS lock: a waiter links its node behind its predecessor's, or behind the lock.
    McsLink = "mcs.link",
    /// MCS lock: a waiter sees that it holds the lock.
    McsTurn = "mcs.turn",
    /// MCS lock: the new owner reads its successor from its node.
    McsNext = "mcs.next",
    /// MCS lock: the new owner, last in the queue, leaves the lock itself as the tail.
    McsLeave = "mcs.leave",
    /// MCS lock: the owner reads its successor from the lock.
    McsSuccessor = "mcs.successor",
    /// MCS lock: the owner hands the lock off to its successor.
    McsHandOver = "mcs.hand-over",
    /// MCS lock: the owner, last in the queue, frees the lock.
    McsRelease = "mcs.release",
    /// Reader-writer lock: a reader's entry on the fast path, or `try_acquire_shared`.
    RwReadTry = "rw.read-try",
    /// Reader-writer lock: a queued or interrupting reader sees that no writer holds the lock.
    RwReadTurn = "rw.read-turn",
    /// Reader-writer lock: a reader leaves.
    RwReadRelease = "rw.read-release",
    /// Reader-writer lock: a writer acquires a free lock.
    RwWriteTry = "rw.write-try",
    /// Reader-writer lock: the queued writer acquires the lock from the last reader.
    RwWriteTake = "rw.write-take",
    /// Reader-writer lock: a writer leaves.
    RwWriteRelease = "rw.write-release",
    /// Reader-writer lock: the head sets in the word that it sleeps.
    RwAsleep = "rw.asleep",
    /// Reader-writer lock: the release that admits a sleeping head searches for it.
    RwKick = "rw.kick",
    /// Mutex: acquisition of a lock without state bits.
    MutexTry = "mutex.try",
    /// Mutex: a waiter, or a newcomer that finds state bits, acquires the lock.
    MutexTake = "mutex.take",
    /// Mutex: release by a plain store.
    MutexStore = "mutex.store",
    /// Mutex: release by a read-modify-write.
    MutexRelease = "mutex.release",
    /// Sleepers: a bucket is locked.
    SleepBucketLock = "sleep.bucket-lock",
    /// Sleepers: a bucket is unlocked.
    SleepBucketUnlock = "sleep.bucket-unlock",
    /// Sleepers: full fence between unlocking a bucket and reading whether to rescan it.
    SleepUnlockFence = "sleep.unlock-fence",
    /// Sleepers: a rescan of a bucket is requested.
    SleepRescanMark = "sleep.rescan-mark",
    /// Sleepers: that request is cleared.
    SleepRescanTake = "sleep.rescan-take",
    /// Sleepers: full fence between the request for a rescan and the attempt to lock the bucket.
    SleepRescanFence = "sleep.rescan-fence",
    /// Sleepers: light barrier between a release by a plain store and reading the hint.
    SleepLight = "sleep.light",
    /// Sleepers: heavy barrier between joining the queue, or a move to another, and the last poll.
    SleepHeavy = "sleep.heavy",
    /// Sleepers: full fence instead, once the hint is settled.
    SleepFence = "sleep.fence",
    /// Sleepers: the hint is settled.
    SleepSettle = "sleep.settle",
    /// Sleepers: a new sleeper sees that it is settled.
    SleepSettled = "sleep.settled",
    /// Sleepers: full fence between a release and the search for sleepers.
    SleepReleaseFence = "sleep.release-fence",
    /// Sleepers: a sleeper is woken.
    SleepWake = "sleep.wake",
    /// Sleepers: the sleeper sees that it is woken.
    SleepWoken = "sleep.woken",
    /// Default reader-writer lock: a reader acquires it.
    RwTakeShared = "rwlock.take-shared",
    /// Default reader-writer lock: a writer acquires it.
    RwTakeExclusive = "rwlock.take-exclusive",
    /// Default reader-writer lock: the owner of the gate acquires it.
    RwGateTake = "rwlock.gate-take",
    /// Default reader-writer lock: the upgradable reader becomes the writer.
    RwUpgrade = "rwlock.upgrade",
    /// Default reader-writer lock: a reader releases it.
    RwLeaveShared = "rwlock.leave-shared",
    /// Default reader-writer lock: a writer releases it.
    RwLeaveExclusive = "rwlock.leave-exclusive",
    /// Once: reads whether it was done.
    OnceLook = "once.look",
    /// Once: a context begins to do it.
    OnceBegin = "once.begin",
    /// Once: it is done, or was left undone.
    OnceEnd = "once.end",
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Site::ALL.iter().map(|site| site.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Site::ALL.len());
    }
}
