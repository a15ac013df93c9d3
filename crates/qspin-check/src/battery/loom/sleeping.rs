//! What loom runs waiters through that sleep beside the lock: deadlines, notifications, forks and heavy barriers.

use super::{ASIDE, HALTED, HALTED_FOUR, NEVER, SLEEPING_FOUR, TIMED, TIMED_BETWEEN, UNBOUNDED};
use super::{every, held, one, read, write};
use crate::battery::Check;
use crate::model::{Buckets, Traits};
use crate::scenario::Mode::{self, Read, Upgradable, Write};
use crate::scenario::Step::{
    self, Arrive, Await, Barrier, Downgrade, Enter, Fork, Interrupted, Leave, Moved, Obtain,
    Outlast, Section, Settle, Signal, Stay, Timed, Together, Upgrade, Vanished,
};
use crate::scenario::{NEVER_LATE, Scenario, When};
use crate::trace::Turn;

/// Waiters whose deadline is over at each look at the clock, beside one that waits for long.
pub(super) fn for_timed(traits: Traits) -> Vec<Check> {
    let bound = if traits.long { NEVER } else { TIMED };
    let mut checks = vec![
        every(bound, timed),
        every(TIMED, timed_first),
        every(UNBOUNDED, outlasted),
        every(NEVER, outlasted_behind),
        every(NEVER, held_up),
    ];
    if traits.brief {
        checks.push(every(TIMED_BETWEEN, timed_between));
    }
    checks.push(every(if traits.brief { TIMED } else { NEVER }, timed_twice));
    if traits.shared {
        checks.extend([every(TIMED, timed_reader), every(TIMED, timed_writer)]);
        checks.push(every(TIMED, timed_beside));
        checks.extend([every(UNBOUNDED, outlasted_reader), every(UNBOUNDED, outlasted_by_reader)]);
    }
    checks
}

/// A lock that is held when two others come for it, in this order: the holder is the last to run, so that it takes no
/// preemption until they wait.
fn held_last(name: &str, mode: Mode, first: Vec<Step>, second: Vec<Step>) -> Scenario {
    Scenario::new(name, vec![first, second, vec![Leave(0, mode)]]).before(vec![Enter(0, mode)])
}

fn timed(at: u32) -> Scenario {
    held_last("timed", Write, write(), vec![Timed(at, 0, Write)])
}

/// The waiter with the deadline is the first to be woken.
fn timed_first(at: u32) -> Scenario {
    held_last("timed-first", Write, vec![Timed(at, 0, Write)], write())
}

/// A release that may come between the waiter with the deadline and the other one.
fn timed_between(at: u32) -> Scenario {
    held("timed-between", Write, vec![Timed(at, 0, Write)], write())
}

/// One that comes again after it has given up, and another one with a deadline.
fn timed_twice(at: u32) -> Scenario {
    held_last(
        "timed-twice",
        Write,
        vec![Timed(NEVER_LATE, 0, Write)],
        vec![Timed(at, 0, Write), Section(0, Write)],
    )
}

fn timed_reader(at: u32) -> Scenario {
    held_last("timed-reader", Write, write(), vec![Timed(at, 0, Read)])
}

fn timed_writer(at: u32) -> Scenario {
    held_last("timed-writer", Read, read(), vec![Timed(at, 0, Write)])
}

/// A waiter whose owner stays until the waiter has given up.
fn outlasted_in(name: &str, owner: Mode, waiter: Mode, at: u32) -> Scenario {
    let threads = vec![vec![Outlast(0, owner, 1)], vec![Timed(at, 0, waiter), Arrive]];
    Scenario::new(name, threads).before(vec![Enter(0, owner)])
}

fn outlasted(at: u32) -> Scenario {
    outlasted_in("outlasted", Write, Write, at)
}

/// The same behind a waiter that has no deadline.
fn outlasted_behind(at: u32) -> Scenario {
    let threads = vec![vec![Outlast(0, Write, 1)], write(), vec![Timed(at, 0, Write), Arrive]];
    Scenario::new("outlasted-behind", threads).before(vec![Enter(0, Write)])
}

/// A waiter whose deadline passes while it sleeps, and that is held up at some step of what it does then, or before: until
/// the owner has released the lock, and all others are done or wait.
fn held_up(at: u32) -> Scenario {
    let timed = Box::new(Timed(NEVER_LATE, 0, Write));
    let second = vec![Interrupted(at, vec![Arrive, Settle(Turn::Last)], timed)];
    Scenario::new("held-up", vec![write(), second, vec![Outlast(0, Write, 1)]])
        .before(vec![Enter(0, Write)])
}

fn outlasted_reader(at: u32) -> Scenario {
    outlasted_in("outlasted-reader", Write, Read, at)
}

fn outlasted_by_reader(at: u32) -> Scenario {
    outlasted_in("outlasted-by-reader", Read, Write, at)
}

/// A writer that gives up between two readers, of which the first stays until the second is inside.
fn timed_beside(at: u32) -> Scenario {
    let reader = || vec![Together(0, 2)];
    Scenario::new("timed-beside", vec![reader(), vec![Timed(at, 0, Write)], reader()])
}

/// A latch that is opened when some wait for it, or come.
pub(super) fn for_latch(traits: Traits) -> Vec<Check> {
    let opened = |name, waiters| {
        // The one that opens it last: it takes no preemption then that the others wait.
        let threads = [vec![read(); waiters], vec![vec![Leave(0, Write)]]].concat();
        Scenario::new(name, threads).before(vec![Enter(0, Write)])
    };
    // In one bucket they meet at each step.
    let three = if traits.buckets == Buckets::One { NEVER } else { ASIDE };
    if traits.timed {
        return vec![every(NEVER, moved), every(NEVER, moved_first)];
    }
    vec![
        one(ASIDE, opened("two-wait", 2)),
        one(three, opened("three-wait", 3)),
        every(three, opened_by_interrupt),
    ]
}

/// A waiter for the second of two latches is interrupted, and the interrupt opens the first: its waiter may sleep in the
/// bucket that the interrupted one has locked.
fn opened_by_interrupt(at: u32) -> Scenario {
    let interrupted = vec![Interrupted(at, vec![Leave(0, Write)], Box::new(Section(1, Read)))];
    Scenario::new("opened-by-interrupt", vec![read(), interrupted, vec![Leave(1, Write)]])
        .before(vec![Enter(0, Write), Enter(1, Write)])
        .locks(2)
}

/// One of two that wait for a latch has a deadline, and is held up at some step of what it does when that is over, or
/// before: until the other one was notified and it was moved to the mutex, or nothing else happens.
fn moved(at: u32) -> Scenario {
    let timed = Box::new(Timed(NEVER_LATE, 0, Read));
    let second = vec![Interrupted(at, vec![Arrive, Moved], timed)];
    Scenario::new("moved", vec![read(), second, vec![Outlast(0, Write, 1)]])
        .before(vec![Enter(0, Write)])
}

/// The same, where it is the first to run of those that may, once it was moved: before the one that was notified.
fn moved_first(at: u32) -> Scenario {
    let timed = Box::new(Timed(NEVER_LATE, 0, Read));
    // The other one sleeps then.
    let first = vec![Settle(Turn::First), Interrupted(at, vec![Arrive, Moved], timed)];
    Scenario::new("moved-first", vec![first, read(), vec![Outlast(0, Write, 1)]])
        .before(vec![Enter(0, Write)])
}

/// What is left of others after a fork.
pub(super) fn for_forks() -> Vec<Check> {
    vec![
        every(SLEEPING_FOUR, inherited),
        every(SLEEPING_FOUR, left_behind),
        every(SLEEPING_FOUR, forked_beside),
        every(SLEEPING_FOUR, forked_beside_awake),
        every(SLEEPING_FOUR, forked_release),
        every(SLEEPING_FOUR, forked_acquisition),
    ]
}

/// A lock in which the parent of this process has left state bits: the owner waits for it, up to a deadline, and forks
/// meanwhile.
fn inherited(at: u32) -> Scenario {
    let waits = Interrupted(at, vec![Fork], Box::new(Timed(NEVER_LATE, 0, Write)));
    held("inherited", Write, write(), write()).before(vec![Enter(0, Write), waits])
}

/// A lock in which a thread has left marks, and its bucket as it was just then, that the child of a fork does not have.
fn left_behind(at: u32) -> Scenario {
    let gone = Vanished(When::Operation(at), Box::new(Timed(NEVER_LATE, 0, Write)));
    held("left-behind", Write, write(), write())
        .before(vec![Enter(0, Write), gone, Fork])
        .with_parent()
}

/// The first of both where a thread sleeps that is gone after the fork.
fn forked_beside(at: u32) -> Scenario {
    let asleep = Vanished(When::Halts, Box::new(Timed(NEVER_LATE, 0, Write)));
    let waits = Interrupted(at, vec![Fork], Box::new(Timed(NEVER_LATE, 0, Write)));
    held("forked-beside", Write, write(), write())
        .before(vec![Enter(0, Write), asleep, waits])
        .with_parent()
}

/// The same where that thread has not slept yet, and has left its marks.
fn forked_beside_awake(at: u32) -> Scenario {
    let awake = Vanished(When::Marks, Box::new(Timed(NEVER_LATE, 0, Write)));
    let waits = Interrupted(at, vec![Fork], Box::new(Timed(NEVER_LATE, 0, Write)));
    held("forked-beside-awake", Write, write(), write())
        .before(vec![Enter(0, Write), awake, waits])
        .with_parent()
}

/// A fork within an acquisition of a free lock that has such marks.
fn forked_acquisition(at: u32) -> Scenario {
    let awake = Vanished(When::Marks, Box::new(Timed(NEVER_LATE, 0, Write)));
    let acquires = Interrupted(at, vec![Fork], Box::new(Enter(0, Write)));
    held("forked-acquisition", Write, write(), write())
        .before(vec![Enter(0, Write), awake, Leave(0, Write), acquires])
        .with_parent()
}

/// A fork within the release that would wake it.
fn forked_release(at: u32) -> Scenario {
    let asleep = Vanished(When::Halts, Box::new(Timed(NEVER_LATE, 0, Write)));
    let releases = Interrupted(at, vec![Fork], Box::new(Leave(0, Write)));
    Scenario::new("forked-release", vec![write(), write(), write()])
        .before(vec![Enter(0, Write), asleep, releases])
        .with_parent()
}

/// A heavy barrier that is obtained while others sleep, or are about to.
pub(super) fn for_late_barrier() -> Vec<Check> {
    let third = vec![Obtain, Section(0, Write)];
    vec![one(SLEEPING_FOUR, held_last("obtained", Write, write(), third))]
}

/// A heavy barrier takes long. The first waiter has passed its own, but was woken, and its bucket has been quiet since, when
/// it says that the hint is settled. The second one, of another epoch, has not passed its barrier then, and a third one
/// sleeps. The owner of the lock that the third one waits for may see the hint as it was between the epochs.
pub(super) fn epochs() -> Check {
    let section = |lock| Box::new(Section(lock, Write));
    // It has not seen that: what it saw before it waits here it does not see again.
    let owner = vec![Settle(Turn::Second), Leave(1, Write), Leave(2, Write)];
    let first = vec![Barrier(vec![], vec![Signal, Await(2)], section(0))];
    let late = Barrier(vec![Signal, Settle(Turn::Last)], vec![], section(2));
    // The section finds no sleeper.
    let second = vec![Await(1), Leave(0, Write), Section(0, Write), late];
    let third = vec![Await(2), Settle(Turn::First), Section(1, Write)];
    let scenario = Scenario::new("epochs", vec![owner, first, second, third])
        .before(vec![Enter(0, Write), Enter(1, Write), Enter(2, Write)])
        .locks(3);
    one(NEVER, scenario)
}

/// Readers that become writers, writers that become readers, and those who wait for that.
pub(super) fn for_converting() -> Vec<Check> {
    // One that becomes a reader, and stays until another one is inside.
    let kept = |name, to, waiter| {
        let first = vec![Downgrade(0, Write, to), Stay(2), Leave(0, to)];
        let second = vec![Enter(0, waiter), Stay(2), Leave(0, waiter)];
        one(HALTED, Scenario::new(name, vec![first, second]).before(vec![Enter(0, Write)]))
    };
    let kept_twice = {
        let first = vec![Downgrade(0, Upgradable, Read), Stay(2), Leave(0, Read)];
        let second = vec![Enter(0, Upgradable), Stay(2), Leave(0, Upgradable)];
        Scenario::new("kept-from-upgradable", vec![first, second])
            .before(vec![Enter(0, Upgradable)])
    };
    let upgrades = vec![Enter(0, Upgradable), Upgrade(0, None), Leave(0, Upgradable)];
    vec![
        kept("kept-reader", Read, Read),
        kept("kept-upgradable", Read, Upgradable),
        kept("kept-beside-upgradable", Upgradable, Read),
        one(HALTED, kept_twice),
        every(TIMED_BETWEEN, upgrade_given_up),
        every(TIMED_BETWEEN, gives_up_elsewhere),
        one(HALTED_FOUR, Scenario::new("try-upgrade", vec![upgrades.clone(), read()])),
        one(SLEEPING_FOUR, Scenario::new("try-upgrade-three", vec![upgrades, read(), write()])),
    ]
}

/// A waiter with the gate that wants to read upgradably, and gives up beside one that does and stays. That one has acquired
/// the lock past it before, so that the waiter is the heir.
fn gives_up_elsewhere(at: u32) -> Scenario {
    let waits = vec![Timed(at, 0, Upgradable), Arrive];
    let acquires = vec![Leave(0, Write), Enter(0, Write), Downgrade(0, Write, Upgradable)];
    let stays = [acquires, vec![Outlast(0, Upgradable, 1)]].concat();
    Scenario::new("gives-up-elsewhere", vec![waits, stays]).before(vec![Enter(0, Write)])
}

/// An upgrade beside a reader that stays, until a deadline; then a reader is admitted that had come meanwhile, and until it
/// is inside both others stay.
fn upgrade_given_up(at: u32) -> Scenario {
    let upgrades = vec![Upgrade(0, Some(at)), Stay(2), Leave(0, Upgradable), Leave(0, Read)];
    Scenario::new("upgrade-given-up", vec![upgrades, vec![Together(0, 2)]])
        .before(vec![Enter(0, Read), Enter(0, Upgradable)])
}
