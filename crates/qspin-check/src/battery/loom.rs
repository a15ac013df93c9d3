//! What loom runs a lock through: every schedule of two CPUs, and those of three with at most
//! four preemptions.

mod sleeping;

use std::sync::Arc;

use super::{Check, Program};
use crate::model::Traits;
use crate::scenario::Mode::{self, Read, Write};
use crate::scenario::Scenario;
use crate::scenario::Step::{
    self, Arrive, Enter, Free, Interrupted, Leave, LeaveAfter, Outlast, Section, Settle, Together,
    Try, Watched,
};
use crate::trace::Turn;

/// Every schedule.
const UNBOUNDED: Option<usize> = None;
/// Preemptions of three CPUs.
const THREE: Option<usize> = Some(4);
/// Preemptions of four CPUs: more are minutes.
const FOUR: Option<usize> = Some(2);
/// Preemptions of two CPUs that acquire twice: every schedule is more than a minute for a lock
/// with nodes.
const TWICE: Option<usize> = Some(5);

/// Preemptions where waiters halt.
const HALTED: Option<usize> = Some(3);
/// The same for a step of such a lock, which meets what it changes sooner, and where all waiters watch one word.
const HALTED_STEP: usize = 2;
/// Preemptions of a NUMA-aware lock where it goes through everything. With fewer than three waiters
/// no waiter is put aside, and it does what its counterpart does, which is explored farther.
const NEAR: usize = 3;
/// The same where waiters halt.
const NEAR_HALTED: usize = 2;

/// The same where they sleep beside the lock: joining the sleepers is twenty steps.
const SLEEPING: usize = 2;
/// Two of them that do little else: what comes between a store and the load after it takes the third.
const SLEEPING_BRIEF: Option<usize> = Some(3);
/// The same of three contexts where they do that twice, to read and to upgrade.
const SLEEPING_LONG: usize = 1;
/// The same where deadlines are over at every step in turn, and it takes no preemption until the waiters wait.
const TIMED: Option<usize> = Some(1);
/// The same where the holder is not the last to run: it takes one to let the waiters come.
const TIMED_BETWEEN: Option<usize> = Some(2);
/// Four such, or of a step where waiters halt.
const SLEEPING_FOUR: Option<usize> = Some(1);

/// The same where waiters halt, and one of them comes again, or there is one more: one preemption is 100 000 executions.
const NEVER: Option<usize> = Some(0);
/// Four CPUs, whose queue is complete before the lock is released for the first time.
const ASIDE: Option<usize> = Some(1);
/// The same with four CPUs, or where a halt of three that watch one word ends in vain.
const HALTED_FOUR: Option<usize> = Some(2);

fn one(preemptions: Option<usize>, scenario: Scenario) -> Check {
    Check { program: Program::One(Arc::new(scenario)), preemptions }
}

fn every(preemptions: Option<usize>, scenario: fn(u32) -> Scenario) -> Check {
    Check { program: Program::EveryOperation(scenario), preemptions }
}

/// A lock that is held when two others come for it.
fn held(name: &str, mode: Mode, second: Vec<Step>, third: Vec<Step>) -> Scenario {
    Scenario::new(name, vec![vec![Leave(0, mode)], second, third]).before(vec![Enter(0, mode)])
}

fn write() -> Vec<Step> {
    vec![Section(0, Write)]
}

fn read() -> Vec<Step> {
    vec![Section(0, Read)]
}

/// The check that a lock whose release waits does not pass.
#[must_use]
pub fn of_waiting_release() -> Check {
    every(UNBOUNDED, crossed)
}

/// What loom runs a lock through, cheap checks first.
#[must_use]
pub fn for_loom(traits: Traits) -> Vec<Check> {
    if traits.halts {
        return for_halting(traits);
    }
    if traits.near_first && traits.step {
        return for_near();
    }
    let most = if traits.near_first { NEAR } else { usize::MAX };
    up_to(most, for_spinning(traits))
}

/// With at most so many preemptions.
fn up_to(most: usize, mut checks: Vec<Check>) -> Vec<Check> {
    for check in checks.iter_mut().filter(|_| most < usize::MAX) {
        check.preemptions = Some(check.preemptions.map_or(most, |own| own.min(most)));
    }
    checks
}

fn for_spinning(traits: Traits) -> Vec<Check> {
    let twice = || vec![Section(0, Write); 2];
    let try_last = vec![Section(0, Write), Try(0, Write)];
    let try_first = vec![Try(0, Write), Section(0, Write)];
    let watched = || vec![Watched(0, Write)];
    let mut checks = vec![
        one(UNBOUNDED, Scenario::new("two", vec![watched(), watched()])),
        one(UNBOUNDED, Scenario::new("try", vec![write(), vec![Try(0, Write)]])),
        every(UNBOUNDED, interrupted),
        one(TWICE, Scenario::new("try-twice", vec![try_last, try_first])),
        one(TWICE, Scenario::new("two-twice", vec![twice(), twice()])),
        one(THREE, held("queue", Write, write(), write())),
        one(THREE, Scenario::new("three", vec![write(), write(), write()])),
    ];
    if traits.freed {
        checks.extend(for_freed(traits));
    }
    if !traits.release_waits {
        checks.push(of_waiting_release());
    }
    if traits.nodes {
        checks.extend(for_nodes());
        if !traits.crowded {
            // Three waiters: the one that is handed the queue has another behind it.
            checks.push(one(FOUR, Scenario::new("four", vec![write(); 4])));
        }
    }
    if traits.shared {
        checks.extend(for_readers());
    }
    checks
}

/// The last one to acquire the lock frees it, perhaps before the release that let it in has come to its end.
fn for_freed(traits: Traits) -> Vec<Check> {
    let frees = |users, mode| vec![Section(0, mode), Free(0, users)];
    let two = |name, held, mode| {
        // The one that leaves last: it takes no preemption then until the other one waits.
        let threads = vec![frees(1, mode), vec![Leave(0, held)]];
        one(HALTED, Scenario::new(name, threads).before(vec![Enter(0, held)]))
    };
    let mut checks = vec![two("freed", Write, Write)];
    if !traits.long {
        let queue = held("freed-queue", Write, frees(2, Write), frees(2, Write));
        checks.push(one(SLEEPING_FOUR, queue));
    }
    if traits.sleeps && traits.asymmetric && traits.brief {
        // The waiter for another lock sleeps in the same bucket.
        let releases = vec![Leave(0, Write), Leave(1, Write)];
        let threads = vec![vec![Section(1, Write)], releases, frees(1, Write)];
        let both = Scenario::new("freed-beside", threads).locks(2);
        checks.push(one(SLEEPING_FOUR, both.before(vec![Enter(0, Write), Enter(1, Write)])));
    }
    if traits.shared {
        checks.push(two("freed-by-writer", Read, Write));
    }
    if traits.shared && !traits.reads_on {
        checks.extend([
            two("freed-by-reader", Write, Read),
            one(SLEEPING_FOUR, held("freed-readers", Write, frees(2, Read), frees(2, Write))),
        ]);
    }
    checks
}

/// Three that have queued when the lock is released for the first time: the head, one that is far,
/// and one behind that.
fn aside(name: &str, holder: Vec<Step>, second: Vec<Step>, third: Vec<Step>) -> Scenario {
    let holder = [vec![LeaveAfter(0, Write, 3)], holder].concat();
    Scenario::new(name, vec![holder, second, third, write()]).before(vec![Enter(0, Write)])
}

fn for_near() -> Vec<Check> {
    let twice = || vec![Section(0, Write); 2];
    // An interrupt that comes before anything else is a waiter that is urgent.
    let urgent = vec![Interrupted(0, write(), Box::new(Section(1, Write)))];
    vec![
        one(HALTED, Scenario::new("two-twice", vec![twice(), twice()])),
        one(HALTED, held("queue", Write, write(), write())),
        one(ASIDE, aside("aside", vec![], write(), write())),
        one(ASIDE, aside("aside-again", write(), write(), write())),
        one(ASIDE, aside("aside-twice", vec![], twice(), write())),
        one(ASIDE, aside("aside-urgent", vec![], write(), urgent).locks(2)),
    ]
}

/// A waiter that was handed the lock while it was halted, wakes for no reason and may arrange the queue: while the release
/// that kicks ahead looks at the queue, and one more has joined it. The release is interrupted until then.
fn claimed(at: u32) -> Scenario {
    let interrupt = vec![Arrive, Settle(Turn::Last)];
    let second = vec![Enter(0, Write), Interrupted(at, interrupt, Box::new(Leave(0, Write)))];
    let holder = vec![LeaveAfter(0, Write, 3), Outlast(1, Write, 1), Section(0, Write)];
    Scenario::new("claimed", vec![holder, second, write(), write()])
        .before(vec![Enter(0, Write), Enter(1, Write)])
        .locks(2)
        .vain_halt_of(2)
}

fn for_near_halting() -> Vec<Check> {
    let twice = || vec![Section(0, Write); 2];
    let plain = |name| aside(name, vec![], write(), write());
    vec![
        one(HALTED_FOUR, Scenario::new("two-twice", vec![twice(), twice()])),
        one(HALTED_FOUR, held("queue-vain", Write, write(), write()).vain_halts(1)),
        one(ASIDE, plain("aside")),
        one(ASIDE, plain("aside-vain").vain_halts(1)),
        one(NEVER, aside("aside-again", write(), write(), write())),
        every(NEVER, claimed),
    ]
}

fn for_nodes() -> Vec<Check> {
    let twice = vec![Section(0, Write); 2];
    vec![
        one(THREE, held("again", Write, twice, write())),
        one(THREE, held("numberless", Write, write(), write()).numberless(2)),
        one(THREE, held("levels-used", Write, write(), write()).nested(1, 3).nested(2, 4)),
    ]
}

/// Halting takes more steps than spinning, and there are more ways through them; so the bounds are
/// lower, and where only a step of the slow path differs, only what meets it is run.
fn for_halting(traits: Traits) -> Vec<Check> {
    if traits.near_first && traits.step {
        return for_near_halting();
    }
    if traits.latch {
        return sleeping::for_latch(traits);
    }
    if traits.inherited {
        return sleeping::for_forks();
    }
    if traits.late {
        return sleeping::for_late_barrier();
    }
    if traits.converts {
        return sleeping::for_converting();
    }
    let most = match traits {
        Traits { longer: true, .. } => 0,
        Traits { long: true, .. } => SLEEPING_LONG,
        Traits { sleeps: true, .. } => SLEEPING,
        Traits { near_first: true, .. } => NEAR_HALTED,
        Traits { step: true, brief: false, .. } | Traits { crowded: true, .. } => HALTED_STEP,
        _ => usize::MAX,
    };
    let mut checks = up_to(most, for_halting_in_turn(traits));
    if traits.sleeps && traits.step {
        // A halt that ends in vain is one of the mutex's, and of the lock of which this is a step.
        checks.retain(|check| !check.name().ends_with("vain"));
    }
    for check in checks.iter_mut().filter(|check| check.threads() == 2) {
        if traits.brief {
            check.preemptions = SLEEPING_BRIEF;
        } else if traits.longer {
            check.preemptions = Some(SLEEPING_LONG);
        } else if traits.long && !traits.timed {
            check.preemptions = Some(SLEEPING);
        }
    }
    checks
}

fn for_halting_in_turn(traits: Traits) -> Vec<Check> {
    let watched = || vec![Watched(0, Write)];
    let twice = || vec![Section(0, Write); 2];
    let queue = |name| held(name, Write, write(), write());
    let mut checks = vec![
        one(HALTED, Scenario::new("two-twice", vec![twice(), twice()])),
        one(HALTED, Scenario::new("vain", vec![twice(), twice()]).vain_halts(1)),
        one(HALTED, queue("queue")),
        one(HALTED_FOUR, queue("queue-vain").vain_halts(1)),
    ];
    if !traits.crowded {
        let bound = if traits.sleeps || traits.step { SLEEPING_FOUR } else { HALTED_FOUR };
        checks.push(one(bound, Scenario::new("four", vec![write(); 4])));
    }
    if traits.timed {
        return sleeping::for_timed(traits);
    }
    if traits.freed {
        checks.extend(for_freed(traits));
    }
    if traits.wakes_all {
        checks.push(one(HALTED_FOUR, elsewhere()));
    }
    if traits.shared {
        checks.extend(for_halting_readers());
    }
    if traits.interrupted {
        checks.push(every(HALTED, interrupted_reader));
    }
    if traits.sleeps && !traits.asymmetric {
        checks.push(one(HALTED, bucket_is_held()));
    }
    if traits.sleeps && traits.asymmetric && traits.brief {
        checks.push(sleeping::epochs());
    }
    if traits.step {
        return checks;
    }
    let try_last = vec![Section(0, Write), Try(0, Write)];
    let try_first = vec![Try(0, Write), Section(0, Write)];
    checks.extend([
        one(UNBOUNDED, Scenario::new("two", vec![watched(), watched()])),
        one(UNBOUNDED, Scenario::new("try", vec![write(), vec![Try(0, Write)]])),
        one(HALTED, Scenario::new("try-twice", vec![try_last, try_first])),
        one(HALTED, Scenario::new("three", vec![write(), write(), write()])),
        every(HALTED, interrupted),
    ]);
    if !traits.release_waits {
        checks.push(every(HALTED, crossed));
    }
    if traits.nodes {
        let heads = vec![vec![Leave(0, Write), Leave(1, Write)], write(), vec![Section(1, Write)]];
        let two_locks = if traits.sleeps { SLEEPING_FOUR } else { HALTED };
        checks.extend([
            one(HALTED, held("again", Write, twice(), write())),
            one(HALTED, queue("numberless").numberless(2)),
            one(HALTED, queue("levels-used").nested(1, 3).nested(2, 4)),
            one(
                two_locks,
                Scenario::new("heads", heads)
                    .before(vec![Enter(0, Write), Enter(1, Write)])
                    .locks(2),
            ),
        ]);
    }
    checks
}

/// Readers that halt, and writers that do.
fn for_halting_readers() -> Vec<Check> {
    let together = || vec![Together(0, 2)];
    let write_read = vec![vec![Watched(0, Write)], vec![Watched(0, Read)]];
    let write_then_try = vec![Section(0, Write), Try(0, Read)];
    let try_then_read = vec![Try(0, Write), Section(0, Read)];
    vec![
        one(HALTED, Scenario::new("write-read", write_read)),
        one(HALTED, Scenario::new("share", vec![together(), together()])),
        one(HALTED, Scenario::new("try-read-twice", vec![write_then_try, try_then_read])),
        one(HALTED_FOUR, held("read-held", Read, write(), read())),
        one(HALTED_FOUR, held("write-held", Write, read(), read())),
        // An attempt in vain that is all that keeps a sleeping writer out, for a moment.
        one(HALTED_FOUR, held("read-held-try", Read, write(), vec![Try(0, Read)])),
    ]
}

/// A release may find the bucket locked by the waiter that is about to sleep there. It does not wait, but asks the waiter
/// to wake all sleepers (SLEEP-6). One nesting level of CPU 0 is in use from the start: where contexts may nest, no context
/// here waits for a bucket, since it may have interrupted the bucket's owner.
fn bucket_is_held() -> Scenario {
    Scenario::new("bucket-held", vec![write(), vec![Leave(0, Write)]])
        .before(vec![Enter(0, Write)])
        .nested(0, 1)
}

/// Two locks are held, and two come for the first. One of them goes on to the second, and so may sleep again while the
/// release of the first has others to wake.
fn elsewhere() -> Scenario {
    let threads = vec![
        vec![Section(0, Write), Section(1, Write)],
        write(),
        // Last, since it takes no preemption then that the others come first.
        vec![Leave(0, Write), Leave(1, Write)],
    ];
    Scenario::new("elsewhere", threads).before(vec![Enter(0, Write), Enter(1, Write)]).locks(2)
}

fn for_readers() -> Vec<Check> {
    let together = || vec![Together(0, 2)];
    let write_then_try = vec![Section(0, Write), Try(0, Read)];
    let try_then_read = vec![Try(0, Write), Section(0, Read)];
    let write_read = vec![vec![Watched(0, Write)], vec![Watched(0, Read)]];
    vec![
        one(UNBOUNDED, Scenario::new("write-read", write_read)),
        one(UNBOUNDED, Scenario::new("share", vec![together(), together()])),
        one(UNBOUNDED, Scenario::new("try-read", vec![write(), vec![Try(0, Read)]])),
        every(UNBOUNDED, interrupted_reader),
        one(TWICE, Scenario::new("try-read-twice", vec![write_then_try, try_then_read])),
        one(THREE, Scenario::new("write-read-read", vec![write(), read(), read()])),
        one(THREE, Scenario::new("write-write-read", vec![write(), write(), read()])),
        one(THREE, held("read-held", Read, write(), read())),
        one(THREE, held("write-held", Write, read(), read())),
    ]
}

/// A CPU that waits for lock 0 is interrupted, and the interrupt waits for lock 1. A CPU that holds both
/// releases them in the order opposite to that of acquisition.
fn interrupted(at: u32) -> Scenario {
    let release = vec![Leave(1, Write), Leave(0, Write)];
    interrupted_waiter("interrupted", at, release)
}

/// The same, released in the order of acquisition: a release must not wait for the interrupted
/// waiter.
fn crossed(at: u32) -> Scenario {
    let release = vec![Leave(0, Write), Leave(1, Write)];
    interrupted_waiter("crossed", at, release)
}

fn interrupted_waiter(name: &str, at: u32, release: Vec<Step>) -> Scenario {
    let waiter = vec![Interrupted(at, vec![Section(1, Write)], Box::new(Section(0, Write)))];
    Scenario::new(name, vec![release, waiter])
        .before(vec![Enter(0, Write), Enter(1, Write)])
        .locks(2)
}

/// A reader is interrupted by another one of the same lock while a writer comes.
fn interrupted_reader(at: u32) -> Scenario {
    let reader = vec![Interrupted(at, read(), Box::new(Section(0, Read)))];
    Scenario::new("interrupted-reader", vec![reader, write()])
}
