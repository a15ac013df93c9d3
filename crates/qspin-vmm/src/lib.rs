//! A small virtual machine monitor for the guest of `qspin-guest`: by KVM, with virtual CPUs that are
//! threads of this process. So it can do on purpose, and at the same acquisitions in every run, what the
//! documents could only observe: take the CPU from the holder of a lock, or from the next in line.
//!
//! | file | |
//! |---|---|
//! | [`memory`], [`image`], [`start`] | the guest's memory, what is loaded there, and how it begins (PVH) |
//! | [`cpuid`] | what the virtual CPUs say of themselves |
//! | [`ports`] | serial port, exit port, bell: what the guest's accesses to ports do |
//! | [`machine`] | the virtual CPUs and their threads |
//! | [`warden`] | which CPU is stopped, when and for how long; knows neither KVM nor threads |
//! | [`traced`] | the same for the threads of another monitor (QEMU), by `ptrace` |
//!
//! All but [`machine`] and [`traced`] are plain functions and values, with their tests beside them.

#![warn(missing_docs)]

pub mod image;
pub mod memory;
pub mod ports;
pub mod start;
pub mod warden;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod cpuid;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod machine;
#[cfg(target_os = "linux")]
pub mod traced;
