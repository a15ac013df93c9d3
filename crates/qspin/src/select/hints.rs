//! What a program, or the person running it, says about it: what no file can tell.

use std::ffi::OsString;

use super::choice::Choice;
use crate::excerpt::excerpt;

/// Names a lock: `QSPIN_LOCK=native`. Nothing else is considered then.
pub const LOCK: &str = "QSPIN_LOCK";
/// Says how many threads there will be: `QSPIN_THREADS=32`.
pub const THREADS: &str = "QSPIN_THREADS";
/// Says whether the CPUs belong to this program alone: `QSPIN_DEDICATED=1`, or `0`.
pub const DEDICATED: &str = "QSPIN_DEDICATED";

/// The hints. [`Hints::NONE`] says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// This lock, whatever the machine.
    pub lock: Option<Choice>,
    /// How many threads there will be that lock.
    pub threads: Option<u32>,
    /// Whether the CPUs belong to this program alone and are never taken away. Overrides what the hypervisor
    /// says.
    pub dedicated: Option<bool>,
    /// Whether a waiter can halt and be kicked. Threads can, by a futex, so the default is yes.
    pub can_halt: Option<bool>,
}

impl Hints {
    /// Nothing is said.
    pub const NONE: Self = Self { lock: None, threads: None, dedicated: None, can_halt: None };

    /// The environment's hints. A malformed value says nothing, and is reported to `problem`; an empty one says
    /// nothing.
    pub fn of_environment(problem: &mut dyn FnMut(String)) -> Self {
        Self::of(&|name| std::env::var_os(name), problem)
    }

    /// As [`of_environment`](Self::of_environment), from the values that `variable` returns.
    pub fn of(
        variable: &dyn Fn(&str) -> Option<OsString>,
        problem: &mut dyn FnMut(String),
    ) -> Self {
        let mut take = |name: &str, right: &str, valid: &dyn Fn(&str) -> bool| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            let text = value.to_str().filter(|text| valid(text)).map(str::to_owned);
            if text.is_none() {
                let shown = excerpt(&value.to_string_lossy());
                problem(format!("{name}={shown} is not {right}"));
            }
            text
        };
        let number = |text: &str| text.parse().ok().filter(|&number: &u32| number > 0);
        let locks = Choice::names();
        Self {
            lock: take(LOCK, &locks, &|text| Choice::named(text).is_some())
                .and_then(|text| Choice::named(&text)),
            threads: take(THREADS, "a number of threads like 32", &|text| number(text).is_some())
                .and_then(|text| number(&text)),
            dedicated: take(DEDICATED, "0 or 1", &|text| matches!(text, "0" | "1"))
                .map(|text| text == "1"),
            can_halt: None,
        }
    }

    /// These hints, and those of `other` where these say nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            lock: self.lock.or(other.lock),
            threads: self.threads.or(other.threads),
            dedicated: self.dedicated.or(other.dedicated),
            can_halt: self.can_halt.or(other.can_halt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> (Hints, Vec<String>) {
        let mut problems = Vec::new();
        let variable = |name: &str| {
            pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        };
        let hints = Hints::of(&variable, &mut |problem| problems.push(problem));
        (hints, problems)
    }

    #[test]
    fn the_environment_says_what_it_says() {
        assert_eq!(of(&[]), (Hints::NONE, vec![]));
        assert_eq!(of(&[(LOCK, ""), (THREADS, ""), (DEDICATED, "")]), (Hints::NONE, vec![]));
        let said = of(&[(LOCK, "cna-paravirt"), (THREADS, "32"), (DEDICATED, "0")]);
        let hints = Hints {
            lock: Some(Choice::CnaParavirt),
            threads: Some(32),
            dedicated: Some(false),
            can_halt: None,
        };
        assert_eq!(said, (hints, vec![]));
    }

    #[test]
    fn what_is_malformed_says_nothing_and_what_would_be_right_is_told() {
        let long = "x".repeat(500);
        for (name, value, right) in [
            (LOCK, "nativ", "native, paravirt, backoff, cna or cna-paravirt"),
            (LOCK, "NATIVE", "native, "),
            (LOCK, long.as_str(), "native, "),
            (THREADS, "0", "a number of threads like 32"),
            (THREADS, "many", "like 32"),
            (THREADS, "99999999999", "like 32"),
            (DEDICATED, "yes", "0 or 1"),
        ] {
            let (hints, problems) = of(&[(name, value)]);
            assert_eq!(hints, Hints::NONE);
            assert!(problems.len() == 1 && problems[0].contains(right), "{problems:?}");
            assert!(problems[0].starts_with(name) && problems[0].len() < 200, "{problems:?}");
        }
    }

    #[test]
    fn the_first_to_say_something_is_heard() {
        let one = Hints { threads: Some(1), ..Hints::NONE };
        let other = Hints { threads: Some(2), dedicated: Some(true), ..Hints::NONE };
        assert_eq!(one.or(other), Hints { dedicated: Some(true), ..one });
    }
}
