//! What a waiting or acquiring thread should tell the processor, where Rust's own operations do not say it.
//!
//! # Problem
//! A waiter shares its core with other hardware threads, and its line with the owner. Each processor has its own
//! way to be told so, and only x86's and RISC-V's are all in [`core::hint::spin_loop`].
//!
//! | | a pause | a wait for a line | the compiler alone | a lock is acquired |
//! |---|---|---|---|---|
//! | x86-64 | `pause` | `pause` | nothing | `lock cmpxchg` |
//! | ARM | `isb` | `ldxr`, `wfe` | nothing | `casa`, with LSE |
//! | powerpc | priority low, then medium | priority low all the while | nothing | `lwarx` with the hint, `lwsync` |
//! | RISC-V | `pause` | `pause` | nothing | `lr.w.aq`, `sc.w` |
//!
//! # Source
//! Linux, `arch/powerpc/include/asm/{processor,vdso/processor,qspinlock,synch}.h`,
//! `arch/arm64/include/asm/{cmpxchg,vdso/processor}.h`; document 004 for what a queued spinlock is on powerpc.
//! Power ISA 3.1, Book II (program priority; the hint of `lwarx`); Arm's manual, "Wait for Event".
//! `docs/machines.md` has the instructions side by side.

use core::sync::atomic::AtomicU32;

/// One pause of a loop that spins.
#[inline]
pub fn pause() {
    // SAFETY: no-operations that set this hardware thread's priority: low, and medium, as it was.
    #[cfg(target_arch = "powerpc64")]
    unsafe {
        core::arch::asm!("or 1, 1, 1", "or 2, 2, 2", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "powerpc64"))]
    core::hint::spin_loop();
}

/// Keeps the compiler from moving accesses across it, and nothing else: what a signal handler of this thread sees, or
/// what a heavy barrier of another one orders.
///
/// [`core::sync::atomic::compiler_fence`] is that on most processors. On powerpc LLVM makes a real `sync` of it.
#[inline]
pub fn compiler_barrier() {
    // SAFETY: no instruction. Without `nomem` it may access all memory, as far as the compiler knows.
    #[cfg(target_arch = "powerpc64")]
    unsafe {
        core::arch::asm!("", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "powerpc64"))]
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// While it lives this thread spins: on powerpc the core's other hardware threads get its share.
#[derive(Debug)]
pub(crate) struct Spinning;

impl Spinning {
    #[inline]
    pub(crate) fn begin() -> Self {
        // SAFETY: a no-operation that sets this hardware thread's priority.
        #[cfg(target_arch = "powerpc64")]
        unsafe {
            core::arch::asm!("or 1, 1, 1", options(nomem, nostack, preserves_flags));
        }
        Self
    }

    /// One pause.
    #[inline]
    pub(crate) fn pause(&self) {
        // The priority is low already.
        #[cfg(not(target_arch = "powerpc64"))]
        pause();
    }

    /// Waits until `word` may no longer be `seen`; may return at any time.
    #[inline]
    pub(crate) fn await_change<W: crate::atomic::AtomicWord>(&self, word: &W, seen: u32) {
        #[cfg(not(target_arch = "powerpc64"))]
        word.await_change(seen);
        #[cfg(target_arch = "powerpc64")]
        let _ = (word, seen);
    }
}

#[cfg(target_arch = "powerpc64")]
impl Drop for Spinning {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { core::arch::asm!("or 2, 2, 2", options(nomem, nostack, preserves_flags)) };
    }
}

/// Waits until `word` may no longer be `seen`; may return at any time.
///
/// On ARM a core may sleep until another core takes away the line that it has loaded exclusively.
#[inline]
pub(crate) fn await_change(word: &AtomicU32, seen: u32) {
    // SAFETY: a valid place, which is loaded. What the exclusive load waits for cannot be missed: a store that comes
    // between it and `wfe` leaves an event behind; so does an interrupt.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "ldxr {now:w}, [{place}]",
            "cmp {now:w}, {seen:w}",
            "b.ne 2f",
            "wfe",
            "2:",
            place = in(reg) word.as_ptr(),
            seen = in(reg) seen,
            now = out(reg) _,
            options(nostack),
        );
    }
    #[cfg(not(target_arch = "aarch64"))]
    {
        let _ = (word, seen);
        pause();
    }
}

/// A compare-exchange with Acquire that acquires a lock.
///
/// The hint says that no other thread will change the word before this one does: the processor may keep the line.
/// The barrier is `lwsync`, as Linux has it on every processor that knows it: it orders the load of `lwarx`
/// before all later accesses, which is what an acquisition is. (`isync` behind the branch would do that, too, by
/// refetching what follows.) The store of `stwcx.` has been performed when the branch is not taken.
#[cfg(target_arch = "powerpc64")]
#[inline]
pub(crate) fn take(word: &AtomicU32, current: u32, new: u32) -> Result<u32, u32> {
    let seen: u32;
    // SAFETY: a valid place; its word is replaced in one step, or not at all.
    unsafe {
        core::arch::asm!(
            "2: lwarx {seen}, 0, {place}, 1",
            "cmplw {seen}, {current}",
            "bne- 3f",
            "stwcx. {new}, 0, {place}",
            "bne- 2b",
            "lwsync",
            "3:",
            place = in(reg) word.as_ptr(),
            current = in(reg) current,
            new = in(reg) new,
            seen = out(reg) seen,
            out("cr0") _,
            options(nostack),
        );
    }
    if seen == current { Ok(seen) } else { Err(seen) }
}
