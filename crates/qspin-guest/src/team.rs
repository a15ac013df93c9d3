//! All CPUs together: the first gives work, the others halt until there is some.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

use crate::hardware::apic::{self, Message};
use crate::hardware::cpu::{self, CPUS, Cpu};
use crate::hardware::entry::KICK;
use crate::hardware::instruction::halt_while;

/// What is to be done: a `fn(u32)`, called with the number of the CPU.
static WORK: AtomicUsize = AtomicUsize::new(0);
/// Raised with each work.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// How many of the others are still at it.
static BUSY: AtomicU32 = AtomicU32::new(0);

/// Gives `work` to all CPUs but the first, which goes on at once.
pub fn begin(work: fn(u32)) {
    let others = cpu::online().filter(|cpu| cpu.number() != 0).count() as u32;
    WORK.store(work as usize, Relaxed);
    BUSY.store(others, Relaxed);
    // ORDERING: Release pairs with the Acquire of `follow`: the work, and all that was prepared.
    GENERATION.fetch_add(1, Release);
    for cpu in cpu::online().filter(|cpu| cpu.number() != 0) {
        apic::send(cpu.apic_id.load(Relaxed), Message::Vector(KICK));
    }
}

/// Waits until all have done their work.
pub fn finish() {
    loop {
        // ORDERING: Acquire pairs with the AcqRel of `follow`: what all have done.
        let busy = BUSY.load(Acquire);
        if busy == 0 {
            return;
        }
        // SAFETY: in ring 0; the word is static. The last one's kick ends it, or a timer.
        unsafe { halt_while(BUSY.as_ptr(), busy) };
    }
}

/// All CPUs work, this one among them.
pub fn run(work: fn(u32)) {
    begin(work);
    work(0);
    finish();
}

/// A CPU that is not the first: works whenever there is work.
pub fn follow(me: &Cpu) -> ! {
    me.generation.store(GENERATION.load(Relaxed), Relaxed);
    // ORDERING: Release pairs with the Acquire of `cpu::online`.
    me.online.store(1, Release);
    loop {
        let done = me.generation.load(Relaxed);
        // ORDERING: Acquire pairs with the Release of `begin`.
        while GENERATION.load(Acquire) == done {
            // SAFETY: in ring 0; the word is static. `begin` kicks after it has changed it.
            unsafe { halt_while(GENERATION.as_ptr(), done) };
        }
        me.generation.store(done.wrapping_add(1), Relaxed);
        let work = WORK.load(Relaxed);
        // SAFETY: stored by `begin`, from a `fn(u32)`.
        unsafe { core::mem::transmute::<usize, fn(u32)>(work)(me.number()) };
        // ORDERING: AcqRel pairs with itself on other CPUs and with the Acquire of `finish`.
        if BUSY.fetch_sub(1, AcqRel) == 1 {
            apic::send(CPUS[0].apic_id.load(Relaxed), Message::Vector(KICK));
        }
    }
}
