//! The locks as `lock_api` knows them, on a platform that is known at compile time.

mod condvar;
mod shared;

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

pub use condvar::RawCondvar;

use crate::lock::{ConstLock, Guard, RawFairLock, RawLock, RawSharedLock, RawTimedLock};
use crate::observer;
use crate::platform::{StaticPlatform, TimedPlatform, deadline_after};

/// Lock `L` on platform `P`: [`lock_api::RawMutex`] for a lock that excludes, [`lock_api::RawRwLock`] for one
/// that admits readers.
///
/// As big as the lock alone. Here, and only here, the platform learns when a lock is held
/// ([`Platform::holder_enter`](crate::platform::Platform::holder_enter)): after it is acquired, since a waiter
/// should not be spared from preemption, and until after it is released, since the platform may then take the CPU
/// away.
#[repr(transparent)]
pub struct Raw<L, P> {
    lock: L,
    platform: PhantomData<fn() -> P>,
}

impl<L: ConstLock, P> Raw<L, P> {
    /// A free lock.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { lock: L::UNLOCKED, platform: PhantomData }
    }
}

impl<L: ConstLock, P: StaticPlatform> Raw<L, P> {
    /// The lock was acquired: tells the platform, and makes the guard.
    #[inline]
    fn held() -> L::Guard {
        P::PLATFORM.holder_enter();
        L::Guard::marker()
    }

    /// The lock was released; it may no longer exist.
    #[inline]
    fn left() {
        P::PLATFORM.holder_exit();
    }

    /// Acquires the lock by `wait`, which may give up, and which an observer is told of if `at_once` fails.
    #[inline]
    fn take(
        &self,
        shared: bool,
        at_once: impl FnOnce() -> bool,
        wait: impl FnOnce() -> bool,
    ) -> Option<L::Guard> {
        let taken = match P::PLATFORM.observer() {
            None => wait(),
            Some(observer) => observer::acquire(observer, self.address(), shared, at_once, wait),
        };
        taken.then(Self::held)
    }

    /// The lock was acquired by an attempt that does not wait, or was not.
    #[inline]
    fn taken(&self, shared: bool, taken: bool) -> Option<L::Guard> {
        if taken && let Some(observer) = P::PLATFORM.observer() {
            observer.acquired(self.address(), shared);
        }
        taken.then(Self::held)
    }

    /// Releases the lock by `release`.
    #[inline]
    fn leave(&self, release: impl FnOnce()) {
        match P::PLATFORM.observer() {
            None => release(),
            Some(observer) => observer::release(observer, self.address(), release),
        }
        Self::left();
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

impl<L: ConstLock, P> Default for Raw<L, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L, P> fmt::Debug for Raw<L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word changes all the time; a debug print of a lock must not read more into it.
        f.debug_struct("Raw").finish_non_exhaustive()
    }
}

// SAFETY: `RawLock` promises exclusion, acquire on acquisition and release on release. Moving
// or dropping a lock that is held touches nothing: a lock is a plain word or two, and waiters
// borrow it. Nothing here unwinds.
unsafe impl<L: RawLock<P> + ConstLock, P: StaticPlatform> lock_api::RawMutex for Raw<L, P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new();
    type Guard = L::Guard;

    #[inline]
    fn lock(&self) -> L::Guard {
        let lock = || {
            self.lock.acquire(&P::PLATFORM);
            true
        };
        self.take(false, || self.lock.try_acquire(&P::PLATFORM), lock);
        L::Guard::marker()
    }

    #[inline]
    fn try_lock(&self) -> Option<L::Guard> {
        self.taken(false, self.lock.try_acquire(&P::PLATFORM))
    }

    #[inline]
    unsafe fn unlock(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock; the guard is the proof of one acquisition.
        self.leave(|| unsafe { self.lock.release(&P::PLATFORM) });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.lock.is_locked(&P::PLATFORM)
    }
}

// SAFETY: as above; a waiter that gives up has acquired nothing.
unsafe impl<L: RawTimedLock<P> + ConstLock, P: TimedPlatform> lock_api::RawMutexTimed
    for Raw<L, P>
{
    type Duration = Duration;
    type Instant = P::Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Duration) -> Option<L::Guard> {
        let deadline = deadline_after(&P::PLATFORM, timeout);
        let wait = || self.lock.acquire_until(&P::PLATFORM, deadline);
        self.take(false, || self.lock.try_acquire(&P::PLATFORM), wait)
    }

    #[inline]
    fn try_lock_until(&self, timeout: P::Instant) -> Option<L::Guard> {
        lock_api::RawMutexTimed::try_lock_for(self, P::until(timeout))
    }
}

// SAFETY: as above.
unsafe impl<L: RawFairLock<P> + ConstLock, P: StaticPlatform> lock_api::RawMutexFair for Raw<L, P> {
    unsafe fn unlock_fair(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock.
        self.leave(|| unsafe { self.lock.release_fair(&P::PLATFORM) });
    }
}

// SAFETY: as above, with `RawSharedLock`'s promise.
unsafe impl<L: RawSharedLock<P> + ConstLock, P: StaticPlatform> lock_api::RawRwLock for Raw<L, P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new();
    type SharedGuard = L::Guard;
    type ExclusiveGuard = L::Guard;

    #[inline]
    fn lock_shared(&self) -> L::Guard {
        let lock = || {
            self.lock.acquire_shared(&P::PLATFORM);
            true
        };
        self.take(true, || self.lock.try_acquire_shared(&P::PLATFORM), lock);
        L::Guard::marker()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<L::Guard> {
        self.taken(true, self.lock.try_acquire_shared(&P::PLATFORM))
    }

    #[inline]
    unsafe fn unlock_shared(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock for reading.
        self.leave(|| unsafe { self.lock.release_shared(&P::PLATFORM) });
    }

    #[inline]
    fn lock_exclusive(&self) -> L::Guard {
        let lock = || {
            self.lock.acquire_exclusive(&P::PLATFORM);
            true
        };
        self.take(false, || self.lock.try_acquire_exclusive(&P::PLATFORM), lock);
        L::Guard::marker()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<L::Guard> {
        self.taken(false, self.lock.try_acquire_exclusive(&P::PLATFORM))
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _: L::Guard) {
        // SAFETY: the caller holds the lock for writing.
        self.leave(|| unsafe { self.lock.release_exclusive(&P::PLATFORM) });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.lock.is_locked(&P::PLATFORM)
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.lock.is_locked_exclusive(&P::PLATFORM)
    }
}

#[cfg(test)]
mod tests {
    mod condvar;
    mod counterparts;

    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::cell::RefCell;
    use std::vec::Vec;

    use lock_api::{RawMutex, RawRwLock};

    use super::*;
    use crate::events::NoEvents;
    use crate::locks::queued_rw::QueuedRwLock;
    use crate::locks::yielding::YieldLock;
    use crate::node::{Node, NodeId};
    use crate::platform::{Budget, CpuId, Platform, Until};
    use crate::site::Site;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Step {
        At(Site),
        Enter,
        Exit,
    }

    std::thread_local! {
        static STEPS: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
    }

    /// A platform that records what a lock does, in order.
    struct Scribe;

    fn note(step: Step) {
        STEPS.with(|steps| steps.borrow_mut().push(step));
    }

    fn steps_of<R>(run: impl FnOnce() -> R) -> (R, Vec<Step>) {
        STEPS.take();
        (run(), STEPS.take())
    }

    impl StaticPlatform for Scribe {
        const PLATFORM: Self = Self;
    }

    impl Platform for Scribe {
        type Word = AtomicU32;
        type Address = AtomicUsize;
        type Events = NoEvents;
        fn events(&self) -> &NoEvents {
            &NoEvents
        }
        fn cpu(&self) -> Option<CpuId> {
            None
        }
        fn node(&self, _: NodeId) -> &Node<AtomicU32> {
            unreachable!("a context without a number has no node")
        }
        fn wait_until(&self, _: &AtomicU32, _: Until, _: Budget, _: Ordering) -> u32 {
            unreachable!("no other thread could end the wait")
        }
        fn relax(&self, _: u32) {}
        fn fence(&self, _: Ordering) {}
        fn ordering(&self, site: Site, order: Ordering) -> Ordering {
            note(Step::At(site));
            order
        }
        fn holder_enter(&self) {
            note(Step::Enter);
        }
        fn holder_exit(&self) {
            note(Step::Exit);
        }
    }

    #[test]
    fn the_platform_hears_of_a_holder_after_the_acquisition_and_after_the_release() {
        let lock = Raw::<YieldLock<AtomicU32>, Scribe>::new();
        let taken = [Step::At(Site::YieldTake), Step::Enter];
        let released = [Step::At(Site::YieldRelease), Step::Exit];
        let (held, steps) = steps_of(|| lock.lock());
        assert_eq!(steps, taken);
        assert_eq!(steps_of(|| lock.try_lock().is_none()), (true, Vec::new()), "it has no holder");
        // SAFETY: locked above.
        assert_eq!(steps_of(|| unsafe { lock.unlock(held) }).1, released);
        let (held, steps) = steps_of(|| lock.try_lock().unwrap());
        assert_eq!(steps, taken);
        // SAFETY: locked above.
        assert_eq!(steps_of(|| unsafe { lock.unlock(held) }).1, released);
    }

    #[test]
    fn a_reader_is_a_holder_too() {
        let lock = Raw::<QueuedRwLock<AtomicU32>, Scribe>::new();
        for shared in [Raw::lock_shared, |lock: &Raw<_, _>| lock.try_lock_shared().unwrap()] {
            let (held, steps) = steps_of(|| shared(&lock));
            assert_eq!(steps, [Step::At(Site::RwReadTry), Step::Enter]);
            let (none, steps) = steps_of(|| lock.try_lock_exclusive().is_none());
            assert!(none && !steps.contains(&Step::Enter));
            // SAFETY: locked above.
            let (_, steps) = steps_of(|| unsafe { lock.unlock_shared(held) });
            assert_eq!(steps, [Step::At(Site::RwReadRelease), Step::Exit]);
        }
        for exclusive in
            [Raw::lock_exclusive, |lock: &Raw<_, _>| lock.try_lock_exclusive().unwrap()]
        {
            let (held, steps) = steps_of(|| exclusive(&lock));
            assert_eq!(steps, [Step::At(Site::RwWriteTry), Step::Enter]);
            let (none, steps) = steps_of(|| lock.try_lock_shared().is_none());
            assert!(none && !steps.contains(&Step::Enter));
            // SAFETY: locked above.
            let (_, steps) = steps_of(|| unsafe { lock.unlock_exclusive(held) });
            assert_eq!(steps, [Step::At(Site::RwWriteRelease), Step::Exit]);
        }
    }
}
