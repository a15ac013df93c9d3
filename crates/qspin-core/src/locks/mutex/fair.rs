//! Releases that hand the lock off to a waiter, past newcomers.

use super::{DefaultLock, HEIR, LOCKED, bits_in, generation, with_bits};
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::lock::{RawFairLock, RawLock};
use crate::platform::AtomicWord;
use crate::site::Site;
use crate::sleepers::{self, SleepPlatform};

impl<P: SleepPlatform> RawFairLock<P> for DefaultLock<P::Word> {
    unsafe fn release_fair(&self, p: &P) {
        let on = p.address(&self.word);
        let of = generation(p);
        let mut seen = self.word.load(Relaxed);
        while bits_in(of, seen) != 0 {
            // MUTEX-2: one of the awake waiters acquires the lock, and clears HEIR.
            let to = with_bits(of, 0, bits_in(of, seen) | HEIR);
            // ORDERING: as in `release_slow`.
            match self.word.compare_exchange(seen, to, p.ordering(Site::MutexRelease, Release)) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        debug_assert!(seen & LOCKED != 0);
        if sleepers::perhaps_anybody(p, on) {
            self.release_to_sleeper(p, on, seen, HEIR);
        } else {
            // SAFETY: the caller holds the lock.
            unsafe { self.release(p) };
        }
    }
}
