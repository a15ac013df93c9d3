//! ARM, 64 bits.

use core::arch::asm;

use super::Here;

macro_rules! own_word {
    (load $name:literal) => {{
        let word: u64;
        // SAFETY: loads this thread's eight bytes, which only this thread writes; a signal handler on this thread
        // writes them whole.
        unsafe {
            core::arch::asm!(
                concat!("adrp {place}, :gottprel:", $name),
                concat!("ldr {place}, [{place}, :gottprel_lo12:", $name, "]"),
                "mrs {word}, tpidr_el0",
                "ldr {word}, [{word}, {place}]",
                place = out(reg) _,
                word = out(reg) word,
                options(nostack, readonly, preserves_flags),
            );
        }
        word
    }};
    (store $name:literal, $word:expr) => {
        // SAFETY: stores to this thread's eight bytes, in one instruction.
        unsafe {
            core::arch::asm!(
                concat!("adrp {place}, :gottprel:", $name),
                concat!("ldr {place}, [{place}, :gottprel_lo12:", $name, "]"),
                "mrs {thread}, tpidr_el0",
                "str {word}, [{thread}, {place}]",
                place = out(reg) _,
                thread = out(reg) _,
                word = in(reg) $word,
                options(nostack, preserves_flags),
            );
        }
    };
    // Without an exclusive store: what a signal handler adds in between is lost.
    (increment $name:literal) => {{
        let before: u64 = own_word!(load $name);
        own_word!(store $name, before + 1);
        before
    }};
}
pub(crate) use own_word;

/// The return address is in the link register. Arguments are in x0 to x4.
macro_rules! call_with_site {
    ($arguments:literal, $function:path) => {
        core::arch::naked_asm!(
            concat!("mov x", $arguments, ", x30"),
            "b {function}",
            function = sym $function,
        )
    };
}
pub(crate) use call_with_site;

pub(crate) const STACK_POINTER: gimli::Register = gimli::AArch64::SP;
pub(crate) const FRAME_POINTER: gimli::Register = gimli::AArch64::X29;
pub(crate) const RETURN_ADDRESS: gimli::Register = gimli::AArch64::X30;

#[inline(always)]
pub(crate) fn here() -> Here {
    let (place, stack_pointer, frame_pointer);
    // SAFETY: reads registers.
    unsafe {
        asm!(
            "adr {place}, .",
            "mov {stack_pointer}, sp",
            "mov {frame_pointer}, x29",
            place = out(reg) place,
            stack_pointer = out(reg) stack_pointer,
            frame_pointer = out(reg) frame_pointer,
            options(nomem, nostack, preserves_flags),
        );
    }
    Here { place, stack_pointer, frame_pointer }
}

/// Without its signature, where return addresses are signed.
#[inline(always)]
pub(crate) fn code_address(saved: u64) -> u64 {
    let address;
    // SAFETY: `xpaclri`, which is a hint: it does nothing on a processor that does not sign.
    unsafe {
        asm!(
            "hint #7",
            inout("x30") saved => address,
            options(nomem, nostack, preserves_flags),
        );
    }
    address
}
