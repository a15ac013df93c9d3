//! What a battery must get to: a scenario that misses the paths it is made for checks nothing.

use qspin_core::events::Event::{
    self, CnaFlush, CnaLocalHandoff, CnaPrioritised, CnaRemoteHandoff, CnaShuffleSkip, CnaSplice,
    HashCount, KickAheadCount, LockKickCount, LockNoNode, LockSlowpath, LockUseNode2, LockUseNode3,
    LockUseNode4, MutexHeir, MutexSlowpath, PendingFailCount, PendingLockCount, PvLockStealing,
    PvWaitAgain, SleepBarrier, SleepCount, SleepKick, SpuriousWakeup, UnlockKickCount,
    WaitEarlyCount, WaitHeadCount, WaitNodeCount,
};

use crate::ledger::{Coverage, Reached};
use crate::subject::Subject;

/// What the battery of loom should have reached with this lock, and has not.
#[must_use]
pub fn missed_by_loom(subject: &dyn Subject, coverage: &Coverage) -> Vec<String> {
    let events: &[Event] = match subject.name() {
        "native" => &[LockSlowpath, PendingLockCount, LockUseNode4, LockNoNode],
        "native-no-pending" | "mcs" | "ticket" => &[LockUseNode2, LockUseNode4, LockNoNode],
        "queued-rw" => &[LockSlowpath, PendingLockCount],
        _ if subject.traits().sleeps => return missed_by_sleeping(subject, coverage),
        name if subject.traits().near_first => return missed_by_near(name, coverage, false),
        name => return missed_by_halting(name, coverage, false),
    };
    missed(events, coverage, true)
}

/// The same for the battery of shuttle.
#[must_use]
pub fn missed_by_shuttle(subject: &dyn Subject, coverage: &Coverage) -> Vec<String> {
    let events: &[Event] = match subject.name() {
        "native" => {
            &[LockSlowpath, PendingLockCount, LockUseNode2, LockUseNode3, LockUseNode4, LockNoNode]
        }
        "queued-rw" => &[LockSlowpath, PendingLockCount, LockUseNode4, LockNoNode],
        "native-no-pending" | "mcs" | "ticket" => {
            &[LockUseNode2, LockUseNode3, LockUseNode4, LockNoNode]
        }
        _ if subject.traits().sleeps => return missed_by_sleeping(subject, coverage),
        name if subject.traits().near_first => return missed_by_near(name, coverage, true),
        name => return missed_by_halting(name, coverage, true),
    };
    missed(events, coverage, true)
}

/// What a lock whose waiters sleep beside it has not reached.
fn missed_by_sleeping(subject: &dyn Subject, coverage: &Coverage) -> Vec<String> {
    let events: &[Event] = match subject.name() {
        "mutex" => &[MutexSlowpath, MutexHeir, SleepCount, SleepBarrier, SleepKick, LockNoNode],
        _ => &[SleepCount, SleepKick],
    };
    missed(events, coverage, !subject.traits().step)
}

/// What every lock must reach whose waiters are put aside.
const ASIDE: &[Event] = &[LockSlowpath, CnaLocalHandoff, CnaRemoteHandoff, CnaSplice];

/// What a NUMA-aware lock, or a step of one, has not reached; also what it must not.
fn missed_by_near(name: &str, coverage: &Coverage, many: bool) -> Vec<String> {
    use Reached::{
        ClaimedArranged, FartherStay, FlushedInFront, HaltedAside, KickedAheadPast, TailRaceLost,
        TailReplaced,
    };
    // (step, events, places, how often a waiter must have been passed)
    let (step, events, places, passed): (bool, &[Event], &[Reached], u32) = match name {
        // Three behind a pending waiter are one CPU more than loom is given.
        "cna" if !many => {
            let events = [LockSlowpath, PendingLockCount, LockUseNode4, LockNoNode];
            return missed(&[&events[..], &ASIDE[1..3]].concat(), coverage, true);
        }
        "cna" => (
            false,
            &[PendingLockCount, LockUseNode4, LockNoNode, CnaPrioritised],
            &[TailReplaced, TailRaceLost, FartherStay],
            4,
        ),
        "cna-no-pending" if !many => (true, &[CnaPrioritised], &[TailReplaced, TailRaceLost], 2),
        "cna-no-pending" => {
            (true, &[CnaPrioritised], &[TailReplaced, TailRaceLost, FartherStay], 4)
        }
        // With two places the bound is 1, with three 2.
        "cna-flush" => (
            true,
            &[CnaFlush, CnaPrioritised],
            &[TailReplaced, TailRaceLost, FlushedInFront],
            if many { 2 } else { 1 },
        ),
        // With two places the bound is 3, with three 6.
        "cna-flush-later" if !many => (true, &[CnaPrioritised], &[TailReplaced, TailRaceLost], 2),
        "cna-flush-later" => {
            (true, &[CnaFlush, CnaPrioritised], &[TailReplaced, FlushedInFront, FartherStay], 3)
        }
        // As with `cna`; it gets there where the pending waiter gives up, which takes preemptions.
        "cna-paravirt" if !many => {
            let events = [LockSlowpath, PendingLockCount, PendingFailCount, LockNoNode];
            return missed(
                &[&events[..], &[PvLockStealing], &ASIDE[1..3]].concat(),
                coverage,
                true,
            );
        }
        "cna-paravirt" => (
            false,
            &[PendingLockCount, PendingFailCount, PvLockStealing, LockNoNode, CnaPrioritised],
            &[TailReplaced, TailRaceLost, FartherStay, HaltedAside, ClaimedArranged],
            4,
        ),
        "cna-halting" if !many => (
            true,
            &[KickAheadCount],
            &[TailReplaced, HaltedAside, ClaimedArranged, KickedAheadPast],
            1,
        ),
        "cna-halting" => (
            true,
            &[KickAheadCount],
            &[
                TailReplaced,
                TailRaceLost,
                FartherStay,
                HaltedAside,
                ClaimedArranged,
                KickedAheadPast,
            ],
            4,
        ),
        "cna-halting-flush" => (
            true,
            &[KickAheadCount, CnaFlush],
            &[TailReplaced, FlushedInFront, HaltedAside, KickedAheadPast],
            1,
        ),
        _ => return missed(&[], coverage, true),
    };
    let mut missed = missed(&[ASIDE, events].concat(), coverage, !step);
    let unreached = places.iter().filter(|place| !coverage.reached.contains(place));
    missed.extend(unreached.map(|place| format!("no {}", place.name())));
    if coverage.passed < passed {
        missed.push(format!("waiter passed {passed} times, but only {}", coverage.passed));
    }
    for event in [LockKickCount, CnaShuffleSkip] {
        if coverage.events.contains_key(&event) {
            missed.push(format!("{}, which must not be,", event.name()));
        }
    }
    missed
}

/// What every lock must reach whose waiters halt.
const HALTED: &[Event] = &[LockSlowpath, WaitHeadCount, WaitNodeCount, UnlockKickCount, HashCount];

/// What a lock whose waiters halt, or a step of one, has not reached; also what it has reached and
/// must not: with every kick deferred, a kick at the hand-over means that the table was full.
fn missed_by_halting(name: &str, coverage: &Coverage, many: bool) -> Vec<String> {
    let (step, events, never): (bool, &[Event], &[Event]) = match name {
        "paravirt" => (
            false,
            &[PendingLockCount, PendingFailCount, PvLockStealing, PvWaitAgain, LockNoNode],
            &[LockKickCount, KickAheadCount],
        ),
        "paravirt-resigned" => (true, &[PendingFailCount, PvLockStealing], &[LockKickCount]),
        "paravirt-stealing" => {
            (false, &[PvLockStealing, PvWaitAgain, LockNoNode], &[LockKickCount, PendingLockCount])
        }
        "paravirt-queued" => {
            (false, &[PendingLockCount, PendingFailCount, LockNoNode], &[LockKickCount])
        }
        "paravirt-ticket" => {
            let events = [WaitNodeCount, SpuriousWakeup, UnlockKickCount, HashCount, LockNoNode];
            return missed(&events, coverage, true);
        }
        "paravirt-queued-before-the-series" => (true, &[LockKickCount], &[PendingLockCount]),
        "paravirt-queued-conditional-kick" => (true, &[LockKickCount, PendingFailCount], &[]),
        "paravirt-queued-conditional-kick-deferred" => {
            (true, &[PendingFailCount], &[LockKickCount])
        }
        "paravirt-queued-no-pending" => (true, &[], &[PendingLockCount, LockKickCount]),
        "paravirt-queued-kick-ahead" => (true, &[KickAheadCount], &[LockKickCount]),
        "paravirt-queued-defer-never" => (true, &[KickAheadCount, LockKickCount], &[]),
        "paravirt-queued-defer-conditions" => (true, &[KickAheadCount, LockKickCount], &[]),
        // It takes a waiter with a past, behind one that halts in the queue.
        "paravirt-queued-adaptive-history" if many => (true, &[WaitEarlyCount], &[LockKickCount]),
        "paravirt-queued-adaptive-history" => (true, &[], &[LockKickCount]),
        "paravirt-queued-adaptive-history-kick-ahead" if many => (true, &[WaitEarlyCount], &[]),
        "paravirt-queued-adaptive-history-kick-ahead" => (true, &[], &[LockKickCount]),
        "paravirt-queued-adaptive-neighbour" if many => (true, &[WaitEarlyCount], &[LockKickCount]),
        "paravirt-queued-adaptive-neighbour" => (true, &[], &[LockKickCount]),
        "paravirt-queued-heed-preempted" => (true, &[WaitEarlyCount], &[LockKickCount]),
        _ => return missed(&[], coverage, true),
    };
    // Whether the first halt in vain is one in the queue is a matter of the schedule.
    let vain: &[Event] = if step && !many { &[] } else { &[SpuriousWakeup] };
    let mut missed = missed(&[HALTED, vain, events].concat(), coverage, !step);
    let reached = |event: &&Event| coverage.events.contains_key(event);
    missed.extend(
        never.iter().filter(reached).map(|event| format!("{}, which must not be,", event.name())),
    );
    missed
}

fn missed(events: &[Event], coverage: &Coverage, interrupts: bool) -> Vec<String> {
    let absent = |event: &&Event| !coverage.events.contains_key(event);
    let mut missed: Vec<_> =
        events.iter().filter(absent).map(|event| format!("no {}", event.name())).collect();
    if interrupts && coverage.interrupts == 0 {
        missed.push("no interrupt".to_owned());
    }
    missed
}
