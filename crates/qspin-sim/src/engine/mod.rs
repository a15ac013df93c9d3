//! Simulated time: events in order, coroutines that run between them, and what watches over both.
//!
//! # Model
//! A simulated CPU is a *strand*: a coroutine that runs real lock code, with a clock of its own. A delay only
//! moves that clock. An operation on a word takes place when no event precedes the strand's clock: at once, in
//! the running coroutine, if that is already so (*inline*); otherwise the strand queues an event for itself and
//! sleeps. So operations take place in the order of simulated time, while most of them cost neither an event
//! nor a switch of coroutines.
//!
//! # Invariants
//! * **ENGINE-1** A `World` is this thread's current one while, and only while, its strands run.
//! * **ENGINE-2** A strand's yielder is valid from the first instruction of its coroutine to the
//!   last, and used only by code that this coroutine runs.
//! * **ENGINE-3** No borrow of the state outlives a switch of coroutines.
//! * **ENGINE-4** Time never goes back: an event is never made for a time before *now*.
//!
//! # Limits
//! One simulation runs on one thread. Several run side by side on several threads, and know nothing of each
//! other.

mod access;
mod audit;
mod digest;
mod progress;
mod queue;
mod random;
mod state;
mod strand;
mod watch;
mod world;

pub use random::Random;

#[cfg(test)]
pub(crate) use audit::{Bug, planted};
pub(crate) use digest::Happened;
pub(crate) use queue::What;
pub(crate) use state::State;
pub(crate) use strand::{Client, Figures, Pending, Wait};
pub(crate) use world::{World, current};

/// A simulated time or duration, in picoseconds: 213 days fit.
pub type Time = u64;

/// Picoseconds in a nanosecond.
pub const NANOSECOND: Time = 1000;

/// Nanoseconds as a [`Time`]; negative ones count as none.
#[must_use]
pub fn from_ns(ns: f64) -> Time {
    (ns * NANOSECOND as f64).round() as Time
}

/// A description's figures as the engine counts them: these times, and its other fields.
macro_rules! in_time {
    ($engine:ident of $given:ident as $it:ident {
        $($time:ident)*; $($other:ident: $type:ty = $value:expr,)*
    }) => {
        /// The description's times, as [`Time`].
        #[derive(Debug, Clone, Copy, Default)]
        pub(crate) struct $engine {
            $(pub(crate) $time: Time,)*
            $(pub(crate) $other: $type,)*
        }

        impl From<&$given> for $engine {
            fn from($it: &$given) -> Self {
                Self { $($time: from_ns($it.$time),)* $($other: $value,)* }
            }
        }
    };
}
pub(crate) use in_time;

/// A [`Time`] in nanoseconds.
#[must_use]
pub fn to_ns(time: Time) -> f64 {
    time as f64 / NANOSECOND as f64
}
