//! How far a lock is from the best that one could have taken, over loads drawn at random.
//!
//! A lock that was tuned on chosen cells is good in these. So the loads are [drawn](draw) from a stated
//! distribution, each is measured with all contenders, and in each the *oracle* is the fastest of the locks
//! that a program may take without a second thought. A lock's *regret* in a cell is the oracle's throughput
//! over its own: 1 is as good as the best choice for that cell alone. Other locks may run beside; they have a
//! regret, too, which may be below 1, and are no part of the oracle. Nor is the *twin*: the judged lock once
//! more under another name, which shows how much of a regret is noise.

pub mod draw;
pub mod journal;
pub mod regret;
pub mod show;

/// Of what the oracle chooses, among mutual exclusion locks.
pub const ORACLE: [&str; 7] =
    ["mutex", "paravirt", "std", "parking_lot", "parking_lot-0.12", "pthread", "pthread_adaptive"];

/// Of what the oracle chooses, among reader-writer locks.
pub const ORACLE_RW: [&str; 6] = [
    "rwlock",
    "std-rw",
    "parking_lot-rw",
    "parking_lot-0.12-rw",
    "pthread-rw",
    "pthread-writers-rw",
];

/// Of what the oracle chooses.
pub fn oracle(shared: bool) -> &'static [&'static str] {
    if shared { &ORACLE_RW } else { &ORACLE }
}

/// What is behind the name of the judged lock where it runs once more.
pub const TWIN: &str = "-twin";

/// Cells in which the judged lock, or its twin, has more than this regret are measured again.
pub const AGAIN: f64 = 1.10;
/// In so many rounds.
pub const ROUNDS_AGAIN: usize = 21;

/// The params of a row that say which cell of which seed it is, and that it was measured again.
pub const CELL: &str = "cell";
/// The seed of the draw.
pub const SEED: &str = "draw";
/// The row is of the second measurement, which alone counts.
pub const REPEATED: &str = "again";
