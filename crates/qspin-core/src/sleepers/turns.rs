//! How long threads pass the sleepers of a lock, and when that is too long.

use core::sync::atomic::Ordering::Relaxed;

use super::{SleepPlatform, bucket, cpus, number, rests};
use crate::platform::AtomicWord;
use crate::quantum::Quantum;

/// Each sleeper extends the time until a waiter starves by this part of `mutex_heir_us`: by about one turn.
const TURNS_OF_HEIR: u64 = 10;
/// On so few CPUs all waiters may be awake. On more of them, those that were woken mostly slept again: simulated, 29 threads
/// with empty sections on 18 CPUs, 27 million operations a second in place of 16; 180 loads of which none was looked at
/// before 1.03 +- 0.01 of before, and with 3 CPUs in place of 8 1.02.
const FEW_CPUS: u32 = 8;

/// When a waiter for the lock at `on` starves, in nanoseconds: later where many sleep, which acquire the lock one
/// after the other. If waiters became heirs that wait no longer than all others do, the lock would go from one to
/// the next in order, whether they run or not.
#[must_use]
pub fn starves_after_ns<P: SleepPlatform>(p: &P, on: usize) -> u64 {
    let others = u64::from(number(p, on));
    u64::from(p.tuning().mutex_heir_us) * 1000 * (TURNS_OF_HEIR + others) / TURNS_OF_HEIR
}

/// How many sleepers of the lock at `on` shorten a barging quantum: all, or half of them where waiters rest one at a time.
/// There the owner's changes cost most of the CPU time that is not spent in sections.
#[inline]
#[must_use]
pub fn hurried_by<P: SleepPlatform>(p: &P, on: usize) -> u32 {
    let all = number(p, on);
    if rests::Rest::is_sure(p, on) { all / 2 } else { all }
}

/// How long the barging quantum of a thread past the sleepers on `on` lasts, in nanoseconds.
#[must_use]
pub fn quantum_ns<P: SleepPlatform>(p: &P, on: usize) -> u32 {
    Quantum::of(p).length_us(hurried_by(p, on)).saturating_mul(1000)
}

/// Whether the threads that passed the sleepers on `on` had short turns of late, as [`note_turns`] was told, and
/// a hand-over is short as well: a guess, shared by all locks of the bucket. Where a hand-over takes long, or many CPUs
/// acquire locks, too many would poll.
#[inline]
pub fn turns_are_short<P: SleepPlatform>(p: &P, on: usize) -> bool {
    let (bucket, short_ns) = (bucket::of(p, on), p.tuning().mutex_short_ns);
    (1..short_ns).contains(&bucket.turn_ns.load(Relaxed))
        && cpus(p) <= FEW_CPUS
        && bucket.handover_ns.load(Relaxed) <= short_ns
}

/// Notes how long the turns of a thread were that has passed the sleepers on `on`, in the mean.
pub fn note_turns<P: SleepPlatform>(p: &P, on: usize, mean_ns: u64) {
    let mean_ns = u32::try_from(mean_ns).unwrap_or(u32::MAX).max(1);
    bucket::of(p, on).turn_ns.store(mean_ns, Relaxed);
    rests::note_turns(p, on);
}

/// After how many turns past the sleepers on `on` a thread yields, whose quantum is over: `yield_turns`, or as many
/// as fit into that part of a quantum.
pub fn turns_between_yields<P: SleepPlatform>(p: &P, on: usize) -> u32 {
    let (turn_ns, tuning) = (bucket::of(p, on).turn_ns.load(Relaxed), p.tuning());
    let all = tuning.yield_turns;
    let time_ns = (u64::from(tuning.rotate_us) * 1000).checked_div(u64::from(all));
    match time_ns.and_then(|time_ns| time_ns.checked_div(u64::from(turn_ns))) {
        Some(turns) => all.min(turns.max(1) as u32),
        None => all,
    }
}
