//! How the guest ends.

use super::instruction::{disable_interrupts, out8, out32};
use crate::options::EXIT_PORT;

/// Everything was as it should be.
pub const WELL: u32 = 0x10;
/// A test failed.
pub const FAILED: u32 = 0x11;
/// The guest was asked for something that it does not know.
pub const USAGE: u32 = 0x12;
/// It panicked, or a processor met a fault.
pub const PANIC: u32 = 0x13;
/// Something did not end in its time.
pub const HANG: u32 = 0x14;

/// What the process of the virtual machine returns for a code: the device shifts it.
#[must_use]
pub const fn status(code: u32) -> u32 {
    code << 1 | 1
}

/// Ends the guest.
pub fn exit(code: u32) -> ! {
    disable_interrupts();
    // SAFETY: the device ends the machine. Without it, the keyboard controller resets it.
    unsafe {
        out32(EXIT_PORT, code);
        out8(0x64, 0xfe);
    }
    loop {
        core::hint::spin_loop();
    }
}
