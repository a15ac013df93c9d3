//! What a virtual CPU says of itself: what KVM can do here, with the CPU's own names filled in.

use kvm_bindings::kvm_cpuid_entry2;
use qspin_guest::kvm::{FIRST_LEAF, SIGNATURE};

/// What may be told of a guest's CPUs beside what KVM can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// The hint that no CPU is ever taken away.
    pub realtime: bool,
}

/// Features of KVM that the guest knows: steal time, kicks, directed yields.
const KNOWN: u32 = 1 << 5 | 1 << 7 | 1 << 13;

/// Changes what KVM `supports` into what CPU `number` of `count` says.
#[must_use]
pub fn of_cpu(
    supports: &[kvm_cpuid_entry2],
    number: u32,
    count: u32,
    offer: Offer,
) -> Vec<kvm_cpuid_entry2> {
    let mut entries = supports.to_vec();
    // How many bits of a name tell CPUs of one package apart.
    let bits = count.next_power_of_two().trailing_zeros();
    for entry in &mut entries {
        match entry.function {
            1 => {
                // Its name, and how many names the package has; and that it is virtual.
                entry.ebx =
                    entry.ebx & 0xffff | count.next_power_of_two().min(255) << 16 | number << 24;
                entry.ecx |= 1 << 31;
                entry.edx = entry.edx & !(1 << 28) | u32::from(count > 1) << 28;
            }
            // Threads (one a core), then cores.
            0x0b | 0x1f => {
                let (shift, here, level) = match entry.index {
                    0 => (0, 1, 1),
                    1 => (bits, count, 2),
                    _ => (0, 0, 0),
                };
                entry.eax = shift;
                entry.ebx = here;
                entry.ecx = entry.index | level << 8;
                entry.edx = number;
            }
            FIRST_LEAF => {
                let [b, c, d] = [0, 4, 8].map(|at| {
                    SIGNATURE[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
                });
                (entry.ebx, entry.ecx, entry.edx) = (b, c, d);
                entry.eax = entry.eax.max(FIRST_LEAF + 1);
            }
            leaf if leaf == FIRST_LEAF + 1 => {
                entry.eax &= KNOWN;
                entry.edx = u32::from(offer.realtime);
            }
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use qspin_guest::kvm::{Features, is_kvm};

    use super::*;

    fn entry(function: u32, index: u32) -> kvm_cpuid_entry2 {
        kvm_cpuid_entry2 { function, index, ..Default::default() }
    }

    fn supported() -> Vec<kvm_cpuid_entry2> {
        let mut entries = vec![
            entry(0, 0),
            entry(1, 0),
            entry(0xb, 0),
            entry(0xb, 1),
            entry(0xb, 2),
            entry(FIRST_LEAF, 0),
            entry(FIRST_LEAF + 1, 0),
        ];
        entries[1].ebx = 0x5511_0842;
        entries[6].eax = u32::MAX;
        entries[6].edx = 1;
        entries
    }

    fn find(entries: &[kvm_cpuid_entry2], function: u32, index: u32) -> kvm_cpuid_entry2 {
        let wanted = |entry: &&kvm_cpuid_entry2| (entry.function, entry.index) == (function, index);
        *entries.iter().find(wanted).unwrap()
    }

    #[test]
    fn every_cpu_has_its_own_name() {
        for number in [0, 1, 63] {
            let entries = of_cpu(&supported(), number, 64, Offer::default());
            let first = find(&entries, 1, 0);
            assert_eq!((first.ebx >> 24, first.ebx >> 16 & 0xff), (number, 64));
            assert_eq!(first.ebx & 0xffff, 0x0842, "the rest is the processor's");
            assert_eq!((first.ecx >> 31, first.edx >> 28 & 1), (1, 1));
            for index in 0..3 {
                assert_eq!(find(&entries, 0xb, index).edx, number);
            }
            let cores = find(&entries, 0xb, 1);
            assert_eq!((cores.eax, cores.ebx, cores.ecx), (6, 64, 0x201));
            let threads = find(&entries, 0xb, 0);
            assert_eq!((threads.eax, threads.ebx, threads.ecx), (0, 1, 0x100));
            assert_eq!(find(&entries, 0xb, 2).ecx, 2, "no more levels");
        }
        assert_eq!(find(&of_cpu(&supported(), 0, 1, Offer::default()), 1, 0).edx >> 28 & 1, 0);
        assert_eq!(find(&of_cpu(&supported(), 0, 5, Offer::default()), 0xb, 1).eax, 3);
    }

    #[test]
    fn the_hypervisor_is_kvm_and_offers_what_the_guest_knows() {
        for realtime in [false, true] {
            let entries = of_cpu(&supported(), 0, 2, Offer { realtime });
            let name = find(&entries, FIRST_LEAF, 0);
            assert!(is_kvm(name.ebx, name.ecx, name.edx));
            assert_eq!(name.eax, FIRST_LEAF + 1);
            let said = find(&entries, FIRST_LEAF + 1, 0);
            let all = Features { steal_time: true, unhalt: true, sched_yield: true, realtime };
            assert_eq!(Features::of(said.eax, said.edx), all);
            assert_eq!(said.eax & !KNOWN, 0, "nothing that was not asked for");
        }
        let mut less = supported();
        less[6].eax = 1 << 5;
        let said = find(&of_cpu(&less, 0, 2, Offer::default()), FIRST_LEAF + 1, 0);
        assert_eq!(said.eax, 1 << 5, "nothing that KVM does not have");
    }
}
