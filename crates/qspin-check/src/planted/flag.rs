//! A test-and-set lock, right but for one flaw.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::lock::RawLock;
use qspin_core::platform::{AtomicWord, Budget, Platform, Until};

/// None: the lock is right, and the checkers must say so.
pub const NO_FLAW: u8 = 0;
/// It is tested, then set, in two steps.
pub const TWO_STEPS: u8 = 1;
/// An attempt waits.
pub const TRY_WAITS: u8 = 2;
/// `is_locked` always says no.
pub const DENIES: u8 = 3;
/// A waiter keeps writing what it has seen, and never acquires.
pub const NEVER_ENDS: u8 = 4;

/// A test-and-set lock; `FLAW` says what is wrong.
pub struct SmallFlag<W, const FLAW: u8> {
    word: W,
}

// SAFETY: not even promised: that is what the checkers are to find out.
unsafe impl<P: Platform, const FLAW: u8> RawLock<P> for SmallFlag<P::Word, FLAW> {
    fn new() -> Self {
        Self { word: P::Word::new(0) }
    }

    fn acquire(&self, p: &P) {
        loop {
            if FLAW == TWO_STEPS {
                // ORDERING: Acquire pairs with the Release of `release`.
                p.wait_until(&self.word, Until::is(0), Budget::Unbounded, Acquire);
                self.word.store(1, Relaxed);
                return;
            }
            // ORDERING: Acquire pairs with the Release of `release`.
            if self.word.compare_exchange(0, 1, Acquire).is_ok() {
                return;
            }
            if FLAW == NEVER_ENDS {
                loop {
                    self.word.fetch_or(1, Relaxed);
                }
            }
            p.wait_until(&self.word, Until::is(0), Budget::Unbounded, Relaxed);
        }
    }

    fn try_acquire(&self, p: &P) -> bool {
        if FLAW == TRY_WAITS {
            self.acquire(p);
            return true;
        }
        // ORDERING: Acquire pairs with the Release of `release`.
        self.word.compare_exchange(0, 1, Acquire).is_ok()
    }

    unsafe fn release(&self, _: &P) {
        // ORDERING: Release pairs with each Acquire above.
        self.word.store(0, Release);
    }

    fn is_locked(&self, _: &P) -> bool {
        FLAW != DENIES && self.word.load(Relaxed) != 0
    }
}
