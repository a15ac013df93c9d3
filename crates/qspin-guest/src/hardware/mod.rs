//! The machine, as far as the guest uses it. Nothing here knows a lock.

pub mod apic;
pub mod clock;
pub mod cpu;
pub mod entry;
pub mod exit;
pub mod instruction;
pub mod serial;
pub mod tables;
