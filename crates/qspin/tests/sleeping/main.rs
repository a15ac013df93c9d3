//! The default reader-writer lock, conditions and once, on threads: exact counts, and times.

mod condvar;
mod once;
// The portable platform knows no priorities.
#[cfg(not(feature = "portable"))]
mod priorities;
mod rwlock;
mod torture;

use std::time::{Duration, Instant};

/// More than a wait takes on a machine that does other things besides, and less than for ever.
const LONG: Duration = Duration::from_secs(120);

/// Waits until `condition` holds; fails where it never does.
fn until(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LONG, "it never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}
