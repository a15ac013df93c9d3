//! What differs from processor to processor: a system call, the thread pointer, and an addition that no signal
//! splits.
//!
//! What the locks themselves need of a processor is in [`qspin_core::processor`].
//!
//! # Source
//! `syscall(2)` has the registers of system calls by architecture; each processor's ELF supplement (psABI) says which
//! register points to the thread.

use core::arch::asm;
use core::sync::atomic::AtomicU64;

/// Makes a system call. It returns a result, or an error number negated.
///
/// # Safety
/// As that system call with those arguments.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn system_call(number: i64, given: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the caller's. `syscall` overwrites rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") given[0],
            in("rsi") given[1],
            in("rdx") given[2],
            in("r10") given[3],
            in("r8") given[4],
            in("r9") given[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call. It returns a result, or an error number negated.
///
/// # Safety
/// As that system call with those arguments.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) unsafe fn system_call(number: i64, given: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the caller's. The kernel keeps every register but the first.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") given[0] => result,
            in("x1") given[1],
            in("x2") given[2],
            in("x3") given[3],
            in("x4") given[4],
            in("x5") given[5],
            options(nostack),
        );
    }
    result
}

/// Makes a system call. It returns a result, or an error number negated.
///
/// # Safety
/// As that system call with those arguments.
#[cfg(target_arch = "riscv64")]
#[inline(always)]
pub(crate) unsafe fn system_call(number: i64, given: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the caller's. The kernel keeps every register but the first.
    unsafe {
        asm!(
            "ecall",
            in("a7") number,
            inlateout("a0") given[0] => result,
            in("a1") given[1],
            in("a2") given[2],
            in("a3") given[3],
            in("a4") given[4],
            in("a5") given[5],
            options(nostack),
        );
    }
    result
}

/// Makes a system call. It returns a result, or an error number negated.
///
/// # Safety
/// As that system call with those arguments.
#[cfg(target_arch = "powerpc64")]
#[inline(always)]
pub(crate) unsafe fn system_call(number: i64, given: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the caller's. The kernel may clobber the registers that a function call may. Where the result is
    // an error number it is positive, and the summary overflow bit of CR0 is set.
    unsafe {
        asm!(
            "sc",
            "bns+ 2f",
            "neg 3, 3",
            "2:",
            inlateout("r0") number => _,
            inlateout("r3") given[0] => result,
            inlateout("r4") given[1] => _,
            inlateout("r5") given[2] => _,
            inlateout("r6") given[3] => _,
            inlateout("r7") given[4] => _,
            inlateout("r8") given[5] => _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("r11") _,
            lateout("r12") _,
            lateout("cr0") _,
            lateout("ctr") _,
            lateout("xer") _,
            options(nostack),
        );
    }
    result
}

/// The C library's `__builtin_thread_pointer`: the base of thread-local memory.
#[inline]
pub(crate) fn thread_pointer() -> *const u8 {
    let thread: *const u8;
    // SAFETY: a register is read; on x86-64 the first word of the thread control block, which points to that block.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, fs:0", out(reg) thread, options(nostack, preserves_flags, pure, readonly));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {}, tpidr_el0", out(reg) thread, options(nostack, preserves_flags, pure, nomem));
        #[cfg(target_arch = "riscv64")]
        asm!("mv {}, tp", out(reg) thread, options(nostack, preserves_flags, pure, nomem));
        #[cfg(target_arch = "powerpc64")]
        asm!("mr {}, 13", out(reg) thread, options(nostack, preserves_flags, pure, nomem));
    }
    thread
}

/// The word at `offset` plus `AND` bytes from the thread pointer, in as few instructions as possible.
///
/// # Safety
/// There is such a word, which only this thread, and the kernel on its behalf, writes.
#[inline]
pub(crate) unsafe fn word_of_thread<const AND: usize>(offset: isize) -> u32 {
    let word: u32;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "mov {:e}, fs:[{} + {}]",
            out(reg) word,
            in(reg) offset,
            const AND,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use core::sync::atomic::AtomicU32;
        use core::sync::atomic::Ordering::Relaxed;
        let place = thread_pointer().wrapping_offset(offset).wrapping_add(AND);
        // SAFETY: the caller's.
        word = unsafe { (*place.cast::<AtomicU32>()).load(Relaxed) };
    }
    word
}

/// Adds to a counter to which no other thread adds, though signal handlers on this thread do.
///
/// On x86-64 an addition to memory is one instruction, which no signal splits; a locked one would cost as much
/// as the acquisition that it counts, and a separate load and store would lose what a handler adds between
/// them. Elsewhere a relaxed addition orders nothing, so it costs no more than access to a line that this
/// processor already owns: one instruction (`stadd` with LSE on ARM, `amoadd` on RISC-V), or a loop whose
/// conditional store fails if a handler came in between.
#[inline]
pub(crate) fn add_alone(counter: &AtomicU64, amount: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a valid place that outlives the call. One aligned load and one aligned store, so
    // that other threads and processes, which load only, see one value or the other.
    unsafe {
        asm!(
            "add qword ptr [{counter}], {amount}",
            counter = in(reg) counter.as_ptr(),
            amount = in(reg) amount,
            options(nostack),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    counter.fetch_add(amount, core::sync::atomic::Ordering::Relaxed);
}
