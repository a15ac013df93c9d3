//! The version, the barrier, and signal handlers that announce themselves.

use core::ffi::c_char;

use qspin::platform::interrupt::Interrupt;

use crate::text::{returned, texts};

texts!(VERSION: [32; 1], at => [env!("CARGO_PKG_VERSION")][at]);

/// One part of the version, which is a number.
const fn part(text: &str) -> u32 {
    match u32::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("the version is made of numbers"),
    }
}

const VERSION_NUMBER: u32 = part(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
    + part(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
    + part(env!("CARGO_PKG_VERSION_PATCH"));

/// The version of the library that runs, as text: "0.1.0". That of the header is QSPIN_VERSION.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_version() -> *const c_char {
    returned(&VERSION, Some(0))
}

/// The version of the library that runs, as a number that grows: major * 1000000 + minor * 1000 + patch.
/// That of the header is QSPIN_VERSION_NUMBER.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_version_number() -> u32 {
    VERSION_NUMBER
}

/// Makes the acquisition just before it a full barrier. An acquisition orders what comes after it; call
/// this right after locking where stores from before must be visible before loads inside.
///
/// Thread-safe. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_full_barrier_after_lock() {
    qspin::full_barrier_after_lock();
}

/// Says that this thread runs a signal handler, until qspin_handler_leave(). Needed only in handlers that
/// read-lock what the code they interrupt may hold for reading: such a reader passes a writer that only
/// waits. May be nested.
///
/// Thread-safe: concerns the calling thread. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_handler_enter() {
    core::mem::forget(Interrupt::enter());
}

/// Ends what qspin_handler_enter() began. A handler that leaves by longjmp() must call it before. Without
/// a beginning it does nothing.
///
/// Thread-safe: concerns the calling thread. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn qspin_handler_leave() {
    Interrupt::leave();
}
