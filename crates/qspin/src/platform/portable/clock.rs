//! The clock of the standard library; and where it has none, one that is pretended.
//!
//! # Problem
//! `Instant::now` panics on WebAssembly without an operating system. No operation may, and a timed one should
//! come to an end.
//!
//! So time passes there by being looked at: a microsecond each time. A thread that slept until a deadline, or
//! would have, puts the clock forward by as much. Timed operations give up after about so many looks, or as soon
//! as they would sleep; how long that really takes is not known.

pub(crate) use self::source::{Instant, after, has_passed, now_ns, until};
pub(crate) use now_ns as since_boot_ns;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod source {
    use std::sync::OnceLock;
    use std::time::Duration;
    pub(crate) use std::time::Instant;

    /// Nanoseconds of a clock that never goes back, since its first use.
    #[inline]
    pub(crate) fn now_ns() -> u64 {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        let begin = *BEGIN.get_or_init(Instant::now);
        // 0 would mean that there is no clock.
        begin.elapsed().as_nanos() as u64 + 1
    }

    /// A thread has slept for so long: the clock knows.
    #[inline]
    pub(crate) fn has_passed(_: u64) {}

    /// The time until `instant`; zero if it has passed.
    pub(crate) fn until(instant: Instant) -> Duration {
        instant.saturating_duration_since(Instant::now())
    }

    /// The point in time that is `duration` from now; `None` if there is none.
    pub(crate) fn after(duration: Duration) -> Option<Instant> {
        Instant::now().checked_add(duration)
    }
}

// Its tests run everywhere.
#[cfg(any(test, all(target_family = "wasm", target_os = "unknown")))]
mod pretended;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
use pretended as source;
