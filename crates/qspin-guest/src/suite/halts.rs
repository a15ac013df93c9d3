//! One waiter, seen halted before it is released: with interrupts on, with interrupts off, and woken
//! for nothing in between.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use qspin_core::node::NodeId;
use qspin_core::platform::CpuId;

use super::{Outcome, Suite, done, halts, lock, make, once};
use crate::hardware::apic::{self, Message};
use crate::hardware::cpu::{self, CPUS};
use crate::hardware::entry::KICK;
use crate::hardware::instruction::{disable_interrupts, enable_interrupts};
use crate::kick::{HALTED_OFF, HALTED_ON};
use crate::platform;
use crate::watch::within;
use crate::{team, watch};

static INTERRUPTS: AtomicBool = AtomicBool::new(true);
/// Turns that the waiter may begin, and has ended.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// Turns of each kind.
const TURNS: u32 = 30;

pub(super) fn test(suite: &mut Suite, lock: u32) {
    if !halts(lock) || cpu::online().count() < 2 {
        return;
    }
    for (on, detail) in [(true, "interrupts on"), (false, "interrupts off")] {
        suite.check(2, lock, detail, || run(lock, on));
    }
}

/// Whether the waiter halts, or does within some seconds.
fn is_halted() -> bool {
    let node = CpuId::new(1).and_then(|cpu| NodeId::new(cpu, 0));
    let word = node.map(|node| &platform::node(node).kick);
    let halted = [HALTED_ON, HALTED_OFF];
    word.is_some_and(|word| within(10_000, || halted.contains(&word.load(Relaxed))))
}

fn run(number: u32, on: bool) -> Outcome {
    make(number, 0);
    INTERRUPTS.store(on, Relaxed);
    BEGUN.store(0, Relaxed);
    ENDED.store(0, Relaxed);
    team::begin(wait);
    let mut halted = 0;
    let name = CPUS[1].apic_id.load(Relaxed);
    for turn in 1..=TURNS {
        lock(0).acquire();
        // ORDERING: Release pairs with the Acquire of the waiter: the lock is held by then.
        BEGUN.store(turn, Release);
        let mut seen = is_halted();
        // For nothing: it halts again.
        if turn % 3 == 0 {
            apic::send(name, Message::Vector(KICK));
            seen &= is_halted();
        }
        if turn % 5 == 0 {
            apic::send(name, Message::Nmi);
            seen &= is_halted();
        }
        halted += u64::from(seen);
        // SAFETY: acquired above.
        unsafe { done(0) };
        // ORDERING: Acquire pairs with the Release of the waiter at the end of its turn.
        while ENDED.load(Acquire) != turn {
            core::hint::spin_loop();
        }
    }
    team::finish();
    let exact = Outcome::exact(0);
    let ok = exact.ok && halted == TURNS.into() && exact.counted == u64::from(TURNS) * 2;
    Outcome { ok, ..exact }
}

fn wait(me: u32) {
    if me != 1 {
        return;
    }
    let on = INTERRUPTS.load(Relaxed);
    for turn in 1..=TURNS {
        // ORDERING: Acquire pairs with the Release of the owner.
        while BEGUN.load(Acquire) != turn {
            core::hint::spin_loop();
        }
        if !on {
            disable_interrupts();
        }
        once(0);
        if !on {
            enable_interrupts();
        }
        // ORDERING: Release pairs with the Acquire of the owner.
        ENDED.store(turn, Release);
    }
}

/// Everybody waits for a lock that is never released: what is said then is tested, too.
pub(super) fn hang(suite: &mut Suite, number: u32) {
    let off = suite.options.hang == 2;
    suite.check(2, number, "hangs on purpose", || {
        watch::limit(1_000, 3);
        make(number, 0);
        lock(0).acquire();
        team::begin(|_| lock(0).acquire());
        if off {
            disable_interrupts();
        }
        team::finish();
        Outcome { ok: false, counted: 0, expected: 1 }
    });
}
