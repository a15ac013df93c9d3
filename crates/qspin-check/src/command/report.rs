//! One line a check, and a summary.

use std::fmt::Display;
use std::time::Instant;

use crate::explore::Outcome;

/// What a subcommand has printed so far.
pub(super) struct Report {
    tool: &'static str,
    begun: Instant,
    checks: u64,
    executions: u64,
    failures: u64,
}

impl Report {
    pub(super) fn new(tool: &'static str) -> Self {
        Self { tool, begun: Instant::now(), checks: 0, executions: 0, failures: 0 }
    }

    /// Prints the line of a check that must pass.
    pub(super) fn must_pass(&mut self, lock: &str, check: &str, bound: &str, outcome: &Outcome) {
        match &outcome.failure {
            None => self.line(lock, check, bound, outcome.executions, true, "passed"),
            Some(failure) => self.line(lock, check, bound, outcome.executions, false, failure),
        }
    }

    /// Prints a line.
    pub(super) fn line(
        &mut self,
        lock: &str,
        check: &str,
        bound: &str,
        executions: u64,
        good: bool,
        result: impl Display,
    ) {
        self.checks += 1;
        self.executions += executions;
        self.failures += u64::from(!good);
        let mark = if good { "" } else { "FAILED: " };
        let tool = self.tool;
        println!(
            "{tool:8} {lock:30} {check:20} {bound:16} {executions:>8} executions  {mark}{result}"
        );
    }

    /// Prints a complaint that belongs to no single execution.
    pub(super) fn complain(&mut self, message: impl Display) {
        self.failures += 1;
        println!("{:8} FAILED: {message}", self.tool);
    }

    /// Prints the summary; returns whether nothing failed.
    pub(super) fn end(self) -> bool {
        let Self { tool, begun, checks, executions, failures } = self;
        let seconds = begun.elapsed().as_secs_f64();
        let result = if failures == 0 { "all passed".into() } else { format!("{failures} FAILED") };
        println!(
            "qspin-check {tool}: {checks} checks, {executions} executions, {result} ({seconds:.1} s)"
        );
        failures == 0
    }
}

/// A bound of loom's in words.
pub(super) fn in_words(preemptions: Option<usize>) -> String {
    match preemptions {
        None => "unbounded".to_owned(),
        Some(most) => format!("{most} preemptions"),
    }
}
