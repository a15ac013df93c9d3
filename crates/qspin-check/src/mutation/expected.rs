//! What each weakening must die of, and which ones live.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use qspin_core::site::Site;

use crate::failure::Kind;
use crate::weakening::Weakening;

/// What is expected of a weakening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// A counterexample of this kind.
    Dies(Kind),
    /// None, for this reason.
    Survives(&'static str),
}

/// What is expected of a weakening; `None` if it is not decided yet.
#[must_use]
pub fn expectation(weakening: Weakening) -> Option<Expectation> {
    let Weakening { site, to } = weakening;
    TABLE.iter().find(|(_, order, sites)| *order == to && sites.contains(&site)).map(|row| row.0)
}

/// Every weakening in the table.
pub fn all() -> impl Iterator<Item = Weakening> {
    TABLE.iter().flat_map(|&(_, to, sites)| sites.iter().map(move |&site| Weakening { site, to }))
}

use Expectation::{Dies, Survives};
use Kind::{Count, DataRace, Deadlock, Hash, Kick, LostWakeup, NodeLife, State};

/// Fences that are there twice.
const UNLOCK_FENCE: &str = "equivalent as long as a thread that joins the sleepers unlocks their bucket with a full \
    fence after it: sleep.unlock-fence, which dies.";
/// What is passed on by fences.
const BARRIER_FENCES: &str = "equivalent: a thread that settles a hint has passed a full fence before, since the heavy \
    barrier is one for its caller, too; and a thread that sees it settled passes one afterwards \
    (sleep.unlock-fence). What happened before the first happens before what follows the second.";
/// The owner of a bucket, which sees the request of a release.
const RESCAN_TAKE: &str = "equivalent: a full fence follows before the sleepers are woken (sleep.unlock-fence, where a \
    rescan ends), which acquires what the swap has read; a waiter that joins before that fence reads the swap's 0 when \
    it unlocks the bucket, and passes sleep.fence or the heavy barrier.";

macro_rules! expected {
    ($($what:ident($of:ident) at $order:ident: $($site:ident)*;)*) => {
        &[$(($what($of), $order, &[$(Site::$site),*])),*]
    };
}

/// What each site is expected to come to with such an ordering.
const TABLE: &[(Expectation, Ordering, &[Site])] = expected! {
    Dies(DataRace) at Relaxed:
        QueueTry QueueSecondTry QueueRelease QueuePendingTake QueueHeadTake QueueNoNodeTake StealTake
        CulledTake BackoffTake BackoffRelease TicketDraw TicketTurn TicketTry TicketServe SimpleTake
        SimpleRelease YieldTake YieldRelease McsTry McsTurn McsHandOver McsRelease RwReadTry RwReadTurn
        RwReadRelease RwWriteTry RwWriteTake RwWriteRelease RwTakeShared RwTakeExclusive RwUpgrade
        RwLeaveShared RwLeaveExclusive OnceLook OnceBegin OnceEnd MutexTry MutexTake MutexStore MutexRelease
        // Only with a gate without fences: the fence in the release of the default mutex acquires, too.
        RwGateTake;
    Dies(NodeLife) at Acquire: QueueTail McsTail;
    Dies(NodeLife) at Release: QueueTail;
    // Its holder has written before it leaves.
    Dies(DataRace) at Release: McsTail;
    Dies(NodeLife) at Relaxed:
        QueueLink QueueNext HaltAheadNext NumaNext McsLink McsNext McsSuccessor;
    // Only where the head passes on more than its place, the secondary queue of the NUMA-aware order: with an old link
    // of it a waiter that has gone is left as the tail.
    Dies(State) at Relaxed: QueueHandOver QueueTurn;
    Dies(Hash) at Relaxed: HaltHashed;
    // A head that arranges: with an old word it moves a waiter while the owner follows the links. One that halts passes a
    // full fence, which acquires the same.
    Dies(Kick) at Relaxed: HaltClaimed;
    // Of sleepers, when all of them are gone; a wake-up is lost as well.
    Dies(Count) at Relaxed: SleepBucketLock SleepBucketUnlock;
    Dies(Deadlock) at Relaxed:
        // The link of the next waiter may come before the zero that it should overwrite.
        McsLeave;
    Dies(LostWakeup) at AcqRel:
        HaltWaiterFence HaltHandOverFence HaltKickFence HaltSleepFence SleepLight SleepHeavy SleepReleaseFence
        SleepRescanFence SleepUnlockFence;
    Dies(LostWakeup) at Relaxed:
        HaltSleeper HaltSlow HashClaim HashFree TicketHaltAsleep TicketHaltKick RwAsleep RwKick SleepWake
        // Seen before the release, it lets the bucket's owner wake a waiter that polls the word as it was and sleeps again.
        SleepRescanMark
        // A waiter with a deadline, which has read that it was woken and has not consumed the kick: it may read the word
        // as it was, and leaves the count that was set for it.
        SleepWoken;
    Survives(UNLOCK_FENCE) at AcqRel: SleepFence;
    Survives(BARRIER_FENCES) at Relaxed: SleepSettle SleepSettled;
    Survives(RESCAN_TAKE) at Relaxed: SleepRescanTake;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_expected_twice() {
        let all =
            || TABLE.iter().flat_map(|(_, to, sites)| sites.iter().map(move |site| (to, site)));
        for (index, one) in all().enumerate() {
            assert_eq!(all().position(|other| other == one), Some(index), "{one:?}");
        }
    }
}
