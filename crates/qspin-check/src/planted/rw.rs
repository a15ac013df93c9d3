//! A reader-writer lock with the words of the real one, right but for one flaw; and the real one that halts, with flaws in how.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use qspin_core::admission::{Admission, Stealing};
use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::locks::queued::NativeLock;
use qspin_core::locks::queued_rw::{QueuedRwLock, RwWaiting};
use qspin_core::node::NodeId;
use qspin_core::order::Order;
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};
use qspin_core::waiting::{Halt, Headship, Waiting};

/// None: the lock is right, and the checkers must say so.
pub const NO_FLAW: u8 = 0;
/// A reader passes a waiting writer.
pub const PASSES_WRITER: u8 = 1;
/// A reader queues even in an interrupt.
pub const INTERRUPT_QUEUES: u8 = 2;
/// Readers exclude each other.
pub const EXCLUDES_READERS: u8 = 3;
/// A reader enters as soon as it has counted itself.
pub const IGNORES_WRITER: u8 = 4;

const WRITER: u32 = 1;
const WAITING: u32 = 1 << 8;
const READER: u32 = 1 << 9;

/// A reader-writer lock; `FLAW` says what is wrong.
pub struct SmallRw<W, const FLAW: u8> {
    word: W,
    queue: NativeLock<W>,
}

impl<W: AtomicWord, const FLAW: u8> SmallRw<W, FLAW> {
    fn await_no_writer<P: Platform<Word = W>>(&self, p: &P) {
        if FLAW != IGNORES_WRITER {
            // ORDERING: Acquire pairs with the Release of `release_exclusive`.
            p.wait_until(&self.word, Until::clear(WRITER), Budget::Unbounded, Acquire);
        }
    }
}

// SAFETY: not even promised: that is what the checkers are to find out.
unsafe impl<P: Platform, const FLAW: u8> RawSharedLock<P> for SmallRw<P::Word, FLAW> {
    fn new() -> Self {
        Self { word: P::Word::new(0), queue: RawLock::<P>::new() }
    }

    fn acquire_shared(&self, p: &P) {
        if FLAW == EXCLUDES_READERS {
            return RawSharedLock::<P>::acquire_exclusive(self, p);
        }
        // ORDERING: Acquire pairs with the Release of `release_exclusive`.
        let seen = self.word.fetch_add(READER, AcqRel);
        if seen & (WRITER | WAITING) == 0 {
            return;
        }
        if FLAW == PASSES_WRITER || p.in_interrupt() && FLAW != INTERRUPT_QUEUES {
            return self.await_no_writer(p);
        }
        self.word.fetch_add(READER.wrapping_neg(), Relaxed);
        self.queue.acquire(p);
        self.word.fetch_add(READER, Relaxed);
        self.await_no_writer(p);
        // SAFETY: acquired above.
        unsafe { self.queue.release(p) };
    }

    fn try_acquire_shared(&self, p: &P) -> bool {
        let free = self.word.load(Relaxed) & (WRITER | WAITING) == 0;
        if FLAW == EXCLUDES_READERS {
            return RawSharedLock::<P>::try_acquire_exclusive(self, p);
        }
        // ORDERING: as in `acquire_shared`.
        if free && self.word.fetch_add(READER, AcqRel) & (WRITER | WAITING) == 0 {
            return true;
        }
        if free {
            self.word.fetch_add(READER.wrapping_neg(), Relaxed);
        }
        false
    }

    unsafe fn release_shared(&self, p: &P) {
        if FLAW == EXCLUDES_READERS {
            // SAFETY: acquired as a writer.
            return unsafe { RawSharedLock::<P>::release_exclusive(self, p) };
        }
        // ORDERING: Release pairs with the Acquire of a writer.
        self.word.fetch_add(READER.wrapping_neg(), Release);
    }

    fn acquire_exclusive(&self, p: &P) {
        self.queue.acquire(p);
        // ORDERING: Acquire pairs with the Release of either release.
        if self.word.compare_exchange(0, WRITER, Acquire).is_err() {
            self.word.fetch_or(WAITING, Relaxed);
            loop {
                p.wait_until(&self.word, Until::is(WAITING), Budget::Unbounded, Relaxed);
                // ORDERING: as above.
                if self.word.compare_exchange(WAITING, WRITER, Acquire).is_ok() {
                    break;
                }
            }
        }
        // SAFETY: acquired above.
        unsafe { self.queue.release(p) };
    }

    fn try_acquire_exclusive(&self, _: &P) -> bool {
        // ORDERING: Acquire pairs with the Release of either release.
        self.word.compare_exchange(0, WRITER, Acquire).is_ok()
    }

    unsafe fn release_exclusive(&self, _: &P) {
        // ORDERING: Release pairs with the Acquire of readers and writers.
        self.word.fetch_add(WRITER.wrapping_neg(), Release);
    }

    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & !WAITING != 0
    }

    fn is_locked_exclusive(&self, _: &P) -> bool {
        self.word.load(Relaxed) & WRITER != 0
    }
}

/// A head halts without a look at the word that it marks.
pub const HALTS_BLINDLY: u8 = 1;
/// The release that lets a sleeping head in does not kick it.
pub const FORGETS_HEAD: u8 = 2;

/// The reader-writer lock whose waiters halt so.
pub type HaltingRw<W, const FLAW: u8> = QueuedRwLock<W, HaltsWithFlaw<FLAW>, Stealing>;

/// Halts as the real one does, but for one flaw at the head of readers and writers.
pub struct HaltsWithFlaw<const FLAW: u8>;

impl<const FLAW: u8> Waiting for HaltsWithFlaw<FLAW> {
    fn pending_budget<P: Platform>(p: &P) -> Option<Budget> {
        Halt::pending_budget(p)
    }

    fn await_turn<P: Platform>(p: &P, me: NodeId, prev: NodeId) {
        Halt::await_turn(p, me, prev);
    }

    fn await_owner<P: Platform, O: Order, A: Admission>(
        p: &P,
        word: &P::Word,
        me: NodeId,
        headship: &mut Headship,
    ) -> u32 {
        Halt::await_owner::<P, O, A>(p, word, me, headship)
    }

    fn taken<P: Platform>(p: &P, word: &P::Word, seen: u32) {
        Halt::taken(p, word, seen);
    }

    fn hand_over<P: Platform, A: Admission>(p: &P, word: &P::Word, next: NodeId) {
        Halt::hand_over::<P, A>(p, word, next);
    }

    fn release<P: Platform, A: Admission>(p: &P, word: &P::Word) {
        Halt::release::<P, A>(p, word);
    }
}

impl<const FLAW: u8> RwWaiting for HaltsWithFlaw<FLAW> {
    fn watch<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering) -> bool {
        <Halt as RwWaiting>::watch(p, word, until, order)
    }

    fn gives_way<P: Platform>(p: &P, since: &mut u64) -> bool {
        Halt::gives_way(p, since)
    }

    fn sleep<P: Platform>(p: &P, word: &P::Word, until: Until, marks: u32) {
        let never = Until { mask: 0, value: 1, equal: true };
        Halt::sleep(p, word, if FLAW == HALTS_BLINDLY { never } else { until }, marks);
    }

    fn wake<P: Platform>(p: &P, lock: usize) {
        if FLAW != FORGETS_HEAD {
            Halt::wake(p, lock);
        }
    }

    fn linger<P: Platform>(p: &P, word: &P::Word, until: Until, order: Ordering) {
        Halt::linger(p, word, until, order);
    }
}
