//! Simulated memory: where real structures lie, line by line.
//!
//! # Model
//! A simulated word is as big as a real one, so a structure made of them has its real layout. Structures lie in
//! a few *regions*, each of which begins a line. The place of a word is the number of its region's first word,
//! plus its real offset. So false sharing is real, and nothing depends on the host's addresses.
//!
//! A word itself holds only its initial value; its present value is in the simulation, at its place. So a word
//! is plain data, and code that the simulation runs later (a store buffer, a poll of a watcher) needs no
//! pointer to it.

/// Words of a line.
pub(crate) const WORDS: usize = 16;
const LINE_BYTES: usize = 64;

/// A region of structures that lie in simulated memory.
#[derive(Debug, Clone, Copy)]
struct Region {
    address: usize,
    bytes: usize,
    /// Bytes of one of its structures.
    each: usize,
    first_word: usize,
}

/// Where the regions are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    regions: Vec<Region>,
    words: usize,
}

/// Something that begins a line and shares it with nothing.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Padded<T>(pub(crate) T);

impl Memory {
    /// Puts these structures into simulated memory. They begin a line, and do not move.
    pub(crate) fn add<T>(&mut self, structures: &[T]) {
        let address = structures.as_ptr() as usize;
        let bytes = size_of_val(structures);
        assert!(
            structures.is_empty() || address.is_multiple_of(LINE_BYTES),
            "a region of simulated memory begins a line"
        );
        let each = size_of::<T>().max(1);
        self.regions.push(Region { address, bytes, each, first_word: self.words });
        self.words += bytes.div_ceil(LINE_BYTES) * WORDS;
    }

    /// Words in all regions.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The place of the word at this address.
    #[inline]
    pub(crate) fn place(&self, address: usize) -> usize {
        for region in &self.regions {
            let offset = address.wrapping_sub(region.address);
            if offset < region.bytes {
                return region.first_word + offset / 4;
            }
        }
        panic!("a simulated word is used that lies outside of simulated memory")
    }

    /// What lies at a place: the number of its region, of the structure in it, and of the byte in that.
    pub(crate) fn locate(&self, place: usize) -> (usize, usize, usize) {
        let region = self.regions.iter().rposition(|region| region.first_word <= place);
        let region = region.unwrap_or(0);
        let byte = (place - self.regions[region].first_word) * 4;
        let each = self.regions[region].each;
        (region, byte / each, byte % each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_real_offset_in_whole_lines() {
        let first = [Padded([0_u32; 3]), Padded([0; 3])];
        let second = [Padded([0_u32; 20])];
        let mut memory = Memory::default();
        memory.add(&first);
        memory.add(&second);
        let place = |word: &u32| memory.place(core::ptr::from_ref(word) as usize);
        assert_eq!(place(&first[0].0[2]), 2);
        assert_eq!(place(&first[1].0[0]), 16);
        assert_eq!(place(&second[0].0[0]), 32);
        assert_eq!(place(&second[0].0[17]) / WORDS, 3);
        assert_eq!(memory.words(), 64);
        assert_eq!(memory.locate(17), (0, 1, 4));
        assert_eq!(memory.locate(33), (1, 0, 4));
    }
}
