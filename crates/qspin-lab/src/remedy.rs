//! `--remedy none|a|b|c`: the remedies of document 001 against an owner that does not run, each by itself.
//!
//! | | remedy | what makes it |
//! |---|---|---|
//! | none | waiters spin, or halt where that is their way | yields put off as far as their tunables go |
//! | a | waiters yield, to the owner where they know it | the looks before a yield at their defaults; `queue_yields=1` |
//! | b | the owner asks not to be preempted | hints of the owner, and a host that honours them |
//! | c | the owner's run status is visible | `heed_preempted=on` |
//!
//! Run status tells a waiter *when* to yield (`simple`) or to halt (the queues): (c) is (a) at the right moment there.
//! What a lock can do is known here, from the tunables that it reads; what the host can do is known where the
//! measurement is made.

use std::fmt;
use std::str::FromStr;

use qspin::tuning::Tunable;

use crate::tune::Tune;

/// One of the remedies, or none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// None: waiters neither yield nor ask.
    None,
    /// Waiters yield.
    A,
    /// The owner is spared.
    B,
    /// Waiters see that the owner does not run.
    C,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
        })
    }
}

impl FromStr for Remedy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|remedy| remedy.to_string() == text).ok_or_else(|| {
            format!("`{text}` is no remedy: choose from none, a, b, c, or several as none,a,b,c")
        })
    }
}

/// The param of a row that names its remedy.
pub const PARAM: &str = "remedy";

/// Looks before a yield.
const YIELDS_AFTER: [&str; 2] = ["yield_polls", "simple_polls"];
/// Yields before a halt.
const YIELDS: &str = "queue_yields";
const HEEDS: &str = "heed_preempted";

/// The tunables that a remedy sets.
pub const SETS: [&str; 4] = [YIELDS_AFTER[0], YIELDS_AFTER[1], YIELDS, HEEDS];

impl Remedy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::A, Self::B, Self::C];

    /// In words, for the head of a table.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::A => "waiters yield",
            Self::B => "the owner is spared",
            Self::C => "run status is visible",
        }
    }

    /// What is set, of a lock that reads the tunables for which `reads` is true.
    ///
    /// # Errors
    ///
    /// Why the lock has no use for this remedy.
    pub fn tunes(self, reads: impl Fn(&Tunable) -> bool) -> Result<Vec<Tune>, &'static str> {
        let of =
            |name: &str, value: u32| Tune::of(name, value).filter(|tune| reads(tune.tunable()));
        let never = |name: &&str| of(name, Tune::named(name)?.max);
        let (yields, heeds) = (of(YIELDS, 1), of(HEEDS, 1));
        // The defaults of these two are off.
        let spinning: Vec<Tune> = YIELDS_AFTER.iter().filter_map(never).collect();
        match self {
            Self::None | Self::B => Ok(spinning),
            Self::A if yields.is_none() && spinning.is_empty() => Err("its waiters do not yield"),
            Self::A => Ok(yields.into_iter().collect()),
            Self::C if heeds.is_none() => Err("its waiters do not know for which CPU they wait"),
            Self::C => Ok(heeds.into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use qspin_core::locks::Id;

    use super::*;

    fn sets(remedy: Remedy, lock: &str) -> Result<Vec<String>, &'static str> {
        let reads = Id::named(lock).unwrap().lock().reads;
        let tunes = remedy.tunes(|tunable| reads.contains(&tunable.part));
        tunes.map(|tunes| tunes.iter().map(Tune::show).collect())
    }

    #[test]
    fn a_remedy_is_read_as_it_is_written_and_nothing_else_is_one() {
        for remedy in Remedy::ALL {
            assert_eq!(remedy.to_string().parse(), Ok(remedy));
        }
        for wrong in ["", "d", "A", "none,a", " a"] {
            assert!(wrong.parse::<Remedy>().unwrap_err().contains("none, a, b, c"), "{wrong}");
        }
    }

    #[test]
    fn each_sets_what_makes_it_and_leaves_the_others_off() {
        let spins = "yield_polls=16777216".to_owned();
        assert_eq!(sets(Remedy::None, "yield"), Ok(vec![spins.clone()]));
        assert_eq!(sets(Remedy::A, "yield"), Ok(vec![]));
        assert_eq!(sets(Remedy::B, "yield"), Ok(vec![spins]));
        assert_eq!(sets(Remedy::B, "simple"), Ok(vec!["simple_polls=16777216".to_owned()]));
        assert_eq!(sets(Remedy::A, "simple"), Ok(vec![]));
        assert_eq!(sets(Remedy::C, "simple"), Ok(vec!["heed_preempted=on".to_owned()]));
        assert_eq!(sets(Remedy::None, "paravirt"), Ok(vec![]));
        assert_eq!(sets(Remedy::A, "paravirt"), Ok(vec!["queue_yields=1".to_owned()]));
        assert_eq!(sets(Remedy::C, "paravirt"), Ok(vec!["heed_preempted=on".to_owned()]));
        assert_eq!(sets(Remedy::None, "ticket"), Ok(vec![]));
    }

    #[test]
    fn a_lock_without_what_a_remedy_needs_says_what_it_lacks() {
        assert!(sets(Remedy::A, "ticket").unwrap_err().contains("do not yield"));
        assert!(sets(Remedy::C, "ticket").unwrap_err().contains("for which CPU"));
        assert!(sets(Remedy::C, "yield").unwrap_err().contains("for which CPU"));
    }
}
