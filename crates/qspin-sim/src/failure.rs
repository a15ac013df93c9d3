//! How a simulation can end, other than well.

use std::fmt;

/// What one simulated CPU was doing when there was no more progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its number.
    pub cpu: u32,
    /// What it does, in words.
    pub does: String,
    /// The lock that it wants, the holder of that lock, and for how many nanoseconds it has waited.
    pub wants: Option<(u32, Option<u32>, f64)>,
    /// The locks that it holds.
    pub holds: Vec<u32>,
}

/// Why a simulation has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The scenario is impossible; what is wrong, and what would be right.
    Scenario(String),
    /// This computer cannot run it.
    Host(String),
    /// Two CPUs were inside one lock.
    Exclusion {
        /// The lock.
        lock: u32,
        /// The CPU that was inside.
        first: u32,
        /// The CPU that came in as well.
        second: u32,
        /// When.
        at_ns: f64,
    },
    /// The count kept under the locks is wrong.
    Count {
        /// Sections that were run under it.
        sections: u64,
        /// What was counted in them.
        counted: u64,
    },
    /// A deadlock or livelock: there is no progress.
    Standstill {
        /// When.
        at_ns: f64,
        /// The waits of all CPUs that have not finished.
        standings: Vec<Standing>,
    },
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {} {}", self.cpu, self.does)?;
        for lock in &self.holds {
            write!(f, "; it holds lock {lock}")?;
        }
        match self.wants {
            Some((lock, Some(holder), ns)) => {
                write!(f, "; for {ns:.0} ns it has wanted lock {lock}, which CPU {holder} holds")
            }
            Some((lock, None, ns)) => {
                write!(f, "; for {ns:.0} ns it has wanted lock {lock}, which no thread holds")
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(message) | Self::Host(message) => f.write_str(message),
            Self::Exclusion { lock, first, second, at_ns } => write!(
                f,
                "CPU {second} entered lock {lock} at {at_ns:.0} ns while CPU {first} was inside"
            ),
            Self::Count { sections, counted } => {
                write!(f, "{sections} critical sections counted to {counted}: updates are lost")
            }
            Self::Standstill { at_ns, standings } => {
                write!(f, "nothing moves any more at {at_ns:.0} simulated ns:")?;
                for standing in standings {
                    write!(f, "\n  {standing}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Failure {}
