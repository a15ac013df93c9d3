//! Something that is done once: the first thread that comes does it, the others wait until it is done.
//!
//! # States
//! ```text
//!            begin                    end
//!   NEW ───────────────► RUNNING ───────────► DONE
//!    ▲                   │    │ a waiter        ▲
//!    │       it failed   │    ▼                 │ end
//!    └───────────────────┴─ RUNNING | WAITED ───┘
//! ```
//!
//! # Invariants
//! * **ONCE-1** RUNNING is set by a compare-exchange from NEW, so by one context, which clears it again.
//! * **ONCE-2** What is done before DONE is set happens before everything that follows a load that has seen DONE.
//! * **ONCE-3** A waiter joins the sleepers, and then sets WAITED by a compare-exchange from a word with RUNNING:
//!   the step that clears RUNNING sees WAITED and wakes all waiters, or comes before, and no waiter sleeps.
//!
//! # Limits
//! A thread that begins again while it is still running waits for itself.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::node::NodeId;
use crate::platform::{AtomicWord, Budget, ConstWord, Until};
use crate::site::Site;
use crate::sleepers::{self, End, NEVER, SleepPlatform, SpinBudget};

const NEW: u32 = 0;
const RUNNING: u32 = 1;
/// A waiter sleeps until it is done.
const WAITED: u32 = 2;
const DONE: u32 = 4;

/// The tag of the sleepers.
const TAG: u32 = 0;

/// Whether something was done. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct OnceWord<W> {
    word: W,
}

/// Ends what [`OnceWord::begin`] began: done, or, if it is dropped before (by a panic), as if never begun.
#[derive(Debug)]
pub struct Running<'a, P: SleepPlatform> {
    p: &'a P,
    once: &'a OnceWord<P::Word>,
    ends_as: u32,
}

impl<W: ConstWord> OnceWord<W> {
    /// Not done.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NEW: Self = Self { word: W::ZERO };
}

impl<W: AtomicWord> OnceWord<W> {
    /// Not done.
    #[must_use]
    pub fn new() -> Self {
        Self { word: W::new(NEW) }
    }

    /// Whether it was done. Acquire ordering, if it was.
    #[inline]
    pub fn is_done<P: SleepPlatform<Word = W>>(&self, p: &P) -> bool {
        // ONCE-2. ORDERING: Acquire pairs with the Release of `Running::drop`.
        self.word.load(p.ordering(Site::OnceLook, Acquire)) == DONE
    }

    /// `None` once it was done; otherwise the caller should do it, and no other context does meanwhile.
    #[cold]
    pub fn begin<'a, P: SleepPlatform<Word = W>>(&'a self, p: &'a P) -> Option<Running<'a, P>> {
        let mut budget = SpinBudget::new(p, p.address(&self.word), false);
        budget.beside_others(p);
        loop {
            if self.is_done(p) {
                return None;
            }
            if let Some(running) = self.try_begin(p) {
                return Some(running);
            }
            if !budget.is_spent() {
                budget.spend(p, |pauses| {
                    let until = Until::clear(RUNNING);
                    !until.met_by(p.wait_until(&self.word, until, Budget::Looks(pauses), Relaxed))
                });
            } else if sleepers::with_sleeper(p, |me| self.sleep(p, me)) != Some(true) {
                p.doze();
            }
        }
    }

    /// The same if that takes no waiting; `None` says nothing.
    pub fn try_begin<'a, P: SleepPlatform<Word = W>>(&'a self, p: &'a P) -> Option<Running<'a, P>> {
        // ONCE-1. ORDERING: Acquire pairs with the Release of `Running::drop`, of a context that has failed.
        let order = p.ordering(Site::OnceBegin, Acquire);
        self.word.compare_exchange(NEW, RUNNING, order).ok()?;
        Some(Running { p, once: self, ends_as: NEW })
    }

    /// As [`try_begin`](Self::try_begin), for a context that has begun already, and has forgotten its
    /// [`Running`].
    ///
    /// # Safety
    /// This context has begun, and its [`Running`] was not dropped.
    pub unsafe fn go_on<'a, P: SleepPlatform<Word = W>>(&'a self, p: &'a P) -> Running<'a, P> {
        Running { p, once: self, ends_as: NEW }
    }

    /// Whether a context is doing it at this moment.
    #[inline]
    pub fn is_running<P: SleepPlatform<Word = W>>(&self, _: &P) -> bool {
        self.word.load(Relaxed) & RUNNING != 0
    }

    /// ONCE-3. Returns false if the waiter could not join the queue.
    fn sleep<P: SleepPlatform<Word = W>>(&self, p: &P, me: NodeId) -> bool {
        if !sleepers::enqueue(p, me, p.address(&self.word), TAG, End::Last) {
            return false;
        }
        let mut seen = self.word.load(Relaxed);
        while seen & RUNNING != 0 {
            match self.word.compare_exchange(seen, seen | WAITED, Relaxed) {
                Ok(_) => {
                    // The waiter checks again, whatever has ended the wait.
                    let _ = sleepers::await_wake(p, me, NEVER);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        let _ = sleepers::cancel(p, me);
        true
    }
}

impl<W: AtomicWord> Default for OnceWord<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: SleepPlatform> Running<'_, P> {
    /// Marks it as done.
    pub fn done(mut self) {
        self.ends_as = DONE;
    }
}

impl<P: SleepPlatform> Drop for Running<'_, P> {
    fn drop(&mut self) {
        let on = self.p.address(&self.once.word);
        // ONCE-2. ORDERING: Release pairs with the Acquire of `is_done` and of `try_begin`.
        let before = self.once.word.swap(self.ends_as, self.p.ordering(Site::OnceEnd, Release));
        if before & WAITED != 0 {
            // Only static memory is touched: what the word belongs to may be gone by now.
            sleepers::wake(self.p, on, u32::MAX);
        }
    }
}
