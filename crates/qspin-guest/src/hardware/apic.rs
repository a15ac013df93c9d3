//! The local APIC, by memory (xAPIC) or by registers (x2APIC).
//!
//! # Invariants
//! * **APIC-1** The mode is chosen once, before a second CPU runs, and is the same on all.
//! * **APIC-2** In xAPIC mode a command is two writes, the destination first. A handler that
//!   interrupts between them and sends a command itself puts the destination back as it found it.

use core::arch::asm;
use core::arch::x86_64::__cpuid;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use super::instruction::{read_msr, write_msr};

const MEMORY: usize = 0xfee0_0000;
const BASE_MSR: u32 = 0x1b;
const ENABLE: u64 = 1 << 11;
const ENABLE_X2: u64 = 1 << 10;
const FIRST_MSR: u32 = 0x800;

/// Numbers of registers: times 16 in memory, as they are among the model-specific ones.
mod register {
    pub(super) const ID: u32 = 0x02;
    pub(super) const PRIORITY: u32 = 0x08;
    pub(super) const END: u32 = 0x0b;
    pub(super) const SPURIOUS: u32 = 0x0f;
    pub(super) const COMMAND: u32 = 0x30;
    pub(super) const DESTINATION: u32 = 0x31;
    pub(super) const TIMER: u32 = 0x32;
    pub(super) const LINT0: u32 = 0x35;
    pub(super) const LINT1: u32 = 0x36;
    pub(super) const ERROR: u32 = 0x37;
    pub(super) const TIMER_INITIAL: u32 = 0x38;
    pub(super) const TIMER_NOW: u32 = 0x39;
    pub(super) const TIMER_DIVIDER: u32 = 0x3e;
}

const MASKED: u32 = 1 << 16;
const BUSY: u32 = 1 << 12;
const ASSERT: u32 = 1 << 14;
const ALL_BUT_SELF: u32 = 3 << 18;
const AS_NMI: u32 = 4 << 8;

static X2: AtomicBool = AtomicBool::new(false);

/// A message from CPU to CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// An interrupt of this vector.
    Vector(u8),
    /// A non-maskable interrupt.
    Nmi,
    /// Back to the state after power-on, to wait for [`Message::Start`].
    Init,
    /// Begin in real mode in this page of memory.
    Start(u8),
}

impl Message {
    /// The lower half of the command register.
    #[must_use]
    pub const fn command(self) -> u32 {
        match self {
            Self::Vector(vector) => ASSERT | vector as u32,
            Self::Nmi => ASSERT | AS_NMI,
            Self::Init => ASSERT | 5 << 8,
            Self::Start(page) => ASSERT | 6 << 8 | page as u32,
        }
    }
}

/// Whether this CPU has an x2APIC.
#[must_use]
pub fn has_x2() -> bool {
    __cpuid(1).ecx & 1 << 21 != 0
}

/// Chooses the mode (APIC-1).
pub fn choose(x2: bool) {
    X2.store(x2, Relaxed);
}

/// Whether the mode is x2APIC.
#[inline]
#[must_use]
pub fn is_x2() -> bool {
    X2.load(Relaxed)
}

#[inline]
fn read(register: u32) -> u32 {
    // SAFETY: a register of the APIC, in the mode that it is in (APIC-1); the memory is mapped.
    unsafe {
        if is_x2() {
            read_msr(FIRST_MSR + register) as u32
        } else {
            ((MEMORY + register as usize * 16) as *const u32).read_volatile()
        }
    }
}

#[inline]
fn write(register: u32, value: u32) {
    // SAFETY: as in `read`; what is written is sound where it is called.
    unsafe {
        if is_x2() {
            write_msr(FIRST_MSR + register, value.into());
        } else {
            ((MEMORY + register as usize * 16) as *mut u32).write_volatile(value);
        }
    }
}

/// Switches the APIC of this CPU on. `spurious` is the vector for interrupts that vanish.
pub fn begin(spurious: u8) {
    // SAFETY: every CPU in long mode has this register. x2APIC is entered from xAPIC.
    unsafe {
        let base = read_msr(BASE_MSR) | ENABLE;
        write_msr(BASE_MSR, base);
        if is_x2() {
            write_msr(BASE_MSR, base | ENABLE_X2);
        }
    }
    write(register::PRIORITY, 0);
    write(register::TIMER, MASKED);
    write(register::LINT0, MASKED);
    // The button of the machine: an NMI, which asks the CPUs where they are.
    write(register::LINT1, AS_NMI);
    write(register::ERROR, MASKED);
    write(register::TIMER_DIVIDER, 0b1011);
    write(register::SPURIOUS, 1 << 8 | u32::from(spurious));
}

/// How the APIC of this CPU is called.
#[must_use]
pub fn id() -> u32 {
    if is_x2() { read(register::ID) } else { read(register::ID) >> 24 }
}

/// The interrupt in service is done.
#[inline]
pub fn end_of_interrupt() {
    write(register::END, 0);
}

/// Sends `message` to the CPU with this name of its APIC. From any context.
#[inline]
pub fn send(apic_id: u32, message: Message) {
    command(apic_id, message.command());
}

/// Sends `message` to every CPU but this one.
pub fn send_to_others(message: Message) {
    command(0, message.command() | ALL_BUT_SELF);
}

fn command(apic_id: u32, command: u32) {
    if is_x2() {
        // SAFETY: sends an interrupt, for which every CPU has an entry. A write to these registers
        // orders nothing: what was written for the receiver must be visible before.
        unsafe {
            asm!("mfence", "lfence", options(nostack, preserves_flags));
            write_msr(FIRST_MSR + register::COMMAND, u64::from(apic_id) << 32 | u64::from(command));
        }
        return;
    }
    while read(register::COMMAND) & BUSY != 0 {
        core::hint::spin_loop();
    }
    // APIC-2. (The memory is not cached, so that a write to it is ordered behind all before it.)
    let interrupted = read(register::DESTINATION);
    write(register::DESTINATION, apic_id << 24);
    write(register::COMMAND, command);
    write(register::DESTINATION, interrupted);
}

/// Lets the timer interrupt this CPU with `vector`, once, in `ns` nanoseconds of a timer of 1 GHz.
pub fn timer_once(vector: u8, ns: u32) {
    write(register::TIMER, u32::from(vector));
    write(register::TIMER_INITIAL, ns);
}

/// Lets the timer count down from `ticks` without an interrupt.
pub fn timer_once_unheard(ticks: u32) {
    write(register::TIMER, MASKED);
    write(register::TIMER_INITIAL, ticks);
}

/// Where the timer is.
#[must_use]
pub fn timer_left() -> u32 {
    read(register::TIMER_NOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_manual() {
        // Intel SDM 3A, 11.6.1: INIT is 0x4500, a start-up at page 8 0x4608, an NMI 0x4400.
        assert_eq!(Message::Init.command(), 0x4500);
        assert_eq!(Message::Start(8).command(), 0x4608);
        assert_eq!(Message::Nmi.command(), 0x4400);
        assert_eq!(Message::Vector(0xf0).command(), 0x40f0);
    }
}
