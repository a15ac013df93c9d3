//! Whether the locks of C programs count their events: one switch, off until the program turns it on.
//!
//! # Problem
//! In Rust, counting is a parameter of the lock's type. A second set of functions for it would double the
//! interface, and a counter costs a C program a file descriptor that it may not expect.
//!
//! So there is one instantiation, which checks a switch. The fast paths count nothing and do not check it. On
//! the slow path an event costs a load and a branch while the switch is off. A kick and a wake-up also read the
//! clock, which only counters need, beside a system call that costs many times as much.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use qspin::events::{Counted, Event, Events};
use qspin::platform::StaticEvents;

static COUNTS: AtomicBool = AtomicBool::new(false);

/// Counts in the counters of the process while the switch is on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switched;

impl Events for Switched {
    const ENABLED: bool = true;

    #[inline]
    fn add(&self, event: Event, amount: u64) {
        // Relaxed: an event is counted or not, and the switch publishes no other memory.
        if COUNTS.load(Relaxed) {
            Counted.add(event, amount);
        }
    }
}

impl StaticEvents for Switched {
    const EVENTS: &'static Self = &Self;
}

/// Sets the switch.
pub(crate) fn switch(on: bool) {
    COUNTS.store(on, Relaxed);
}

/// The switch.
pub(crate) fn is_on() -> bool {
    COUNTS.load(Relaxed)
}
