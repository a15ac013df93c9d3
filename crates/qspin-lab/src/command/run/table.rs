//! The table of a program's locks, at its end or while it runs, for people and as JSON.

use std::cell::RefCell;

use qspin_table::{Columns, fixed};
use serde_json::{Map, Value, json};

use crate::report::number::rate;

use super::deadlock;
use super::report::{self, Kind, LEFT, Lock, Process, Report, Thread, Wait};
use super::symbols::{Maps, Names};

/// So many locks are shown: those that were waited for longest, then those that were taken most.
const SHOWN: usize = 12;

/// The locks of each process that loaded the library.
pub(super) fn text(report: &Report, maps: &Maps) -> String {
    let mut shown: Vec<_> = report.processes.iter().filter(|process| process.counts).collect();
    let all = shown.len();
    if all > 1 {
        // Shells, mostly.
        shown.retain(|process| {
            !process.locks.is_empty() || process.left.iter().any(|left| *left > 0)
        });
    }
    let mut text: String = shown
        .iter()
        .map(|process| {
            let map = map_of(process, maps);
            let head =
                if all > 1 { format!("process {}: ", process.number) } else { String::new() };
            head + &text_of(process, map, None)
        })
        .collect();
    if all > shown.len() {
        text += &format!("processes that took no lock: {}\n", all - shown.len());
    }
    if report.without_slot > 0 {
        text += &format!(
            "and {} more processes, which were not counted: there is room for {}\n",
            report.without_slot,
            report::SLOTS
        );
    }
    text
}

/// The latest map of a process's memory that there is: libraries come while a program runs.
pub(super) fn map_of<'a>(process: &'a Process, maps: &'a Maps) -> &'a str {
    let maps = [process.map.as_str(), maps.of(process.slot), &process.first_map];
    maps.into_iter().find(|map| !map.is_empty()).unwrap_or_default()
}

/// A process's locks, those that were waited for longest first.
fn sorted(process: &Process) -> Vec<&Lock> {
    let mut locks: Vec<_> = process.locks.iter().collect();
    locks.sort_by_key(|lock| core::cmp::Reverse((lock.wait_ns, lock.acquisitions)));
    locks
}

/// What a process had counted at the look before, and how many seconds ago that was.
pub(super) type Before<'a> = Option<(&'a Process, f64)>;

/// Acquisitions of a lock a second since then; `None` where that is not known, as after a reset.
fn per_second(lock: &Lock, before: Before<'_>) -> Option<f64> {
    let (before, seconds) = before?;
    let same = before.locks.iter().find(|other| other.address == lock.address);
    let gained = lock.acquisitions.checked_sub(same.map_or(0, |lock| lock.acquisitions))?;
    Some(gained as f64 / seconds)
}

/// Where a lock is waited for most, or taken most if no thread waits.
fn place(lock: &Lock, process: &Process, names: &RefCell<Names>) -> Option<String> {
    let site = lock.sites.iter().map(|(site, _)| *site).find(|site| *site != 0)?;
    let of_lock =
        || process.stacks.iter().filter(|stack| lock.address != 0 && stack.lock == lock.address);
    let most = of_lock().filter(|stack| stack.waits > 0).max_by_key(|stack| stack.waited_ns);
    let most = most.or_else(|| of_lock().max_by_key(|stack| stack.holds));
    // One frame is known of every lock, the others of those that have a stack.
    let found = match most {
        Some(stack) => names.borrow_mut().place(&stack.frames),
        None => names.borrow_mut().place(&[site]),
    };
    found.map(|frame| frame.text())
}

/// The release that kept the others waiting longest, all together, and its share of what they waited.
fn culprit(lock: &Lock, process: &Process, names: &RefCell<Names>) -> Option<(String, f64)> {
    let blamed =
        || process.stacks.iter().filter(|stack| stack.lock == lock.address && stack.delayed_ns > 0);
    let all: u64 = blamed().map(|stack| stack.delayed_ns).sum();
    let mut functions = std::collections::BTreeMap::<String, u64>::new();
    for stack in blamed() {
        let place = names.borrow_mut().place(&stack.frames)?;
        *functions.entry(place.text()).or_default() += stack.delayed_ns;
    }
    let (place, most) = functions.into_iter().max_by_key(|(_, delayed)| *delayed)?;
    Some((place, most as f64 / all as f64))
}

/// Where the longest wait was.
fn longest(lock: &Lock, process: &Process, names: &RefCell<Names>) -> Option<String> {
    let stack = process.stacks.iter().find(|stack| stack.place == lock.longest_stack)?;
    names.borrow_mut().place(&stack.frames).map(|frame| frame.text())
}

/// What people call a lock: a variable, or its address.
fn name(lock: &Lock, names: &RefCell<Names>) -> String {
    match lock.address {
        0 => "others".to_owned(),
        address => names.borrow().variable(address).unwrap_or_else(|| format!("{address:#x}")),
    }
}

/// What is known of a process's locks; all of them.
pub(super) fn json(process: &Process, map: &str, before: Before<'_>) -> Value {
    let names = RefCell::new(Names::of(map));
    let each = |lock: &Lock| {
        let mut value = json!({
            "address": (lock.address != 0).then(|| format!("{:#x}", lock.address)),
            "acquisitions": lock.acquisitions,
            "contended": lock.contended,
            "wait_ns": lock.wait_ns,
            "wait_p99_ns": lock.wait_p99_ns,
            "hold_p99_ns": lock.hold_p99_ns,
            "longest_wait_ns": lock.longest_wait_ns,
            "longest_wait_where": longest(lock, process, &names),
            "name": name(lock, &names),
            "where": place(lock, process, &names),
            "waits": lock.waits,
            "holds": lock.holds,
        });
        if let Some((place, share)) = culprit(lock, process, &names) {
            value["blamed"] = json!(place);
            value["blamed_share"] = json!(share);
        }
        if let Some(rate) = per_second(lock, before) {
            value["acquisitions_per_s"] = json!(rate);
        }
        value
    };
    let left: Map<String, Value> =
        LEFT.iter().zip(process.left).map(|(what, many)| ((*what).into(), many.into())).collect();
    json!({
        "served_by": process.lock,
        "rwlocks_served_by": (!process.rwlock.is_empty()).then_some(&process.rwlock),
        "locks": sorted(process).into_iter().map(each).collect::<Vec<_>>(),
        "acquisitions_without_a_row": process.lost,
        "left_to_the_c_library": left,
        "unfinished_waits": long_waits(process)
            .map(|(thread, wait, age)| json!({
                "thread": thread.number,
                "for": deadlock::object(wait.kind, wait.address, &names.borrow()),
                "age_ns": age,
                "where": names.borrow_mut().place(&wait.frames).map(|frame| frame.text()),
            }))
            .collect::<Vec<_>>(),
        "stacks_without_a_place": process.stacks_lost,
    })
}

pub(super) fn text_of(process: &Process, map: &str, before: Before<'_>) -> String {
    let locks = sorted(process);
    let all: u64 = locks.iter().map(|lock| lock.acquisitions).sum();
    let contended: u64 = locks.iter().map(|lock| lock.contended).sum();
    let whose = if process.is_of_the_crate() {
        "locks of the crate qspin:".to_owned()
    } else {
        let rwlocks = match &*process.rwlock {
            "" => String::new(),
            name => format!(", reader-writer locks by {name}"),
        };
        format!("mutexes are served by {}{rwlocks};", process.lock)
    };
    let mut text = format!(
        "{whose} {} locks, {all} acquisitions, {contended} of them contended\n",
        locks.len()
    );
    if locks.is_empty() {
        return text + &unfinished(process, &RefCell::new(Names::of(map))) + &left_of(process);
    }
    let names = RefCell::new(Names::of(map));
    let microseconds = |ns: Option<u64>| ns.map(|ns| fixed(ns as f64 / 1e3, 1));
    let mut columns = Columns::<Lock>::new().text("lock", |lock| name(lock, &names)).number(
        "acquisitions",
        "",
        |lock| lock.acquisitions,
    );
    if before.is_some() {
        columns = columns.number("per second", "", |lock| per_second(lock, before).map(rate));
    }
    let columns = columns
        .number("contended", "%", |lock| {
            fixed(100.0 * lock.contended as f64 / lock.acquisitions as f64, 2)
        })
        .number("waited", "ms", |lock| fixed(lock.wait_ns as f64 / 1e6, 1))
        .number("wait p99", "us", |lock| microseconds(lock.wait_p99_ns))
        .number("hold p99", "us", |lock| microseconds(lock.hold_p99_ns))
        .number("longest wait", "us", |lock| {
            microseconds(Some(lock.longest_wait_ns).filter(|ns| *ns > 0))
        })
        .text("where", |lock| place(lock, process, &names))
        .text("held up most by", |lock| {
            let (place, share) = culprit(lock, process, &names)?;
            Some(format!("{place} {:.0} %", 100.0 * share))
        });
    text += &format!("{}\n", columns.table(locks.iter().copied().take(SHOWN)));
    if locks.len() > SHOWN {
        text += &format!("and {} more, which were waited for less\n", locks.len() - SHOWN);
    }
    if process.lost > 0 {
        text += &format!(
            "{} acquisitions of locks beyond the 2047 that have a row each are in `others`, about\n",
            process.lost
        );
    }
    text + &unfinished(process, &names) + &left_of(process)
}

/// Waits that have lasted long, and have not ended.
fn long_waits(process: &Process) -> impl Iterator<Item = (&Thread, &Wait, u64)> {
    const LONG_NS: u64 = 100_000_000;
    process.threads.iter().filter_map(|thread| {
        let wait = thread.wait.as_ref()?;
        let age = deadlock::age_ns(wait.since_ns);
        let is_lock = !matches!(wait.kind, Kind::Condition | Kind::Join);
        (is_lock && age >= LONG_NS).then_some((thread, wait, age))
    })
}

fn unfinished(process: &Process, names: &RefCell<Names>) -> String {
    long_waits(process)
        .map(|(thread, wait, age)| {
            let what = deadlock::object(wait.kind, wait.address, &names.borrow());
            let place = names
                .borrow_mut()
                .place(&wait.frames)
                .map(|frame| format!(", in {}", frame.text()));
            format!(
                "thread {} waits for {what} since {:.1} s{}\n",
                thread.number,
                age as f64 / 1e9,
                place.unwrap_or_default()
            )
        })
        .collect()
}

/// What the process's locks are not.
fn left_of(process: &Process) -> String {
    if process.is_of_the_crate() {
        return String::new();
    }
    let left: Vec<String> = LEFT
        .iter()
        .zip(process.left)
        .filter(|(_, many)| *many > 0)
        .map(|(what, many)| format!("{many} {what}"))
        .collect();
    if left.is_empty() {
        "nothing was left to the C library\n".to_owned()
    } else {
        format!("left to the C library: {}\n", left.join(", "))
    }
}
