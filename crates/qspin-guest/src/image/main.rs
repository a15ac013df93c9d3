//! The image: what only a program without an operating system needs.

#![no_std]
#![no_main]

mod memory;
mod start;

use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::AtomicU32;

use qspin_guest::boot;
use qspin_guest::hardware::{exit, serial};
use qspin_guest::processors::Start;

/// The first processor comes here, in long mode, with a stack.
///
/// # Safety
/// Called once, by the entry.
#[unsafe(no_mangle)]
unsafe extern "C" fn qspin_main(info: usize) -> ! {
    let trampoline = &raw const start::qspin_trampoline;
    let length = &raw const start::qspin_trampoline_end as usize - trampoline as usize;
    // SAFETY: what lies between the two labels; and a word of its own, for everybody to change.
    let start = unsafe {
        Start {
            trampoline: core::slice::from_raw_parts(trampoline, length),
            next_number: AtomicU32::from_ptr(&raw mut start::qspin_next_number),
        }
    };
    // SAFETY: `info` is the address of the PVH start information, as the entry found it in `ebx`.
    unsafe { boot::first(info, start) }
}

/// Every other processor comes here, with its number and a stack of its own.
///
/// # Safety
/// Called once a start of a processor, by the trampoline.
#[unsafe(no_mangle)]
unsafe extern "C" fn qspin_other(number: usize) -> ! {
    // SAFETY: the trampoline gives each number to one processor.
    unsafe { boot::other(number as u32) }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let mut port = serial::Port;
    // There is nowhere to report a port that fails. The numbers come first: the message is written by
    // code that not every hypervisor can execute.
    let _ = port.write_str("\n");
    let line = info.location().map_or(0, core::panic::Location::line);
    let file = info.location().map_or("", core::panic::Location::file);
    serial::line("panic", |object| object.text("file", file).number("line", line).end());
    let _ = writeln!(port, "# {info}");
    exit::exit(exit::PANIC)
}
