//! Where interrupts, NMIs and faults enter.
//!
//! # Invariants
//! * **ENTRY-1** Code below may use the 128 bytes under its stack pointer (precompiled `core` does). So
//!   the processor changes to a stack of its own at each entry (IST), and the entry of an interrupt
//!   goes on 128 bytes below the interrupted stack pointer: the entry stack is free again before the
//!   handler begins, which may switch interrupts on.
//! * **ENTRY-2** An NMI has an entry stack of its own, and stays there: it is not interrupted, and no
//!   other NMI comes before its `iretq`.
//! * **ENTRY-3** Everything is left as it was found: all registers that a handler may change, those of
//!   the FPU and SSE among them.
//! * **ENTRY-4** Code that was interrupted within the window of
//!   [`halt_while`](super::instruction::halt_while) goes on at its end.
//! * **ENTRY-5** An interrupt of the classes below the kick is acknowledged when its handler has ended,
//!   with interrupts off: acknowledged before they are switched on, it would nest without bound.

use core::arch::naked_asm;
use core::fmt::Write;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::apic;
use super::cpu;
use super::exit;
use super::serial;

/// The vector of NMIs.
const NMI: u8 = 2;
/// The vector of an interrupt whose handler lets others interrupt it.
pub const BELOW: u8 = 0x50;
/// The vector of an interrupt that interrupts that one.
pub const ABOVE: u8 = 0x80;
/// The vector of the timer, which interrupts both.
pub const TIMER: u8 = 0xe0;
/// The vector that ends a halt, and does nothing else.
pub const KICK: u8 = 0xf0;
/// The vector of interrupts that have vanished.
pub const SPURIOUS: u8 = 0xff;

/// The handlers, by vector.
static HANDLERS: [AtomicUsize; 256] = [const { AtomicUsize::new(0) }; 256];

/// Makes `handler` that of `vector` on all CPUs; it is called with interrupts off.
pub fn set_handler(vector: u8, handler: fn()) {
    // ORDERING: Release pairs with the Acquire of `call_handler`: the handler sees what was set up before.
    HANDLERS[usize::from(vector)].store(handler as usize, Release);
}

/// Makes `handler` that of NMIs.
pub fn set_nmi_handler(handler: fn()) {
    set_handler(NMI, handler);
}

fn call_handler(vector: u8) {
    // ORDERING: Acquire pairs with the Release of `set_handler`.
    let handler = HANDLERS[usize::from(vector)].load(Acquire);
    if handler != 0 {
        // SAFETY: stored by `set_handler`, from a `fn()`.
        unsafe { core::mem::transmute::<usize, fn()>(handler)() };
    }
}

/// All interrupts and NMIs.
extern "C" fn interrupt(vector: u64) {
    let vector = vector as u8;
    let cpu = cpu::this();
    if vector == NMI {
        cpu.nmi.store(1, Relaxed);
        call_handler(NMI);
        cpu.nmi.store(0, Relaxed);
        return;
    }
    if vector == SPURIOUS {
        return;
    }
    // Handlers of one CPU nest: what is loaded is what the last one has put back.
    let depth = cpu.depth.load(Relaxed);
    cpu.depth.store(depth + 1, Relaxed);
    call_handler(vector);
    cpu.depth.store(depth, Relaxed);
    apic::end_of_interrupt();
}

/// What a fault leaves on its stack.
#[repr(C)]
struct Fault {
    vector: u64,
    error: u64,
    at: u64,
    code_segment: u64,
    flags: u64,
    stack: u64,
    stack_segment: u64,
}

/// No fault is expected: this is the end.
extern "C" fn fault(what: &Fault) -> ! {
    let address: u64;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, cr2", out(reg) address, options(nomem, nostack)) };
    // There is nowhere to report a port that fails.
    let _ = serial::Port.write_str("\n");
    serial::line("fault", |line| {
        line.number("vector", what.vector)
            .number("error", what.error)
            .number("at", what.at)
            .number("address", address)
            .number("stack", what.stack)
            .number("flags", what.flags)
            .list("segments", [what.code_segment, what.stack_segment].into_iter())
            .end();
    });
    exit::exit(exit::PANIC)
}

/// The entry of a fault without an error code.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn fault_entry<const VECTOR: u8>() {
    naked_asm!("push 0", "push {}", "mov rdi, rsp", "and rsp, -16", "cld", "call {}",
        const VECTOR, sym fault)
}

/// The entry of a fault with an error code.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn error_entry<const VECTOR: u8>() {
    naked_asm!("push {}", "mov rdi, rsp", "and rsp, -16", "cld", "call {}",
        const VECTOR, sym fault)
}

/// The entry of an interrupt.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn interrupt_entry<const VECTOR: u8>() {
    naked_asm!(
        "push {vector}",
        "push rax",
        "push rcx",
        // ENTRY-1: rcx, rax, vector, rip, cs, flags, rsp, ss, to where the handler will run.
        "mov rax, [rsp + 48]",
        "sub rax, 128",
        "and rax, -16",
        "pop qword ptr [rax - 64]",
        "pop qword ptr [rax - 56]",
        "pop qword ptr [rax - 48]",
        "pop qword ptr [rax - 40]",
        "pop qword ptr [rax - 32]",
        "pop qword ptr [rax - 24]",
        "pop qword ptr [rax - 16]",
        "pop qword ptr [rax - 8]",
        "lea rsp, [rax - 64]",
        "jmp {handle}",
        vector = const VECTOR,
        handle = sym handle,
    )
}

/// The entry of an NMI (ENTRY-2).
#[unsafe(naked)]
pub(super) unsafe extern "C" fn nmi_entry() {
    naked_asm!("push {vector}", "push rax", "push rcx", "jmp {handle}",
        vector = const NMI, handle = sym handle)
}

/// Saves what is left to be saved, handles, and returns.
#[unsafe(naked)]
unsafe extern "C" fn handle() {
    naked_asm!(
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbp",
        "mov rbp, rsp",
        // ENTRY-4
        "mov rax, [rbp + 88]",
        "lea rcx, [rip + qspin_halt_begin]",
        "lea rdx, [rip + qspin_halt_end]",
        "cmp rax, rcx",
        "jb 2f",
        "cmp rax, rdx",
        "jae 2f",
        "mov [rbp + 88], rdx",
        "2:",
        "mov rdi, [rbp + 80]",
        "sub rsp, 512",
        "fxsave64 [rsp]",
        "cld",
        "call {interrupt}",
        "fxrstor64 [rsp]",
        "mov rsp, rbp",
        "pop rbp",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "add rsp, 8",
        "iretq",
        interrupt = sym interrupt,
    )
}
