//! The other CPUs: started, taken back to the state after power-on, and started again.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::hardware::apic::{self, Message};
use crate::hardware::cpu::{self, CPUS};
use crate::hardware::{clock, serial};
use crate::watch::within;

/// Where processors start: a page below 1 MiB that is unused once the loader is gone.
pub const TRAMPOLINE: usize = 0x8000;

/// What only the image has.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// What runs at [`TRAMPOLINE`].
    pub trampoline: &'static [u8],
    /// The number of the next CPU that runs it.
    pub next_number: &'static AtomicU32,
}

const PAGE: u8 = (TRAMPOLINE >> 12) as u8;

/// Starts all but the first.
pub fn start_others(vcpus: u32, start: Start) {
    if vcpus == 1 {
        return;
    }
    // SAFETY: that page has no other user, now that the command line is read.
    unsafe {
        let length = start.trampoline.len();
        core::ptr::copy_nonoverlapping(start.trampoline.as_ptr(), TRAMPOLINE as *mut u8, length);
    }
    apic::send_to_others(Message::Init);
    clock::pause(10_000_000);
    apic::send_to_others(Message::Start(PAGE));
    clock::pause(200_000);
    apic::send_to_others(Message::Start(PAGE));
    if !within(10_000, || cpu::online().count() as u32 >= vcpus) {
        serial::refuse("not all CPUs have come", "vcpus");
    }
}

/// Takes a CPU that does nothing back to the state after power-on.
pub fn stop(number: u32) {
    let cpu = &CPUS[number as usize];
    cpu.online.store(0, Release);
    apic::send(cpu.apic_id.load(Relaxed), Message::Init);
    clock::pause(10_000_000);
}

/// Starts that CPU again; returns whether it has come.
#[must_use]
pub fn start_again(number: u32, start: Start) -> bool {
    let cpu = &CPUS[number as usize];
    let next = start.next_number.swap(number, Relaxed);
    for _ in 0..2 {
        apic::send(cpu.apic_id.load(Relaxed), Message::Start(PAGE));
        clock::pause(200_000);
    }
    let came = within(10_000, || cpu.online.load(Relaxed) != 0);
    start.next_number.store(next, Relaxed);
    came
}
