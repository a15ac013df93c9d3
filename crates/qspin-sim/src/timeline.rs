//! What every CPU did when: for Perfetto (ui.perfetto.dev) and Chrome's `about:tracing`.
//!
//! # Format
//! The "Trace Event Format" of Chromium: JSON, one object per event, times in microseconds. There are three
//! groups of lanes: what each CPU does with locks (waits, holds), its state (preempted, halted), and which task
//! each processor runs.

use std::fmt::Write;

use crate::engine::{Time, to_ns};

/// How many steps are kept; later ones are cut off, and the timeline says so.
const MAX: usize = 1 << 20;

/// A step of a simulated CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Wants(u32),
    Enters(u32),
    Leaves(u32),
    /// It is put on a processor.
    Runs(u16),
    /// It leaves its processor.
    Stops,
    /// It leaves its processor because it halts, or sleeps.
    Halts,
    /// It is ready again.
    Wakes,
}

/// Every step of every task, in the order of time.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    steps: Vec<(Time, u32, Step)>,
    cut: bool,
}

impl Timeline {
    pub(crate) fn add(&mut self, time: Time, task: u32, step: Step) {
        if self.steps.len() < MAX {
            self.steps.push((time, task, step));
        } else {
            self.cut = true;
        }
    }

    /// Whether steps after the first million were left out.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The timeline of `cpus` CPUs as a JSON text that trace viewers open. Tasks after the CPUs are
    /// hogs.
    #[must_use]
    pub fn to_trace(&self, title: &str, cpus: u32) -> String {
        let end = self.steps.iter().map(|step| step.0).max().unwrap_or(0);
        let mut text = format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"SIMULATED\":{},\"cut\":{}}},\
             \"traceEvents\":[",
            quoted(title),
            self.cut
        );
        for (lane, name) in LANES {
            let name = quoted(&format!("SIMULATED: {name}"));
            let _ = write!(
                text,
                "\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{lane},\"args\":{{\"name\":{name}}}}},"
            );
        }
        let tasks = self.steps.iter().map(|step| step.1 + 1).max().unwrap_or(0);
        let open = |task| Open { task, is_hog: task >= cpus, ..Open::default() };
        let mut open: Vec<Open> = (0..tasks).map(open).collect();
        for &(time, task, step) in &self.steps {
            open[task as usize].step(&mut text, time, step);
        }
        open.iter_mut().for_each(|it| it.close(&mut text, end));
        // The list must not end with a comma.
        let _ = write!(
            text,
            "\n{{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":1,\"args\":{{\"labels\":\"SIMULATED\"}}}}]}}\n"
        );
        text
    }
}

const LOCKS: u32 = 1;
const FATES: u32 = 2;
const PROCESSORS: u32 = 3;
const LANES: [(u32, &str); 3] = [
    (LOCKS, "CPUs and their locks"),
    (FATES, "CPUs that do not run"),
    (PROCESSORS, "processors and whom they run"),
];

/// What a task is in the middle of.
#[derive(Debug, Clone, Default)]
struct Open {
    task: u32,
    is_hog: bool,
    waits: Option<(Time, u32)>,
    holds: Vec<(Time, u32)>,
    runs: Option<(Time, u16)>,
    away: Option<(Time, &'static str)>,
}

impl Open {
    fn step(&mut self, text: &mut String, time: Time, step: Step) {
        match step {
            Step::Wants(lock) => self.waits = Some((time, lock)),
            Step::Enters(lock) => {
                self.end_wait(text, time);
                self.holds.push((time, lock));
            }
            Step::Leaves(lock) => {
                if let Some(place) = self.holds.iter().rposition(|held| held.1 == lock) {
                    self.end_hold(text, place, time);
                }
            }
            Step::Runs(processor) => {
                self.end_absence(text, time);
                self.runs = Some((time, processor));
            }
            Step::Stops => self.leave(text, time, "preempted"),
            Step::Halts => self.leave(text, time, "halted"),
            Step::Wakes => {
                self.end_absence(text, time);
                self.away = Some((time, "ready"));
            }
        }
    }

    fn leave(&mut self, text: &mut String, time: Time, why: &'static str) {
        if let Some((since, processor)) = self.runs.take() {
            let whom = if self.is_hog { "a hog".to_owned() } else { format!("CPU {}", self.task) };
            event(text, PROCESSORS, processor.into(), &whom, since, time);
        }
        if !self.is_hog {
            self.away = Some((time, why));
        }
    }

    fn end_wait(&mut self, text: &mut String, time: Time) {
        if let Some((since, lock)) = self.waits.take() {
            event(text, LOCKS, self.task, &format!("waits for lock {lock}"), since, time);
        }
    }

    fn end_hold(&mut self, text: &mut String, place: usize, time: Time) {
        let (since, lock) = self.holds.remove(place);
        event(text, LOCKS, self.task, &format!("holds lock {lock}"), since, time);
    }

    fn end_absence(&mut self, text: &mut String, time: Time) {
        if let Some((since, why)) = self.away.take() {
            event(text, FATES, self.task, why, since, time);
        }
    }

    fn close(&mut self, text: &mut String, end: Time) {
        self.end_wait(text, end);
        while !self.holds.is_empty() {
            self.end_hold(text, 0, end);
        }
        self.end_absence(text, end);
        self.leave(text, end, "finished");
    }
}

fn event(text: &mut String, lane: u32, row: u32, name: &str, since: Time, until: Time) {
    let (at, lasts) = (to_ns(since) / 1000.0, to_ns(until.saturating_sub(since)) / 1000.0);
    let name = quoted(name);
    let _ = write!(
        text,
        "\n{{\"ph\":\"X\",\"name\":{name},\"pid\":{lane},\"tid\":{row},\"ts\":{at},\"dur\":{lasts}}},"
    );
}

/// A text in JSON's form.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
