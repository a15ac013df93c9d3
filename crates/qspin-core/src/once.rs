//! Something that is done once: the first thread that comes does it, the others wait until it is done.
//!
//! # States
//! ```text
//!            begin                    end
//!   NEW, FAILED ───────► RUNNING ───────────► DONE
//!         ▲              │    │ a waiter        ▲
//!         │  it failed   │    ▼                 │ end
//!         └──────────────┴─ RUNNING | WAITED ───┘
//! ```
//! FAILED is as NEW, and says that it was begun before.
//!
//! # Invariants
//! * **ONCE-1** RUNNING is set by a compare-exchange from NEW or FAILED, so by one context, which clears it again.
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
/// As [`NEW`], after a context has begun it and failed.
const FAILED: u32 = 8;

/// The tag of the sleepers.
const TAG: u32 = 0;

/// Whether something was done. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct OnceWord<W> {
    word: W,
}

/// How far something is that is done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceState {
    /// It was not begun.
    New,
    /// It was begun, and failed, by a panic: the next caller begins anew. The name is that of `parking_lot`; nothing
    /// is refused because of it.
    Poisoned,
    /// A thread is doing it.
    InProgress,
    /// It is done.
    Done,
}

impl OnceState {
    /// Whether it has failed, and was not begun again.
    #[inline]
    #[must_use]
    pub const fn poisoned(self) -> bool {
        matches!(self, Self::Poisoned)
    }

    /// Whether it is done.
    #[inline]
    #[must_use]
    pub const fn done(self) -> bool {
        matches!(self, Self::Done)
    }
}

/// Ends what [`OnceWord::begin`] began: done, or, if it is dropped before (by a panic), failed.
#[derive(Debug)]
pub struct Running<'a, P: SleepPlatform> {
    p: &'a P,
    once: &'a OnceWord<P::Word>,
    after: OnceState,
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
        self.state(p).done()
    }

    /// `None` once it was done; otherwise the caller should do it, and no other context does meanwhile.
    #[cold]
    pub fn begin<'a, P: SleepPlatform<Word = W>>(&'a self, p: &'a P) -> Option<Running<'a, P>> {
        let mut budget = SpinBudget::new(p, p.address(&self.word), 0);
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
                    !until.met_by(p.wait_until(&self.word, until, Budget::Polls(pauses), Relaxed))
                });
            } else if sleepers::with_sleeper(p, |me| self.sleep(p, me)) != Some(true) {
                p.timed_backoff();
            }
        }
    }

    /// The same if that takes no waiting; `None` says nothing.
    pub fn try_begin<'a, P: SleepPlatform<Word = W>>(&'a self, p: &'a P) -> Option<Running<'a, P>> {
        // ONCE-1. ORDERING: Acquire pairs with the Release of `Running::drop`, of a context that has failed.
        let order = p.ordering(Site::OnceBegin, Acquire);
        let after = match self.word.compare_exchange(NEW, RUNNING, order) {
            Ok(_) => OnceState::New,
            Err(FAILED) => {
                self.word.compare_exchange(FAILED, RUNNING, order).ok()?;
                OnceState::Poisoned
            }
            Err(_) => return None,
        };
        Some(Running { p, once: self, after, ends_as: FAILED })
    }

    /// As [`try_begin`](Self::try_begin), for a context that has begun already, and has forgotten its
    /// [`Running`].
    ///
    /// # Safety
    /// This context has begun, and its [`Running`] was not dropped.
    pub unsafe fn go_on<'a, P: SleepPlatform<Word = W>>(&'a self, p: &'a P) -> Running<'a, P> {
        Running { p, once: self, after: OnceState::New, ends_as: FAILED }
    }

    /// How far it is at this moment. Acquire ordering, if it is done or has failed.
    #[inline]
    pub fn state<P: SleepPlatform<Word = W>>(&self, p: &P) -> OnceState {
        // ONCE-2. ORDERING: Acquire pairs with the Release of `Running::drop`.
        match self.word.load(p.ordering(Site::OnceLook, Acquire)) {
            NEW => OnceState::New,
            FAILED => OnceState::Poisoned,
            DONE => OnceState::Done,
            _ => OnceState::InProgress,
        }
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
    /// What it was before this context began: [`OnceState::New`] or [`OnceState::Poisoned`].
    #[must_use]
    pub fn after(&self) -> OnceState {
        self.after
    }

    /// Marks it as done.
    pub fn done(mut self) {
        self.ends_as = DONE;
    }
}

impl<P: SleepPlatform> Drop for Running<'_, P> {
    fn drop(&mut self) {
        let on = self.p.address(&self.once.word);
        // ONCE-2. ORDERING: Release pairs with the Acquire of `state` and of `try_begin`.
        let before = self.once.word.swap(self.ends_as, self.p.ordering(Site::OnceEnd, Release));
        if before & WAITED != 0 {
            // Only static memory is touched: what the word belongs to may be gone by now.
            sleepers::wake(self.p, on, u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;
    use crate::platform::Platform;
    use crate::scripted::Scripted;

    #[test]
    fn its_end_wakes_all_waiters_and_after_a_failure_the_next_begins_anew() {
        for fails in [false, true] {
            let once = &OnceWord::<AtomicU32>::new();
            let p = Scripted::new(1);
            let running = once.begin(&p).unwrap();
            assert_eq!(running.after(), OnceState::New);
            core::mem::forget(running);
            p.at_halt(0, move |p| {
                assert_eq!(once.state(p), OnceState::InProgress);
                for cpu in [2, 3] {
                    p.sleeps(cpu, 0, p.address(&once.word), TAG, End::Last);
                }
                // SAFETY: begun above, and forgotten.
                let running = unsafe { once.go_on(p) };
                if fails {
                    drop(running)
                } else {
                    running.done()
                }
                assert_eq!(p.kicked(), [1, 2, 3]);
            });
            let after = p.on_cpu(1, |_| once.begin(&p).map(|running| running.after()));
            assert_eq!(after, fails.then_some(OnceState::Poisoned));
            assert_eq!(once.state(&p).done(), !fails);
        }
    }
}
