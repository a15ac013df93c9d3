//! Releases that hand the lock off to the owner of the gate, past newcomers.

use core::sync::atomic::Ordering::{Relaxed, Release};

use super::{
    DefaultRwLock, HEIR, READER, STATE_BITS, WRITER, admitting, left,
    upgradable::{ended, without_upgradable},
};
use crate::lock::{RawFairSharedLock, RawTimedLock};
use crate::platform::AtomicWord;
use crate::site::Site;
use crate::sleepers::SleepPlatform;

/// The word `to`, with the owner of the gate as the heir where the lock is free (RWLOCK-2): the owner has set a
/// state bit in `seen`, so it has still to clear them all.
const fn to_heir(seen: u32, to: u32) -> u32 {
    if seen & STATE_BITS != 0 && to & WRITER == 0 && to / READER == 0 { to | HEIR } else { to }
}

impl<W: AtomicWord, G> DefaultRwLock<W, G> {
    /// Replaces the word by what `next` makes of it; returns both.
    fn leave_fairly<P>(&self, p: &P, site: Site, next: impl Fn(u32) -> u32) -> (u32, u32)
    where
        P: SleepPlatform<Word = W>,
    {
        // ORDERING: as in `end_write`.
        let order = p.ordering(site, Release);
        let mut seen = self.word.load(Relaxed);
        loop {
            let to = admitting(to_heir(seen, next(seen)));
            match self.word.compare_exchange(seen, to, order) {
                Ok(_) => return (seen, to),
                Err(now) => seen = now,
            }
        }
    }
}

impl<P: SleepPlatform, G: RawTimedLock<P>> RawFairSharedLock<P> for DefaultRwLock<P::Word, G> {
    unsafe fn release_shared_fair(&self, p: &P) {
        let on = self.on(p);
        let (before, now) = self.leave_fairly(p, Site::RwLeaveShared, |seen| seen - READER);
        left(p, on, before, now);
    }

    unsafe fn release_exclusive_fair(&self, p: &P) {
        let on = self.on(p);
        let (before, now) = self.leave_fairly(p, Site::RwLeaveExclusive, |seen| seen - WRITER);
        left(p, on, before, now);
    }

    unsafe fn release_upgradable_fair(&self, p: &P) {
        let on = self.on(p);
        let next = |seen| without_upgradable(seen) - READER;
        let (before, now) = self.leave_fairly(p, Site::RwLeaveShared, next);
        ended(p, on, before, now);
    }
}
