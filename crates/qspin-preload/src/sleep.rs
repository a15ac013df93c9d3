//! Sleeping on a word, and waking its sleepers, without the C library's `errno` (PRELOAD-7).

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::timespec;
pub(crate) use qspin::inside::syscall as system_call;

use crate::deadline::Deadline;

/// What ended a sleep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A wake-up, a signal, or a spurious return: check again.
    Maybe,
    /// The deadline has passed.
    Late,
}

/// Sleeps while `word` is `value`, at most until `deadline`.
pub(crate) fn sleep(word: &AtomicU32, value: u32, deadline: Option<&Deadline>) -> Woken {
    sleep_among(word, value, deadline, EVERYBODY)
}

/// All sleepers of a word.
const EVERYBODY: u32 = u32::MAX;

/// Sleeps as one of `who`, a set of bits.
#[cold]
pub(crate) fn sleep_among(
    word: *const AtomicU32,
    value: u32,
    deadline: Option<&Deadline>,
    who: u32,
) -> Woken {
    let mut operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let mut until: *const timespec = core::ptr::null();
    if let Some(deadline) = deadline {
        if deadline.time.tv_sec < 0 {
            return Woken::Late;
        }
        if deadline.clock == libc::CLOCK_REALTIME {
            operation |= libc::FUTEX_CLOCK_REALTIME;
        }
        until = &raw const deadline.time;
    }
    let arguments = [word as u64, operation as u64, value.into(), until as u64, 0, u64::from(who)];
    // SAFETY: the kernel reads the word, which is an atomic, and the time, which is valid; if the address is
    // gone by now (PRELOAD-4) the call fails.
    let result = unsafe { system_call(libc::SYS_futex, arguments) };
    if result == -i64::from(libc::ETIMEDOUT) { Woken::Late } else { Woken::Maybe }
}

/// Wakes up to `most` sleepers of `word`, of which the address alone is used (PRELOAD-4).
pub(crate) fn wake(word: *const AtomicU32, most: u32) {
    wake_among(word, most, EVERYBODY);
}

/// Wakes up to `most` sleepers with bits of `who`.
#[cold]
pub(crate) fn wake_among(word: *const AtomicU32, most: u32, who: u32) {
    let operation = (libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG) as u64;
    // The kernel treats it as a signed number.
    let most = most.min(i32::MAX as u32);
    // SAFETY: waking reads no memory.
    unsafe {
        system_call(libc::SYS_futex, [word as u64, operation, most.into(), 0, 0, u64::from(who)])
    };
}

/// Sleeps for `nanoseconds`, or until a signal.
pub(crate) fn pause(nanoseconds: u64) {
    let time = timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    };
    // SAFETY: a valid time; the remaining time is not wanted.
    unsafe { system_call(libc::SYS_nanosleep, [&raw const time as u64, 0]) };
}

/// Backs off while another thread is about to be done: at first by yielding the CPU, then by sleeping.
/// Otherwise a thread with a real-time policy, which yields its CPU to no thread of a lower priority, would
/// wait for ever.
pub(crate) struct Backoff {
    yields: u32,
}

impl Backoff {
    /// How often the CPU is yielded.
    const YIELDS: u32 = 64;
    const SLEEP_NS: u64 = 50_000;

    pub(crate) const fn new() -> Self {
        Self { yields: 0 }
    }

    /// Yields the CPU or sleeps, once.
    pub(crate) fn wait(&mut self) {
        if self.yields < Self::YIELDS {
            self.yields += 1;
            // SAFETY: a system call that touches no memory.
            unsafe { system_call(libc::SYS_sched_yield, []) };
        } else {
            pause(Self::SLEEP_NS);
        }
    }
}

/// A lock for a few instructions on an object's own fields: it has three states, and zeros are a free one.
///
/// ```text
///  FREE ──lock──► HELD ──a thread sleeps──► AWAITED ──unlock, and a wake-up──► FREE
/// ```
#[repr(transparent)]
pub(crate) struct Latch(AtomicU32);

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;
/// Polls before it sleeps: some hundred nanoseconds, longer than any running thread holds it.
const LOOKS: u32 = 64;

impl Latch {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[inline]
    pub(crate) fn lock(&self) {
        // ORDERING: Acquire pairs with the Release of `unlock`.
        if self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            self.lock_slow();
        }
    }

    #[cold]
    fn lock_slow(&self) {
        for _ in 0..LOOKS {
            // ORDERING: as in `lock`.
            if self.0.load(Relaxed) == FREE
                && self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
            {
                return;
            }
            core::hint::spin_loop();
        }
        // ORDERING: as in `lock`.
        while self.0.swap(AWAITED, Acquire) != FREE {
            sleep(&self.0, AWAITED, None);
        }
    }

    /// Makes it free, whatever it was. In a child, which has one thread.
    pub(crate) fn forget(&self) {
        self.0.store(FREE, Relaxed);
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        // ORDERING: Release pairs with the Acquire of `lock`.
        if self.0.swap(FREE, Release) == AWAITED {
            wake(&raw const self.0, 1);
        }
    }
}
