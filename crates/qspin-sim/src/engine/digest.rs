//! The hash of everything that happened: the simulator's proof that it is deterministic.
//!
//! Every step of every simulated word, every switch of a simulated processor and every kick goes in, with its
//! time. Two runs with the same hash have done the same, as far as can be told.

use super::Time;
use super::random::mix;

/// The hash so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Digest(u64);

/// The events that go into the hash.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Happened {
    Read = 1,
    Wrote,
    Ran,
    Left,
    Kicked,
}

impl Digest {
    /// `what` happened to the strand `whom` at `time`, with this value.
    #[inline]
    pub(crate) fn add(&mut self, time: Time, what: Happened, whom: usize, value: u32) {
        let subject = (whom as u64) << 8 | what as u64;
        let rotated = self.0.rotate_left(23) ^ subject ^ (u64::from(value) << 32);
        // Between two steps a multiplication is enough; the end mixes.
        self.0 = (rotated ^ time).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }

    /// The hash.
    pub(crate) fn value(self) -> u64 {
        mix(self.0)
    }
}
