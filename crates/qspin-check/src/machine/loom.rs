//! Loom: every execution of a small program under (most of) C11's memory model.

mod views;

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use qspin_core::platform::AtomicWord;

use super::{Data, Life, Machine};
use crate::failure::Failure;
use crate::trace;

/// The checker loom.
#[derive(Debug, Clone, Copy)]
pub struct Loom;

impl Machine for Loom {
    type Atomic = LoomAtomic;
    type Life = LoomLife;
    type Data = LoomData;
    type Handle = loom::thread::JoinHandle<()>;
    const EXHAUSTIVE: bool = true;

    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        let handle = loom::thread::spawn(body);
        views::begins(handle.thread());
        handle
    }

    fn join(handle: Self::Handle) {
        // A thread that panicked has ended the whole execution already.
        let _ = handle.join();
    }

    fn yield_now() {
        loom::thread::yield_now();
    }

    fn prune() {
        if trace::prunes() {
            loom::skip_branch();
        }
    }

    fn fence(order: Ordering) {
        views::fence_apart(order);
    }

    fn begin(barriers: bool) {
        views::begin(barriers);
    }

    fn came_so_far() {
        views::came_so_far(trace::current());
    }

    fn fence_everywhere(spares: impl Fn(usize) -> bool, ended: impl Fn(usize) -> bool) {
        views::fence_everywhere(trace::current(), spares, ended);
    }

    fn abandon(failure: Failure) -> ! {
        trace::failed(failure);
        // Loom ends at the first panic; the explorer reads the failure from the trace.
        panic!("counterexample")
    }
}

atomic!(
    /// A word of loom's.
    LoomAtomic(loom::sync::atomic::AtomicU32),
    std::convert::identity
);

/// A word's life, as a cell that every access reads and every beginning writes.
#[derive(Debug)]
pub struct LoomLife(UnsafeCell<()>);

// SAFETY: the cell holds nothing; loom runs one thread at a time and reports accesses that are
// not ordered, which is what the cell is for.
unsafe impl Sync for LoomLife {}
// SAFETY: as above.
unsafe impl Send for LoomLife {}

impl Life for LoomLife {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }
    fn touch(&self) {
        self.0.with(|_| ());
    }
    fn renew(&self) {
        self.0.with_mut(|_| ());
    }
}

/// Data whose unordered accesses loom reports.
#[derive(Debug)]
pub struct LoomData(UnsafeCell<u32>);

// SAFETY: loom runs one thread at a time on one thread of the operating system, and no switch
// lies within an access; unordered accesses are reported, not undefined.
unsafe impl Sync for LoomData {}
// SAFETY: as above.
unsafe impl Send for LoomData {}

impl Data for LoomData {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    fn add(&self) {
        // SAFETY: the pointer is the cell's, and no other context runs within the closure.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
    fn read(&self) -> u32 {
        // SAFETY: as in `add`.
        self.0.with(|value| unsafe { *value })
    }
}
