//! What a battery must come to: a scenario that misses the paths it is made for checks nothing.
//!
//! Much of it follows of the kind of a lock, and of the parts of the tunables that it reads; what is expected of a
//! variant stands beside it in the catalogue.

use qspin_core::events::Event::{
    self, CnaLocalHandoff, CnaPrioritised, CnaRemoteHandoff, CnaShuffleSkip, CnaSplice, HashCount,
    KickAheadCount, LockKickCount, LockNoNode, LockSlowpath, LockUseNode2, LockUseNode3,
    LockUseNode4, MutexHeir, MutexSlowpath, PendingFailCount, PendingLockCount, PvLockStealing,
    PvWaitAgain, SleepBarrier, SleepCount, SleepKick, SpuriousWakeup, UnlockKickCount,
    WaitHeadCount, WaitNodeCount,
};
use qspin_core::tuning::Part;

use crate::model::Traits;
use crate::trace::{Coverage, Reached};

/// A checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checker {
    /// Every schedule of few CPUs.
    Loom,
    /// Some schedules of many.
    Shuttle,
}

/// Something that a battery must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The event is counted.
    Counts(Event),
    /// It never is.
    Never(Event),
    /// The place is reached.
    Reaches(Reached),
    /// A waiter is passed so often.
    Passes(u32),
    /// An interrupt comes.
    Interrupts,
}

use Goal::{Counts, Interrupts, Never, Passes, Reaches};

impl Goal {
    /// What is missed of it, in words.
    #[must_use]
    pub fn missed(self, coverage: &Coverage) -> Option<String> {
        let (met, missed) = match self {
            Counts(event) => (coverage.events.contains_key(&event), format!("no {}", event.name())),
            Never(event) => (
                !coverage.events.contains_key(&event),
                format!("{}, which must not be,", event.name()),
            ),
            Reaches(place) => (coverage.reached.contains(&place), format!("no {}", place.name())),
            Passes(times) => (
                coverage.passed >= times,
                format!("waiter passed {times} times, but only {}", coverage.passed),
            ),
            Interrupts => (coverage.interrupts > 0, "no interrupt".to_owned()),
        };
        (!met).then_some(missed)
    }
}

/// What follows of the kind of a lock; also what it must not come to.
#[must_use]
pub fn of_kind(traits: Traits, checker: Checker) -> Vec<Goal> {
    let many = checker == Checker::Shuttle;
    let mut goals = Vec::new();
    if !traits.step {
        goals.push(Interrupts);
    }
    if traits.sleeps {
        goals.extend([SleepCount, SleepKick].map(Counts));
    } else if traits.near_first {
        goals.extend([LockSlowpath, CnaLocalHandoff, CnaRemoteHandoff].map(Counts));
        if traits.step || many {
            // Three behind a pending waiter are one CPU more than loom is given.
            goals.push(Counts(CnaSplice));
        }
        goals.extend([LockKickCount, CnaShuffleSkip].map(Never));
    } else if traits.no_room {
        goals.push(Counts(WaitNodeCount));
    } else if traits.halts && traits.nodes {
        goals.extend([UnlockKickCount, HashCount].map(Counts));
        if many || !traits.shared {
            // Behind an owner and the head of readers and writers: one CPU more than loom is given.
            goals.push(Counts(WaitNodeCount));
        }
        if !traits.crowded {
            goals.extend([LockSlowpath, WaitHeadCount].map(Counts));
        }
        if !traits.step || many {
            // In a step, whether the first halt in vain is one in the queue is a matter of the schedule.
            goals.push(Counts(SpuriousWakeup));
        }
    }
    goals
}

/// What follows of the parts of the tunables that a lock of the register reads, since they are read where it happens.
#[must_use]
pub fn of_parts(parts: &[Part], traits: Traits, checker: Checker) -> Vec<Goal> {
    if traits.step {
        return Vec::new();
    }
    let many = checker == Checker::Shuttle;
    let reads = |part| parts.contains(&part);
    let (culled, pending) = (reads(Part::Culled), reads(Part::Pending));
    let mut goals = Vec::new();
    let mut must = |goal: fn(Event) -> Goal, holds: bool, events: &[Event]| {
        goals.extend(events.iter().filter(|_| holds).map(|&event| goal(event)));
    };
    // The first writer of a lock that readers share has a place before the queue: one CPU more than loom is given.
    let queues = traits.nodes && (many || !traits.shared);
    must(Counts, queues, &[LockNoNode]);
    must(Counts, queues && !traits.halts, &[LockUseNode4]);
    // It takes three contexts to queue where one of them is pending, and an interrupt is one more.
    let each_level = queues && !traits.halts && !traits.shared;
    must(Counts, each_level && (many || !pending), &[LockUseNode2]);
    must(Counts, each_level && many, &[LockUseNode3]);
    must(Counts, pending, &[LockSlowpath]);
    must(Counts, pending || culled, &[PendingLockCount]);
    must(Counts, reads(Part::HaltPending) || culled, &[PendingFailCount]);
    must(Counts, reads(Part::Stealing) || culled, &[PvLockStealing, PvWaitAgain]);
    must(Counts, reads(Part::Mutex), &[MutexSlowpath, MutexHeir, SleepBarrier]);
    must(Counts, reads(Part::Numa) && many, &[CnaPrioritised]);
    // With every kick deferred, a kick at the hand-over means that the table was full.
    must(Never, traits.halts, &[LockKickCount]);
    must(Never, traits.halts && !pending && !culled, &[PendingLockCount]);
    must(Never, culled, &[KickAheadCount]);
    if culled || reads(Part::Stealing) {
        goals.push(Reaches(Reached::HeadForbids));
    }
    if culled {
        goals.push(Reaches(Reached::AwakeForbids));
    }
    if reads(Part::Numa) && many {
        goals.extend(
            [Reached::TailReplaced, Reached::TailRaceLost, Reached::FartherStay].map(Reaches),
        );
        goals.push(Passes(4));
        if traits.halts {
            goals.extend([Reached::HaltedAside, Reached::ClaimedArranged].map(Reaches));
        }
    }
    goals
}
