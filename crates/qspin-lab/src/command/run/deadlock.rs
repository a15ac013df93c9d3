//! Which threads wait for each other in a circle, by what each of them says that it waits for and holds.
//!
//! ```text
//!   a thread ── waits for ──► a lock ── is held by ──► a thread
//! ```
//!
//! # Invariants
//! * **DEADLOCK-1** A wait counts if it has no end of its own and was the same one before and after the holds were read:
//!   THREADS-2 of the library. So all waits and holds of a circle existed at one moment, and nothing but a signal handler
//!   or another process can end it. No circle is said that is none.
//! * **DEADLOCK-2** What a condition is signalled by is not known, so a wait for one is in no circle. If every thread of a
//!   process waits, and one of them for a condition, that is a suspicion.

use std::collections::BTreeMap;
use std::fs::File;

use super::report::{self, Hold, Kind, Thread};
use super::symbols::{Frame, Names};
use crate::command::proc;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// Each waits for something that the next one has, and the last for the first.
    Circle(Vec<Thread>),
    /// It waits for a lock of a thread that has ended.
    Orphan(Thread, u32),
    /// Every thread waits, and these for a condition.
    AllWait(Vec<Thread>),
}

impl Finding {
    /// The threads, by number and wait: the same finding is the same.
    pub(super) fn key(&self) -> Vec<(u32, u64)> {
        let threads = match self {
            Self::Circle(threads) | Self::AllWait(threads) => threads.as_slice(),
            Self::Orphan(thread, _) => core::slice::from_ref(thread),
        };
        let mut key: Vec<_> = threads.iter().map(|thread| (thread.number, thread.turn)).collect();
        key.sort_unstable();
        key
    }

    pub(super) fn is_certain(&self) -> bool {
        !matches!(self, Self::AllWait(_))
    }
}

/// Whether a thread with this hold keeps a wait of this kind for the same object from ending.
const fn excludes(hold: Kind, wait: Kind) -> bool {
    match wait {
        Kind::Mutex => matches!(hold, Kind::Mutex),
        Kind::Spin => matches!(hold, Kind::Spin),
        Kind::Write => matches!(hold, Kind::Read | Kind::Write),
        Kind::Read => matches!(hold, Kind::Write),
        Kind::Condition | Kind::Join => false,
    }
}

fn holds(thread: &Thread, kind: Kind, address: u64) -> Option<&Hold> {
    thread.holds.iter().rev().find(|hold| hold.address == address && excludes(hold.kind, kind))
}

/// The threads that the wait of this one can not end before.
fn waits_for(thread: &Thread, all: &[Thread]) -> Vec<usize> {
    let Some(wait) = &thread.wait else { return Vec::new() };
    let found = |test: &dyn Fn(&Thread) -> bool| -> Vec<usize> {
        all.iter().enumerate().filter(|(_, other)| test(other)).map(|(place, _)| place).collect()
    };
    if wait.kind == Kind::Join {
        return found(&|other| other.handle == wait.address);
    }
    let owners = found(&|other| holds(other, wait.kind, wait.address).is_some());
    if !owners.is_empty() || wait.kind != Kind::Read || !wait.writers_first {
        return owners;
    }
    // A reader behind a writer that waits.
    found(&|other| {
        other
            .wait
            .as_ref()
            .is_some_and(|other| other.kind == Kind::Write && other.address == wait.address)
    })
}

/// The shortest circle through `start`, by the places of its threads.
fn circle(start: usize, next: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut came_from = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(place) = queue.pop_front() {
        for &other in &next[place] {
            if other == start {
                let mut circle = vec![place];
                while let Some(before) = came_from.get(circle.last()?) {
                    circle.push(*before);
                }
                circle.reverse();
                return Some(circle);
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(other) {
                entry.insert(place);
                queue.push_back(other);
            }
        }
    }
    None
}

/// Of threads as they were at three looks, those whose wait is the same in the first and the last, with the holds of the
/// one between (DEADLOCK-1).
fn stuck(first: &[Thread], holds: &[Thread], last: &[Thread]) -> Vec<Thread> {
    let same = |thread: &&Thread| {
        let is_it = |other: &&Thread| other.number == thread.number && other.turn == thread.turn;
        thread.turn % 2 == 1
            && first.iter().any(|other| is_it(&other))
            && last.iter().any(|other| is_it(&other))
    };
    let lasts = |thread: &&Thread| thread.wait.as_ref().is_some_and(|wait| !wait.timed);
    holds.iter().filter(same).filter(lasts).cloned().collect()
}

/// What is wrong with a process whose threads are these. `alive`: the numbers of its threads, if they are known.
fn judge(stuck: &[Thread], all: &[Thread], alive: Option<&[u32]>) -> Vec<Finding> {
    let next: Vec<_> = stuck.iter().map(|thread| waits_for(thread, stuck)).collect();
    let mut found = Vec::new();
    let mut seen = vec![false; stuck.len()];
    for start in 0..stuck.len() {
        if seen[start] {
            continue;
        }
        if let Some(circle) = circle(start, &next) {
            circle.iter().for_each(|place| seen[*place] = true);
            found.push(Finding::Circle(circle.iter().map(|place| stuck[*place].clone()).collect()));
        }
    }
    let Some(alive) = alive else { return found };
    for thread in stuck {
        let Some(wait) = &thread.wait else { continue };
        let ended = all.iter().find(|other| {
            !alive.contains(&other.number) && holds(other, wait.kind, wait.address).is_some()
        });
        if let Some(owner) = ended {
            found.push(Finding::Orphan(thread.clone(), owner.number));
        }
    }
    let for_conditions: Vec<Thread> = stuck
        .iter()
        .filter(|thread| thread.wait.as_ref().is_some_and(|wait| wait.kind == Kind::Condition))
        .cloned()
        .collect();
    let all_wait = alive.iter().all(|number| stuck.iter().any(|thread| thread.number == *number));
    if found.is_empty() && all_wait && !for_conditions.is_empty() {
        found.push(Finding::AllWait(for_conditions));
    }
    found
}

/// The threads of a process, by their numbers as they know themselves, with their names.
pub(super) fn names_of_threads(process: u32) -> Option<BTreeMap<u32, String>> {
    let mut names = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let path = entry.ok()?.path();
        let Ok(status) = std::fs::read_to_string(path.join("status")) else { continue };
        if let Some(number) = proc::own_number(&status) {
            names.insert(number, proc::field(&status, "Name").unwrap_or_default().to_owned());
        }
    }
    Some(names)
}

/// A wait of this length is no part of the usual traffic: the kernel is asked whether its lock's owner lives.
const LASTING_NS: u64 = 50_000_000;

/// Looks for what is wrong with the process of a slot, which is `process` here.
pub(super) fn find(file: &File, slot: u64, process: u32) -> std::io::Result<Vec<Finding>> {
    let look = || report::threads(file, slot);
    let first = look()?;
    if !first.iter().any(|thread| thread.wait.is_some()) {
        return Ok(Vec::new());
    }
    let second = look()?;
    // Between the looks: a thread that is not there then has not begun a wait since. It takes a file for each thread,
    // so only if that says something: a wait for a lock has lasted, or every thread waits.
    let lasts = |wait: &report::Wait| {
        !wait.timed && wait.kind != Kind::Condition && age_ns(wait.since_ns) >= LASTING_NS
    };
    let alive: Option<Vec<u32>> =
        (second.iter().filter_map(|thread| thread.wait.as_ref()).any(lasts)
            || second.iter().all(|thread| thread.wait.is_some()))
        .then(|| names_of_threads(process).map(|names| names.into_keys().collect()))
        .flatten();
    let stuck = stuck(&first, &second, &look()?);
    Ok(judge(&stuck, &second, alive.as_deref()))
}

/// A thread as messages name it.
fn called(number: u32, threads: &BTreeMap<u32, String>) -> String {
    match threads.get(&number) {
        Some(name) => format!("thread {number} ({name})"),
        None => format!("thread {number}"),
    }
}

/// A finding in one line, for which nothing has to be looked up in files.
pub(super) fn headline(finding: &Finding, process: u32) -> String {
    let threads = names_of_threads(process).unwrap_or_default();
    match finding {
        Finding::Circle(circle) if circle.len() == 1 => {
            format!("deadlock: {} waits for itself", called(circle[0].number, &threads))
        }
        Finding::Circle(circle) => {
            let all: Vec<_> = circle.iter().map(|thread| called(thread.number, &threads)).collect();
            format!("deadlock: {} threads wait for each other: {}", circle.len(), all.join(", "))
        }
        Finding::Orphan(thread, owner) => format!(
            "deadlock: {} waits for a lock that is held by thread {owner}, which has ended",
            called(thread.number, &threads)
        ),
        Finding::AllWait(_) => {
            "suspicion: every thread waits, so no thread is left that could signal a condition"
                .to_owned()
        }
    }
}

/// The threads of a finding, with what they wait for and all stacks.
pub(super) fn text(finding: &Finding, process: u32, names: &mut Names) -> String {
    let threads = names_of_threads(process).unwrap_or_default();
    let mut text = String::new();
    match finding {
        Finding::Circle(circle) => {
            for (place, thread) in circle.iter().enumerate() {
                let owner = &circle[(place + 1) % circle.len()];
                text += &waiting(thread, &called(thread.number, &threads), names);
                text += &format!(
                    "    {}\n",
                    held(thread, owner, &called(owner.number, &threads), names)
                );
                text += &stack(thread, names);
            }
        }
        Finding::Orphan(thread, _) => {
            text += &waiting(thread, &called(thread.number, &threads), names);
            text += &stack(thread, names);
        }
        Finding::AllWait(all) => {
            for thread in all {
                text += &waiting(thread, &called(thread.number, &threads), names);
                text += &stack(thread, names);
            }
        }
    }
    text
}

/// An object as people call it.
pub(super) fn object(kind: Kind, address: u64, names: &Names) -> String {
    match names.variable(address) {
        Some(name) => format!("{} {name}", kind.object()),
        None => format!("{} {address:#x}", kind.object()),
    }
}

fn waiting(thread: &Thread, called: &str, names: &Names) -> String {
    let Some(wait) = &thread.wait else { return String::new() };
    let age = age_ns(wait.since_ns) as f64 / 1e9;
    let what = match wait.kind {
        Kind::Join => "the end of another thread".to_owned(),
        Kind::Read => format!("{}, to read", object(wait.kind, wait.address, names)),
        Kind::Write => format!("{}, to write", object(wait.kind, wait.address, names)),
        kind => object(kind, wait.address, names),
    };
    format!("  {called} waits for {what}, since {age:.1} s\n")
}

/// How long ago a time on the monotonic clock was.
pub(super) fn age_ns(since_ns: u64) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64).saturating_sub(since_ns)
}

fn held(thread: &Thread, owner: &Thread, called: &str, names: &mut Names) -> String {
    let Some(wait) = &thread.wait else { return String::new() };
    if wait.kind == Kind::Join {
        return format!("which is {called}");
    }
    match holds(owner, wait.kind, wait.address) {
        Some(hold) if hold.site != 0 => match names.place(&[hold.site]) {
            Some(frame) => format!("which {called} has taken in {}", frame.text()),
            None => format!("which {called} holds"),
        },
        Some(_) => format!("which {called} holds"),
        None => format!("for which {called} waits, to write, and that comes first"),
    }
}

/// What a thread waits for and holds.
pub(super) fn thread_text(
    thread: &Thread,
    threads: &BTreeMap<u32, String>,
    names: &mut Names,
) -> String {
    let called = called(thread.number, threads);
    let mut text = match &thread.wait {
        Some(_) => waiting(thread, &called, names) + &stack(thread, names),
        None => format!("  {called} waits for nothing\n"),
    };
    for hold in &thread.holds {
        text += &format!("    holds {}", object(hold.kind, hold.address, names));
        if let Some(place) = (hold.site != 0).then(|| names.place(&[hold.site])).flatten() {
            text += &format!(", taken in {}", place.text());
        }
        text += "\n";
    }
    text
}

/// The frames of a thread's wait, a line each.
fn stack(thread: &Thread, names: &mut Names) -> String {
    let Some(wait) = &thread.wait else { return String::new() };
    let frames: Vec<Frame> =
        wait.frames.iter().flat_map(|address| names.frames(*address).to_vec()).collect();
    frames.iter().map(|frame| format!("      at {}\n", frame.text())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report::Wait;
    use super::*;

    fn thread(number: u32, holds: &[(Kind, u64)], wait: Option<(Kind, u64)>) -> Thread {
        Thread {
            number,
            handle: 1000 + u64::from(number),
            turn: 7,
            wait: wait.map(|(kind, address)| Wait {
                kind,
                address,
                timed: false,
                writers_first: true,
                since_ns: 0,
                frames: Vec::new(),
            }),
            holds: holds
                .iter()
                .map(|(kind, address)| Hold { kind: *kind, address: *address, site: 0 })
                .collect(),
        }
    }

    fn found(threads: &[Thread]) -> Vec<Finding> {
        judge(&stuck(threads, threads, threads), threads, None)
    }

    fn numbers(finding: &Finding) -> Vec<u32> {
        finding.key().into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn circles_of_every_length_are_found_and_what_hangs_on_them_is_not_in_them() {
        for length in 1..=8_u64 {
            let mut threads: Vec<Thread> = (0..length)
                .map(|place| {
                    let next = (place + 1) % length;
                    thread(place as u32 + 1, &[(Kind::Mutex, place)], Some((Kind::Mutex, next)))
                })
                .collect();
            threads.push(thread(99, &[], Some((Kind::Mutex, 0))));
            let found = found(&threads);
            assert_eq!(found.len(), 1, "{length}: {found:?}");
            assert_eq!(numbers(&found[0]), (1..=length as u32).collect::<Vec<_>>());
            // One that runs breaks it.
            threads[0].wait = None;
            threads[0].turn = 8;
            assert_eq!(super::tests::found(&threads), [], "{length}");
        }
    }

    #[test]
    fn a_read_behind_a_writer_a_join_and_a_spinlock_close_a_circle() {
        let (read, write) = (Kind::Read, Kind::Write);
        let one = [thread(1, &[(read, 5)], Some((read, 5))), thread(2, &[], Some((write, 5)))];
        assert_eq!(numbers(&found(&one)[0]), [1, 2]);
        let mut readers_first = one;
        readers_first[0].wait.as_mut().unwrap().writers_first = false;
        assert_eq!(found(&readers_first), []);
        let join = [
            thread(1, &[(Kind::Spin, 5)], Some((Kind::Join, 1002))),
            thread(2, &[], Some((Kind::Spin, 5))),
        ];
        assert_eq!(numbers(&found(&join)[0]), [1, 2]);
        let upgrade = [thread(1, &[(read, 5)], Some((write, 5)))];
        assert_eq!(numbers(&found(&upgrade)[0]), [1]);
    }

    #[test]
    fn what_ends_by_itself_or_has_changed_meanwhile_is_in_no_circle() {
        let make = || {
            [
                thread(1, &[(Kind::Mutex, 5)], Some((Kind::Mutex, 6))),
                thread(2, &[(Kind::Mutex, 6)], Some((Kind::Mutex, 5))),
            ]
        };
        assert_eq!(found(&make()).len(), 1);
        let mut timed = make();
        timed[1].wait.as_mut().unwrap().timed = true;
        assert_eq!(found(&timed), []);
        let mut later = make();
        later[0].turn = 9;
        assert_eq!(judge(&stuck(&make(), &make(), &later), &make(), None), []);
        assert_eq!(judge(&stuck(&later, &make(), &make()), &make(), None), []);
    }

    #[test]
    fn a_condition_is_a_suspicion_and_only_if_every_thread_waits() {
        let threads =
            [thread(1, &[], Some((Kind::Condition, 5))), thread(2, &[], Some((Kind::Join, 1001)))];
        let stuck = stuck(&threads, &threads, &threads);
        let judged = judge(&stuck, &threads, Some(&[1, 2]));
        assert_eq!(judged.len(), 1);
        assert!(!judged[0].is_certain());
        assert_eq!(judge(&stuck, &threads, Some(&[1, 2, 3])), []);
        assert_eq!(judge(&stuck, &threads, None), []);
        let orphan = [thread(1, &[], Some((Kind::Mutex, 5))), thread(2, &[(Kind::Mutex, 5)], None)];
        let judged = judge(&super::stuck(&orphan, &orphan, &orphan), &orphan, Some(&[1]));
        assert_eq!(judged, [Finding::Orphan(orphan[0].clone(), 2)]);
    }
}
