//! A CPU that holds nothing goes and comes back: reset by INIT, started again under its number. The
//! locks must not notice.

use super::{Outcome, Suite, clear, exclusion};
use crate::hardware::cpu;
use crate::processors::{self, Start};

pub(super) fn test(suite: &mut Suite, lock: u32, start: Start) {
    let last = cpu::online().map(cpu::Cpu::number).max().unwrap_or(0);
    if last == 0 {
        return;
    }
    let ms = suite.options.phase_ms;
    let turns = [(last, "the last CPU off", "and on again"), (1, "the second off", "and on again")];
    for (number, off, on) in turns {
        suite.check(5, lock, off, || {
            processors::stop(number);
            exclusion::run(lock, ms)
        });
        suite.check(5, lock, on, || {
            clear();
            let came = processors::start_again(number, start);
            let outcome = exclusion::run(lock, ms);
            let worked =
                super::MINE[number as usize].0[0].load(core::sync::atomic::Ordering::Relaxed);
            Outcome { ok: outcome.ok && came && worked > 0, ..outcome }
        });
    }
}
