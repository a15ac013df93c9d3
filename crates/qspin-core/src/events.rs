//! Every event counter, in one list.
//!
//! Counting is a type parameter of the platform: with [`NoEvents`] not one instruction of it
//! is left in a lock. Names are those of the kernel (`lock_*` of `kernel/locking/lock_events`).

use crate::platform::Platform;

/// Something worth counting on a slow path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Event {
    /// An acquisition left the fast path of the queued lock.
    LockSlowpath,
    /// It got the lock as the pending waiter, without a node.
    LockPending,
    /// It queued from the second nesting level.
    LockUseNode2,
    /// It queued from the third nesting level.
    LockUseNode3,
    /// It queued from the fourth nesting level.
    LockUseNode4,
    /// It had no node (deeper nesting, or a context without a number) and competed without.
    LockNoNode,
    /// A lock's halted head went into the hash.
    HashCount,
    /// Entries looked at for that.
    HashHopsCount,
    /// A head halted.
    WaitHeadCount,
    /// A waiter in the queue halted.
    WaitNodeCount,
    /// A waiter halted early, since the one before it was halted.
    WaitEarlyCount,
    /// A waiter was woken before its turn.
    SpuriousWakeup,
    /// A new head was kicked when the lock was taken.
    LockKickCount,
    /// The head was kicked when the lock was released.
    UnlockKickCount,
    /// A waiter behind the head was kicked as well.
    KickAheadCount,
    /// A pending waiter gave up and queued.
    PendingFailCount,
    /// A newcomer took the lock past the queue.
    PvLockStealing,
    /// A head had to halt again.
    PvWaitAgain,
}

impl Event {
    /// Every event, in the order of the list.
    pub const ALL: [Event; 18] = [
        Event::LockSlowpath,
        Event::LockPending,
        Event::LockUseNode2,
        Event::LockUseNode3,
        Event::LockUseNode4,
        Event::LockNoNode,
        Event::HashCount,
        Event::HashHopsCount,
        Event::WaitHeadCount,
        Event::WaitNodeCount,
        Event::WaitEarlyCount,
        Event::SpuriousWakeup,
        Event::LockKickCount,
        Event::UnlockKickCount,
        Event::KickAheadCount,
        Event::PendingFailCount,
        Event::PvLockStealing,
        Event::PvWaitAgain,
    ];

    /// The name under which it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Event::LockSlowpath => "lock_slowpath",
            Event::LockPending => "lock_pending",
            Event::LockUseNode2 => "lock_use_node2",
            Event::LockUseNode3 => "lock_use_node3",
            Event::LockUseNode4 => "lock_use_node4",
            Event::LockNoNode => "lock_no_node",
            Event::HashCount => "hash_count",
            Event::HashHopsCount => "hash_hops_count",
            Event::WaitHeadCount => "wait_head_count",
            Event::WaitNodeCount => "wait_node_count",
            Event::WaitEarlyCount => "wait_early_count",
            Event::SpuriousWakeup => "spurious_wakeup",
            Event::LockKickCount => "lock_kick_count",
            Event::UnlockKickCount => "unlock_kick_count",
            Event::KickAheadCount => "kick_ahead_count",
            Event::PendingFailCount => "pending_fail_count",
            Event::PvLockStealing => "pv_lock_stealing",
            Event::PvWaitAgain => "pv_wait_again",
        }
    }
}

/// Where a platform counts events.
pub trait Events {
    /// Whether counting does anything: lets a lock skip the work that only a counter needs,
    /// such as reading the clock.
    const ENABLED: bool;

    /// Adds one to `event`. Called from any context, interrupts included.
    fn count(&self, event: Event) {
        self.add(event, 1);
    }

    /// Adds `amount` to `event`.
    fn add(&self, event: Event, amount: u64);
}

/// Counts nothing, at no cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoEvents;

impl Events for NoEvents {
    const ENABLED: bool = false;
    #[inline(always)]
    fn add(&self, _: Event, _: u64) {}
}

/// Counts `event` where `p` counts.
#[inline(always)]
pub(crate) fn count<P: Platform>(p: &P, event: Event) {
    add(p, event, 1);
}

/// Adds `amount` to `event` where `p` counts.
#[inline(always)]
pub(crate) fn add<P: Platform>(p: &P, event: Event, amount: u64) {
    // The one use of this switch is the test that counting nothing costs nothing: it compares
    // the machine code of a lock with `NoEvents` to that of a lock without this line.
    #[cfg(not(qspin_without_events))]
    p.events().add(event, amount);
    #[cfg(qspin_without_events)]
    let _ = (p, event, amount);
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_list_is_complete_and_in_order() {
        for (index, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, index, "{}", event.name());
        }
        let mut names: Vec<_> = Event::ALL.iter().map(|event| event.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Event::ALL.len());
    }
}
