//! One line a check, and a summary.

use std::fmt::Display;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::explore::Outcome;

/// What a subcommand has printed so far. Several threads may report at a time.
pub(super) struct Report {
    tool: &'static str,
    begun: Instant,
    checks: AtomicU64,
    executions: AtomicU64,
    failures: AtomicU64,
}

impl Report {
    pub(super) fn new(tool: &'static str) -> Self {
        let [checks, executions, failures] = [const { AtomicU64::new(0) }; 3];
        Self { tool, begun: Instant::now(), checks, executions, failures }
    }

    /// Prints the line of a check that must pass.
    pub(super) fn must_pass(&self, lock: &str, check: &str, bound: &str, outcome: &Outcome) {
        match &outcome.failure {
            None => {
                let result = format!("passed ({:.1} s)", outcome.took.as_secs_f64());
                self.line(lock, check, bound, outcome.executions, true, result);
            }
            Some(failure) => self.line(lock, check, bound, outcome.executions, false, failure),
        }
    }

    /// Prints a line.
    pub(super) fn line(
        &self,
        lock: &str,
        check: &str,
        bound: &str,
        executions: u64,
        good: bool,
        result: impl Display,
    ) {
        self.checks.fetch_add(1, Relaxed);
        self.executions.fetch_add(executions, Relaxed);
        self.failures.fetch_add((!good).into(), Relaxed);
        let mark = if good { "" } else { "FAILED: " };
        let tool = self.tool;
        println!(
            "{tool:8} {lock:30} {check:20} {bound:16} {executions:>8} executions  {mark}{result}"
        );
    }

    /// Prints a complaint that belongs to no single execution.
    pub(super) fn complain(&self, message: impl Display) {
        self.failures.fetch_add(1, Relaxed);
        println!("{:8} FAILED: {message}", self.tool);
    }

    /// Runs this command for one lock, in a process of its own; what it prints becomes a part of this report.
    pub(super) fn part(&self, lock: &str, options: &[String]) {
        let output = std::env::current_exe().and_then(|exe| {
            Command::new(exe).args([self.tool, "--lock", lock]).args(options).output()
        });
        let output = match output {
            Ok(output) => output,
            Err(error) => return self.complain(format!("{lock}: {error}")),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let summary = format!("qspin-check {}: ", self.tool);
        let (end, lines): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with(&summary));
        for line in lines {
            println!("{line}");
        }
        match end.first().and_then(|line| counts(line)) {
            // A lock whose process dies after its summary has not passed either.
            Some([checks, executions, failures]) if output.status.success() == (failures == 0) => {
                self.checks.fetch_add(checks, Relaxed);
                self.executions.fetch_add(executions, Relaxed);
                self.failures.fetch_add(failures, Relaxed);
            }
            _ => self.complain(format!(
                "{lock}: no summary that agrees with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }

    /// Prints the summary; returns whether nothing failed.
    pub(super) fn end(self) -> bool {
        let Self { tool, begun, checks, executions, failures } = self;
        let [checks, executions, failures] =
            [checks, executions, failures].map(AtomicU64::into_inner);
        let seconds = begun.elapsed().as_secs_f64();
        let result = if failures == 0 { "all passed".into() } else { format!("{failures} FAILED") };
        println!(
            "qspin-check {tool}: {checks} checks, {executions} executions, {result} ({seconds:.1} s)"
        );
        failures == 0
    }
}

/// Checks, executions and failures of a summary.
fn counts(summary: &str) -> Option<[u64; 3]> {
    let mut parts = summary.split(": ").nth(1)?.split(", ").map(|part| part.split(' '));
    let [checks, executions] = [parts.next()?.next()?, parts.next()?.next()?];
    let failures = match parts.next()?.next()? {
        "all" => "0",
        failures => failures,
    };
    let [checks, executions, failures] = [checks, executions, failures].map(str::parse);
    Some([checks.ok()?, executions.ok()?, failures.ok()?])
}

/// A bound of loom's in words.
pub(super) fn in_words(preemptions: Option<usize>) -> String {
    match preemptions {
        None => "unbounded".to_owned(),
        Some(most) => format!("{most} preemptions"),
    }
}

/// Puts a section into a page of results, in place of the one with this title.
///
/// # Errors
/// The page cannot be read or written.
pub(super) fn put_section(page: &Path, title: &str, text: &str) -> Result<(), String> {
    let wrong = |error| format!("{}: {error}", page.display());
    let heading = format!("## {title}\n");
    let new = format!("{heading}\n{}\n", text.trim_end());
    let old = match std::fs::read_to_string(page) {
        Ok(old) => old,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "# What the checkers found\n\n".into()
        }
        Err(error) => return Err(wrong(error)),
    };
    let all = match old.find(&heading) {
        None => format!("{}\n\n{new}", old.trim_end()),
        Some(start) => {
            let after = start + heading.len();
            let end = old[after..].find("\n## ").map_or(old.len(), |next| after + next + 1);
            let between = if end < old.len() { "\n" } else { "" };
            format!("{}{new}{between}{}", &old[..start], &old[end..])
        }
    };
    std::fs::write(page, all).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_part_are_those_of_its_summary() {
        let good = "qspin-check loom: 12 checks, 3456 executions, all passed (1.5 s)";
        assert_eq!(counts(good), Some([12, 3456, 0]));
        let bad = "qspin-check loom: 12 checks, 3456 executions, 2 FAILED (1.5 s)";
        assert_eq!(counts(bad), Some([12, 3456, 2]));
        for wrong in
            ["", "qspin-check loom: ", "qspin-check loom: 12 checks", "x: y checks, 1 e, all"]
        {
            assert_eq!(counts(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_section_takes_the_place_of_the_one_with_its_title() {
        let page = std::env::temp_dir().join(format!("qspin-check-page-{}.md", std::process::id()));
        for (title, text) in [("A", "1"), ("B", "2"), ("A", "3"), ("B", "4\n")] {
            put_section(&page, title, text).unwrap();
        }
        let text = std::fs::read_to_string(&page).unwrap();
        std::fs::remove_file(&page).unwrap();
        assert_eq!(text, "# What the checkers found\n\n## A\n\n3\n\n## B\n\n4\n");
    }
}
