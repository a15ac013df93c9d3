//! How the guest begins: the start information of PVH, and the registers of the first processor.
//!
//! The source is Xen's `public/arch-x86/hvm/start_info.h` and its description of the PVH boot protocol:
//! 32-bit protected mode without paging, flat segments, interrupts off, `ebx` the address of the start
//! information.

use crate::memory::Memory;

/// Where the start information lies: below the trampoline, and out of the way of the image.
pub const INFO: u64 = 0x6000;
/// Where the map of the memory lies.
pub const MAP: u64 = 0x6100;
/// Where the command line lies.
pub const LINE: u64 = 0x7000;
/// Most bytes of a command line, with its end.
pub const LINE_MOST: usize = 0x800;

const MAGIC: u32 = 0x336e_c578;
const VERSION: u32 = 1;
/// A kind of memory: ordinary.
const RAM: u32 = 1;

/// A start that cannot be laid out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command line is longer than {} bytes", LINE_MOST - 1)]
pub struct TooLong;

/// The start information for a guest with `size` bytes of memory.
#[must_use]
pub fn info() -> [u8; 56] {
    let words: [u32; 14] = [
        MAGIC,
        VERSION,
        0, // flags
        0, // modules
        0, // address of their list
        0,
        LINE as u32,
        0,
        0, // ACPI's root
        0,
        MAP as u32,
        0,
        1, // entries of the map
        0,
    ];
    let mut bytes = [0; 56];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The only entry of the map of the memory.
#[must_use]
pub fn map(size: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[8..16].copy_from_slice(&size.to_le_bytes());
    bytes[16..20].copy_from_slice(&RAM.to_le_bytes());
    bytes
}

/// Lays out what the guest finds.
///
/// # Errors
///
/// The line does not fit.
pub fn lay_out(memory: &Memory, line: &str) -> Result<(), TooLong> {
    if line.len() >= LINE_MOST {
        return Err(TooLong);
    }
    let parts: [(u64, &[u8]); 4] = [
        (INFO, &info()),
        (MAP, &map(memory.size() as u64)),
        (LINE, line.as_bytes()),
        (LINE + line.len() as u64, b"\0"),
    ];
    for (address, bytes) in parts {
        memory.write(address, bytes).ok_or(TooLong)?;
    }
    Ok(())
}

/// A segment that is all of the memory, as a descriptor has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flat {
    /// Its place in a table that does not exist: the guest loads its own.
    pub selector: u16,
    /// Bits 40 to 43 of a descriptor.
    pub kind: u8,
    /// Not a system segment.
    pub ordinary: bool,
    /// The last address.
    pub limit: u32,
}

/// Code, read and execute, accessed.
pub const CODE: Flat = Flat { selector: 0x08, kind: 0xb, ordinary: true, limit: u32::MAX };
/// Data, read and write, accessed.
pub const DATA: Flat = Flat { selector: 0x10, kind: 0x3, ordinary: true, limit: u32::MAX };
/// A busy 32-bit task, which processors insist on.
pub const TASK: Flat = Flat { selector: 0x18, kind: 0xb, ordinary: false, limit: 0x67 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_information_has_the_layout_of_its_header() {
        let memory = Memory::new(1 << 20).unwrap();
        lay_out(&memory, "mode=probe vcpus=2").unwrap();
        let word = |at| u32::from_le_bytes(memory.read(at, 4).unwrap().try_into().unwrap());
        let long = |at| u64::from_le_bytes(memory.read(at, 8).unwrap().try_into().unwrap());
        assert_eq!((word(INFO), word(INFO + 4)), (0x336e_c578, 1));
        assert_eq!(long(INFO + 24), LINE);
        assert_eq!((long(INFO + 40), word(INFO + 48)), (MAP, 1));
        assert_eq!((long(MAP), long(MAP + 8), word(MAP + 16)), (0, 1 << 20, 1));
        assert_eq!(memory.read(LINE, 19).unwrap(), b"mode=probe vcpus=2\0");
    }

    #[test]
    fn a_line_that_does_not_fit_is_refused() {
        let memory = Memory::new(1 << 20).unwrap();
        assert_eq!(lay_out(&memory, &"x".repeat(LINE_MOST)), Err(TooLong));
        assert_eq!(lay_out(&memory, &"x".repeat(LINE_MOST - 1)), Ok(()));
        assert_eq!(memory.read(LINE + LINE_MOST as u64 - 1, 1).unwrap(), [0]);
        #[cfg(target_arch = "x86_64")]
        const {
            assert!(LINE + LINE_MOST as u64 <= qspin_guest::processors::TRAMPOLINE as u64)
        };
    }
}
