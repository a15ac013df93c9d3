//! What shuttle runs a lock through: four to eight CPUs, and interrupts deeper than there are
//! nodes.

use std::sync::Arc;

use crate::model::Traits;
use crate::scenario::Mode::{self, Read, Upgradable, Write};
use crate::scenario::Step::{
    self, Arrive, Downgrade, Enter, Fork, Free, Interrupted, Leave, LeaveAfter, Obtain, Outlast,
    Section, Stay, Timed, Together, Try, Upgrade,
};
use crate::scenario::{NEVER_LATE, Scenario};

/// Interrupts within interrupts: one more than a CPU has nodes beside the interrupted level.
const DEPTH: usize = 5;

/// What shuttle runs a lock through.
#[must_use]
pub fn for_shuttle(traits: Traits) -> Vec<Arc<Scenario>> {
    if traits.latch && traits.timed {
        return (0..6).map(timed_latch).map(Arc::new).collect();
    }
    if traits.late {
        return [obtained()].map(Arc::new).to_vec();
    }
    if traits.converts {
        return converting().map(Arc::new).to_vec();
    }
    if traits.latch {
        let interrupted = (0..24).step_by(4).map(opened_by_interrupt);
        return [latch()].into_iter().chain(interrupted).map(Arc::new).collect();
    }
    if traits.inherited {
        return [4, 8, 12, 16, 20, 24].map(inherited).map(Arc::new).to_vec();
    }
    let write = |times| vec![Section(0, Write); times];
    let mixed = || vec![Section(0, Write), Try(0, Write), Section(0, Write), Try(0, Write)];
    let mut scenarios = vec![
        Scenario::new("four", vec![write(3); 4]),
        Scenario::new("eight", vec![write(2); 8]),
        Scenario::new("try", vec![mixed(), mixed(), mixed(), write(2)]),
    ];
    let fenced = traits.sleeps && !traits.asymmetric;
    if traits.freed && (!traits.step || traits.interrupted || fenced) {
        scenarios.push(freed());
    }
    if traits.halts {
        scenarios.push(Scenario::new("vain", vec![write(3); 4]).vain_halts(2));
        scenarios.push(heads());
    }
    if traits.near_first {
        scenarios.extend(for_near(traits));
    }
    if traits.timed {
        scenarios.extend([0, 1, 2, 3, 5].map(timed));
        scenarios.push(outlasted("outlasted", Write, Write));
        scenarios.push(outlasted_behind());
        if traits.shared {
            scenarios.push(outlasted("outlasted-readers", Write, Read));
            scenarios.push(outlasted("outlasted-by-readers", Read, Write));
            scenarios.extend([1, 2, 3, 5].map(timed_beside));
        }
    }
    if traits.step {
        if traits.shared {
            scenarios.extend(readers());
        }
        if traits.interrupted {
            scenarios.push(readers_interrupted());
        }
        return scenarios.into_iter().map(Arc::new).collect();
    }
    scenarios.extend((0..6).map(interrupted));
    if traits.nodes {
        scenarios.push(Scenario::new("numberless", vec![write(2); 6]).numberless(1).numberless(4));
        scenarios.push(Scenario::new("levels-used", vec![write(2); 4]).nested(1, 3).nested(3, 4));
        scenarios.extend([1, 4, 7, 8, 9, 10, 11, 12].map(nested));
    }
    if traits.shared {
        scenarios.extend(readers());
        scenarios.push(readers_interrupted());
    }
    scenarios.into_iter().map(Arc::new).collect()
}

/// The last of two frees the lock, perhaps before the release that let it in has come to its end.
fn freed() -> Scenario {
    let mut threads = vec![vec![Leave(0, Write)]];
    threads.resize(3, vec![Section(0, Write), Section(0, Write), Free(0, 2)]);
    Scenario::new("freed", threads).before(vec![Enter(0, Write)])
}

/// Waiters of which every other one has a deadline.
fn timed(at: u32) -> Scenario {
    let thread = |cpu: u32| {
        let timed = Timed(at + cpu / 2 % 2, 0, Write);
        if cpu.is_multiple_of(2) {
            vec![timed.clone(), Section(0, Write), timed]
        } else {
            vec![Section(0, Write); 2]
        }
    };
    Scenario::new(&format!("timed-{at}"), (0..5).map(thread).collect())
}

/// Waiters whose owner stays until all of them have given up.
fn outlasted(name: &str, owner: Mode, waiter: Mode) -> Scenario {
    let mut threads = vec![vec![Outlast(0, owner, 3)]];
    threads.extend((0..3).map(|at| vec![Timed(2 * at, 0, waiter), Arrive]));
    Scenario::new(name, threads).before(vec![Enter(0, owner)])
}

/// The same behind one that has no deadline.
fn outlasted_behind() -> Scenario {
    let mut threads = vec![vec![Outlast(0, Write, 3)], vec![Section(0, Write)]];
    threads.extend((0..3).map(|at| vec![Timed(2 * at, 0, Write), Arrive]));
    Scenario::new("outlasted-behind", threads).before(vec![Enter(0, Write)])
}

/// Writers that give up beside readers, of which each stays until all are inside.
fn timed_beside(at: u32) -> Scenario {
    let writer = || vec![Timed(at, 0, Write); 2];
    let reader = || vec![Together(0, 3)];
    let threads = vec![reader(), writer(), reader(), writer(), reader()];
    Scenario::new(&format!("timed-beside-{at}"), threads)
}

/// A lock in which the parent of this process has left marks.
fn inherited(at: u32) -> Scenario {
    let mut threads = vec![vec![Leave(0, Write)]];
    threads.resize(4, vec![Section(0, Write); 2]);
    let waits = Interrupted(at, vec![Fork], Box::new(Timed(NEVER_LATE, 0, Write)));
    Scenario::new(&format!("inherited-{at}"), threads).before(vec![Enter(0, Write), waits])
}

/// A latch that five wait for.
fn latch() -> Scenario {
    let mut threads = vec![vec![Leave(0, Write)]];
    threads.resize(6, vec![Section(0, Read)]);
    Scenario::new("latch", threads).before(vec![Enter(0, Write)])
}

/// The same, where most of them have a deadline, and it stays closed until one was over.
fn timed_latch(at: u32) -> Scenario {
    let timed = |cpu| vec![Timed((at + cpu) % 6, 0, Read)];
    let arrives = vec![Timed(at, 0, Read), Arrive];
    let mut threads = vec![vec![Outlast(0, Write, 1)], vec![Section(0, Read)], arrives];
    threads.extend((1..4).map(timed));
    Scenario::new(&format!("timed-latch-{at}"), threads).before(vec![Enter(0, Write)])
}

/// A heavy barrier that is obtained while some sleep.
fn obtained() -> Scenario {
    let section = || vec![Section(0, Write); 2];
    let obtains = vec![Obtain, Section(0, Write)];
    let threads = vec![vec![Leave(0, Write)], section(), obtains, section(), section()];
    Scenario::new("obtained", threads).before(vec![Enter(0, Write)])
}

/// Readers that become writers, and the reverse, between others.
fn converting() -> [Scenario; 5] {
    let upgrades = |looks| {
        vec![Enter(0, Upgradable), Upgrade(0, looks), Leave(0, Upgradable), Section(0, Write)]
    };
    let downgrades = |to| vec![Enter(0, Write), Downgrade(0, Write, to), Leave(0, to)];
    let twice = [
        downgrades(Upgradable),
        vec![Enter(0, Write), Downgrade(0, Write, Upgradable), Downgrade(0, Upgradable, Read)],
        vec![Leave(0, Read)],
    ]
    .concat();
    let both = || vec![Section(0, Read), Section(0, Write), Section(0, Read)];
    // Past a waiter, before it reads on beside it.
    let stays = vec![
        Leave(0, Write),
        Enter(0, Write),
        Downgrade(0, Write, Upgradable),
        Outlast(0, Upgradable, 1),
    ];
    let given_up = vec![Upgrade(0, Some(2)), Stay(2), Leave(0, Upgradable), Leave(0, Read)];
    [
        Scenario::new(
            "converting",
            vec![upgrades(None), upgrades(Some(2)), downgrades(Read), twice, both(), both()],
        ),
        kept_inside("kept-upgradable", Read, Upgradable),
        kept_inside("kept-reader", Upgradable, Read),
        Scenario::new("upgrade-given-up", vec![given_up, vec![Together(0, 2)]])
            .before(vec![Enter(0, Read), Enter(0, Upgradable)]),
        Scenario::new("gives-up-elsewhere", vec![vec![Timed(4, 0, Upgradable), Arrive], stays])
            .before(vec![Enter(0, Write)]),
    ]
}

/// A writer that becomes a reader, and stays until another one is inside.
fn kept_inside(name: &str, to: Mode, waiter: Mode) -> Scenario {
    let first = vec![Downgrade(0, Write, to), Stay(2), Leave(0, to)];
    let second = vec![Enter(0, waiter), Stay(2), Leave(0, waiter)];
    Scenario::new(name, vec![first, second]).before(vec![Enter(0, Write)])
}

/// Two latches; one that waits for the second is interrupted, and the interrupt opens the first.
fn opened_by_interrupt(at: u32) -> Scenario {
    let interrupted = vec![Interrupted(at, vec![Leave(0, Write)], Box::new(Section(1, Read)))];
    let mut threads = vec![vec![Leave(1, Write)], interrupted];
    threads.resize(5, vec![Section(0, Read), Section(1, Read)]);
    Scenario::new(&format!("opened-by-interrupt-{at}"), threads)
        .before(vec![Enter(0, Write), Enter(1, Write)])
        .locks(2)
}

/// Readers and writers, and those that are both.
fn readers() -> [Scenario; 2] {
    let write = |times| vec![Section(0, Write); times];
    let read = |times| vec![Section(0, Read); times];
    let both = || vec![Section(0, Read), Section(0, Write), Try(0, Read), Section(0, Read)];
    let readers = vec![write(2), read(3), read(3), read(3), write(1)];
    [Scenario::new("readers", readers), Scenario::new("readers-eight", vec![both(); 8])]
}

/// Readers that interrupt readers of the same lock, while writers come.
fn readers_interrupted() -> Scenario {
    let read = || vec![Section(0, Read)];
    let interrupted =
        |at| vec![Interrupted(at, read(), Box::new(Section(0, Read))), Section(0, Write)];
    let write = vec![Section(0, Write); 2];
    let threads = vec![interrupted(1), interrupted(2), interrupted(4), interrupted(6), write];
    Scenario::new("readers-interrupted", threads)
}

/// Queues that are complete before the lock is released for the first time, on two places and on
/// three; and waiters of which some are urgent.
fn for_near(traits: Traits) -> Vec<Scenario> {
    let write = |times| vec![Section(0, Write); times];
    let full = |name: &str, cpus, times, places| {
        // All of them queue: the holder waits for one less where there is a pending waiter.
        let mut threads = vec![vec![LeaveAfter(0, Write, cpus - 2), Section(0, Write)]];
        threads.resize(cpus, write(times));
        Scenario::new(name, threads).before(vec![Enter(0, Write)]).places(places)
    };
    let urgent = |cpu| match cpu {
        0 => vec![LeaveAfter(0, Write, 4)],
        2 | 5 => vec![Interrupted(0, write(1), Box::new(Section(1, Write))); 2],
        _ => write(2),
    };
    let urgent = Scenario::new("urgent", (0..8).map(urgent).collect()).locks(2);
    let mut scenarios = vec![
        full("full", 6, 3, 2),
        full("full-places", 9, 2, 3),
        urgent.before(vec![Enter(0, Write)]),
    ];
    if traits.halts {
        scenarios.push(full("full-vain", 6, 2, 2).vain_halts(2));
    }
    scenarios
}

/// Three locks whose only waiters halt at once, in a table with as many entries as there are CPUs.
fn heads() -> Scenario {
    let locks = 0..3;
    let mut threads = vec![locks.clone().map(|lock| Leave(lock, Write)).collect()];
    threads.extend(locks.clone().map(|lock| vec![Section(lock, Write); 2]));
    Scenario::new("heads", threads).before(locks.map(|lock| Enter(lock, Write)).collect()).locks(3)
}

/// Four CPUs, each interrupted once, by a handler with a lock of its own.
fn interrupted(at: u32) -> Scenario {
    let thread = |cpu: u32| level(at + cpu % 2, vec![Section(1, Write)], 0);
    Scenario::new(&format!("interrupted-{at}"), (0..4).map(thread).collect()).locks(2)
}

/// Six CPUs, each interrupted within interrupts, each level with a lock of its own. A waiter has
/// its node from its eighth operation or so.
fn nested(at: u32) -> Scenario {
    let levels = |at| (0..=DEPTH).rev().fold(Vec::new(), |handler, lock| level(at, handler, lock));
    let threads = (0..6).map(|cpu| levels(at + cpu % 2)).collect();
    let mut scenario = Scenario::new(&format!("nested-{at}"), threads).locks(DEPTH + 1);
    // A deep level has no node, and its service no order.
    scenario.fifo = false;
    // An owner may sleep for the next lock. If an interrupt waited for it that keeps the sleepers' bucket locked, it
    // would wait for ever: a limit of the sleepers, which pct4 comes to once in some thousand schedules.
    scenario.interrupts_buckets = false;
    scenario
}

fn level(at: u32, handler: Vec<Step>, lock: usize) -> Vec<Step> {
    let section = Section(lock, Write);
    vec![if handler.is_empty() { section } else { Interrupted(at, handler, Box::new(section)) }]
}
