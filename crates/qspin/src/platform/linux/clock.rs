//! The machine's clocks.

use std::time::Duration;
pub(crate) use std::time::Instant;

/// Nanoseconds of a clock that never goes back. Async-signal-safe.
#[inline]
pub(crate) fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since boot: one clock for all processes of the machine.
pub(crate) fn since_boot_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place. These clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The time until `instant`; zero if it has passed.
pub(crate) fn until(instant: Instant) -> Duration {
    instant.saturating_duration_since(Instant::now())
}

/// The point in time that is `duration` from now; `None` if there is none.
pub(crate) fn after(duration: Duration) -> Option<Instant> {
    Instant::now().checked_add(duration)
}
