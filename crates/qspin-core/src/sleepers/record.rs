//! What is known of one sleeper.

use crate::platform::{AtomicAddress, AtomicWord, ConstWord};

use super::WOKEN;

/// What is known of one sleeper. As many as nodes.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Sleeper<W, A> {
    /// What it sleeps on.
    pub(super) on: A,
    /// The next in the queue, or of those taken together; 0 for none.
    pub(super) next: W,
    /// `QUEUED`, `TAKEN` or `WOKEN`.
    pub(super) state: W,
    /// What it waits for, in the words of whoever sleeps there.
    pub(super) tag: W,
    /// What its thread's priority was when it joined the queue.
    pub(super) priority: W,
    /// When it was woken, as [`super::cost`] has it.
    pub(super) woken_at: W,
}

impl<W: AtomicWord, A: AtomicAddress> Sleeper<W, A> {
    /// A record that nobody uses.
    #[must_use]
    pub fn new() -> Self {
        Self {
            on: A::new(0),
            next: W::new(0),
            state: W::new(WOKEN),
            tag: W::new(0),
            priority: W::new(0),
            woken_at: W::new(0),
        }
    }
}

impl<W: AtomicWord, A: AtomicAddress> Default for Sleeper<W, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: ConstWord> Sleeper<W, core::sync::atomic::AtomicUsize> {
    /// A record that nobody uses: the template for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const UNUSED: Self = Self {
        on: core::sync::atomic::AtomicUsize::new(0),
        next: W::ZERO,
        state: W::ZERO,
        tag: W::ZERO,
        priority: W::ZERO,
        woken_at: W::ZERO,
    };
}
