//! What a lock's row is told of each operation.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use crate::locks_file::{Row, add_to_bucket, bucket};

use super::now_ns;

/// So many holds are each measured, then one in `ONE_IN` of a thread.
const FIRST_HOLDS: u64 = 32;
const ONE_IN: u64 = 64;
/// A stack that keeps others waiting is taken about once in this time.
const STACK_NS: u64 = 128_000;

std::thread_local! {
    /// Acquisitions of this thread.
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

/// An acquisition, with or without a wait. Its hold is measured if it excludes others, and now and then.
pub(super) fn note_acquisition(row: &Row, shared: bool) {
    let before = row.acquisitions.fetch_add(1, Relaxed);
    let ticks = TICKS.with(|ticks| ticks.replace(ticks.get().wrapping_add(1)));
    let weight = if before < FIRST_HOLDS { 1 } else { ONE_IN };
    if weight == 1 || ticks.is_multiple_of(ONE_IN) {
        row.weight.store(weight, Relaxed);
        // Of a reader only that it was there.
        row.since.store(if shared { 1 } else { now_ns() }, Relaxed);
    }
}

/// The lock is about to be released: how long other threads have waited for it since a release was last
/// charged, and how many holds this one stands for; zeros if no stack is to be taken.
pub(super) fn note_release(row: &Row) -> [u64; 2] {
    let since = row.since.load(Relaxed);
    let waits = row.has_waiters();
    if since == 0 && !waits {
        return [0; 2];
    }
    let now = now_ns();
    let mut holds = 0;
    if since != 0 {
        row.since.store(0, Relaxed);
        holds = row.weight.load(Relaxed);
        if since != 1 {
            add_to_bucket(&row.holds, bucket(now.saturating_sub(since)), holds as u32);
        }
    }
    let mut delayed = 0;
    if waits {
        let turn = now.saturating_sub(row.examined.swap(now, Relaxed));
        if row.spent.fetch_add(turn, Relaxed) + turn >= STACK_NS {
            row.spent.store(0, Relaxed);
            delayed = row.charge(now);
        }
    }
    [delayed, holds]
}

pub(super) fn waiter_comes(row: &Row, now: u64) {
    if !row.has_waiters() {
        row.examined.store(now, Relaxed);
    }
    row.waiter_comes(now, 1);
}

/// A waiter has acquired the lock after so long; `place` is that of its stack.
pub(super) fn note_wait(row: &Row, waited: u64, place: u32) {
    row.contended.fetch_add(1, Relaxed);
    row.wait_ns.fetch_add(waited, Relaxed);
    add_to_bucket(&row.waits, bucket(waited), 1);
    if waited > row.longest_wait_ns.fetch_max(waited, Relaxed) {
        row.longest_stack.store(place.into(), Relaxed);
    }
}
