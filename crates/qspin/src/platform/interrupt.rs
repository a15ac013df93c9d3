//! A signal handler is an interrupt.
//!
//! The locks work in a handler whether it announces itself or not, as long as it does not acquire a lock that
//! the interrupted code holds or is acquiring. A handler that announces itself gets the rule of interrupts: as
//! a reader of a queued reader-writer lock it passes a writer that only waits, since that writer may be waiting
//! for the very reader that the handler interrupted.

use std::cell::Cell;

use qspin_core::node::NodeId;
use qspin_core::platform::{AtomicWord, CpuId};

use super::nodes::node;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While this value lives, the thread runs a signal handler. If it is forgotten, it lives for ever.
///
/// ```
/// extern "C" fn handler(_: libc::c_int) {
///     let _interrupt = qspin::platform::interrupt::Interrupt::enter();
///     // read-lock here
/// }
/// ```
#[derive(Debug)]
pub struct Interrupt {
    // A handler ends on the thread on which it began.
    not_send: std::marker::PhantomData<*mut ()>,
}

impl Interrupt {
    /// Enters the handler. Async-signal-safe.
    #[must_use = "the interrupt ends when this is dropped"]
    pub fn enter() -> Self {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Self { not_send: std::marker::PhantomData }
    }

    /// Ends an [`enter`](Self::enter) whose value was forgotten: for C, where nothing is dropped. Outside a
    /// handler it does nothing. Async-signal-safe.
    pub fn leave() {
        DEPTH.with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Whether this thread is in a signal handler that has announced itself.
#[inline]
#[must_use]
pub fn active() -> bool {
    DEPTH.with(Cell::get) > 0
}

/// Whether the thread of this number already waits in a queue, beside the wait that it begins: then this is a
/// signal handler.
#[inline]
pub(crate) fn interrupts_a_wait(thread: Option<CpuId>) -> bool {
    let first = thread.and_then(|thread| NodeId::new(thread, 0));
    first.is_some_and(|first| node(first).nesting.peek() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_ends_once_by_either_way() {
        Interrupt::leave();
        assert!(!active(), "there was none");
        core::mem::forget(Interrupt::enter());
        drop(Interrupt::enter());
        assert!(active());
        Interrupt::leave();
        assert!(!active());
        let nested = Interrupt::enter();
        assert!(active());
        drop(nested);
        assert!(!active());
    }

    #[test]
    fn a_waiter_that_waits_again_is_a_handler() {
        assert!(!interrupts_a_wait(None));
        // The last number: no test makes so many threads.
        let last = CpuId::new(CpuId::LIMIT - 1).unwrap();
        assert!(crate::platform::nodes::prepare(last));
        let nesting = &node(NodeId::new(last, 0).unwrap()).nesting;
        for (levels, handler) in [(0, false), (1, false), (2, true), (4, true), (0, false)] {
            nesting.begin(levels);
            assert_eq!(interrupts_a_wait(Some(last)), handler, "{levels}");
        }
    }
}
