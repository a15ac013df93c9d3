//! The table of a program's locks, at its end or while it runs.

use std::cell::RefCell;
use std::fs::File;
use std::time::Duration;

use qspin_table::{Columns, fixed};

use crate::bench::interrupt::Interrupt;
use crate::command::proc;
use crate::failure::Failure;

use super::report::{self, Lock, Process, REASONS, Report};
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
            // The latest that there is: libraries come while a program runs.
            let maps = [process.map.as_str(), maps.of(process.slot), &process.first_map];
            let map = maps.into_iter().find(|map| !map.is_empty()).unwrap_or_default();
            let head =
                if all > 1 { format!("process {}: ", process.number) } else { String::new() };
            head + &text_of(process, map)
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

fn text_of(process: &Process, map: &str) -> String {
    let mut locks: Vec<_> = process.locks.iter().collect();
    locks.sort_by_key(|lock| core::cmp::Reverse((lock.wait_ns, lock.acquisitions)));
    let all: u64 = locks.iter().map(|lock| lock.acquisitions).sum();
    let contended: u64 = locks.iter().map(|lock| lock.contended).sum();
    let mut text = format!(
        "mutexes are served by {}; {} locks, {all} acquisitions, {contended} of them contended\n",
        process.lock,
        locks.len()
    );
    if locks.is_empty() {
        return text + &left_of(process);
    }
    let names = RefCell::new(Names::of(map));
    let place = |lock: &Lock| {
        let site = lock.sites.iter().map(|(site, _)| *site).find(|site| *site != 0)?;
        Some(names.borrow_mut().at(site))
    };
    let microseconds = |ns: Option<u64>| ns.map(|ns| fixed(ns as f64 / 1e3, 1));
    let columns = Columns::<Lock>::new()
        .text("lock", |lock| match lock.address {
            0 => "others".to_owned(),
            address => format!("{address:#x}"),
        })
        .number("acquisitions", "", |lock| lock.acquisitions)
        .number("contended", "%", |lock| {
            fixed(100.0 * lock.contended as f64 / lock.acquisitions as f64, 2)
        })
        .number("waited", "ms", |lock| fixed(lock.wait_ns as f64 / 1e6, 1))
        .number("wait p99", "us", |lock| microseconds(lock.wait_p99_ns))
        .number("hold p99", "us", |lock| microseconds(lock.hold_p99_ns))
        .number("longest wait", "us", |lock| {
            microseconds(Some(lock.longest_wait_ns).filter(|ns| *ns > 0))
        })
        .text("where", place);
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
    text + &left_of(process)
}

/// What the process's locks are not.
fn left_of(process: &Process) -> String {
    let left: Vec<String> = REASONS
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

/// The locks of a running process that `qspin run --stats` has started; `None` if it has none.
pub(in crate::command) struct Live {
    process: u32,
    file: File,
}

/// Looks for the locks of a process.
pub(in crate::command) fn live(process: u32) -> Option<Live> {
    // A program may have closed the file; `qspin run`, which has started it, still has it.
    let mut holder = process;
    for _ in 0..64 {
        let files = proc::files(holder, "/memfd:qspin-locks").unwrap_or_default();
        if let Some(live) = files.into_iter().find_map(|path| {
            let live = Live { process, file: File::open(path).ok()? };
            // The file is that of all that `qspin run` started.
            live.own().is_some().then_some(live)
        }) {
            return Some(live);
        }
        let status = proc::text(holder, "status")?;
        holder = proc::field(&status, "PPid")?.parse().ok().filter(|parent| *parent != 0)?;
    }
    None
}

/// Why a process whose locks are these has no table, if they are.
pub(in crate::command) fn why_not_live(process: u32) -> Option<&'static str> {
    let maps = proc::text(process, "maps")?;
    if !maps.contains(super::library::NAME) {
        return None;
    }
    Some(
        "its locks are those of `qspin run`, and are not counted: they are from the start on with --stats, and \
         not in the child of a fork",
    )
}

impl Live {
    fn own(&self) -> Option<Process> {
        let slot = report::slot_in(&proc::text(self.process, "maps")?)?;
        // The child of a fork has its parent's slot.
        let own = proc::own_number(&proc::text(self.process, "status")?)?;
        let found = report::read_slot(&self.file, slot).ok()??;
        (found.number == own && found.counts).then_some(found)
    }

    /// Shows the table once, or every `interval` until the process ends, or `count` times.
    pub(in crate::command) fn show(
        &self,
        interval: Option<Duration>,
        count: Option<u64>,
    ) -> Result<(), Failure> {
        let interrupt = Interrupt::on_signals()?;
        let mut times = 0;
        loop {
            let mut maps = Maps::default();
            maps.look_at(self.process);
            let Some(process) = self.own() else { return Ok(()) };
            super::super::say(&text_of(&process, maps.of(process.slot)))?;
            times += 1;
            let Some(interval) = interval.filter(|_| count != Some(times)) else { return Ok(()) };
            let slices = (interval.as_millis() / 50).max(1);
            for _ in 0..slices {
                std::thread::sleep(interval / slices as u32);
                if interrupt.is_raised() {
                    return Ok(());
                }
            }
        }
    }
}
