//! The simulator looks at itself: whether its invariants hold, which a run may ask for after every event.
//!
//! Conservation is what it is about: somebody who watches a word and has neither a copy of it nor a look or
//! a read under way would never hear of a change. The tests plant such bugs in the engine: an audit that
//! finds none of them would say nothing.

use super::{Pending, State, Wait};
use crate::machine::WORDS;

impl State {
    /// Checks, of every line and every strand, WATCH-1 of watching and LINE-1 and LINE-2 of lines.
    ///
    /// # Panics
    /// Where one does not hold.
    pub(crate) fn audit(&self) {
        for (line, it) in self.lines.iter().enumerate() {
            for &watcher in &it.watchers {
                let strand = &self.strands[watcher as usize];
                assert!(
                    strand.wait == Wait::Watch && strand.watch.word / WORDS == line,
                    "C2: CPU {watcher} is among the watchers of a line that it does not watch"
                );
                assert!(
                    !strand.on || strand.watch.pending != Pending::Nothing || it.is_at(strand.core),
                    "W1: CPU {watcher} watches a line of which it has no copy"
                );
            }
            if let Some(owner) = it.owner() {
                assert!(
                    it.sharers.iter().eq([owner]),
                    "C1: there are copies of a line with an owner"
                );
            }
        }
        for (number, strand) in self.strands.iter().enumerate() {
            if strand.wait != Wait::Watch {
                continue;
            }
            let line = &self.lines[strand.watch.word / WORDS];
            assert!(
                line.watchers.contains(&(number as u32)),
                "C2: CPU {number} is not among the watchers of the line that it watches"
            );
        }
    }
}

/// What the tests break.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A line goes to another core, and who watches it is not told.
    NobodyIsTold,
    /// A line has gone again by the time that a watcher's read arrives, and it does not look once more.
    AReadIsTheLastLook,
    /// Who has seen what it waited for is still among the watchers.
    WatchersStay,
    /// A line has a new owner, and the others keep their copies.
    CopiesStay,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether the engine is to have this bug.
#[cfg(test)]
pub(crate) fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use qspin_core::locks::queued::NativeLock;

    use super::*;
    use crate::platform::SimWord;
    use crate::{Scenario, simulate_audited};

    /// What the audit says of a run whose engine has `bug`.
    fn audited(bug: Option<Bug>) -> Option<String> {
        let text = include_str!("../../tests/simulator/scenarios/small.toml");
        let mut scenario = Scenario::from_toml(text).unwrap();
        // Whoever hears of nothing is to be found by the audit, not by the watchdog.
        scenario.watchdog_ns = 1e9;
        PLANTED.set(bug);
        let run =
            AssertUnwindSafe(|| simulate_audited::<NativeLock<SimWord>>(&scenario, 1).map(drop));
        let ended = catch_unwind(run);
        PLANTED.set(None);
        match ended {
            Ok(result) => {
                assert_eq!(result, Ok(()), "{bug:?}");
                None
            }
            Err(said) => said
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| said.downcast_ref::<&str>().map(|&said| said.to_owned())),
        }
    }

    #[test]
    fn an_engine_that_loses_wake_ups_is_found_out() {
        assert_eq!(audited(None), None);
        for (bug, said) in [
            (Bug::NobodyIsTold, "W1: CPU"),
            (Bug::AReadIsTheLastLook, "W1: CPU"),
            (Bug::WatchersStay, "C2: CPU"),
            (Bug::CopiesStay, "C1: there are copies"),
        ] {
            let found = audited(Some(bug)).unwrap_or_default();
            assert!(found.starts_with(said), "{bug:?}: {found}");
        }
        assert_eq!(audited(None), None, "nothing of it is left");
    }
}
