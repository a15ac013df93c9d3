//! The queued reader-writer lock: readers and writers fair to each other, through one queue.
//!
//! # Problem
//! A counter of readers beside a writer's flag lets a stream of readers starve every writer, or
//! the other way round. Here whoever does not get in at once queues on a spinlock, readers and
//! writers alike, and the one at its head waits for the word.
//!
//! # Source
//! Linux, `kernel/locking/qrwlock.c` (Waiman Long), brought to powerpc by document 004.
//!
//! # States
//! ```text
//!  31               9     8       7         0
//! ┌──────────────────┬─────────┬────────────┐
//! │ readers          │ waiting │ writer     │
//! └──────────────────┴─────────┴────────────┘
//!  (0,0,0) free        (n,0,0) n readers        (0,0,W) a writer
//!  (n,1,0) n readers hold, a writer waits at the head of the queue: new readers queue
//!  (n,*,W) a writer holds; the n readers have counted themselves and wait or go away again
//! ```
//! The highest bit of *readers* means crowded: whoever sees it on coming goes away again.
//!
//! # Invariants
//! * **QUEUEDRW-1** *writer* is set by a compare-exchange from a word without readers and writer, and
//!   cleared only by that writer.
//! * **QUEUEDRW-2** A reader is inside once it has counted itself and then seen *writer* clear.
//! * **QUEUEDRW-3** *waiting* is set and cleared only by the writer that holds the queue; cleared in the
//!   step that sets *writer*.
//! * **QUEUEDRW-4** A reader counts itself for good only where it found the count below `CROWDED`, so
//!   the count wraps only if 2^22 contexts were on their way in or out at one moment.
//!
//! # Limits
//! Eight bytes; at most 2^22 readers inside, further ones wait until there is room. A reader in an interrupt may pass a
//! waiting writer (it may have interrupted the very reader that the writer waits for), so an endless storm of
//! such readers can starve it. Not recursive otherwise: a reader that enters twice deadlocks if
//! a writer comes to wait in between.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawLock, RawSharedLock};
use crate::locks::queued::NativeLock;
use crate::platform::{AtomicWord, Budget, ConstWord, Platform, Until};
use crate::site::Site;

const WRITER: u32 = 0xff;
const WAITING: u32 = 1 << 8;
const READER: u32 = 1 << 9;
/// Half of the readers that the word can count: from here on newcomers wait outside. Guards that
/// are forgotten count for ever, and a count that wrapped would let a writer in beside them.
const CROWDED: u32 = 1 << 31;
const FREE: u32 = 0;

/// A queued reader-writer lock; `Q` is the lock on which readers and writers queue.
#[derive(Debug)]
#[repr(C)]
pub struct QueuedRwLock<W, Q = NativeLock<W>> {
    word: W,
    queue: Q,
}

impl<W: AtomicWord, Q> QueuedRwLock<W, Q> {
    #[inline]
    fn take_exclusive<P: Platform<Word = W>>(&self, p: &P) -> bool {
        // QUEUEDRW-1. ORDERING: Acquire pairs with the Release of the last writer or reader.
        let order = p.ordering(Site::RwWriteTry, Acquire);
        self.word.compare_exchange(FREE, WRITER, order).is_ok()
    }

    #[inline]
    fn await_no_writer<P: Platform<Word = W>>(&self, p: &P) {
        // QUEUEDRW-2. ORDERING: Acquire pairs with the Release of the writer (`RwWriteRelease`).
        let order = p.ordering(Site::RwReadTurn, Acquire);
        p.wait_until(&self.word, Until::clear(WRITER), Budget::Unbounded, order);
    }

    /// A reader that has counted itself found a writer, holding or waiting, or too many readers.
    #[cold]
    #[inline(never)]
    fn acquire_shared_slow<P: Platform<Word = W>>(&self, p: &P, seen: u32)
    where
        Q: RawLock<P>,
    {
        let mut seen = seen;
        if p.in_interrupt() {
            // It passes a writer that only waits: that one may wait for whom this interrupts.
            while seen & CROWDED != 0 {
                seen = self.count_again(p);
            }
            self.await_no_writer(p);
            return;
        }
        self.word.fetch_add(READER.wrapping_neg(), Relaxed);
        self.queue.acquire(p);
        // At the head of the queue no writer is waiting (QUEUEDRW-3), only one may still hold.
        seen = self.word.fetch_add(READER, Relaxed);
        while seen & CROWDED != 0 {
            seen = self.count_again(p);
        }
        self.await_no_writer(p);
        // SAFETY: acquired above.
        unsafe { self.queue.release(p) };
    }

    /// QUEUEDRW-4: goes away, waits for room, and counts itself again.
    #[cold]
    fn count_again<P: Platform<Word = W>>(&self, p: &P) -> u32 {
        self.word.fetch_add(READER.wrapping_neg(), Relaxed);
        p.wait_until(&self.word, Until::clear(CROWDED), Budget::Unbounded, Relaxed);
        self.word.fetch_add(READER, Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn acquire_exclusive_slow<P: Platform<Word = W>>(&self, p: &P)
    where
        Q: RawLock<P>,
    {
        self.queue.acquire(p);
        if self.word.load(Relaxed) != FREE || !self.take_exclusive(p) {
            // From here on new readers queue behind this writer.
            self.word.fetch_or(WAITING, Relaxed);
            loop {
                p.wait_until(&self.word, Until::is(WAITING), Budget::Unbounded, Relaxed);
                // QUEUEDRW-1, QUEUEDRW-3. ORDERING: Acquire pairs with the Release of the last reader or writer.
                let order = p.ordering(Site::RwWriteTake, Acquire);
                // Fails if a reader counted itself in that moment, if only to go away again.
                if self.word.compare_exchange(WAITING, WRITER, order).is_ok() {
                    break;
                }
            }
        }
        // SAFETY: acquired above.
        unsafe { self.queue.release(p) };
    }
}

// SAFETY: QUEUEDRW-1 and QUEUEDRW-2 exclude: a reader counts itself before it looks for a writer, a writer
// takes only a word without readers, both by read-modify-writes of one word.
unsafe impl<P: Platform, Q: RawLock<P>> RawSharedLock<P> for QueuedRwLock<P::Word, Q> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(FREE), queue: Q::new() }
    }

    #[inline]
    fn acquire_shared(&self, p: &P) {
        // ORDERING: Acquire pairs with the Release of the last writer (`RwWriteRelease`).
        let seen = self.word.fetch_add(READER, p.ordering(Site::RwReadTry, Acquire));
        if seen & (CROWDED | WRITER | WAITING) != 0 {
            self.acquire_shared_slow(p, seen);
        }
    }

    #[inline]
    fn try_acquire_shared(&self, p: &P) -> bool {
        if self.word.load(Relaxed) & (CROWDED | WRITER | WAITING) != 0 {
            return false;
        }
        // ORDERING: as in `acquire_shared`.
        let seen = self.word.fetch_add(READER, p.ordering(Site::RwReadTry, Acquire));
        if seen & (CROWDED | WRITER | WAITING) == 0 {
            return true;
        }
        self.word.fetch_add(READER.wrapping_neg(), Relaxed);
        false
    }

    #[inline]
    unsafe fn release_shared(&self, p: &P) {
        // ORDERING: Release pairs with the Acquire of the next writer (`RwWriteTry`,
        // `RwWriteTake`); other readers' steps continue its release sequence.
        self.word.fetch_add(READER.wrapping_neg(), p.ordering(Site::RwReadRelease, Release));
    }

    #[inline]
    fn acquire_exclusive(&self, p: &P) {
        if !self.take_exclusive(p) {
            self.acquire_exclusive_slow(p);
        }
    }

    #[inline]
    fn try_acquire_exclusive(&self, p: &P) -> bool {
        self.word.load(Relaxed) == FREE && self.take_exclusive(p)
    }

    #[inline]
    unsafe fn release_exclusive(&self, p: &P) {
        // Readers may have counted themselves meanwhile: subtract, do not store.
        // ORDERING: Release pairs with the Acquire of the next writer or readers (`RwReadTry`,
        // `RwReadTurn`, `RwWriteTry`, `RwWriteTake`).
        self.word.fetch_add(WRITER.wrapping_neg(), p.ordering(Site::RwWriteRelease, Release));
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & !WAITING != 0
    }

    #[inline]
    fn is_locked_exclusive(&self, _: &P) -> bool {
        self.word.load(Relaxed) & WRITER != 0
    }
}

impl<W: ConstWord, Q: ConstLock> ConstLock for QueuedRwLock<W, Q> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO, queue: Q::UNLOCKED };
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;
    use crate::events::NoEvents;
    use crate::node::{Node, NodeId};
    use crate::platform::CpuId;

    /// One context that never has to wait.
    struct Alone;

    impl Platform for Alone {
        type Word = AtomicU32;
        type Address = core::sync::atomic::AtomicUsize;
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
        fn wait_until(
            &self,
            _: &AtomicU32,
            _: Until,
            _: Budget,
            _: core::sync::atomic::Ordering,
        ) -> u32 {
            unreachable!("nobody else could end the wait")
        }
        fn relax(&self, _: u32) {}
        fn fence(&self, _: core::sync::atomic::Ordering) {}
    }

    #[test]
    fn readers_beyond_the_limit_stay_outside_and_never_let_a_writer_in() {
        let lock: QueuedRwLock<AtomicU32> = RawSharedLock::<Alone>::new();
        // As many forgotten guards as may be inside.
        lock.word.store(CROWDED - READER, Relaxed);
        assert!(lock.try_acquire_shared(&Alone), "the last one that fits");
        for _ in 0..1000 {
            assert!(!lock.try_acquire_shared(&Alone));
            assert!(!lock.try_acquire_exclusive(&Alone));
        }
        assert_eq!(lock.word.load(Relaxed), CROWDED);
        // SAFETY: one of those inside leaves.
        unsafe { RawSharedLock::<Alone>::release_shared(&lock, &Alone) };
        assert!(lock.try_acquire_shared(&Alone));
    }
}
