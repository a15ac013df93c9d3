//! x86-64.

use core::arch::asm;

use super::Here;

macro_rules! own_word {
    (load $name:literal) => {{
        let word: u64;
        // SAFETY: loads this thread's eight bytes, which only this thread writes; a signal handler on this thread
        // writes them whole.
        unsafe {
            core::arch::asm!(
                concat!("mov {word}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "mov {word}, qword ptr fs:[{word}]",
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
                concat!("mov {place}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "mov qword ptr fs:[{place}], {word}",
                place = out(reg) _,
                word = in(reg) $word,
                options(nostack, preserves_flags),
            );
        }
    };
    (increment $name:literal) => {{
        let mut before = 1_u64;
        // SAFETY: this thread's own eight bytes, changed by one instruction.
        unsafe {
            core::arch::asm!(
                concat!("mov {place}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "xadd qword ptr fs:[{place}], {before}",
                place = out(reg) _,
                before = inout(reg) before,
                options(nostack),
            );
        }
        before
    }};
}
pub(crate) use own_word;

/// The return address lies on the stack. Arguments are in rdi, rsi, rdx, rcx and r8.
macro_rules! call_with_site {
    (1, $function:path) => { call_with_site!("rsi", $function) };
    (2, $function:path) => { call_with_site!("rdx", $function) };
    (3, $function:path) => { call_with_site!("rcx", $function) };
    (4, $function:path) => { call_with_site!("r8", $function) };
    ($register:literal, $function:path) => {
        core::arch::naked_asm!(
            concat!("mov ", $register, ", qword ptr [rsp]"),
            "jmp {function}",
            function = sym $function,
        )
    };
}
pub(crate) use call_with_site;

pub(crate) const STACK_POINTER: gimli::Register = gimli::X86_64::RSP;
pub(crate) const FRAME_POINTER: gimli::Register = gimli::X86_64::RBP;
pub(crate) const RETURN_ADDRESS: gimli::Register = gimli::X86_64::RA;

#[inline(always)]
pub(crate) fn here() -> Here {
    let (place, stack_pointer, frame_pointer);
    // SAFETY: reads registers.
    unsafe {
        asm!(
            "lea {place}, [rip]",
            "mov {stack_pointer}, rsp",
            "mov {frame_pointer}, rbp",
            place = out(reg) place,
            stack_pointer = out(reg) stack_pointer,
            frame_pointer = out(reg) frame_pointer,
            options(nomem, nostack, preserves_flags),
        );
    }
    Here { place, stack_pointer, frame_pointer }
}

#[inline(always)]
pub(crate) const fn code_address(saved: u64) -> u64 {
    saved
}
