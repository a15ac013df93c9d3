//! The running thread: its number, as the kernel has it and the C library writes it into locks.
//!
//! Asking the kernel takes longer than a lock. So each thread keeps its number in a variable of its own, found
//! by one load relative to the thread pointer. The library is there when the program starts, so its share of
//! the threads' memory has a fixed place (the initial-exec model), and no function that might allocate has to
//! be called.
//!
//! The child of a `fork` has another number, so the number is kept with the process's generation.

use core::arch::global_asm;

use crate::generation;
use crate::processor::own_word;
use crate::sleep::system_call;

global_asm!(
    ".pushsection .tbss.qspin_preload_thread, \"awT\", @nobits",
    ".balign 8",
    ".hidden qspin_preload_thread",
    ".globl qspin_preload_thread",
    ".type qspin_preload_thread, @object",
    ".size qspin_preload_thread, 8",
    "qspin_preload_thread:",
    ".zero 8",
    ".hidden qspin_preload_tick",
    ".globl qspin_preload_tick",
    ".type qspin_preload_tick, @object",
    ".size qspin_preload_tick, 8",
    "qspin_preload_tick:",
    ".zero 8",
    ".hidden qspin_preload_record",
    ".globl qspin_preload_record",
    ".type qspin_preload_record, @object",
    ".size qspin_preload_record, 8",
    "qspin_preload_record:",
    ".zero 8",
    ".hidden qspin_preload_wait",
    ".globl qspin_preload_wait",
    ".type qspin_preload_wait, @object",
    ".size qspin_preload_wait, 8",
    "qspin_preload_wait:",
    ".zero 8",
    ".popsection",
);

/// The number of this thread.
#[inline]
pub(crate) fn number() -> u32 {
    let kept = own_word!(load "qspin_preload_thread");
    let number = kept as u32;
    if number != 0 && (kept >> 32) as u32 == generation::current() { number } else { ask() }
}

#[cold]
fn ask() -> u32 {
    // SAFETY: a system call without arguments that touches no memory of ours.
    let number = unsafe { system_call(libc::SYS_gettid, []) } as u32;
    let kept = u64::from(number) | u64::from(generation::current()) << 32;
    own_word!(store "qspin_preload_thread", kept);
    number
}

/// The address of this thread's record (`statistics::threads`), as it was last set.
#[inline]
pub(crate) fn record() -> usize {
    own_word!(load "qspin_preload_record") as usize
}

#[cold]
pub(crate) fn set_record(address: usize) {
    own_word!(store "qspin_preload_record", address as u64);
}

/// The address of the wait that this thread is in, if it is to be recorded once the thread goes to sleep; else 0.
#[inline]
pub(crate) fn wait() -> usize {
    own_word!(load "qspin_preload_wait") as usize
}

/// Sets it, and returns what it was: a signal handler's wait is within another.
#[inline]
pub(crate) fn set_wait(address: usize) -> usize {
    let before = wait();
    own_word!(store "qspin_preload_wait", address as u64);
    before
}

/// How often this thread has asked. What a signal handler asks may not be counted.
#[inline]
pub(crate) fn tick() -> u32 {
    own_word!(increment "qspin_preload_tick") as u32
}

/// Whether this process has one thread, according to the C library; no if it does not say.
///
/// If so, an atomic operation is more than is needed: a signal handler that comes in between leaves a lock as
/// it has found it.
#[inline]
pub(crate) fn is_alone() -> bool {
    // SAFETY: `ALONE` points to a byte that lives as long as the process; the C library writes it before
    // it starts a second thread.
    unsafe { crate::start::ALONE.load(core::sync::atomic::Ordering::Relaxed).read_volatile() != 0 }
}

/// How many threads the process has; `None` where `/proc` is not there.
#[cold]
pub(crate) fn count() -> Option<u64> {
    // SAFETY: a `stat` is numbers only; zeros are valid.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    // What the path is relative to does not matter: it is absolute.
    let arguments = [0, c"/proc/self/task".as_ptr() as u64, &raw mut about as u64, 0];
    // SAFETY: a path that ends with a zero, and a valid place.
    let result = unsafe { system_call(libc::SYS_newfstatat, arguments) };
    // A directory has a link for its name, one for `.`, and one for `..` of each directory in it.
    (result == 0).then(|| (about.st_nlink as u64).saturating_sub(2))
}
