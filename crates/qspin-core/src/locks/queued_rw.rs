//! The queued reader-writer lock: readers and writers fair to each other, through one queue.
//!
//! # Problem
//! A counter of readers beside a writer's flag lets a stream of readers starve every writer, or the other way
//! round. Here a reader or writer that is not admitted at once queues on a spinlock, and the head of that queue,
//! which has acquired the spinlock, waits for the word.
//!
//! # Source
//! Linux, `kernel/locking/qrwlock.c` (Waiman Long), brought to powerpc by document 004.
//!
//! # States
//! ```text
//!  31               9     8       7      3   2       1        0
//! ┌──────────────────┬─────────┬──────────┬──────┬────────┬────────┐
//! │ readers          │ waiting │ reserved │ open │ asleep │ writer │
//! └──────────────────┴─────────┴──────────┴──────┴────────┴────────┘
//!  (0,0,0) free        (n,0,0) n readers        (0,0,W) a writer
//!  (n,1,0) n readers hold, a writer waits at the head of the queue: new readers queue
//!  (n,*,W) a writer holds; the n readers have counted themselves and wait or back out
//! ```
//! *asleep* and *open* are for heads that halt ([`super::paravirt_rw`]). The highest bit of *readers* means
//! crowded: a new reader that sees it backs out.
//!
//! # Invariants
//! * **QUEUEDRW-1** *writer* is set by a compare-exchange from a word without readers and writer, and cleared
//!   only by that writer.
//! * **QUEUEDRW-2** A reader holds the lock once it has counted itself and then seen *writer* clear.
//! * **QUEUEDRW-3** *waiting*, *asleep* and *open* are set and cleared only by the head of the queue; *waiting*
//!   by a head that writes, and cleared in the step that sets *writer*.
//! * **QUEUEDRW-4** A reader counts itself for good only where it found the count below `CROWDED`, so the count
//!   wraps only if 2^22 contexts were on their way in or out at one moment.
//! * **QUEUEDRW-5** A head that halts sets *asleep* by a compare-exchange from a word that does not admit it. The
//!   release that admits it comes after that and sees *asleep*, or before, and the compare-exchange fails. A
//!   reader that had counted itself in vain and backs out counts as such a release.
//! * **QUEUEDRW-6** The releasing thread does not touch the lock after the step that releases it: it computes the
//!   address before.
//!
//! # Limits
//! Eight bytes; at most 2^22 readers inside, further ones wait until there is room. A reader in an interrupt may
//! pass a waiting writer (it may have interrupted the very reader that the writer waits for), so an endless storm
//! of such readers can starve it. Not recursive otherwise: a reader that enters twice deadlocks if a writer comes
//! to wait in between.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use crate::admission::{Admission, Queued};
use crate::counting;
use crate::events::Event;
use crate::lock::{ConstLock, RawLock, RawSharedLock};
use crate::locks::queued::QueuedLock;
use crate::order::Fifo;
use crate::platform::{AtomicWord, Budget, ConstWord, Platform, Until};
use crate::site::Site;
use crate::waiting::{Spin, Waiting};

const FREE: u32 = 0;
const WRITER: u32 = 1;
/// The head sleeps, or is about to.
const ASLEEP: u32 = 2;
/// While the head sleeps, newcomers may barge past it into a free lock.
const OPEN: u32 = 4;
const WAITING: u32 = 1 << 8;
const READER: u32 = 1 << 9;
/// Readers inside, and readers that have counted themselves on the way in or out.
const READERS: u32 = !(READER - 1);
/// Half of the readers that the word can count: from here on newcomers wait outside. Guards that
/// are forgotten count for ever, and a count that wrapped would let a writer in beside them.
const CROWDED: u32 = 1 << 31;
/// The bits that keep a new reader out.
const BARRED: u32 = CROWDED | WRITER | WAITING;
/// A free lock whose head, a writer, sleeps and lets newcomers barge.
const PASSABLE: u32 = WAITING | ASLEEP | OPEN;

/// How the head of the queue waits for the word; no other waiter does.
pub trait RwWaiting: Waiting {
    /// Watches `word` until `until` is met, and loads it with `order` then. Returns `false` where the head should
    /// sleep first.
    fn watch<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering) -> bool;

    /// Whether newcomers may barge past the head while it sleeps now; `since` is when it first slept, and 0
    /// before.
    fn gives_way<P: Platform>(p: &P, since: &mut u64) -> bool;

    /// Sets `bits` and sleeps until `until` may be met, unless it is met already; the bits are clear
    /// then.
    fn sleep<P: Platform>(p: &P, word: &P::Word, until: Until, bits: u32);

    /// After a release of the lock known as `lock` that may admit its sleeping head.
    fn wake<P: Platform>(p: &P, lock: usize);

    /// Watches `word` for a change for which no waiter is woken.
    fn linger<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering);
}

impl RwWaiting for Spin {
    #[inline]
    fn watch<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering) -> bool {
        p.wait_until(word, until, Budget::Unbounded, order);
        true
    }

    #[inline]
    fn gives_way<P: Platform>(_: &P, _: &mut u64) -> bool {
        false
    }

    #[inline]
    fn sleep<P: Platform>(_: &P, _: &P::Word, _: Until, _: u32) {}

    #[inline]
    fn wake<P: Platform>(_: &P, _: usize) {}

    #[inline]
    fn linger<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering) {
        p.wait_until(word, until, Budget::Unbounded, order);
    }
}

/// A queued reader-writer lock over two of the axes: how waiters wait, in the queue and at its head, and whether
/// newcomers barge past them. See the [module](self) documentation.
#[derive(Debug)]
#[repr(C)]
pub struct QueuedRwLock<W, H = Spin, A = Queued> {
    word: W,
    queue: QueuedLock<W, H, Fifo, A>,
}

/// Whether a reader that has counted itself in `seen` holds the lock.
#[inline]
const fn admits_reader(seen: u32) -> bool {
    seen & BARRED == 0 || seen == PASSABLE
}

/// Whether a newcomer may write.
#[inline]
const fn admits_writer(seen: u32) -> bool {
    seen & (READERS | WRITER) == 0 && (seen & WAITING == 0 || seen == PASSABLE)
}

impl<W: AtomicWord, H: RwWaiting, A: Admission> QueuedRwLock<W, H, A> {
    #[inline]
    fn take_exclusive<P: Platform<Word = W>>(&self, p: &P, seen: u32) -> bool {
        // QUEUEDRW-1. ORDERING: Acquire pairs with the Release of the last writer or reader.
        let order = p.ordering(Site::RwWriteTry, Acquire);
        let taken =
            admits_writer(seen) && self.word.compare_exchange(seen, seen | WRITER, order).is_ok();
        if taken && seen & ASLEEP != 0 {
            counting::count(p, Event::PvLockStealing);
        }
        taken
    }

    /// Releases: subtracts `gone` from the word.
    #[inline]
    fn leave<P: Platform<Word = W>>(&self, p: &P, gone: u32, order: Ordering) {
        let lock = p.address(&self.word);
        let before = self.word.fetch_add(gone.wrapping_neg(), order);
        // QUEUEDRW-5.
        if before & ASLEEP != 0 && lets_in(before, before.wrapping_sub(gone)) {
            H::wake(p, lock);
        }
    }

    #[inline]
    fn await_no_writer<P: Platform<Word = W>>(&self, p: &P) {
        // QUEUEDRW-2. ORDERING: Acquire pairs with the Release of the writer (`RwWriteRelease`).
        let order = p.ordering(Site::RwReadTurn, Acquire);
        H::linger(p, &self.word, Until::clear(WRITER), order);
    }

    /// A reader that has counted itself found a writer, owning or waiting, or too many readers.
    #[cold]
    #[inline(never)]
    fn acquire_shared_slow<P: Platform<Word = W>>(&self, p: &P, seen: u32) {
        if p.in_interrupt() {
            // It passes a writer that only waits: that writer may wait for the code that this context interrupts.
            self.make_room(p, seen);
            self.await_no_writer(p);
            return;
        }
        self.leave(p, READER, Relaxed);
        if self.polls::<P>(p, |lock| lock.try_acquire_shared(p)) {
            return;
        }
        self.queue.acquire(p);
        let mut since = 0;
        let mut counted = false;
        loop {
            if !counted {
                // At the head of the queue no writer is waiting (QUEUEDRW-3); one may still hold the lock.
                let seen = self.word.fetch_add(READER, Relaxed);
                self.make_room(p, seen);
            }
            // QUEUEDRW-2. ORDERING: as in `await_no_writer`.
            let order = p.ordering(Site::RwReadTurn, Acquire);
            if H::watch(p, &self.word, Until::clear(WRITER), order) {
                break;
            }
            counted = !H::gives_way(p, &mut since);
            if !counted {
                self.leave(p, READER, Relaxed);
            }
            let bits = if counted { ASLEEP } else { ASLEEP | OPEN };
            H::sleep(p, &self.word, Until::clear(WRITER), bits);
        }
        // SAFETY: acquired above.
        unsafe { self.queue.release(p) };
    }

    /// Polls for a moment whether the lock can be acquired without the queue.
    #[inline]
    fn polls<P: Platform<Word = W>>(&self, p: &P, take: impl Fn(&Self) -> bool) -> bool {
        for _ in 0..A::polls(p) {
            if take(self) {
                return true;
            }
            p.relax(1);
        }
        false
    }

    /// QUEUEDRW-4: while there are too many readers, backs out, waits for room, and counts itself again.
    #[inline]
    fn make_room<P: Platform<Word = W>>(&self, p: &P, seen: u32) {
        let mut seen = seen;
        while seen & CROWDED != 0 {
            self.leave(p, READER, Relaxed);
            H::linger(p, &self.word, Until::clear(CROWDED), Relaxed);
            seen = self.word.fetch_add(READER, Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn acquire_exclusive_slow<P: Platform<Word = W>>(&self, p: &P) {
        if self.polls::<P>(p, |lock| lock.try_acquire_exclusive(p)) {
            return;
        }
        self.queue.acquire(p);
        if !self.take_exclusive(p, self.word.load(Relaxed)) {
            self.await_exclusive(p);
        }
        // SAFETY: acquired above.
        unsafe { self.queue.release(p) };
    }

    fn await_exclusive<P: Platform<Word = W>>(&self, p: &P) {
        // From here on new readers queue behind this writer.
        self.word.fetch_or(WAITING, Relaxed);
        let mut since = 0;
        loop {
            while H::watch(p, &self.word, Until::is(WAITING), Relaxed) {
                // QUEUEDRW-1, QUEUEDRW-3. ORDERING: Acquire pairs with the Release of the last reader or writer.
                let order = p.ordering(Site::RwWriteTake, Acquire);
                // Fails if a reader counted itself in that moment, even if it then backs out.
                if self.word.compare_exchange(WAITING, WRITER, order).is_ok() {
                    return;
                }
            }
            let bits = if H::gives_way(p, &mut since) { ASLEEP | OPEN } else { ASLEEP };
            H::sleep(p, &self.word, Until::clear(WRITER | READERS), bits);
        }
    }
}

impl<W: AtomicWord, H, A> QueuedRwLock<W, H, A> {
    /// Forgets all waiters; owners stay. For a child of `fork` with one thread: the waiters are not in it.
    ///
    /// A reader that was admitted as the lock was copied, and did not run yet, is an owner.
    pub fn forget_waiters(&self) {
        let seen = self.word.load(Relaxed);
        // QUEUEDRW-2: beside a writer no reader owns the lock.
        let owners = if seen & WRITER != 0 { WRITER } else { seen & READERS };
        self.word.store(owners, Relaxed);
        // Its owner is the head, which waits.
        self.queue.forget();
    }
}

/// Whether a release, which replaced `before` by `now`, may admit the head: only a head that writes announces
/// itself.
#[inline]
const fn lets_in(before: u32, now: u32) -> bool {
    if now & WAITING != 0 { now & (WRITER | READERS) == 0 } else { before & !now & WRITER != 0 }
}

// SAFETY: QUEUEDRW-1 and QUEUEDRW-2 exclude: a reader counts itself before it checks for a writer, a writer
// acquires only from a word without readers, both by read-modify-writes of one word.
unsafe impl<P: Platform, H: RwWaiting, A: Admission> RawSharedLock<P>
    for QueuedRwLock<P::Word, H, A>
{
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(FREE), queue: RawLock::<P>::new() }
    }

    #[inline]
    fn acquire_shared(&self, p: &P) {
        // ORDERING: Acquire pairs with the Release of the last writer (`RwWriteRelease`).
        let seen = self.word.fetch_add(READER, p.ordering(Site::RwReadTry, Acquire));
        if !admits_reader(seen) {
            self.acquire_shared_slow(p, seen);
        } else if seen & ASLEEP != 0 {
            counting::count(p, Event::PvLockStealing);
        }
    }

    #[inline]
    fn try_acquire_shared(&self, p: &P) -> bool {
        if !admits_reader(self.word.load(Relaxed)) {
            return false;
        }
        // ORDERING: as in `acquire_shared`.
        let seen = self.word.fetch_add(READER, p.ordering(Site::RwReadTry, Acquire));
        if admits_reader(seen) {
            if seen & ASLEEP != 0 {
                counting::count(p, Event::PvLockStealing);
            }
            return true;
        }
        self.leave(p, READER, Relaxed);
        false
    }

    #[inline]
    unsafe fn release_shared(&self, p: &P) {
        // ORDERING: Release pairs with the Acquire of the next writer (`RwWriteTry`,
        // `RwWriteTake`); other readers' steps continue its release sequence.
        self.leave(p, READER, p.ordering(Site::RwReadRelease, Release));
    }

    #[inline]
    fn acquire_exclusive(&self, p: &P) {
        if !self.take_exclusive(p, FREE) {
            self.acquire_exclusive_slow(p);
        }
    }

    #[inline]
    fn try_acquire_exclusive(&self, p: &P) -> bool {
        self.take_exclusive(p, self.word.load(Relaxed))
    }

    #[inline]
    unsafe fn release_exclusive(&self, p: &P) {
        // Readers may have counted themselves meanwhile: subtract, do not store.
        // ORDERING: Release pairs with the Acquire of the next writer or readers (`RwReadTry`,
        // `RwReadTurn`, `RwWriteTry`, `RwWriteTake`).
        self.leave(p, WRITER, p.ordering(Site::RwWriteRelease, Release));
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & (WRITER | READERS) != 0
    }

    #[inline]
    fn is_locked_exclusive(&self, _: &P) -> bool {
        self.word.load(Relaxed) & WRITER != 0
    }
}

impl<W: ConstWord, H, A> ConstLock for QueuedRwLock<W, H, A> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO, queue: QueuedLock::UNLOCKED };
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests;
