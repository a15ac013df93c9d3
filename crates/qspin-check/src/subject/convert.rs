//! The default reader-writer lock, whose writers become readers, and whose readers become writers, or might.

use qspin_core::lock::{
    RawFairSharedLock, RawLock, RawSharedLock, RawTimedLock, RawUpgradableLock,
};
use qspin_core::locks::rwlock::DefaultRwLock;
use qspin_core::sleepers::{NEVER, SleepPlatform};

use crate::contend::{Contend, Shared};
use crate::scenario::Mode;

/// Writers read upgradably before they write.
pub const UPGRADES: u8 = 0;
/// They read on after it.
pub const DOWNGRADES: u8 = 1;
/// The same, upgradably first.
pub const DOWNGRADES_TWICE: u8 = 2;
/// No conversion: all releases are fair.
pub const FAIRLY: u8 = 3;
/// The same, and writers leave as upgradable readers.
pub const FAIRLY_UPGRADABLE: u8 = 4;
/// Writers read upgradably before they write, and after it, and leave fairly.
pub const UPGRADES_FAIRLY: u8 = 5;
/// They read on after that.
pub const UPGRADES_AND_DOWNGRADES: u8 = 6;

/// The default reader-writer lock, acquired and released in one of these ways.
pub struct Converted<W, const HOW: u8>(Shared<DefaultRwLock<W>>);

impl<P: SleepPlatform, const HOW: u8> Contend<P> for Converted<P::Word, HOW>
where
    P::Word: Send + Sync + 'static,
{
    fn new() -> Self {
        Self(Contend::<P>::new())
    }
    fn enter(&self, p: &P, mode: Mode) {
        let Self(Shared(lock)) = self;
        let upgrades = matches!(HOW, UPGRADES | UPGRADES_FAIRLY | UPGRADES_AND_DOWNGRADES);
        if mode == Mode::Read || !upgrades {
            return self.0.enter(p, mode);
        }
        lock.acquire_upgradable_until(p, NEVER);
        // SAFETY: it reads upgradably.
        unsafe { lock.upgrade_until(p, NEVER) };
    }
    fn try_enter(&self, p: &P, mode: Mode) -> bool {
        // Without an upgrade: what ends an upgradable read may wake others, and wait a moment for their bucket.
        self.0.try_enter(p, mode)
    }
    unsafe fn leave(&self, p: &P, mode: Mode) {
        let Self(Shared(lock)) = self;
        // SAFETY: the caller holds it in this mode; from there each step says how it is held next.
        unsafe {
            match (mode, HOW) {
                (Mode::Read, FAIRLY | FAIRLY_UPGRADABLE | UPGRADES_FAIRLY) => {
                    lock.release_shared_fair(p)
                }
                (Mode::Write, FAIRLY) => lock.release_exclusive_fair(p),
                (Mode::Write, FAIRLY_UPGRADABLE | UPGRADES_FAIRLY) => {
                    lock.downgrade_to_upgradable(p);
                    lock.release_upgradable_fair(p);
                }
                (Mode::Write, DOWNGRADES) => {
                    lock.downgrade(p);
                    lock.release_shared(p);
                }
                (Mode::Write, DOWNGRADES_TWICE | UPGRADES_AND_DOWNGRADES) => {
                    lock.downgrade_to_upgradable(p);
                    lock.downgrade_upgradable(p);
                    lock.release_shared(p);
                }
                _ => self.0.leave(p, mode),
            }
        }
    }
    fn is_locked(&self, p: &P) -> bool {
        self.0.is_locked(p)
    }
}

/// The same lock, read upgradably by all: one at a time, so it excludes.
pub struct Upgradable<W>(DefaultRwLock<W>);

// SAFETY: there is one upgradable reader at a time, and none that writes or reads otherwise.
unsafe impl<P: SleepPlatform> RawLock<P> for Upgradable<P::Word> {
    fn new() -> Self {
        Self(RawSharedLock::<P>::new())
    }
    fn acquire(&self, p: &P) {
        // Without a deadline the context does not give up.
        self.0.acquire_upgradable_until(p, NEVER);
    }
    fn try_acquire(&self, p: &P) -> bool {
        self.0.try_acquire_upgradable(p)
    }
    unsafe fn release(&self, p: &P) {
        // SAFETY: the caller reads upgradably.
        unsafe { self.0.release_upgradable(p) };
    }
    fn is_locked(&self, p: &P) -> bool {
        RawSharedLock::<P>::is_locked(&self.0, p)
    }
}

impl<P: SleepPlatform> RawTimedLock<P> for Upgradable<P::Word> {
    fn acquire_until(&self, p: &P, deadline: u64) -> bool {
        self.0.acquire_upgradable_until(p, deadline)
    }
}
