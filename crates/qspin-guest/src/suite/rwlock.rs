//! The locks that readers share: writers and readers as tasks, and readers in interrupts, which pass a
//! writer that waits.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use qspin_core::locks::LOCKS;

use super::{
    Outcome, Random, SHARED, Suite, count, counted, is_over, is_quiet, lock, make, once, takes_part,
};
use crate::hardware::apic::{self, Message};
use crate::hardware::cpu::{self, CPUS};
use crate::hardware::entry::{ABOVE, set_handler};
use crate::hardware::instruction::{disable_interrupts, enable_interrupts};
use crate::team;

/// Readers that have seen a writer's work half done.
static TORN: AtomicU64 = AtomicU64::new(0);

pub(super) fn test(suite: &mut Suite, lock: u32) {
    if !LOCKS[lock as usize].shared {
        return;
    }
    set_handler(ABOVE, read);
    let ms = suite.options.phase_ms;
    suite.check(4, lock, "readers in interrupts", || run(lock, ms));
}

fn run(number: u32, ms: u32) -> Outcome {
    make(number, ms);
    TORN.store(0, Relaxed);
    team::run(work);
    // A handler that came later would find another lock there.
    let quiet = is_quiet();
    let exact = Outcome::exact(0);
    // There were reads, and none of them of torn words.
    Outcome { ok: quiet && exact.ok && TORN.load(Relaxed) == 0 && counted(1) > 0, ..exact }
}

/// As a task, or in an interrupt.
fn read() {
    lock(0).read(|| {
        if SHARED[0].get().is_none() {
            TORN.fetch_add(1, Relaxed);
        }
    });
    count(1);
}

fn work(me: u32) {
    if !takes_part(me) {
        return;
    }
    let all = cpu::online().count() as u32;
    let mut random = Random::new(u64::from(me) + 5);
    loop {
        // A reader in an interrupt would wait for the writer that it has interrupted.
        disable_interrupts();
        once(0);
        enable_interrupts();
        for _ in 0..random.below(4) {
            read();
        }
        let to = &CPUS[random.below(all) as usize];
        apic::send(to.apic_id.load(Relaxed), Message::Vector(ABOVE));
        if is_over() {
            break;
        }
    }
}
