//! The serial port: where results go, one line each.

use core::fmt::{self, Write};

use super::instruction::{in8, out8};
use crate::json::Object;

/// COM1.
const BASE: u16 = 0x3f8;
const LINE_STATUS: u16 = BASE + 5;
const ROOM: u8 = 1 << 5;

/// The port, for the CPU that writes now. Writers are not kept apart: one CPU writes at a time, but for
/// the last words of one that fails.
#[derive(Debug, Clone, Copy)]
pub struct Port;

/// Switches the port on: 115200 bits a second, eight of them a byte.
pub fn begin() {
    let set = [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)];
    for (register, value) in set {
        // SAFETY: a port of ours, without interrupts.
        unsafe { out8(BASE + register, value) };
    }
}

impl Write for Port {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // A port that is never ready (none is there) must not stop the CPU.
            for _ in 0..100_000 {
                // SAFETY: reads a status.
                if unsafe { in8(LINE_STATUS) } & ROOM != 0 {
                    break;
                }
            }
            // SAFETY: a port of ours.
            unsafe { out8(BASE, byte) };
        }
        Ok(())
    }
}

/// Begins a result line of this kind, and writes it to the port when it ends.
pub fn line<R>(kind: &str, write: impl FnOnce(Object<'_, Port>) -> R) -> R {
    write(Object::line(&mut Port, kind))
}

/// A line that says why the guest does not do what it was asked for, and its end.
pub fn refuse(why: &str, what: &str) -> ! {
    line("usage", |line| line.text("why", why).text("what", what).end());
    super::exit::exit(super::exit::USAGE)
}
