//! The atomic word of a checking platform.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Relaxed};

use qspin_core::platform::AtomicWord;

use crate::failure::Failure;
use crate::machine::{Life, Machine};
use crate::trace::{self, Role, WordId};

/// A word of machine `M`, whose every access is recorded and may be interrupted.
pub struct Word<M: Machine> {
    atomic: M::Atomic,
    /// Its own, or that of its lock.
    life: Arc<M::Life>,
    id: WordId,
    is_hint: bool,
}

thread_local! {
    /// The life of the words that are being made, where they share one.
    static SHARED: RefCell<Option<Arc<dyn Any + Send + Sync>>> = const { RefCell::new(None) };
}

fn shared_life<M: Machine>() -> Option<Arc<M::Life>> {
    SHARED.with_borrow(|life| life.clone()?.downcast().ok())
}

/// Runs `make`, whose words have one life together: until they are freed.
pub(crate) fn living<M: Machine, R>(life: &Arc<M::Life>, make: impl FnOnce() -> R) -> R {
    let life: Arc<dyn Any + Send + Sync> = Arc::clone(life) as _;
    SHARED.set(Some(life));
    let made = make();
    SHARED.set(None);
    made
}

/// Ends the execution if something is wrong with it.
pub(crate) fn judge<M: Machine, T>(verdict: Result<T, Failure>) -> T {
    verdict.unwrap_or_else(|failure| M::abandon(failure))
}

impl<M: Machine> Word<M> {
    /// The number of the word.
    pub(crate) fn id(&self) -> WordId {
        self.id
    }

    /// The value, to a context that is gone and unwinds.
    fn left(&self) -> Option<u32> {
        trace::is_gone().then(|| trace::latest(self.id))
    }

    fn access<R>(&self, operation: impl FnOnce(&M::Atomic) -> R) -> R {
        self.prepare();
        self.life.touch();
        let result = trace::keep(|| operation(&self.atomic));
        M::came_so_far();
        trace::has_acted();
        result
    }

    fn prepare(&self) {
        if let Some(handler) = judge::<M, _>(trace::before_operation()) {
            handler();
        }
        judge::<M, _>(trace::touching_word(self.id));
    }

    fn stepped(&self, from: u32, to: u32) {
        if judge::<M, _>(trace::stepped(self.id, from, to, false)) {
            M::prune();
        }
    }

    fn loaded(&self, value: u32) {
        if trace::loaded(self.id, value) {
            M::prune();
        }
    }

    fn modify(&self, operation: impl FnOnce(&M::Atomic) -> u32, next: impl Fn(u32) -> u32) -> u32 {
        if let Some(left) = self.left() {
            return left;
        }
        let from = self.access(operation);
        self.stepped(from, next(from));
        from
    }
}

impl<M: Machine> AtomicWord for Word<M> {
    fn new(value: u32) -> Self {
        Self {
            atomic: M::Atomic::new(value),
            life: shared_life::<M>().unwrap_or_else(|| Arc::new(M::Life::new())),
            id: trace::register(value),
            is_hint: trace::role() == Role::Hint,
        }
    }

    fn load(&self, order: Ordering) -> u32 {
        if let Some(left) = self.left() {
            return left;
        }
        let value = self.access(|atomic| atomic.load(order));
        self.loaded(value);
        value
    }

    fn store(&self, value: u32, order: Ordering) {
        if self.is_hint {
            // As in `overwrite`: it comes after the read-modify-write of one that settles what was there before.
            self.swap(value, order);
            return;
        }
        if self.left().is_some() {
            return;
        }
        self.access(|atomic| atomic.store(value, order));
        self.stepped(trace::latest(self.id), value);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.modify(|atomic| atomic.swap(value, order), |_| value)
    }

    fn compare_exchange(&self, current: u32, new: u32, success: Ordering) -> Result<u32, u32> {
        if let Some(left) = self.left() {
            return Err(left);
        }
        let result = self.access(|atomic| atomic.compare_exchange(current, new, success));
        match result {
            Ok(from) => self.stepped(from, new),
            Err(seen) => {
                trace::refused(self.id, current, new);
                self.loaded(seen);
            }
        }
        result
    }

    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.modify(|atomic| atomic.fetch_add(value, order), |from| from.wrapping_add(value))
    }

    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.modify(|atomic| atomic.fetch_or(value, order), |from| from | value)
    }

    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.modify(|atomic| atomic.fetch_and(value, order), |from| from & value)
    }

    fn overwrite(&self, value: u32, order: Ordering) {
        // Loom may put a store before a read-modify-write that has not read it, and let another read what
        // was before both.
        self.swap(value, order);
    }

    fn peek(&self) -> u32 {
        // Not an access within a life.
        self.prepare();
        let value = trace::keep(|| self.atomic.load(Relaxed));
        self.loaded(value);
        value
    }

    fn begin(&self, value: u32) {
        self.prepare();
        self.life.renew();
        trace::keep(|| self.atomic.store(value, Relaxed));
        M::came_so_far();
        if judge::<M, _>(trace::stepped(self.id, trace::latest(self.id), value, true)) {
            M::prune();
        }
    }
}
