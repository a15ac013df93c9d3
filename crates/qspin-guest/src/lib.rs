//! A guest that is nothing but the locks: `qspin-core` in ring 0, on virtual CPUs.
//!
//! Documents 000, 001 and 003 are about guests: what waits there is a virtual CPU, and the host may
//! take it away at any moment. This crate boots on such CPUs and runs the locks where they were meant
//! to run: waiters halt by HLT and are kicked by interrupts, NMIs or a hypercall, and interrupt and
//! NMI handlers take locks themselves.
//!
//! | layer | files | |
//! |---|---|---|
//! | boot | `image/`, [`boot`], [`processors`] | from the loader to Rust, on every CPU |
//! | hardware | [`hardware`] | APIC, interrupts, clock, serial port; no lock is named here |
//! | platform | [`platform`] | what the locks need, of the hardware |
//! | suite | [`suite`], [`mod@bench`] | what is run: tests with exact counts, and measurements |
//!
//! What needs no hardware is here as well, for the host's side and for tests: [`options`],
//! [`histogram`], [`json`], [`kvm`] (the ABI), [`kick`] (how a CPU is woken), [`shared_page`] and [`preempt`]
//! (which CPU the host is to stop on purpose).
//!
//! The library is an ordinary member of the workspace. [`IMAGE`] is what its build script has made of
//! it: the bootable ELF file.

#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod histogram;
pub mod json;
pub mod kick;
pub mod kvm;
pub mod options;
pub mod preempt;
pub mod shared_page;

#[cfg(target_arch = "x86_64")]
pub mod bench;
#[cfg(target_arch = "x86_64")]
pub mod boot;
#[cfg(target_arch = "x86_64")]
pub mod contend;
#[cfg(target_arch = "x86_64")]
pub mod hardware;
#[cfg(target_arch = "x86_64")]
pub mod locks;
#[cfg(target_arch = "x86_64")]
pub mod platform;
#[cfg(target_arch = "x86_64")]
pub mod processors;
#[cfg(target_arch = "x86_64")]
pub mod suite;
#[cfg(target_arch = "x86_64")]
pub mod team;
#[cfg(target_arch = "x86_64")]
pub mod watch;

/// The guest as an ELF file with a PVH entry; empty where it cannot be built.
#[cfg(not(feature = "image"))]
pub static IMAGE: &[u8] = include_bytes!(env!("QSPIN_GUEST_IMAGE"));
