//! One cache line: its owner, the requests for it, and its watchers.
//!
//! # Invariants
//! * **LINE-1** A line with an owner has no other copy.
//! * **LINE-2** A strand is among `watchers` exactly while it watches a word of the line.
//! * **LINE-3** While a watcher runs, its core has a copy, or it has a poll or a read pending.

use super::Request;

/// Cores of one block of the machine.
const BLOCK: u16 = 128;

/// A set of cores: the blocks that have any, one of them without an allocation. Most lines are at few cores of
/// one block, and most machines have only one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cores {
    bits: u128,
    block: u16,
    /// Other blocks, and what is in them, in order.
    others: Vec<(u16, u128)>,
}

impl Cores {
    #[inline]
    pub(crate) fn contains(&self, core: u16) -> bool {
        let (block, bit) = (core / BLOCK, 1 << (core % BLOCK));
        if block == self.block {
            return self.bits & bit != 0;
        }
        self.others.iter().any(|other| other.0 == block && other.1 & bit != 0)
    }

    #[inline]
    pub(crate) fn insert(&mut self, core: u16) {
        let (block, bit) = (core / BLOCK, 1 << (core % BLOCK));
        if block == self.block {
            self.bits |= bit;
            return;
        }
        match self.others.binary_search_by_key(&block, |other| other.0) {
            Ok(place) => self.others[place].1 |= bit,
            Err(place) => self.others.insert(place, (block, bit)),
        }
    }

    /// Keeps only this core.
    #[inline]
    pub(crate) fn become_only(&mut self, core: u16) {
        self.others.clear();
        self.block = core / BLOCK;
        self.bits = 1 << (core % BLOCK);
    }

    /// Every core of the set, in order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        let split = self.others.partition_point(|other| other.0 < self.block);
        let (before, after) = self.others.split_at(split);
        let own = std::iter::once((self.block, self.bits));
        let blocks = before.iter().copied().chain(own).chain(after.iter().copied());
        blocks.flat_map(|(block, mut rest)| {
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as u16;
                    rest &= rest - 1;
                    block * BLOCK + bit
                })
            })
        })
    }
}

/// A line of 64 bytes.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The core that may write it without asking.
    owner: Option<u16>,
    /// The core that owned it last.
    pub(crate) last_owner: Option<u16>,
    /// Every core that has a copy.
    pub(crate) sharers: Cores,
    /// The ownership transfer in progress.
    pub(crate) serving: Option<Request>,
    /// When the reads in progress no longer delay the next request.
    pub(crate) free_at: u64,
    /// There is an event for that.
    pub(crate) free_is_due: bool,
    /// Requests that have to wait.
    pub(crate) waiting: Vec<Request>,
    /// Strands that watch a word of this line (LINE-2).
    pub(crate) watchers: Vec<u32>,
    /// Which words have been used, and so have their value in memory.
    pub(crate) used: u16,
}

impl Line {
    /// Whether `core` may read it without asking.
    #[inline]
    pub(crate) fn is_at(&self, core: u16) -> bool {
        self.sharers.contains(core)
    }

    /// Whether `core` may write it without asking.
    #[inline]
    pub(crate) fn is_owned_by(&self, core: u16) -> bool {
        self.owner == Some(core)
    }

    pub(crate) fn owner(&self) -> Option<u16> {
        self.owner
    }

    /// LINE-1.
    #[inline]
    pub(crate) fn give_to(&mut self, core: u16) {
        (self.owner, self.last_owner) = (Some(core), Some(core));
        #[cfg(test)]
        if crate::engine::planted(crate::engine::Bug::CopiesStay) {
            self.sharers.insert(core);
            return;
        }
        self.sharers.become_only(core);
    }

    /// A core reads it: the owner keeps a copy, but no longer the right to write.
    #[inline]
    pub(crate) fn share(&mut self) {
        self.owner = None;
    }

    /// A copy has come to `core`. It stays, unless the line has a new owner by now.
    #[inline]
    pub(crate) fn copy_to(&mut self, core: u16) {
        if self.owner.is_none() {
            self.sharers.insert(core);
        }
    }

    pub(crate) fn forget_watcher(&mut self, strand: u32) {
        if let Some(place) = self.watchers.iter().position(|&watcher| watcher == strand) {
            self.watchers.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cores_holds_what_was_put_in() {
        let mut cores = Cores::default();
        let members = [0, 5, 63, 64, 200, 1024];
        for core in members {
            assert!(!cores.contains(core));
            cores.insert(core);
            assert!(cores.contains(core));
        }
        assert_eq!(cores.iter().collect::<Vec<_>>(), members);
        for only in [1000, 65] {
            cores.become_only(only);
            assert_eq!(cores.iter().collect::<Vec<_>>(), [only]);
            assert!(cores.contains(only) && !cores.contains(1024));
        }
        // The block without an allocation lies between two others.
        cores.become_only(300);
        for core in [5, 2000, 301] {
            cores.insert(core);
        }
        assert_eq!(cores.iter().collect::<Vec<_>>(), [5, 300, 301, 2000]);
    }

    #[test]
    fn an_owner_is_alone_until_a_thread_reads() {
        let mut line = Line::default();
        line.copy_to(3);
        line.give_to(1);
        assert!(line.is_owned_by(1) && line.is_at(1) && !line.is_at(3));
        line.copy_to(3);
        assert!(!line.is_at(3), "the copy came after the line had gone to 1");
        line.share();
        line.copy_to(3);
        assert!(line.is_at(1) && line.is_at(3) && line.owner().is_none());
    }
}
