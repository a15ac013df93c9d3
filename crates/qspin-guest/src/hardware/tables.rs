//! The tables of the processor: segments, the entry stacks, and the entries.
//!
//! # Invariants
//! * **TABLES-1** The tables of a CPU are written by itself, before it loads them; those of the
//!   entries by the first one, before it loads them and before others run.

use core::arch::asm;
use core::cell::UnsafeCell;

use super::cpu::MAX;
use super::entry::{
    ABOVE, BELOW, KICK, SPURIOUS, TIMER, error_entry, fault_entry, interrupt_entry, nmi_entry,
};

const CODE: u16 = 0x08;
const TASK: u16 = 0x18;
const ENTRY_STACK: usize = 16 << 10;

/// Numbers of entry stacks, from 1.
const NMI_STACK: u8 = 1;
const INTERRUPT_STACK: u8 = 2;
const FAULT_STACK: u8 = 3;

/// Memory that one CPU writes before others look at it, or that is this CPU's alone (TABLES-1).
#[repr(transparent)]
struct Own<T>(UnsafeCell<T>);

// SAFETY: TABLES-1.
unsafe impl<T> Sync for Own<T> {}

/// The task state: for 64-bit code nothing but stacks.
#[repr(C, packed(4))]
struct Task {
    reserved: u32,
    privileged: [u64; 3],
    reserved_too: u64,
    entry_stacks: [u64; 7],
    reserved_last: [u16; 5],
    map: u16,
}

#[repr(C, align(16))]
struct Stack([u8; ENTRY_STACK]);

/// What a CPU has of its own.
#[repr(C, align(64))]
struct Tables {
    segments: [u64; 5],
    task: Task,
    stacks: [Stack; 3],
}

#[allow(clippy::declare_interior_mutable_const)]
const EMPTY_TABLES: Own<Tables> = Own(UnsafeCell::new(Tables {
    segments: [0; 5],
    task: Task {
        reserved: 0,
        privileged: [0; 3],
        reserved_too: 0,
        entry_stacks: [0; 7],
        reserved_last: [0; 5],
        map: 0,
    },
    stacks: [const { Stack([0; ENTRY_STACK]) }; 3],
}));

static TABLES: [Own<Tables>; MAX] = [const { EMPTY_TABLES }; MAX];
static ENTRIES: Own<[[u64; 2]; 256]> = Own(UnsafeCell::new([[0; 2]; 256]));

/// What `lgdt` and `lidt` read.
#[repr(C, packed(2))]
struct Pointer {
    limit: u16,
    base: u64,
}

/// An interrupt gate, on this entry stack.
fn gate(entry: usize, stack: u8) -> [u64; 2] {
    let entry = entry as u64;
    let low = entry & 0xffff
        | u64::from(CODE) << 16
        | u64::from(stack) << 32
        | 0x8e << 40
        | (entry >> 16 & 0xffff) << 48;
    [low, entry >> 32]
}

/// Writes the entries, once.
///
/// # Safety
/// TABLES-1: on the first CPU, while it is alone.
pub unsafe fn write_entries() {
    // SAFETY: TABLES-1.
    let entries = unsafe { &mut *ENTRIES.0.get() };
    macro_rules! faults {
        ($entry:ident: $($vector:literal)*) => {$(
            entries[$vector] = gate($entry::<$vector> as *const () as usize, FAULT_STACK);
        )*};
    }
    faults!(fault_entry: 0 1 3 4 5 6 7 9 15 16 18 19 20 22 23 24 25 26 27 28 31);
    faults!(error_entry: 8 10 11 12 13 14 17 21 29 30);
    entries[2] = gate(nmi_entry as *const () as usize, NMI_STACK);
    // Whatever else comes is an interrupt without a handler, and has vanished.
    for entry in &mut entries[32..] {
        *entry = gate(interrupt_entry::<SPURIOUS> as *const () as usize, INTERRUPT_STACK);
    }
    macro_rules! interrupts {
        ($($vector:ident)*) => {$(
            let entry = interrupt_entry::<$vector> as *const () as usize;
            entries[usize::from($vector)] = gate(entry, INTERRUPT_STACK);
        )*};
    }
    interrupts!(BELOW ABOVE TIMER KICK);
}

/// Writes the tables of this CPU and loads them.
///
/// # Safety
/// TABLES-1, after [`write_entries`]; `number` is this CPU's.
pub unsafe fn load(number: u32) {
    let mine = TABLES[number as usize].0.get();
    // SAFETY: TABLES-1. Stacks grow down: each begins where the next lies.
    unsafe {
        let stacks = &raw const (*mine).stacks;
        for (index, top) in (1..=3).enumerate() {
            (*mine).task.entry_stacks[index] = (stacks as usize + top * ENTRY_STACK) as u64;
        }
        (*mine).task.map = size_of::<Task>() as u16;
        let task = &raw const (*mine).task as u64;
        (*mine).segments = [
            0,
            0x00af_9b00_0000_ffff,
            0x00cf_9300_0000_ffff,
            (size_of::<Task>() as u64 - 1)
                | (task & 0xff_ffff) << 16
                | 0x89 << 40
                | (task >> 24 & 0xff) << 56,
            task >> 32,
        ];
        let segments = Pointer {
            limit: size_of::<[u64; 5]>() as u16 - 1,
            base: &raw const (*mine).segments as u64,
        };
        let entries = Pointer { limit: 4095, base: ENTRIES.0.get() as u64 };
        // The selectors of code and data are those of the boot's table, which they are like.
        asm!("lgdt [{}]", in(reg) &raw const segments, options(readonly, nostack));
        asm!("lidt [{}]", in(reg) &raw const entries, options(readonly, nostack));
        asm!("ltr {:x}", in(reg) TASK, options(nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_that_of_the_manual() {
        // Intel SDM 3A, figure 6-8.
        assert_eq!(gate(0x1234_5678_9abc_def0, 2), [0x9abc_8e02_0008_def0, 0x1234_5678]);
        assert_eq!(size_of::<Task>(), 104);
    }
}
