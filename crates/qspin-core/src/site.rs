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
    /// Queued lock: a newcomer takes a lock that was freed while it looked.
    QueueSecondTry = "queue.second-try",
    /// Queued lock: the owner's release.
    QueueRelease = "queue.release",
    /// Queued lock: the pending waiter takes the lock.
    QueuePendingTake = "queue.pending-take",
    /// Queued lock: a waiter makes its node the tail.
    QueueTail = "queue.tail",
    /// Queued lock: a waiter links its node behind its predecessor's.
    QueueLink = "queue.link",
    /// Queued lock: a waiter sees that it is at the head.
    QueueTurn = "queue.turn",
    /// Queued lock: the head takes the lock.
    QueueHeadTake = "queue.head-take",
    /// Queued lock: the head looks for its successor.
    QueueNext = "queue.next",
    /// Queued lock: the head hands its place over.
    QueueHandOver = "queue.hand-over",
    /// Queued lock: a waiter without a node takes the lock.
    QueueNoNodeTake = "queue.no-node-take",
    /// Halt: full fence of a waiter between its state and its look at its turn.
    HaltWaiterFence = "halt.waiter-fence",
    /// Halt: full fence between the hand-over and the look at the new head's state.
    HaltHandOverFence = "halt.hand-over-fence",
    /// Halt: the predecessor has entered the new head in the hash.
    HaltHashed = "halt.hashed",
    /// Halt: a head that is about to halt looks whether its predecessor is entering it.
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
    /// CNA: the head looks who is linked behind it, or behind another.
    NumaNext = "numa.next",
    /// Stealing: a newcomer takes the lock past the queue.
    StealTake = "steal.take",
    /// Culled: the awake waiter takes the lock.
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
    /// Halting ticket lock: acquire of whoever serves a ticket, before it looks whom to kick.
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
    /// MCS lock: the new holder looks for its successor in its node.
    McsNext = "mcs.next",
    /// MCS lock: the new holder, last in the queue, leaves the lock itself as the tail.
    McsLeave = "mcs.leave",
    /// MCS lock: the holder looks for its successor in the lock.
    McsSuccessor = "mcs.successor",
    /// MCS lock: the holder hands the lock to its successor.
    McsHandOver = "mcs.hand-over",
    /// MCS lock: the holder, last in the queue, frees the lock.
    McsRelease = "mcs.release",
    /// Reader-writer lock: a reader's entry on the fast path, or `try_acquire_shared`.
    RwReadTry = "rw.read-try",
    /// Reader-writer lock: a queued or interrupting reader sees that no writer holds the lock.
    RwReadTurn = "rw.read-turn",
    /// Reader-writer lock: a reader leaves.
    RwReadRelease = "rw.read-release",
    /// Reader-writer lock: a writer takes a free lock.
    RwWriteTry = "rw.write-try",
    /// Reader-writer lock: the queued writer takes the lock from the last reader.
    RwWriteTake = "rw.write-take",
    /// Reader-writer lock: a writer leaves.
    RwWriteRelease = "rw.write-release",
    /// Reader-writer lock: the head marks the word as one whose head sleeps.
    RwAsleep = "rw.asleep",
    /// Reader-writer lock: the release that lets a sleeping head in looks for it.
    RwKick = "rw.kick",
    /// Mutex: acquisition of a lock without marks.
    MutexTry = "mutex.try",
    /// Mutex: a waiter, or whoever finds marks, takes the lock.
    MutexTake = "mutex.take",
    /// Mutex: release by a plain store.
    MutexStore = "mutex.store",
    /// Mutex: release by a read-modify-write.
    MutexRelease = "mutex.release",
    /// Sleepers: a bucket is locked.
    SleepBucketLock = "sleep.bucket-lock",
    /// Sleepers: a bucket is unlocked.
    SleepBucketUnlock = "sleep.bucket-unlock",
    /// Sleepers: full fence between the unlocking of a bucket and the look whether to rescan it.
    SleepUnlockFence = "sleep.unlock-fence",
    /// Sleepers: a bucket is marked to be rescanned.
    SleepRescanMark = "sleep.rescan-mark",
    /// Sleepers: that mark is taken away.
    SleepRescanTake = "sleep.rescan-take",
    /// Sleepers: full fence between the mark to rescan and the attempt to lock the bucket.
    SleepRescanFence = "sleep.rescan-fence",
    /// Sleepers: light barrier between a release by a plain store and the look at the hint.
    SleepLight = "sleep.light",
    /// Sleepers: heavy barrier between the place in the queue, or a move to another, and the last look.
    SleepHeavy = "sleep.heavy",
    /// Sleepers: full fence in its stead, once the hint is settled.
    SleepFence = "sleep.fence",
    /// Sleepers: the hint is settled.
    SleepSettle = "sleep.settle",
    /// Sleepers: a newcomer sees that it is.
    SleepSettled = "sleep.settled",
    /// Sleepers: full fence between a release and the look for sleepers.
    SleepReleaseFence = "sleep.release-fence",
    /// Sleepers: a sleeper is woken.
    SleepWake = "sleep.wake",
    /// Sleepers: it sees that it is.
    SleepWoken = "sleep.woken",
    /// Default reader-writer lock: a reader comes in.
    RwTakeShared = "rwlock.take-shared",
    /// Default reader-writer lock: a writer takes it.
    RwTakeExclusive = "rwlock.take-exclusive",
    /// Default reader-writer lock: whoever has the gate takes it.
    RwGateTake = "rwlock.gate-take",
    /// Default reader-writer lock: whoever reads upgradably becomes the writer.
    RwUpgrade = "rwlock.upgrade",
    /// Default reader-writer lock: a reader leaves.
    RwLeaveShared = "rwlock.leave-shared",
    /// Default reader-writer lock: a writer releases it.
    RwLeaveExclusive = "rwlock.leave-exclusive",
    /// Once: a look whether it was done.
    OnceLook = "once.look",
    /// Once: somebody begins to do it.
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
