//! One cache line: who has it, who wants it, who watches it.
//!
//! # Invariants
//! * **C1** A line with an owner has no other copy.
//! * **C2** A strand is among `watchers` exactly while it watches a word of the line.
//! * **C3** While a watcher runs, its core has a copy, or it has a look or a read pending.

use super::Request;

/// A set of cores. Up to 128 cost no allocation, and none of the steps for more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cores {
    low: u128,
    high: Vec<u128>,
}

impl Cores {
    #[inline]
    pub(crate) fn contains(&self, core: u16) -> bool {
        let bit = 1 << (core % 128);
        if core < 128 {
            return self.low & bit != 0;
        }
        self.high.get(usize::from(core / 128) - 1).is_some_and(|bits| bits & bit != 0)
    }

    #[inline]
    pub(crate) fn insert(&mut self, core: u16) {
        let bit = 1 << (core % 128);
        if core < 128 {
            self.low |= bit;
            return;
        }
        let place = usize::from(core / 128);
        if self.high.len() < place {
            self.high.resize(place, 0);
        }
        self.high[place - 1] |= bit;
    }

    /// Only this one.
    #[inline]
    pub(crate) fn become_only(&mut self, core: u16) {
        self.low = 0;
        for word in &mut self.high {
            *word = 0;
        }
        self.insert(core);
    }

    /// Every core of the set, in order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        let mut rest = self.low;
        let mut place = 0;
        std::iter::from_fn(move || {
            while rest == 0 {
                rest = *self.high.get(place)?;
                place += 1;
            }
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            Some((place * 128) as u16 + bit as u16)
        })
    }
}

/// A line of 64 bytes.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The core that may write it without asking.
    owner: Option<u16>,
    /// Every core that has a copy.
    pub(crate) sharers: Cores,
    /// The ownership transfer that is under way.
    pub(crate) serving: Option<Request>,
    /// When the reads under way no longer keep the next request.
    pub(crate) free_at: u64,
    /// There is an event for that.
    pub(crate) free_is_due: bool,
    /// Requests that have to wait.
    pub(crate) waiting: Vec<Request>,
    /// Strands that watch a word of this line (C2).
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

    /// C1.
    #[inline]
    pub(crate) fn give_to(&mut self, core: u16) {
        self.owner = Some(core);
        self.sharers.become_only(core);
    }

    /// Somebody reads it: the owner keeps a copy, but no longer the right to write.
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
        cores.become_only(65);
        assert_eq!(cores.iter().collect::<Vec<_>>(), [65]);
    }

    #[test]
    fn an_owner_is_alone_until_somebody_reads() {
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
