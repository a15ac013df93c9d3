//! When a thread ends its number is given back, by the destructor of a key; and what `fork` does to the numbers.
//!
//! # Source
//! POSIX, `pthread_key_create` and `pthread_atfork`. The invariants are those of [`cpu`](crate::platform::cpu).

use core::ffi::c_void;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::platform::CpuId;

use super::errno::Errno;
use super::{generation, memory, run_status};
use crate::platform::cpu::{self, ENDING, NUMBER, NUMBERS, Numbers, nesting_of};

// The key whose destructor gives a number back, plus 1; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Tells the C library what to call when a thread ends and after `fork`. For [`load`].
pub(crate) fn register() {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is a valid place; `thread_ends` has the signature of a key destructor.
    // Without a key (all taken) numbers are simply not given back.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) } == 0 {
        // ORDERING: Release pairs with the Acquire of `set_key`: a thread that sees the key may use it.
        KEY.store(key + 1, Release);
    }
    // SAFETY: a valid handler, which stays loaded as long as this code does.
    unsafe { libc::pthread_atfork(None, None, Some(child_begins)) };
    // SAFETY: the same. It relies on the numbers, so it runs after the one above.
    unsafe { libc::pthread_atfork(None, None, Some(generation::child_begins)) };
}

/// How many times the key destructor re-arms itself before it gives the number back: other destructors of the
/// thread may still lock. The C library makes at least four rounds.
const ROUNDS: usize = 2;
/// The destructor's argument: the number plus 1, and the round above it.
const ROUND: usize = 1 << 32;

/// Returns whether the number will be given back.
pub(crate) fn give_back_at_end(value: u32) -> bool {
    set_key(value as usize)
}

fn set_key(value: usize) -> bool {
    // ORDERING: Acquire pairs with the Release of `register`.
    let key = KEY.load(Acquire);
    // The call may allocate, and set errno.
    let errno = Errno::keep();
    // SAFETY: the key was created and is never deleted.
    let set =
        key != 0 && unsafe { libc::pthread_setspecific(key - 1, value as *const c_void) } == 0;
    errno.restore();
    set
}

extern "C" fn thread_ends(value: *mut c_void) {
    let value = value as usize;
    if value / ROUND < ROUNDS {
        set_key(value + ROUND);
        return;
    }
    cpu::end((value % ROUND) as u32 - 1);
}

/// The child of `fork` has one thread: this one. The numbers of the other threads are free again, but for those
/// that were in a queue (CPU-4).
extern "C" fn child_begins() {
    let own = NUMBER.with(|number| number.load(Relaxed));
    NUMBERS.keep_only(|number| number + 1 == own || nesting_of(number).is_none_or(queues));
    let own_nesting = nesting_of(own.wrapping_sub(1));
    if NUMBERS.in_use() > u32::from(own_nesting.is_some()) && !own_nesting.is_some_and(queues) {
        // CPU-5.
        memory::forget_halted();
    }
    run_status::child_begins(own.wrapping_sub(1));
}

impl<const WORDS: usize> Numbers<WORDS> {
    /// Forgets every number for which `kept` is false. For a process with one thread.
    fn keep_only(&self, kept: impl Fn(u32) -> bool) {
        for (index, word) in self.taken.iter().enumerate() {
            let mut rest = word.load(Relaxed);
            let mut keep = 0;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                if kept(index as u32 * 64 + bit) {
                    keep |= 1 << bit;
                }
            }
            word.store(keep, Relaxed);
        }
    }
}

/// As [`cpu::current`], but only if the thread already has a number.
pub(crate) fn numbered() -> Option<CpuId> {
    match NUMBER.with(|number| number.load(Relaxed)) {
        0 | ENDING => None,
        number => CpuId::new(number - 1),
    }
}

fn queues(nesting: &AtomicU32) -> bool {
    nesting.load(Relaxed) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeping_one_frees_the_others() {
        let numbers = Numbers::<2>::new(128);
        for _ in 0..100 {
            numbers.take();
        }
        numbers.keep_only(|number| number == 70 || number == 127);
        assert_eq!(numbers.in_use(), 1, "127 was not taken");
        assert_eq!(numbers.take(), Some(0));
        numbers.keep_only(|_| false);
        assert_eq!(numbers.in_use(), 0);
    }
}
