//! One named ordering, made weaker.

use std::fmt;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use qspin_core::site::Site;

/// The ordering `to` at `site`, instead of the one that the lock asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weakening {
    /// Where.
    pub site: Site,
    /// What it becomes.
    pub to: Ordering,
}

impl Weakening {
    /// Every ordering that is weaker than `order` by one step.
    #[must_use]
    pub const fn steps_below(order: Ordering) -> &'static [Ordering] {
        match order {
            SeqCst => &[AcqRel],
            AcqRel => &[Acquire, Release],
            Acquire | Release => &[Relaxed],
            _ => &[],
        }
    }
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {:?}", self.site.name(), self.to)
    }
}
