//! All CPUs, one lock: what it protects is changed as often as it was acquired.

use super::{Outcome, Suite, done, is_over, lock, make, takes_part};
use crate::team;

pub(super) fn test(suite: &mut Suite, lock: u32) {
    let ms = suite.options.phase_ms;
    suite.check(0, lock, "task", || run(lock, ms));
}

/// One phase of all CPUs.
pub(super) fn run(number: u32, ms: u32) -> Outcome {
    make(number, ms);
    team::run(work);
    Outcome::exact(0)
}

fn work(me: u32) {
    if !takes_part(me) {
        return;
    }
    for turn in 0_u32.. {
        if turn % 4 == 3 {
            if !lock(0).try_acquire() {
                continue;
            }
        } else {
            lock(0).acquire();
        }
        // SAFETY: acquired above.
        unsafe { done(0) };
        if is_over() {
            break;
        }
    }
}
