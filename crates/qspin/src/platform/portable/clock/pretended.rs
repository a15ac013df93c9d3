//! A clock that advances when it is looked at.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

/// A look takes so long.
const LOOK_NS: u64 = 1000;

static TIME: AtomicU64 = AtomicU64::new(0);

/// A point in time of this clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(unreachable_pub, reason = "a public trait of the platform names it")]
pub struct Instant(u64);

/// Nanoseconds of a clock that never goes back.
pub(crate) fn now_ns() -> u64 {
    has_passed(LOOK_NS);
    TIME.load(Relaxed)
}

/// A thread has slept for so long.
pub(crate) fn has_passed(nanoseconds: u64) {
    // Never `u64::MAX`, which stands for a time that does not come.
    let later = |time: u64| Some(time.saturating_add(nanoseconds).min(u64::MAX - 1));
    let _ = TIME.fetch_update(Relaxed, Relaxed, later);
}

/// The time until `instant`; zero if it has passed.
pub(crate) fn until(instant: Instant) -> Duration {
    Duration::from_nanos(instant.0.saturating_sub(now_ns()))
}

/// The point in time that is `duration` from now; `None` if there is none.
pub(crate) fn after(duration: Duration) -> Option<Instant> {
    let nanoseconds = u64::try_from(duration.as_nanos()).ok()?;
    now_ns().checked_add(nanoseconds).map(Instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_by_looks_and_by_sleep_and_is_never_out_of_range() {
        let begin = now_ns();
        assert_eq!(now_ns() - begin, LOOK_NS);
        let soon = after(Duration::from_millis(1)).unwrap();
        assert!(!until(soon).is_zero());
        has_passed(1_000_000);
        assert_eq!(until(soon), Duration::ZERO);
        assert_eq!(after(Duration::MAX), None);
        has_passed(u64::MAX);
        assert_eq!(now_ns(), u64::MAX - 1, "it comes to a stop");
    }
}
