//! All CPUs, one lock: what it protects is changed as often as it was acquired.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::{Outcome, PLACES, SHARED, Suite, count, takes_part};
use crate::hardware::clock::now_ns;
use crate::locks::Lock;
use crate::team;

static LOCK: AtomicU32 = AtomicU32::new(0);
static END: AtomicU64 = AtomicU64::new(0);

pub(super) fn test(suite: &mut Suite, lock: u32) {
    let ms = suite.options.phase_ms;
    suite.check(0, lock, "task", || run(lock, ms));
}

/// One phase of all CPUs.
pub(super) fn run(lock: u32, ms: u32) -> Outcome {
    // SAFETY: nobody uses the place: all CPUs wait for work.
    unsafe { Lock::make(lock, &PLACES[0]) };
    LOCK.store(lock, Relaxed);
    END.store(now_ns() + u64::from(ms) * 1_000_000, Relaxed);
    team::run(work);
    Outcome::exact(0)
}

fn work(me: u32) {
    if !takes_part(LOCK.load(Relaxed), me) {
        return;
    }
    // SAFETY: made before the work was given.
    let lock = unsafe { Lock::in_place(LOCK.load(Relaxed), &PLACES[0]) };
    let end = END.load(Relaxed);
    for turn in 0_u32.. {
        if turn % 4 == 3 {
            if !lock.try_acquire() {
                continue;
            }
        } else {
            lock.acquire();
        }
        SHARED[0].add();
        // SAFETY: acquired above.
        unsafe { lock.release() };
        count(0);
        if now_ns() > end {
            break;
        }
    }
}
