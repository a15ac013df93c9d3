//! Every event counter, in one list.
//!
//! Counting is a type parameter of the platform: with [`NoEvents`] not one instruction of it
//! is left in a lock. Names are those of document 000 where that has one (with the name that
//! Linux gave it later as an alias), else those of `kernel/locking/lock_events_list.h`.

macro_rules! events {
    ($($(#[$doc:meta])* $event:ident = $name:literal $(, $alias:literal)?;)*) => {
        /// Something worth counting on a slow path.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Event {
            $($(#[$doc])* $event,)*
        }

        impl Event {
            /// Every event, in the order of the list.
            pub const ALL: [Event; [$(Event::$event),*].len()] = [$(Event::$event),*];

            /// The name under which it is shown: document 000's where that has one, else Linux's.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Event::$event => $name,)*
                }
            }

            /// The name that Linux gave it later, where it is another.
            #[must_use]
            pub const fn alias(self) -> Option<&'static str> {
                match self {
                    $(Event::$event => [$(Some($alias),)? None][0],)*
                }
            }
        }
    };
}

events! {
    /// An acquisition left the fast path of the queued lock.
    LockSlowpath = "lock_slowpath";
    /// It queued from the second nesting level.
    LockUseNode2 = "lock_use_node2";
    /// It queued from the third nesting level.
    LockUseNode3 = "lock_use_node3";
    /// It queued from the fourth nesting level.
    LockUseNode4 = "lock_use_node4";
    /// It had no node (deeper nesting, or a context without a number) and competed without.
    LockNoNode = "lock_no_node";
    /// A waiter got the lock as the pending one, without a node.
    PendingLockCount = "pending_lock_count", "lock_pending";
    /// A pending waiter gave up and queued.
    PendingFailCount = "pending_fail_count";
    /// A newcomer took a free lock past the queue.
    PvLockStealing = "pv_lock_stealing";
    /// CNA: the place at the head went to a waiter near the one before.
    CnaLocalHandoff = "cna_local_handoff";
    /// CNA: it went to one farther away.
    CnaRemoteHandoff = "cna_remote_handoff";
    /// CNA: a waiter was moved to the secondary queue.
    CnaSplice = "cna_splice";
    /// CNA: the secondary queue was put before the main one, for the time its first had waited.
    CnaFlush = "cna_flush";
    /// CNA: a head did not arrange the queue (shuffle reduction).
    CnaShuffleSkip = "cna_shuffle_skip";
    /// CNA: an urgent waiter, which is never moved, had its turn.
    CnaPrioritised = "cna_prioritised";
    /// The head of a queue halted.
    WaitHeadCount = "wait_head_count", "pv_wait_head";
    /// The head halted once more: it had been kicked, and another thread had acquired the lock.
    PvWaitAgain = "pv_wait_again";
    /// A waiter in the queue halted.
    WaitNodeCount = "wait_node_count", "pv_wait_node";
    /// A waiter in the queue halted before its threshold, for the sake of the one before it.
    WaitEarlyCount = "wait_early_count", "pv_wait_early";
    /// A waiter in the queue woke before its turn.
    SpuriousWakeup = "spurious_wakeup", "pv_spurious_wakeup";
    /// A halted waiter that became the head was kicked at once, by the new owner.
    LockKickCount = "lock_kick_count", "pv_kick_lock";
    /// A halted head was kicked by a release.
    UnlockKickCount = "unlock_kick_count", "pv_kick_unlock";
    /// A halted waiter behind the head was kicked by a release as well.
    KickAheadCount = "kick_ahead_count";
    /// A waiter woke of a kick, whose time is in `wake_latencies`.
    KickTimeCount = "kick_time_count", "pv_kick_wake";
    /// Nanoseconds spent kicking, all kicks together.
    KickLatencies = "kick_latencies", "pv_latency_kick";
    /// Nanoseconds from the kick to the return of the halt, all wake-ups together.
    WakeLatencies = "wake_latencies", "pv_latency_wake";
    /// A halted head, or waiter, went into the hash.
    HashCount = "hash_count";
    /// Entries looked at to find a free one.
    HashHopsCount = "hash_hops_count", "pv_hash_hops";
    /// An acquisition left the fast path of the mutex.
    MutexSlowpath = "mutex_slowpath";
    /// A waiter of the mutex forbade others to take it past it.
    MutexHeir = "mutex_heir";
    /// A thread joined the sleepers of a lock, which are found by its address.
    SleepCount = "sleep_count";
    /// It had to pass the heavy barrier before.
    SleepBarrier = "sleep_barrier";
    /// One of them was woken.
    SleepKick = "sleep_kick";
    /// One of them was moved to another address.
    SleepRequeue = "sleep_requeue";
}

/// Averages that the counts give, by the formulas of document 000; `None` where nothing was
/// counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Averages {
    /// Nanoseconds that a kick takes the kicker: `kick_latencies / (lock_kick_count +
    /// unlock_kick_count + kick_ahead_count)`.
    pub kick_latency_ns: Option<f64>,
    /// Nanoseconds from a kick to the return of the halt: `wake_latencies / kick_time_count`.
    pub wake_latency_ns: Option<f64>,
    /// Entries looked at for a place in the hash: `hash_hops_count / hash_count`.
    pub hops_a_hash: Option<f64>,
}

impl Averages {
    /// The averages of these counts.
    pub fn of(count: impl Fn(Event) -> u64) -> Self {
        let ratio = |sum: u64, of: u64| (of > 0).then(|| sum as f64 / of as f64);
        let kicks = [Event::LockKickCount, Event::UnlockKickCount, Event::KickAheadCount];
        let kicks = kicks.into_iter().map(&count).fold(0, u64::saturating_add);
        Self {
            kick_latency_ns: ratio(count(Event::KickLatencies), kicks),
            wake_latency_ns: ratio(count(Event::WakeLatencies), count(Event::KickTimeCount)),
            hops_a_hash: ratio(count(Event::HashHopsCount), count(Event::HashCount)),
        }
    }
}

/// Where a platform counts events.
pub trait Events {
    /// Whether counting does anything: lets a lock skip the work that only a counter needs,
    /// such as reading the clock.
    const ENABLED: bool;

    /// Whether events are counted at all. A checker counts without the work above.
    const COUNTS: bool = Self::ENABLED;

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
