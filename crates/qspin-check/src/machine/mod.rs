//! What the platform of a model checker needs from that checker.
//!
//! Loom and shuttle differ in little: their atomics, whether they know what happens before what,
//! and how a thread is made, yields and ends an execution that has failed. That little is a
//! [`Machine`]; everything else is written once.

/// The word of a checker, made of its own atomic; `$order` says how what is asked for is ordered there.
macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident($atomic:path), $order:expr) => {
        $(#[$doc])*
        pub struct $name($atomic);

        impl AtomicWord for $name {
            fn new(value: u32) -> Self {
                Self(<$atomic>::new(value))
            }
            fn load(&self, order: Ordering) -> u32 {
                self.0.load($order(order))
            }
            fn store(&self, value: u32, order: Ordering) {
                self.0.store(value, $order(order));
            }
            fn swap(&self, value: u32, order: Ordering) -> u32 {
                self.0.swap(value, $order(order))
            }
            fn compare_exchange(&self, now: u32, new: u32, order: Ordering) -> Result<u32, u32> {
                self.0.compare_exchange(now, new, $order(order), $order(Ordering::Relaxed))
            }
            fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
                self.0.fetch_add(value, $order(order))
            }
            fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
                self.0.fetch_or(value, $order(order))
            }
            fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
                self.0.fetch_and(value, $order(order))
            }
        }
    };
}

mod loom;
mod shuttle;

pub use loom::Loom;
pub use shuttle::Shuttle;

use std::sync::atomic::Ordering;

use qspin_core::platform::AtomicWord;

use crate::failure::Failure;

/// A model checker.
///
/// Both run every thread of an execution on one thread of the operating system, and change from
/// one to another only inside the functions below and inside the operations of
/// [`Machine::Atomic`]. The record of an execution ([`crate::trace`]) relies on it.
pub trait Machine: Sized + Send + Sync + 'static {
    /// A 32-bit atomic.
    type Atomic: AtomicWord + Send + Sync + 'static;
    /// The life of a word: see [`Life`].
    type Life: Life;
    /// Data that only a lock protects: see [`Data`].
    type Data: Data;
    /// A thread that can be waited for.
    type Handle;
    /// Whether it explores every execution.
    const EXHAUSTIVE: bool;

    /// Runs `body` as another thread.
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle;
    /// Waits for a thread.
    fn join(handle: Self::Handle);
    /// Lets other threads run. Orders nothing.
    fn yield_now();
    /// States that what follows in this execution is explored in others.
    fn prune();
    /// A fence; never called with `Relaxed`.
    fn fence(order: Ordering);
    /// Begins an execution, in which there are barriers for all contexts, or none. The running context is the first; each
    /// that it spawns is the next.
    fn begin(_barriers: bool) {}
    /// The running context has come so far: called after each of its operations, for barriers of others.
    fn came_so_far() {}
    /// Every context passes a full fence, wherever it is; but for those of which `spares` says that the fence came
    /// too early or too late for what it is doing. Of a context that has come to its `end`, what it did is ordered.
    fn fence_everywhere(_spares: impl Fn(usize) -> bool, _ended: impl Fn(usize) -> bool) {}
    /// Ends this execution, which has `failure` as its counterexample.
    fn abandon(failure: Failure) -> !;
}

/// Verifies the promise of `AtomicWord::begin`: what happened to a word in its last life happens
/// before its new life begins, and what happens to it afterwards happens after.
///
/// Both checkers append a store to the modification order of its word when it is executed, so a
/// store that *overtakes* the initialisation of its word would never be seen as such; it is seen
/// here, as two accesses that are not ordered.
pub trait Life: Send + Sync + 'static {
    /// A first life.
    fn new() -> Self;
    /// An access within a life.
    fn touch(&self);
    /// The beginning of the next life.
    fn renew(&self);
}

/// A counter that its users must order among themselves.
pub trait Data: Send + Sync + 'static {
    /// Zero.
    fn new() -> Self;
    /// Adds one: a read and a write.
    fn add(&self);
    /// Reads.
    fn read(&self) -> u32;
}
