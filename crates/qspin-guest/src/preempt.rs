//! The plan of a preemption: at which acquisitions the host is to take a CPU away.
//!
//! It is a function of a seed and of an acquisition's number, counted under the lock from the start of a
//! measurement, and of nothing else. So the same acquisitions are struck in every run, with every lock, on
//! every machine, however the CPUs race.

/// Whom the host is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The owner of the lock.
    Holder,
    /// The waiter that has waited for it longest.
    Next,
}

impl Victim {
    /// The names, for command lines.
    pub const NAMES: [(&str, Self); 2] = [("holder", Self::Holder), ("next", Self::Next)];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Holder => "holder",
            Self::Next => "next",
        }
    }
}

/// A certainty, as a [`Plan`] counts chances.
pub const CERTAIN: u32 = 1_000_000_000;

/// Which acquisitions are struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Which CPU is stopped.
    pub victim: Victim,
    /// Another seed strikes others.
    pub seed: u64,
    /// So many of [`CERTAIN`] are struck.
    pub chance: u32,
}

impl Plan {
    /// Whether acquisition `number` is struck.
    #[inline]
    #[must_use]
    pub fn strikes(self, number: u64) -> bool {
        // SplitMix64 (Steele, Lea and Flood 2014): a counter and a mixer, so any number is as cheap as
        // the next one.
        let step = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut value = self.seed.wrapping_add(step);
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^= value >> 31;
        ((value >> 32) * u64::from(CERTAIN)) >> 32 < self.chance.into()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn struck(seed: u64, chance: u32, of: u64) -> Vec<u64> {
        let plan = Plan { victim: Victim::Holder, seed, chance };
        (0..of).filter(|number| plan.strikes(*number)).collect()
    }

    #[test]
    fn a_seed_strikes_the_same_acquisitions_for_ever() {
        // Written down, so that a published experiment stays what it was.
        assert_eq!(struck(1, CERTAIN / 100, 400), [98, 160, 265, 340, 389]);
        assert_ne!(struck(1, CERTAIN / 100, 400), struck(2, CERTAIN / 100, 400));
    }

    #[test]
    fn as_many_are_struck_as_were_asked_for() {
        assert_eq!(struck(7, 0, 10_000).len(), 0);
        assert_eq!(struck(7, CERTAIN, 10_000).len(), 10_000);
        for (chance, wanted) in [(CERTAIN / 2, 50_000), (CERTAIN / 100, 1000)] {
            let count = struck(7, chance, 100_000).len();
            assert!(count.abs_diff(wanted) < wanted / 8 + 200, "{count} of {wanted}");
        }
    }
}
