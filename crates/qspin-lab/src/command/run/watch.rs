//! Watching a program's processes for deadlocks while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::time::{Duration, Instant};

use super::deadlock::{self, Finding};
use super::report;
use super::switch::Switch;
use super::symbols::Names;
use crate::command::{proc, tell};

/// How often it is looked. A circle is to be named within 100 ms.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// What is no circle may be about to end: it is said if it is there so long.
pub(super) const LASTING: Duration = Duration::from_secs(1);

/// What is done about a deadlock beside saying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnDeadlock {
    /// Nothing: the program goes on, as far as it can.
    Report,
    /// The process is sent SIGABRT.
    Abort,
}

/// Those that were said, and since when others are there.
pub(super) struct Watch {
    on_deadlock: OnDeadlock,
    /// The numbers of the processes of slots, as they are here: in a container a process has another one for itself.
    numbers: BTreeMap<u64, Option<u32>>,
    said: BTreeSet<Vec<(u32, u64)>>,
    since: BTreeMap<Vec<(u32, u64)>, Instant>,
}

impl Watch {
    pub(super) fn new(on_deadlock: OnDeadlock) -> Self {
        Self {
            on_deadlock,
            numbers: BTreeMap::new(),
            said: BTreeSet::new(),
            since: BTreeMap::new(),
        }
    }

    /// Whether this is to be said now.
    pub(super) fn is_news(&mut self, finding: &Finding) -> bool {
        let key = finding.key();
        let lasting = matches!(finding, Finding::Circle(_))
            || self.since.entry(key.clone()).or_insert_with(Instant::now).elapsed() >= LASTING;
        lasting && self.said.insert(key)
    }

    /// Looks at every process of the file, and says what is new.
    pub(super) fn look(&mut self, file: &File) {
        for (slot, own) in report::tracked(file) {
            let here = *self.numbers.entry(slot).or_insert_with(|| proc::number_here(own, slot));
            // Of one that is not seen no thread is known to have ended, and no name.
            let process = here.unwrap_or(0);
            let Ok(findings) = deadlock::find(file, slot, process) else { continue };
            for finding in &findings {
                if !self.is_news(finding) {
                    continue;
                }
                // At once; then, with names, as long as that takes.
                tell(&format!(
                    "process {}: {}",
                    here.unwrap_or(own),
                    deadlock::headline(finding, process)
                ));
                let map = proc::map(process).unwrap_or_default();
                eprint!("{}", deadlock::text(finding, process, &mut Names::of(&map)));
                // Asked anew: its number may be another process's by now.
                let is_it = here.is_some() && proc::number_here(own, slot) == here;
                if self.on_deadlock == OnDeadlock::Abort && finding.is_certain() && is_it {
                    // The first process of a container is ended by no other signal.
                    let signal = if own == 1 { libc::SIGKILL } else { libc::SIGABRT };
                    // SAFETY: no memory is touched.
                    unsafe { libc::kill(process as i32, signal) };
                }
            }
            if let Ok(switch) = Switch::of(file, slot)
                && switch.is_asked()
            {
                let mut names = Names::of(&proc::map(process).unwrap_or_default());
                tell(&format!("process {} was sent SIGQUIT", here.unwrap_or(own)));
                eprint!("{}", overview(file, slot, process, &mut names));
                switch.answer();
            }
        }
    }
}

/// What every thread of a process waits for and holds, and what is wrong with that.
pub(super) fn overview(file: &File, slot: u64, process: u32, names: &mut Names) -> String {
    let mut text = String::new();
    let findings = deadlock::find(file, slot, process).unwrap_or_default();
    let threads = report::threads(file, slot).unwrap_or_default();
    let alive = deadlock::names_of_threads(process).unwrap_or_default();
    let mut waiting = 0;
    for thread in
        threads.iter().filter(|thread| alive.is_empty() || alive.contains_key(&thread.number))
    {
        waiting += usize::from(thread.wait.is_some());
        if thread.wait.is_some() || !thread.holds.is_empty() {
            text += &deadlock::thread_text(thread, &alive, names);
        }
    }
    for finding in &findings {
        text += &format!("{}\n", deadlock::headline(finding, process));
        text += &deadlock::text(finding, process, names);
    }
    if findings.is_empty() {
        text += &format!("no deadlock is seen; {waiting} threads wait\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_circle_is_said_when_it_lasts_and_everything_once() {
        let mut watch = Watch::new(OnDeadlock::Report);
        let circle = Finding::Circle(Vec::new());
        assert!(watch.is_news(&circle));
        assert!(!watch.is_news(&circle), "once");
        let mut watch = Watch::new(OnDeadlock::Report);
        let all_wait = Finding::AllWait(Vec::new());
        assert!(!watch.is_news(&all_wait));
        *watch.since.get_mut(&all_wait.key()).unwrap() -= LASTING;
        assert!(watch.is_news(&all_wait));
    }
}
