//! A CPU that waits for four locks at once: as a task, in an interrupt, in one that interrupts that,
//! and in an NMI. A lock of each level is taken at that level only, so no context waits for itself; and
//! the owner of one waits for locks of higher levels only, so there is no circle of waits.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use qspin_core::locks::LOCKS;
use qspin_core::node::NodeId;
use qspin_core::platform::CpuId;

use super::{
    Outcome, Random, SHARED, Suite, counted, is_over, is_quiet, lock, make, once, takes_part,
};
use crate::hardware::apic::{self, Message};
use crate::hardware::cpu::{self, CPUS, Cpu, HOLDS};
use crate::hardware::entry::{ABOVE, BELOW, set_handler};
use crate::hardware::instruction::{disable_interrupts, enable_interrupts};
use crate::platform;
use crate::team;
use crate::watch::within;

/// Handlers interrupt themselves with what is above them.
static STORM: AtomicBool = AtomicBool::new(false);

/// From how many CPUs on one of them must be seen with four nodes: on each level one or two wait
/// without a node, as the pending or the awake one.
const SURELY_FOUR: usize = 10;

pub(super) fn test(suite: &mut Suite, lock: u32) {
    set_handler(BELOW, in_interrupt);
    set_handler(ABOVE, in_nested_interrupt);
    let ms = suite.options.phase_ms;
    if cpu::online().count() > 1 {
        suite.check(1, lock, "all four levels wait", || wait_on_all_levels(lock));
    }
    suite.check(1, lock, "storm", || storm(lock, ms));
}

fn in_interrupt() {
    enable_interrupts();
    once(1);
    if STORM.load(Relaxed) {
        apic::send(cpu::this().apic_id.load(Relaxed), Message::Vector(ABOVE));
        core::hint::spin_loop();
    }
    disable_interrupts();
}

fn in_nested_interrupt() {
    once(2);
    if STORM.load(Relaxed) {
        send_nmi(cpu::this());
    }
}

pub(super) fn in_nmi() {
    once(3);
}

fn send_nmi(cpu: &Cpu) {
    cpu.nmi_work.store(1, Relaxed);
    apic::send(cpu.apic_id.load(Relaxed), Message::Nmi);
}

fn others() -> impl Iterator<Item = &'static Cpu> {
    cpu::online().filter(|cpu| cpu.number() != 0 && takes_part(cpu.number()))
}

/// Whether all others wait at `level`.
fn all_wait(level: usize) -> bool {
    within(20_000, || {
        others().all(|cpu| {
            let state = cpu.waits[level].load(Relaxed);
            state != 0 && state & HOLDS == 0
        })
    })
}

/// Most nodes that one of the others has in use.
fn deepest() -> u32 {
    let nesting = |cpu: &Cpu| {
        let first = CpuId::new(cpu.number()).and_then(|cpu| NodeId::new(cpu, 0));
        first.map_or(0, |first| platform::node(first).nesting.load(Relaxed))
    };
    others().map(nesting).max().unwrap_or(0)
}

/// The first CPU holds four locks until all others wait for all of them.
fn wait_on_all_levels(number: u32) -> Outcome {
    make(number, 0);
    STORM.store(false, Relaxed);
    (0..4).for_each(|level| lock(level).acquire());
    team::begin(|me| {
        if takes_part(me) {
            once(0);
        }
    });
    let mut ok = all_wait(0);
    for (level, vector) in [(1, BELOW), (2, ABOVE)] {
        if ok {
            others().for_each(|cpu| apic::send(cpu.apic_id.load(Relaxed), Message::Vector(vector)));
            ok = all_wait(level);
        }
    }
    if ok {
        others().for_each(send_nmi);
        ok = all_wait(3);
    }
    if ok && LOCKS[number as usize].queues() && others().count() >= SURELY_FOUR {
        ok = within(20_000, || deepest() == 4);
    }
    // The innermost first: what is above it keeps a waiter from going on.
    for level in (0..4).rev() {
        // SAFETY: acquired above.
        unsafe { lock(level).release() };
    }
    team::finish();
    // Handlers ran on top of the work, and have ended before it.
    let expected = 4 * others().count() as u64;
    let counted = (0..4).filter_map(|level| SHARED[level].get()).sum();
    Outcome { ok: ok && counted == expected, counted, expected }
}

/// Everybody at everything, at random.
fn storm(number: u32, ms: u32) -> Outcome {
    make(number, ms);
    STORM.store(true, Relaxed);
    team::run(|me| {
        if !takes_part(me) {
            return;
        }
        let mut random = Random::new(u64::from(me) + 1);
        loop {
            once(0);
            if random.below(4) == 0 {
                let all = cpu::online().count() as u32;
                let to = &CPUS[random.below(all) as usize];
                if takes_part(to.number()) {
                    apic::send(to.apic_id.load(Relaxed), Message::Vector(BELOW));
                }
            }
            if is_over() {
                break;
            }
        }
    });
    STORM.store(false, Relaxed);
    let mut all = Outcome { ok: is_quiet(), counted: 0, expected: 0 };
    for level in 0..4 {
        let one = Outcome::exact(level);
        all.ok &= one.counted == one.expected;
        all.counted += one.counted;
        all.expected += one.expected;
    }
    all.ok &= counted(0) > 0;
    all
}
