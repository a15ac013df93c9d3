//! Clocks that leap.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use qspin::events::NoEvents;
use qspin::platform::Threads;
use qspin::platform::clock::{Clock, Monotonic};
use qspin::platform::holder::Unhinted;
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::locks::rwlock::DefaultRwLock;
use qspin_core::raw::Raw;
use std::sync::atomic::AtomicU32;

use super::counts_are_exact;

/// A clock that goes on, stands still, leaps hours ahead, and goes back, which it never should.
struct Leaping;

impl Clock for Leaping {
    fn now_ns() -> u64 {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        const HOUR: u64 = 3_600_000_000_000;
        match LOOKS.fetch_add(1, Relaxed) % 7 {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - 1,
            3 => Monotonic::now_ns() + HOUR,
            4 => Monotonic::now_ns().saturating_sub(HOUR),
            _ => Monotonic::now_ns(),
        }
    }
}

type Platform = Threads<NoEvents, Unhinted, Leaping>;

/// Times are then of no use, but nothing overflows, no thread is forgotten, and no thread comes in beside another.
#[test]
fn a_clock_that_leaps_breaks_no_lock() {
    type Mutex = Raw<DefaultLock<AtomicU32>, Platform>;
    type RwLock = Raw<DefaultRwLock<AtomicU32>, Platform>;
    counts_are_exact::<Mutex, RwLock>();
}

/// The clock on the wall may be set at any time; waits do not know it. Its system call is all that could tell them.
// The portable platform leaves its waits to the standard library.
#[cfg(not(feature = "portable"))]
#[test]
fn no_wait_asks_the_clock_on_the_wall() {
    // A wait of 50 ms under a filter that kills a thread that waits on the wall clock: see the futexes.
    super::futexes::no_wait_is_on_the_wall_clock();
}
