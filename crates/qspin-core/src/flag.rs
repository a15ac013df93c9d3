//! A lock that is one flag: the body of `tas`, `backoff`, `yield` and `simple`.
//!
//! # Problem
//! The locks without a queue are one algorithm: a thread that finds the word free acquires it by a
//! compare-exchange, and the owner releases it by a store. They differ in what a waiter does when it misses, and
//! in what the word says meanwhile: their [`Manner`]s, a file each.
//!
//! # States
//! ```text
//!  free (0) ──acquire──► held (the owner's token) ──release──► free
//! ```
//!
//! # Invariants
//! * **FLAG-1** The word is 0 exactly while the lock is free: only a compare-exchange from 0 sets it, to a
//!   nonzero token, and only the owner clears it.
//!
//! # Limits
//! Unfair: nothing bounds a wait.

use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, Guard, RawLock};
use crate::platform::{AtomicWord, ConstWord, Platform};
use crate::site::Site;

/// The word of a free lock.
pub const FREE: u32 = 0;

/// How the waiters of a [`FlagLock`] wait, and what its word says. A value of it is one wait.
pub trait Manner: Sized {
    /// Where the lock is acquired.
    const TAKE: Site;
    /// Where it is released.
    const RELEASE: Site;
    /// Whether another thread may release it.
    type Guard: Guard;

    /// What the word says while this context holds the lock.
    #[inline]
    fn token<P: Platform>(p: &P) -> NonZeroU32 {
        let _ = p;
        NonZeroU32::MIN
    }

    /// A wait begins: the lock was not free at once.
    fn begin<P: Platform>(p: &P) -> Self;

    /// Polls the lock's word, for as long as that is worthwhile; returns what was seen last. Changes nothing,
    /// orders nothing.
    fn poll<P: Platform>(&self, p: &P, word: &P::Word) -> u32;

    /// The lock was `seen` taken; or free, and another context was faster. What to do before the next poll.
    fn missed<P: Platform>(&mut self, p: &P, seen: u32);
}

/// A flag whose waiters wait in the manner `M`. See the [module](self) documentation.
#[repr(transparent)]
pub struct FlagLock<W, M> {
    pub(crate) word: W,
    manner: PhantomData<fn() -> M>,
}

impl<W: fmt::Debug, M> fmt::Debug for FlagLock<W, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlagLock").field("word", &self.word).finish()
    }
}

impl<W: AtomicWord, M: Manner> FlagLock<W, M> {
    #[inline]
    fn take<P: Platform<Word = W>>(&self, p: &P) -> bool {
        // FLAG-1. ORDERING: Acquire pairs with the Release of `release`.
        let order = p.ordering(M::TAKE, Acquire);
        self.word.compare_exchange(FREE, M::token(p).get(), order).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow<P: Platform<Word = W>>(&self, p: &P) {
        let mut manner = M::begin(p);
        loop {
            let seen = manner.poll(p, &self.word);
            if seen == FREE && self.take(p) {
                return;
            }
            manner.missed(p, seen);
        }
    }
}

// SAFETY: FLAG-1 gives exclusion; `M::TAKE` acquires what `M::RELEASE` releases.
unsafe impl<P: Platform, M: Manner> RawLock<P> for FlagLock<P::Word, M> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(FREE), manner: PhantomData }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        if !self.take(p) {
            self.acquire_slow(p);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        self.word.load(Relaxed) == FREE && self.take(p)
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        // ORDERING: Release pairs with the Acquire of the next owner (`take`).
        self.word.store(FREE, p.ordering(M::RELEASE, Release));
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

impl<W: ConstWord, M: Manner> ConstLock for FlagLock<W, M> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO, manner: PhantomData };
    type Guard = M::Guard;
}
