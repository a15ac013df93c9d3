//! Kicks for everybody at every moment, while all wait and halt: kicks that come late, early and
//! twice are wake-ups for nothing, and none that is meant is lost.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

use qspin_core::node::NodeId;
use qspin_core::platform::{CpuId, Platform};

use super::{Outcome, PLACES, Random, SHARED, Suite, count};
use crate::hardware::clock::now_ns;
use crate::hardware::cpu;
use crate::hardware::instruction::{disable_interrupts, enable_interrupts};
use crate::locks::{self, Lock};
use crate::platform::{Counted, Guest};
use crate::team;

static LOCK: AtomicU32 = AtomicU32::new(0);
static END: AtomicU64 = AtomicU64::new(0);

pub(super) fn test(suite: &mut Suite, lock: u32) {
    if !locks::halts(lock) {
        return;
    }
    let ms = suite.options.phase_ms;
    suite.check(3, lock, "kicks for all", || run(lock, ms));
}

fn run(number: u32, ms: u32) -> Outcome {
    // C4: a kick that comes first is kept. A halt that slept in spite of it would hang.
    let platform = Guest::<Counted>::NEW;
    if let Some(me) = CpuId::new(0).and_then(|cpu| NodeId::new(cpu, 0)) {
        platform.kick(me);
        platform.halt(me);
        disable_interrupts();
        platform.kick(me);
        platform.halt(me);
        enable_interrupts();
    }
    // SAFETY: nobody uses the place.
    unsafe { Lock::make(number, &PLACES[0]) };
    LOCK.store(number, Relaxed);
    END.store(now_ns() + u64::from(ms) * 1_000_000, Relaxed);
    team::run(work);
    Outcome::exact(0)
}

fn work(me: u32) {
    // SAFETY: made before the work was given.
    let lock = unsafe { Lock::in_place(LOCK.load(Relaxed), &PLACES[0]) };
    let platform = Guest::<Counted>::NEW;
    let end = END.load(Relaxed);
    let all = cpu::online().count() as u32;
    let mut random = Random::new(u64::from(me) + 77);
    loop {
        let off = random.below(2) == 0;
        if off {
            disable_interrupts();
        }
        lock.acquire();
        SHARED[0].add();
        // SAFETY: acquired above.
        unsafe { lock.release() };
        count(0);
        if off {
            enable_interrupts();
        }
        let cpu = CpuId::new(random.below(all));
        if let Some(node) = cpu.and_then(|cpu| NodeId::new(cpu, random.below(4))) {
            platform.kick(node);
        }
        if now_ns() > end {
            break;
        }
    }
}
