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

/// What is expected of a weakening; `None` if nobody has thought about it yet.
#[must_use]
pub fn expectation(weakening: Weakening) -> Option<Expectation> {
    let row =
        |row: &&(Site, Ordering, Expectation)| row.0 == weakening.site && row.1 == weakening.to;
    TABLE.iter().find(row).map(|row| row.2)
}

use Expectation::{Dies, Survives};
use Kind::{DataRace, Deadlock, Hash, LostWakeup, NodeLife};

/// A full fence is an acquire fence, too.
const FENCE_FOLLOWS: &str = "equivalent as long as the full fence of halt.sleep-fence follows, \
    which acquires what the relaxed load has read. Who makes that fence depend on the conditional \
    kick needs it. A head that arranges has no such fence; with a stale look it may move somebody \
    whom the owner has just chosen to be kicked ahead, who then wakes in vain.";

/// What is done once is a lock here by failing each time.
const NEVER_DONE: &str = "not seen: in the scenarios a once fails each time, which makes it a lock; nobody \
    ever finds it done. The look pairs with once.end, whose weakening shows.";

/// What the checkers say of the asymmetric fence.
const UNLOCK_FENCES: &str = "not visible here: who joins the sleepers unlocks their bucket, with a full \
    fence after it (sleep.unlock-fence), and a heavy barrier is no more than a full fence to loom. On \
    threads it is what orders the others: there the lock hangs without it (qspin's test of the mutex). \
    The light side, and the fence of a release, die.";
/// What is read before a store, and written by others after it.
const LOADS_STAY: &str = "the kick releases and acquires as well (C4); what is left is that the waker has \
    read the next of the list before: visible under load buffering only, which loom does not have.";
/// Marks that are left to the owner of a bucket.
const RESCAN: &str = "found to matter in no execution within the bounds: the full fences of both sides, \
    and the bucket's own lock, order the same.";

#[rustfmt::skip]
const TABLE: &[(Site, Ordering, Expectation)] = &[
    (Site::QueueTry, Relaxed, Dies(DataRace)),
    (Site::QueueSecondTry, Relaxed, Dies(DataRace)),
    (Site::QueueRelease, Relaxed, Dies(DataRace)),
    (Site::QueuePendingTake, Relaxed, Dies(DataRace)),
    (Site::QueueTail, Acquire, Dies(NodeLife)),
    (Site::QueueTail, Release, Dies(NodeLife)),
    (Site::QueueLink, Relaxed, Dies(NodeLife)),
    // Only where the head passes on more than its place: the secondary queue of the NUMA-aware order.
    (Site::QueueTurn, Relaxed, Dies(NodeLife)),
    (Site::QueueHeadTake, Relaxed, Dies(DataRace)),
    (Site::QueueNext, Relaxed, Dies(NodeLife)),
    (Site::QueueHandOver, Relaxed, Dies(NodeLife)),
    (Site::QueueNoNodeTake, Relaxed, Dies(DataRace)),
    (Site::HaltWaiterFence, AcqRel, Dies(LostWakeup)),
    (Site::HaltHandOverFence, AcqRel, Dies(LostWakeup)),
    (Site::HaltHashed, Relaxed, Dies(Hash)),
    (Site::HaltClaimed, Relaxed, Survives(FENCE_FOLLOWS)),
    (Site::HaltSleeper, Relaxed, Dies(LostWakeup)),
    (Site::HaltSlow, Relaxed, Dies(LostWakeup)),
    (Site::HaltKickFence, AcqRel, Dies(LostWakeup)),
    (Site::HaltSleepFence, AcqRel, Dies(LostWakeup)),
    (Site::HaltAheadNext, Relaxed, Dies(NodeLife)),
    (Site::NumaNext, Relaxed, Dies(NodeLife)),
    (Site::HashClaim, Relaxed, Dies(LostWakeup)),
    (Site::HashFree, Relaxed, Dies(LostWakeup)),
    (Site::StealTake, Relaxed, Dies(DataRace)),
    (Site::CulledTake, Relaxed, Dies(DataRace)),
    (Site::BackoffTake, Relaxed, Dies(DataRace)),
    (Site::BackoffRelease, Relaxed, Dies(DataRace)),
    (Site::TicketDraw, Relaxed, Dies(DataRace)),
    (Site::TicketTurn, Relaxed, Dies(DataRace)),
    (Site::TicketTry, Relaxed, Dies(DataRace)),
    (Site::TicketServe, Relaxed, Dies(DataRace)),
    (Site::TicketHaltAsleep, Relaxed, Dies(LostWakeup)),
    (Site::TicketHaltKick, Relaxed, Dies(LostWakeup)),
    (Site::SimpleTake, Relaxed, Dies(DataRace)),
    (Site::SimpleRelease, Relaxed, Dies(DataRace)),
    (Site::YieldTake, Relaxed, Dies(DataRace)),
    (Site::YieldRelease, Relaxed, Dies(DataRace)),
    (Site::McsTry, Relaxed, Dies(DataRace)),
    (Site::McsTail, Acquire, Dies(NodeLife)),
    (Site::McsTail, Release, Dies(NodeLife)),
    (Site::McsLink, Relaxed, Dies(NodeLife)),
    (Site::McsTurn, Relaxed, Dies(DataRace)),
    (Site::McsNext, Relaxed, Dies(NodeLife)),
    // The link of the next waiter may come before the zero that it should overwrite.
    (Site::McsLeave, Relaxed, Dies(Deadlock)),
    (Site::McsSuccessor, Relaxed, Dies(NodeLife)),
    (Site::McsHandOver, Relaxed, Dies(DataRace)),
    (Site::McsRelease, Relaxed, Dies(DataRace)),
    (Site::RwReadTry, Relaxed, Dies(DataRace)),
    (Site::RwReadTurn, Relaxed, Dies(DataRace)),
    (Site::RwReadRelease, Relaxed, Dies(DataRace)),
    (Site::RwWriteTry, Relaxed, Dies(DataRace)),
    (Site::RwWriteTake, Relaxed, Dies(DataRace)),
    (Site::RwWriteRelease, Relaxed, Dies(DataRace)),
    (Site::RwTakeShared, Relaxed, Dies(DataRace)),
    (Site::RwTakeExclusive, Relaxed, Dies(DataRace)),
    // Only with a gate without fences: the fence in the release of the default mutex acquires, too.
    (Site::RwGateTake, Relaxed, Dies(DataRace)),
    (Site::RwUpgrade, Relaxed, Dies(DataRace)),
    (Site::RwLeaveShared, Relaxed, Dies(DataRace)),
    (Site::RwLeaveExclusive, Relaxed, Dies(DataRace)),
    (Site::OnceLook, Relaxed, Survives(NEVER_DONE)),
    (Site::OnceBegin, Relaxed, Dies(DataRace)),
    (Site::OnceEnd, Relaxed, Dies(DataRace)),
    (Site::MutexTry, Relaxed, Dies(DataRace)),
    (Site::MutexTake, Relaxed, Dies(DataRace)),
    (Site::MutexStore, Relaxed, Dies(DataRace)),
    (Site::MutexRelease, Relaxed, Dies(DataRace)),
    (Site::SleepBucketLock, Relaxed, Dies(LostWakeup)),
    (Site::SleepBucketUnlock, Relaxed, Dies(LostWakeup)),
    (Site::SleepLight, AcqRel, Dies(LostWakeup)),
    (Site::SleepReleaseFence, AcqRel, Dies(LostWakeup)),
    (Site::SleepHeavy, AcqRel, Survives(UNLOCK_FENCES)),
    (Site::SleepFence, AcqRel, Survives(UNLOCK_FENCES)),
    (Site::SleepSettle, Relaxed, Survives(UNLOCK_FENCES)),
    (Site::SleepSettled, Relaxed, Survives(UNLOCK_FENCES)),
    (Site::SleepWake, Relaxed, Dies(LostWakeup)),
    (Site::SleepWoken, Relaxed, Survives(LOADS_STAY)),
    (Site::SleepRescanMark, Relaxed, Survives(RESCAN)),
    (Site::SleepRescanTake, Relaxed, Survives(RESCAN)),
    (Site::SleepRescanFence, AcqRel, Dies(LostWakeup)),
    (Site::SleepUnlockFence, AcqRel, Dies(LostWakeup)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_expected_twice() {
        for (index, row) in TABLE.iter().enumerate() {
            let same =
                |other: &&(Site, Ordering, Expectation)| (other.0, other.1) == (row.0, row.1);
            assert_eq!(TABLE.iter().position(|other| same(&other)), Some(index), "{row:?}");
        }
    }
}
