//! A heavy barrier: every thread of the process passes a full fence, at the cost of one.
//!
//! # Problem
//! A release that is a plain store saves a fence, half the price of an uncontended lock, if those few
//! that want to sleep can pay for it. Linux's `membarrier` does just that: it interrupts the CPUs on which
//! threads of this process run.
//!
//! # How
//! The process registers when it is loaded. If that is refused (an old kernel, a filter of system calls),
//! or `QSPIN_MEMBARRIER=off` forbids it, there is no such barrier, and every release is a read-modify-write.
//! The environment is that which the loader hands to functions that it calls first: in a preloaded library those come
//! before the C library has one, and `getenv` knows none. Other loaders hand nothing over.
//!
//! # Invariants
//! * **B1** [`available`] promises a barrier to whoever has seen it. If the call is refused later, by a
//!   filter that came after the registration, nobody is promised one any more; and the barrier is a wait of
//!   a millisecond, in which every processor has long written down what it had stored.

use core::ffi::{CStr, c_char};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::fence;
use core::sync::atomic::{AtomicBool, AtomicU32};

use super::syscall::{say_unless_blocked, syscall};

/// There is none, and has never been.
const NONE: u32 = 0;
const AVAILABLE: u32 = 1;
/// There was one.
const LOST: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(NONE);

/// A wait that stands in for a barrier (B1).
const STAND_IN_NS: i64 = 1_000_000;

/// Whether there is a heavy barrier, and will be one for whoever relies on it now.
#[inline]
pub(super) fn available() -> bool {
    STATE.load(Relaxed) == AVAILABLE
}

/// Whether the environment forbids it.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// The environment as the loader hands it over; null if it does not.
pub(super) type Environment = *const *const c_char;

/// Registers the process when it starts.
///
/// # Safety
/// `environment` is null or the process's.
pub(super) unsafe fn register(environment: Environment) {
    // SAFETY: the caller's.
    FORBIDDEN.store(!unsafe { allowed(environment) }, Relaxed);
    register_again();
}

/// Registers a child. The environment is not asked again: another thread of the parent may have been about to
/// change it.
pub(super) fn register_again() {
    let available = !FORBIDDEN.load(Relaxed) && membarrier(REGISTER);
    STATE.store(if available { AVAILABLE } else { NONE }, Relaxed);
}

const REGISTER: i32 = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
const EXPEDITED: i32 = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;

/// Every thread passes a full fence between the call and the return.
#[cold]
pub(super) fn pass() {
    // Where there was never a barrier nobody relies on one: each side passes its own fence.
    fence(SeqCst);
    if STATE.load(Relaxed) == NONE || membarrier(EXPEDITED) {
        return;
    }
    // B1.
    STATE.store(LOST, Relaxed);
    let time = libc::timespec { tv_sec: 0, tv_nsec: STAND_IN_NS };
    // SAFETY: a valid place, and none for the rest of the time.
    unsafe { syscall(libc::SYS_nanosleep, [&raw const time as u64, 0]) };
    fence(SeqCst);
}

fn membarrier(command: i32) -> bool {
    // SAFETY: the call touches no memory.
    unsafe { syscall(libc::SYS_membarrier, [command as u64, 0, 0]) == 0 }
}

/// What the environment says.
///
/// # Safety
/// That of [`register`].
unsafe fn allowed(environment: Environment) -> bool {
    // SAFETY: the caller's.
    match unsafe { value_of(environment, c"QSPIN_MEMBARRIER") }.map(CStr::to_bytes) {
        Some(b"off") => false,
        None | Some(b"on" | b"") => true,
        Some(_) => {
            say_unless_blocked(b"qspin: QSPIN_MEMBARRIER is neither on nor off: it counts as on\n");
            true
        }
    }
}

/// The value of a variable of `environment`, or of the C library's if that is null.
///
/// # Safety
/// `environment` is null or ends with null, and its texts end with a zero and stay as they are meanwhile.
pub unsafe fn value_of<'a>(environment: *const *const c_char, name: &CStr) -> Option<&'a CStr> {
    if environment.is_null() {
        // SAFETY: a name that ends in a zero. Nobody changes the environment while the program is loaded. What
        // `getenv` returns ends in a zero.
        return unsafe {
            let value = libc::getenv(name.as_ptr());
            (!value.is_null()).then(|| CStr::from_ptr(value))
        };
    }
    let mut place = environment;
    // SAFETY: the caller's.
    unsafe {
        while !(*place).is_null() {
            let text = CStr::from_ptr(*place);
            if let Some([b'=', ..]) = text.to_bytes().strip_prefix(name.to_bytes()) {
                return Some(CStr::from_ptr((*place).add(name.count_bytes() + 1)));
            }
            place = place.add(1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name_in_the_environment_that_is_given() {
        let texts = [c"QSPIN_MEMBARRIERS=on", c"A=QSPIN_MEMBARRIER=on", c"QSPIN_MEMBARRIER=off"];
        let given = |many: usize| {
            let mut places: Vec<_> = texts[..many].iter().map(|text| text.as_ptr()).collect();
            places.push(core::ptr::null());
            places
        };
        // SAFETY: ended by null, and of texts.
        unsafe {
            assert_eq!(value_of(given(3).as_ptr(), c"QSPIN_MEMBARRIER"), Some(c"off"));
            assert_eq!(value_of(given(2).as_ptr(), c"QSPIN_MEMBARRIER"), None);
            assert!(!allowed(given(3).as_ptr()));
            assert!(allowed(given(2).as_ptr()));
        }
    }
}
