//! What the harness does to a lock, whether it excludes or admits readers.

use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::platform::Platform;

use crate::scenario::Mode;

/// What the harness does to a lock, of either kind.
pub trait Contend<P: Platform>: Send + Sync + 'static {
    /// A free lock.
    fn new() -> Self;
    /// Acquires.
    fn enter(&self, p: &P, mode: Mode);
    /// Acquires until `deadline` at the latest; whether it did. One that knows no deadlines waits.
    fn enter_until(&self, p: &P, mode: Mode, _deadline: u64) -> bool {
        self.enter(p, mode);
        true
    }
    /// Acquires without waiting.
    fn try_enter(&self, p: &P, mode: Mode) -> bool;
    /// Releases.
    ///
    /// # Safety
    /// This context has acquired the lock in this mode.
    unsafe fn leave(&self, p: &P, mode: Mode);
    /// Holds it in the mode `to` from now on.
    ///
    /// # Safety
    /// This context has acquired the lock in the mode `from`, which is the stronger one.
    unsafe fn downgrade(&self, _p: &P, _from: Mode, _to: Mode) {
        unreachable!("a lock without conversions")
    }
    /// Becomes the writer until `deadline` at the latest, or, without one, if that takes no wait; whether it did.
    ///
    /// # Safety
    /// This context has acquired the lock for an upgradable read.
    unsafe fn upgrade(&self, _p: &P, _deadline: Option<u64>) -> bool {
        unreachable!("a lock without conversions")
    }
    /// Whether it has an owner.
    fn is_locked(&self, p: &P) -> bool;
    /// Whether that is a writer; `None` if it does not say.
    fn is_written(&self, _p: &P) -> Option<bool> {
        None
    }
}

/// A lock that excludes.
pub struct Exclusive<L>(L);

impl<P: Platform, L: RawLock<P> + Send + Sync + 'static> Contend<P> for Exclusive<L> {
    fn new() -> Self {
        Self(L::new())
    }
    fn enter(&self, p: &P, _: Mode) {
        self.0.acquire(p);
    }
    fn try_enter(&self, p: &P, _: Mode) -> bool {
        self.0.try_acquire(p)
    }
    unsafe fn leave(&self, p: &P, _: Mode) {
        // SAFETY: the caller has acquired it.
        unsafe { self.0.release(p) }
    }
    fn is_locked(&self, p: &P) -> bool {
        self.0.is_locked(p)
    }
}

/// A lock that admits readers.
pub struct Shared<L>(pub(crate) L);

impl<P: Platform, L: RawSharedLock<P> + Send + Sync + 'static> Contend<P> for Shared<L> {
    fn new() -> Self {
        Self(L::new())
    }
    fn enter(&self, p: &P, mode: Mode) {
        match mode {
            Mode::Write => self.0.acquire_exclusive(p),
            Mode::Read => self.0.acquire_shared(p),
            Mode::Upgradable => unreachable!("a lock without conversions"),
        }
    }
    fn try_enter(&self, p: &P, mode: Mode) -> bool {
        match mode {
            Mode::Write => self.0.try_acquire_exclusive(p),
            Mode::Read => self.0.try_acquire_shared(p),
            Mode::Upgradable => unreachable!("a lock without conversions"),
        }
    }
    unsafe fn leave(&self, p: &P, mode: Mode) {
        match mode {
            // SAFETY: the caller has acquired it for writing.
            Mode::Write => unsafe { self.0.release_exclusive(p) },
            // SAFETY: the caller has acquired it for reading.
            Mode::Read => unsafe { self.0.release_shared(p) },
            Mode::Upgradable => unreachable!("a lock without conversions"),
        }
    }
    fn is_locked(&self, p: &P) -> bool {
        self.0.is_locked(p)
    }
    fn is_written(&self, p: &P) -> Option<bool> {
        Some(self.0.is_locked_exclusive(p))
    }
}
