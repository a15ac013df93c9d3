//! The record of one sleeper.

use crate::platform::{AtomicAddress, AtomicWord, ConstWord};

use super::WOKEN;

/// The record of one sleeper. There are as many as nodes.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Sleeper<W, A> {
    /// The address that it sleeps on.
    pub(super) on: A,
    /// The next sleeper in the queue, or of those taken together; 0 for none.
    pub(super) next: W,
    /// The one behind which it joined the queue, which may have left since; 0 for none.
    pub(super) joined_behind: W,
    /// `QUEUED`, `TAKEN` or `WOKEN`.
    pub(super) state: W,
    /// What the waiter waits for, as defined by the lock that it sleeps for.
    pub(super) tag: W,
    /// The priority of its thread when it joined the queue.
    pub(super) priority: W,
    /// When it was woken, for [`super::cost`].
    pub(super) woken_at: W,
}

impl<W: AtomicWord, A: AtomicAddress> Sleeper<W, A> {
    /// A record that is not in use.
    #[must_use]
    pub fn new() -> Self {
        Self {
            on: A::new(0),
            next: W::new(0),
            joined_behind: W::new(0),
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
    /// A record that is not in use: the template for a static table.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const UNUSED: Self = Self {
        on: core::sync::atomic::AtomicUsize::new(0),
        next: W::ZERO,
        joined_behind: W::ZERO,
        state: W::ZERO,
        tag: W::ZERO,
        priority: W::ZERO,
        woken_at: W::ZERO,
    };
}
