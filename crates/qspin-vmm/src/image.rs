//! The guest's ELF file: where it is loaded, and where it begins (PVH).

use elf::ElfBytes;
use elf::abi::{EM_X86_64, PT_LOAD, PT_NOTE};
use elf::endian::LittleEndian;
use elf::note::Note;

use crate::memory::Memory;

/// The note that tells the address of the 32-bit entry.
const PHYS32_ENTRY: u64 = 18;
/// Whose notes these are.
const OWNER: &[u8] = b"Xen\0";

/// Why an image cannot be loaded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It is no ELF file for this architecture, or a broken one.
    #[error("it is no ELF file for x86_64")]
    NoElf,
    /// It has no note with an entry.
    #[error("it has no PVH entry")]
    NoEntry,
    /// It has a part where no memory is.
    #[error("it does not fit into the guest's memory")]
    TooBig,
}

/// Copies the image's parts to their places; returns its entry.
///
/// # Errors
///
/// What is wrong with it.
pub fn load(bytes: &[u8], memory: &Memory) -> Result<u32, ImageError> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(|_| ImageError::NoElf)?;
    if file.ehdr.e_machine != EM_X86_64 {
        return Err(ImageError::NoElf);
    }
    let mut entry = None;
    for part in file.segments().ok_or(ImageError::NoElf)? {
        match part.p_type {
            PT_LOAD => {
                let data = file.segment_data(&part).map_err(|_| ImageError::NoElf)?;
                let end = part.p_paddr.checked_add(part.p_memsz).ok_or(ImageError::TooBig)?;
                if part.p_memsz < part.p_filesz || end > memory.size() as u64 {
                    return Err(ImageError::TooBig);
                }
                memory.write(part.p_paddr, data).ok_or(ImageError::TooBig)?;
            }
            PT_NOTE => {
                let notes = file.segment_data_as_notes(&part).map_err(|_| ImageError::NoElf)?;
                for note in notes {
                    if let Note::Unknown(note) = note
                        && note.n_type == PHYS32_ENTRY
                        && note.name == OWNER
                    {
                        entry = note.desc.first_chunk().map(|at| u32::from_le_bytes(*at));
                    }
                }
            }
            _ => {}
        }
    }
    entry.ok_or(ImageError::NoEntry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_is_loaded_and_begins_at_its_entry() {
        let memory = Memory::new(64 << 20).unwrap();
        let entry = load(qspin_guest::IMAGE, &memory).unwrap();
        // The entry's first instructions: cli, cld.
        assert_eq!(memory.read(entry.into(), 2).unwrap(), [0xfa, 0xfc]);
        assert!(entry >= 0x10_0000);
    }

    #[test]
    fn what_is_not_an_image_is_refused() {
        let memory = Memory::new(2 << 20).unwrap();
        assert_eq!(load(b"", &memory), Err(ImageError::NoElf));
        assert_eq!(load(b"\x7fELF and nothing more", &memory), Err(ImageError::NoElf));
        let mut other = qspin_guest::IMAGE.to_vec();
        other[18] = 183;
        assert_eq!(load(&other, &memory), Err(ImageError::NoElf), "for another processor");
        let cut = &qspin_guest::IMAGE[..8192];
        assert_eq!(load(cut, &memory), Err(ImageError::NoElf), "cut off");
        assert_eq!(load(qspin_guest::IMAGE, &memory), Err(ImageError::TooBig));
        // This test is an ELF file for this architecture, too.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(load(&own, &Memory::new(1 << 30).unwrap()), Err(ImageError::NoEntry));
    }
}
