//! A system call without the C library's `errno`.
//!
//! # Invariants
//! * **E1** `errno` stays as it was: a lock may be taken between a failing call of the program and
//!   its look at `errno`, in a signal handler for instance.

use core::arch::asm;

/// Makes a system call; what it returns is a result, or an error number negated (E1).
///
/// # Safety
/// As that system call with those arguments.
#[cold]
pub(super) unsafe fn syscall(number: i64, arguments: [u64; 5]) -> i64 {
    let result;
    // SAFETY: the caller's. `syscall` overwrites rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
