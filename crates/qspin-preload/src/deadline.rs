//! Deadlines that callers give, and the clocks.

use core::time::Duration;

use libc::{c_int, clockid_t, timespec};

use crate::sleep;

/// A time on a clock, at which a wait ends.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) clock: clockid_t,
    pub(crate) time: timespec,
}

impl Deadline {
    /// The deadline that the caller gave.
    ///
    /// # Safety
    /// `time` is valid.
    pub(crate) unsafe fn of(clock: clockid_t, time: *const timespec) -> Self {
        // SAFETY: the caller's.
        Self { clock, time: unsafe { *time } }
    }

    /// POSIX: EINVAL for nanoseconds below 0, or from 1000 million on.
    pub(crate) fn is_valid(&self) -> bool {
        (0..1_000_000_000).contains(&self.time.tv_nsec)
    }

    /// Nanoseconds until then; `None` once it has passed.
    pub(crate) fn remaining(&self) -> Option<u64> {
        if self.time.tv_sec < 0 {
            return None;
        }
        let now = now(self.clock);
        let nanoseconds =
            |time: &timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        let left = nanoseconds(&self.time) - nanoseconds(&now);
        if left <= 0 { None } else { Some(u64::try_from(left).unwrap_or(u64::MAX)) }
    }

    /// That many nanoseconds from now, by the clock that can be set.
    pub(crate) fn in_real_time(nanoseconds: u64) -> Self {
        let clock = libc::CLOCK_REALTIME;
        Self { clock, time: after(now(clock), nanoseconds) }
    }

    /// That many nanoseconds from now, or `this` if it is earlier.
    pub(crate) fn at_most(this: Option<&Self>, nanoseconds: u64) -> Self {
        let clock = this.map_or(libc::CLOCK_MONOTONIC, |deadline| deadline.clock);
        let time = after(now(clock), nanoseconds);
        match this {
            Some(deadline)
                if (deadline.time.tv_sec, deadline.time.tv_nsec) < (time.tv_sec, time.tv_nsec) =>
            {
                *deadline
            }
            _ => Self { clock, time },
        }
    }
}

/// Polls before the first sleep of [`Deadline::poll`].
const LOOKS: u32 = 256;
/// Its first sleep, and the longest.
const FIRST_SLEEP_NS: u64 = 20_000;
const LONGEST_SLEEP_NS: u64 = 1_000_000;

/// The longest wait before the clock is read again: the clock may have been set.
const LONGEST_WAIT_NS: u64 = 100_000_000;

impl Deadline {
    /// Tries again and again, and sleeps in between: for a lock whose waiter cannot leave the queue that it has
    /// joined. Returns whether it succeeded.
    pub(crate) fn poll(&self, attempt: impl Fn() -> bool) -> bool {
        for _ in 0..LOOKS {
            if attempt() {
                return true;
            }
            core::hint::spin_loop();
        }
        let mut longest = FIRST_SLEEP_NS;
        loop {
            if attempt() {
                return true;
            }
            let Some(left) = self.remaining() else { return false };
            sleep::pause(left.min(longest));
            longest = (longest * 2).min(LONGEST_SLEEP_NS);
        }
    }

    /// For a lock with waits of a given length: calls `wait` with what is left, until it succeeds or nothing is.
    pub(crate) fn wait(&self, wait: impl Fn(Duration) -> bool) -> bool {
        while let Some(left) = self.remaining() {
            if wait(Duration::from_nanos(left.min(LONGEST_WAIT_NS))) {
                return true;
            }
        }
        wait(Duration::ZERO)
    }
}

/// Whether waits by this clock are possible: the two clocks that the C library accepts.
pub(crate) fn is_served(clock: clockid_t) -> bool {
    clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC
}

/// `time`, that many nanoseconds later.
fn after(mut time: timespec, nanoseconds: u64) -> timespec {
    time.tv_nsec += nanoseconds as i64;
    time.tv_sec += time.tv_nsec / 1_000_000_000;
    time.tv_nsec %= 1_000_000_000;
    time
}

fn now(clock: clockid_t) -> timespec {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place; the clock is one of the two that every system has.
    let _: c_int = unsafe { libc::clock_gettime(clock, &raw mut now) };
    now
}

/// Nanoseconds on the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let now = now(libc::CLOCK_MONOTONIC);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The same, as of the last tick some milliseconds ago; reading it takes a tenth of the time.
pub(crate) fn coarse_ns() -> u64 {
    let now = now(libc::CLOCK_MONOTONIC_COARSE);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
