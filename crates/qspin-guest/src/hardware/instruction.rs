//! Instructions that Rust has no word for.

use core::arch::asm;
use core::arch::naked_asm;

/// Writes a byte to a port.
///
/// # Safety
/// What the device behind the port does of it must be sound.
#[inline]
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: the caller's promise.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
}

/// Writes four bytes to a port.
///
/// # Safety
/// As [`out8`].
#[inline]
pub unsafe fn out32(port: u16, value: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags))
    };
}

/// Reads a byte from a port.
///
/// # Safety
/// As [`out8`].
#[inline]
#[must_use]
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller's promise.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, preserves_flags)) };
    value
}

/// Reads a model-specific register.
///
/// # Safety
/// The register exists.
#[inline]
#[must_use]
pub unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high,
             options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The register exists, and what it does is sound.
#[inline]
pub unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: the caller's promise. It may touch memory (an interrupt that it sends).
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// Whether interrupts are on.
#[inline]
#[must_use]
pub fn interrupts_on() -> bool {
    let flags: u64;
    // SAFETY: pushes and pops one word.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) };
    flags & 1 << 9 != 0
}

/// Switches interrupts on. In ring 0; a compiler barrier.
#[inline]
pub fn enable_interrupts() {
    // SAFETY: handlers leave everything as they found it.
    unsafe { asm!("sti", options(nostack)) };
}

/// Switches interrupts off. In ring 0; a compiler barrier.
#[inline]
pub fn disable_interrupts() {
    // SAFETY: nothing is touched.
    unsafe { asm!("cli", options(nostack)) };
}

/// The time stamp counter, not before what comes before it.
#[inline]
#[must_use]
pub fn time_stamp() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter.
    unsafe {
        asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Halts until an interrupt if the word is `value`; returns for any interrupt, and at once if the
/// word is another.
///
/// The look and the halt are a window: an interrupt that comes between its labels is sent on to its
/// end by the [entries](super::entry), whose handler may have been told of a change of the word. So
/// no change that is followed by an interrupt is slept through, and that needs no
/// `sti; hlt`: it holds for an NMI while interrupts are off as well.
///
/// # Safety
/// In ring 0; the word is valid.
#[unsafe(naked)]
pub unsafe extern "C" fn halt_while(word: *const u32, value: u32) {
    naked_asm!(
        ".global qspin_halt_begin",
        "qspin_halt_begin:",
        "cmp dword ptr [rdi], esi",
        "jne qspin_halt_end",
        "hlt",
        ".global qspin_halt_end",
        "qspin_halt_end:",
        "ret",
    )
}
