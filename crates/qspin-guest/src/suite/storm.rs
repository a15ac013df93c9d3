//! Kicks for everybody at every moment, while all wait and halt: kicks that come late, early and
//! twice are wake-ups for nothing, and none that is meant is lost.

use qspin_core::node::NodeId;
use qspin_core::platform::{CpuId, Platform};

use super::{Outcome, Random, Suite, halts, is_over, make, once};
use crate::hardware::cpu;
use crate::hardware::instruction::{disable_interrupts, enable_interrupts};
use crate::platform::{Counted, Guest};
use crate::team;

pub(super) fn test(suite: &mut Suite, lock: u32) {
    if !halts(lock) {
        return;
    }
    let ms = suite.options.phase_ms;
    suite.check(3, lock, "kicks for all", || run(lock, ms));
}

fn run(number: u32, ms: u32) -> Outcome {
    // PLATFORM-4: a kick that comes first is kept. A halt that slept in spite of it would hang.
    let platform = Guest::<Counted>::NEW;
    if let Some(me) = CpuId::new(0).and_then(|cpu| NodeId::new(cpu, 0)) {
        platform.kick(me);
        platform.halt(me);
        disable_interrupts();
        platform.kick(me);
        platform.halt(me);
        enable_interrupts();
    }
    make(number, ms);
    team::run(work);
    Outcome::exact(0)
}

fn work(me: u32) {
    let platform = Guest::<Counted>::NEW;
    let all = cpu::online().count() as u32;
    let mut random = Random::new(u64::from(me) + 77);
    loop {
        let off = random.below(2) == 0;
        if off {
            disable_interrupts();
        }
        once(0);
        if off {
            enable_interrupts();
        }
        let cpu = CpuId::new(random.below(all));
        if let Some(node) = cpu.and_then(|cpu| NodeId::new(cpu, random.below(4))) {
            platform.kick(node);
        }
        if is_over() {
            break;
        }
    }
}
