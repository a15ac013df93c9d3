//! The simulator audits itself: a run may check the invariants after every event.
//!
//! The audit is about conservation: a watcher of a word that has neither a copy of it nor a poll or read in
//! progress would never hear of a change. The tests plant such bugs in the engine: an audit that found none of
//! them would prove nothing.

use super::{Pending, State, Wait};
use crate::machine::WORDS;

impl State {
    /// Checks WATCH-1 of watching, and LINE-1 and LINE-2 of lines, for every line and every strand.
    ///
    /// # Panics
    /// If an invariant does not hold.
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

/// The bugs that the tests plant.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A line goes to another core, and its watchers are not told.
    NobodyIsTold,
    /// A line has gone again by the time that a watcher's read arrives, and the watcher does not poll once
    /// more.
    AReadIsTheLastLook,
    /// A watcher that has seen what it waited for is still among the watchers.
    WatchersStay,
    /// A line has a new owner, and the other cores keep their copies.
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

    /// The audit's result for a run whose engine has `bug`.
    fn audited(bug: Option<Bug>) -> Option<String> {
        let text = include_str!("../../tests/simulator/scenarios/small.toml");
        let mut scenario = Scenario::from_toml(text).unwrap();
        // The audit, not the watchdog, is to find a watcher that hears of nothing.
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
