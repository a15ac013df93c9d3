//! What KVM offers a guest: features, hypercalls, and the page that says which CPU does not run.
//!
//! The source is the kernel's documentation of the interface, `Documentation/virt/kvm/x86/` (`cpuid`,
//! `hypercalls`, `msr`), and its header `uapi/asm/kvm_para.h`.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Acquire;

/// The leaf of CPUID at which hypervisors introduce themselves.
pub const FIRST_LEAF: u32 = 0x4000_0000;
/// KVM's signature: `ebx`, `ecx`, `edx` of that leaf.
pub const SIGNATURE: [u8; 12] = *b"KVMKVMKVM\0\0\0";

/// The hypercall that wakes a halted CPU: flags (0), the name of its APIC.
pub const KICK_CPU: u64 = 5;
/// The hypercall that yields to a CPU: the name of its APIC.
pub const SCHED_YIELD: u64 = 11;
/// The register that takes the address of the [`StealTime`] of a CPU, plus [`STEAL_ENABLED`].
pub const STEAL_MSR: u32 = 0x4b56_4d03;
/// See [`STEAL_MSR`].
pub const STEAL_ENABLED: u64 = 1;

/// In [`StealTime::preempted`]: the CPU does not run.
pub const PREEMPTED: u32 = 1;

/// What KVM writes for each CPU; 64 bytes, at a multiple of 64.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct StealTime<W> {
    /// Nanoseconds that others ran while this CPU would have.
    pub steal: [W; 2],
    /// Odd while the hypervisor writes.
    pub version: W,
    /// Always 0.
    pub flags: W,
    /// Its lowest byte: not 0 while the CPU does not run. Read as a whole word: the bytes beside it are
    /// padding.
    pub preempted: W,
    /// Padding.
    pub padding: [W; 11],
}

impl StealTime<AtomicU32> {
    /// Nanoseconds that others ran while this CPU would have; `None` while the hypervisor writes them.
    #[must_use]
    pub fn stolen(&self) -> Option<u64> {
        // ORDERING: each Acquire keeps the loads in this order; they pair with the hypervisor's writes, which has the version
        // odd before the first, and even again after the last.
        let before = self.version.load(Acquire);
        let [low, high] = [0, 1].map(|half| u64::from(self.steal[half].load(Acquire)));
        let after = self.version.load(Acquire);
        (before == after && before.is_multiple_of(2)).then_some(high << 32 | low)
    }
}

/// The features of leaf 0x40000001, as far as they are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Time stolen, and whether the CPU is preempted: [`STEAL_MSR`].
    pub steal_time: bool,
    /// [`KICK_CPU`]: a kick wakes a CPU whether its interrupts are on or off.
    pub unhalt: bool,
    /// [`SCHED_YIELD`].
    pub sched_yield: bool,
    /// The hint that no CPU of the guest is ever taken away: waiters need not halt.
    pub realtime: bool,
}

impl Features {
    /// From `eax` and `edx` of leaf 0x40000001.
    #[must_use]
    pub const fn of(eax: u32, edx: u32) -> Self {
        Self {
            steal_time: eax & 1 << 5 != 0,
            unhalt: eax & 1 << 7 != 0,
            sched_yield: eax & 1 << 13 != 0,
            realtime: edx & 1 != 0,
        }
    }
}

/// The signature in three registers.
#[must_use]
pub fn is_kvm(ebx: u32, ecx: u32, edx: u32) -> bool {
    let said = [ebx, ecx, edx].map(u32::to_le_bytes);
    said.as_flattened() == SIGNATURE
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn the_page_has_the_layout_of_the_kernels_header() {
        type Page = StealTime<u32>;
        assert_eq!(size_of::<Page>(), 64);
        assert_eq!(offset_of!(Page, version), 8);
        assert_eq!(offset_of!(Page, flags), 12);
        assert_eq!(offset_of!(Page, preempted), 16);
    }

    #[test]
    fn stolen_time_is_read_when_it_is_not_being_written() {
        #[allow(clippy::declare_interior_mutable_const)]
        const ZERO: AtomicU32 = AtomicU32::new(0);
        let mut page = StealTime {
            steal: [AtomicU32::new(5), AtomicU32::new(2)],
            version: AtomicU32::new(4),
            flags: ZERO,
            preempted: ZERO,
            padding: [ZERO; 11],
        };
        assert_eq!(page.stolen(), Some(2 << 32 | 5));
        *page.version.get_mut() = 5;
        assert_eq!(page.stolen(), None);
    }

    #[test]
    fn features_are_where_the_documentation_has_them() {
        let none = Features::default();
        assert_eq!(Features::of(0, 0), none);
        assert_eq!(Features::of(1 << 5, 0), Features { steal_time: true, ..none });
        assert_eq!(Features::of(1 << 7, 0), Features { unhalt: true, ..none });
        assert_eq!(Features::of(1 << 13, 0), Features { sched_yield: true, ..none });
        assert_eq!(Features::of(0, 1), Features { realtime: true, ..none });
        // All others: clock sources, asynchronous page faults, and so on.
        assert_eq!(Features::of(!(1 << 5 | 1 << 7 | 1 << 13), !1), none);
    }

    #[test]
    fn the_signature_is_found_and_another_is_not() {
        assert!(is_kvm(0x4b4d_564b, 0x564b_4d56, 0x4d));
        assert!(!is_kvm(0x5447_4354, 0x4354_4743, 0x4743_5447), "TCG's");
    }
}
