//! What the processor says about the hypervisor under it.
//!
//! # Source
//! Intel's and AMD's manuals, CPUID leaf 1 (bit 31 of ECX is reserved for hypervisors to set);
//! Linux, `Documentation/virt/kvm/x86/cpuid.rst` (`KVM_FEATURE_PV_UNHALT`, `KVM_HINTS_REALTIME`) and
//! `arch/x86/include/asm/hypervisor.h` (where the leaves begin).

use crate::excerpt::excerpt;

/// The registers that a leaf of CPUID fills: EAX, EBX, ECX, EDX.
pub type Registers = [u32; 4];

/// A processor that can be asked.
pub trait Cpuid {
    /// The registers of `leaf`; zeros where there is no such leaf.
    fn leaf(&self, leaf: u32) -> Registers;
}

/// The processor on which this runs. A processor other than x86-64 has no leaves: then a hypervisor is
/// recognized by other signs, or not at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processor;

impl Cpuid for Processor {
    #[cfg(target_arch = "x86_64")]
    fn leaf(&self, leaf: u32) -> Registers {
        let found = std::arch::x86_64::__cpuid(leaf);
        [found.eax, found.ebx, found.ecx, found.edx]
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn leaf(&self, _: u32) -> Registers {
        [0; 4]
    }
}

/// What a processor once said: leaves and their registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded(pub Vec<(u32, Registers)>);

impl Cpuid for Recorded {
    fn leaf(&self, leaf: u32) -> Registers {
        self.0.iter().find(|(other, _)| *other == leaf).map_or([0; 4], |(_, found)| *found)
    }
}

impl Recorded {
    /// Reads what `cpuid -1 -r` prints: lines like `0x00000001 0x00: eax=0x000806f8 ebx=… ecx=…
    /// edx=…`. Of a leaf's subleaves the first one counts; other lines say nothing.
    ///
    /// # Errors
    /// A line that begins like a leaf and does not go on like one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut leaves = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| line.starts_with("0x")) {
            let leaf = leaf_of(line).ok_or_else(|| {
                let line = excerpt(line);
                format!(
                    "`{line}` is not like `0x00000001 0x00: eax=0x00000000 ebx=0x00000000 \
                     ecx=0x00000000 edx=0x00000000`"
                )
            })?;
            leaves.push(leaf);
        }
        Ok(Self(leaves))
    }
}

fn leaf_of(line: &str) -> Option<(u32, Registers)> {
    let hex = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (leaf, values) = line.split_once(':')?;
    let mut registers = [0; 4];
    let mut values = values.split_whitespace();
    for (register, name) in registers.iter_mut().zip(["eax=", "ebx=", "ecx=", "edx="]) {
        *register = hex(values.next()?.strip_prefix(name)?)?;
    }
    Some((hex(leaf.split_whitespace().next()?)?, registers))
}

/// What is under the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hypervisor {
    /// Its name.
    pub name: String,
    /// How it was recognized.
    pub source: &'static str,
    /// Whether it lets a virtual CPU kick a halted one (KVM only; `None`: it does not say).
    pub pv_unhalt: Option<bool>,
    /// `KVM_HINTS_REALTIME`: virtual CPUs are never preempted for an unlimited time.
    pub dedicated: bool,
}

const PRESENT: u32 = 1 << 31;
const PV_UNHALT: u32 = 1 << 7;
const REALTIME: u32 = 1;
/// Where a hypervisor's leaves begin, and where a second set does: KVM's, while the first set tells Windows
/// that this is Hyper-V.
const BASES: [u32; 2] = [0x4000_0000, 0x4000_0100];

/// The hypervisor that CPUID shows.
#[must_use]
pub fn hypervisor(cpuid: &dyn Cpuid) -> Option<Hypervisor> {
    let [_, _, features, _] = cpuid.leaf(1);
    if features & PRESENT == 0 {
        // On a bare machine these leaves may hold anything.
        return None;
    }
    let source = "CPUID";
    for base in BASES {
        if signature(cpuid, base) == "KVMKVMKVM" {
            let [features, _, _, hints] = cpuid.leaf(base + 1);
            return Some(Hypervisor {
                name: "KVM".to_owned(),
                source,
                pv_unhalt: Some(features & PV_UNHALT != 0),
                dedicated: hints & REALTIME != 0,
            });
        }
    }
    let signature = signature(cpuid, BASES[0]);
    let name = match signature.as_str() {
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "" => "unknown",
        other => other,
    };
    Some(Hypervisor { name: name.to_owned(), source, pv_unhalt: None, dedicated: false })
}

/// The name in the leaf `base`: letters as they are, anything else as `?`.
fn signature(cpuid: &dyn Cpuid, base: u32) -> String {
    let [_, ebx, ecx, edx] = cpuid.leaf(base);
    let bytes = [ebx, ecx, edx].into_iter().flat_map(u32::to_le_bytes);
    let letter =
        |byte: u8| if byte == b' ' || byte.is_ascii_graphic() { byte as char } else { '?' };
    bytes.take_while(|&byte| byte != 0).map(letter).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &[u8; 12]) -> Registers {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| name[at + byte]));
        [0, word(0), word(4), word(8)]
    }

    const GUEST: (u32, Registers) = (1, [0, 0, PRESENT, 0]);

    #[test]
    fn a_bare_machine_has_none_whatever_the_leaves_hold() {
        let kvm = (0x4000_0000, named(b"KVMKVMKVM\0\0\0"));
        assert_eq!(hypervisor(&Recorded(vec![(1, [0; 4]), kvm])), None);
        assert_eq!(hypervisor(&Recorded::default()), None);
    }

    #[test]
    fn kvm_says_whether_it_kicks_and_whether_cpus_are_dedicated() {
        for (features, hints, kicks, dedicated) in
            [(0, 0, false, false), (PV_UNHALT, 0, true, false), (!PV_UNHALT, 1, false, true)]
        {
            for base in [0x4000_0000, 0x4000_0100] {
                let mut leaves = vec![GUEST, (base, named(b"KVMKVMKVM\0\0\0"))];
                leaves.push((base + 1, [features, 0, 0, hints]));
                if base != 0x4000_0000 {
                    leaves.push((0x4000_0000, named(b"Microsoft Hv")));
                }
                let found = hypervisor(&Recorded(leaves)).unwrap();
                assert_eq!((&*found.name, found.pv_unhalt), ("KVM", Some(kicks)));
                assert_eq!(found.dedicated, dedicated);
            }
        }
    }

    #[test]
    fn others_have_names_and_nothing_more() {
        for (signature, name) in [
            (b"Microsoft Hv", "Hyper-V"),
            (b"VMwareVMware", "VMware"),
            (b"bhyve bhyve ", "bhyve bhyve"),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0", "unknown"),
            (b"a\nb\xffc\0\0\0\0\0\0\0", "a?b?c"),
        ] {
            // What follows the signature has another meaning.
            let leaves = vec![GUEST, (BASES[0], named(signature)), (BASES[0] + 1, [!0; 4])];
            let found = hypervisor(&Recorded(leaves)).unwrap();
            assert_eq!(found.name, name);
            assert_eq!((found.pv_unhalt, found.dedicated), (None, false));
        }
    }

    #[test]
    fn a_recorded_processor_is_read() {
        let text = "CPU:\n   0x00000001 0x00: eax=0x000806f8 ebx=0x1 ecx=0x80000000 edx=0xf\n\
                    \x20  0x00000001 0x01: eax=0x1 ebx=0x1 ecx=0x1 edx=0x1\n";
        let recorded = Recorded::parse(text).unwrap();
        assert_eq!(recorded.leaf(1), [0x0008_06f8, 1, 0x8000_0000, 15]);
        assert_eq!(recorded.leaf(2), [0; 4]);
        for wrong in ["0x1", "0x1: eax=1", "0xg 0x0: eax=0x0 ebx=0x0 ecx=0x0 edx=0x0"] {
            let said = Recorded::parse(wrong).unwrap_err();
            assert!(said.contains(wrong) && said.contains("edx=0x00000000"), "{said}");
        }
    }

    #[test]
    fn this_processor_answers() {
        let has_vendor = Processor.leaf(0)[1] != 0;
        assert_eq!(has_vendor, cfg!(target_arch = "x86_64"), "every x86-64 has a vendor");
    }
}
