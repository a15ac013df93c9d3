//! One record a CPU, found by its segment register.
//!
//! # Invariants
//! * **GUESTCPU-1** The base of GS of every CPU that runs Rust is the address of its record in
//!   [`CPUS`], from [`adopt`] on; and it is not changed.
//! * **GUESTCPU-2** A number is used by one CPU at a time: the trampoline gives it out once, and a CPU
//!   that is started again takes up its own.

use core::arch::asm;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicUsize};

use super::instruction::write_msr;
use crate::options::MAX_CPUS;

/// Most CPUs that the guest uses.
pub const MAX: usize = MAX_CPUS as usize;

const GS_BASE: u32 = 0xc000_0101;

/// What a CPU knows of itself. Others may read it.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Cpu {
    /// Its own address: what GS leads to.
    this: AtomicUsize,
    number: AtomicU32,
    /// Handlers of interrupts that it is in.
    pub depth: AtomicU32,
    /// It is in the handler of an NMI.
    pub nmi: AtomicU32,
    /// How the APIC calls it.
    pub apic_id: AtomicU32,
    /// It runs Rust, and may be given work.
    pub online: AtomicU32,
    /// The last work that it has begun, see [`crate::team`].
    pub generation: AtomicU32,
    /// The interrupted NMI handler is wanted for more than a kick.
    pub nmi_work: AtomicU32,
    /// Not 0: it dozes until its timer has come.
    pub dozes: AtomicU32,
    /// For each level (task, interrupt, nested interrupt, NMI): the lock that it waits for, by its
    /// place in the list, plus 1; above that [`HOLDS`].
    pub waits: [AtomicU32; 4],
}

/// In [`Cpu::waits`]: the lock is not waited for, but held.
pub const HOLDS: u32 = 1 << 16;

impl Cpu {
    #[allow(clippy::declare_interior_mutable_const)]
    const NEW: Self = Self {
        this: AtomicUsize::new(0),
        number: AtomicU32::new(0),
        depth: AtomicU32::new(0),
        nmi: AtomicU32::new(0),
        apic_id: AtomicU32::new(0),
        online: AtomicU32::new(0),
        generation: AtomicU32::new(0),
        nmi_work: AtomicU32::new(0),
        dozes: AtomicU32::new(0),
        waits: [const { AtomicU32::new(0) }; 4],
    };

    /// Its number.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number.load(Relaxed)
    }

    /// The level at which it runs now: 0 for a task, 3 for an NMI.
    #[inline]
    #[must_use]
    pub fn level(&self) -> usize {
        if self.nmi.load(Relaxed) != 0 { 3 } else { self.depth.load(Relaxed).min(2) as usize }
    }
}

/// Every CPU that there may be.
pub static CPUS: [Cpu; MAX] = [const { Cpu::NEW }; MAX];

/// Makes `number` the number of this CPU.
///
/// # Safety
/// GUESTCPU-2: no other CPU has it.
pub unsafe fn adopt(number: u32) {
    let cpu = &CPUS[number as usize];
    cpu.this.store(core::ptr::from_ref(cpu) as usize, Relaxed);
    cpu.number.store(number, Relaxed);
    cpu.depth.store(0, Relaxed);
    cpu.nmi.store(0, Relaxed);
    // SAFETY: GUESTCPU-1 begins.
    unsafe { write_msr(GS_BASE, core::ptr::from_ref(cpu) as u64) };
}

/// The record of this CPU.
#[inline]
#[must_use]
pub fn this() -> &'static Cpu {
    let address: usize;
    // SAFETY: GUESTCPU-1: the record begins with its own address, which does not change.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) address, options(pure, readonly, nostack, preserves_flags));
        &*(address as *const Cpu)
    }
}

/// The CPUs that may be given work.
pub fn online() -> impl Iterator<Item = &'static Cpu> {
    CPUS.iter().filter(|cpu| cpu.online.load(core::sync::atomic::Ordering::Acquire) != 0)
}
