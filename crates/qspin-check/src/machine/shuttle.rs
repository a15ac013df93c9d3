//! Shuttle: random schedules of larger programs, sequentially consistent.
//!
//! It says nothing about orderings; it sees what needs more CPUs, deeper nesting or longer
//! executions than loom can enumerate.

use std::sync::atomic::Ordering;

use qspin_core::platform::AtomicWord;
use shuttle::sync::atomic::AtomicU32;

use super::{Data, Life, Machine};
use crate::failure::Failure;
use crate::trace;

/// The checker shuttle.
#[derive(Debug, Clone, Copy)]
pub struct Shuttle;

impl Machine for Shuttle {
    type Atomic = ShuttleAtomic;
    type Life = ShuttleLife;
    type Data = ShuttleData;
    type Handle = shuttle::thread::JoinHandle<()>;
    const EXHAUSTIVE: bool = false;

    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle {
        shuttle::thread::spawn(body)
    }

    fn join(handle: Self::Handle) {
        // A thread that failed has ended the whole execution already.
        let _ = handle.join();
    }

    fn yield_now() {
        shuttle::thread::yield_now();
    }

    fn prune() {}

    fn fence(_: Ordering) {}

    fn abandon(failure: Failure) -> ! {
        trace::failed(failure);
        // The scheduler sees the failure and ends the execution; no context runs after this yield.
        loop {
            shuttle::thread::yield_now();
        }
    }
}

atomic!(
    /// A word of shuttle's: always sequentially consistent, whatever is asked for.
    ShuttleAtomic(AtomicU32),
    // ORDERING: shuttle has no other; weaker ones are for loom.
    |_| Ordering::SeqCst
);

/// Shuttle knows no happens-before: a life is not checked here.
#[derive(Debug)]
pub struct ShuttleLife;

impl Life for ShuttleLife {
    fn new() -> Self {
        Self
    }
    fn touch(&self) {}
    fn renew(&self) {}
}

/// A counter whose addition can be interrupted in the middle, so that a second context inside
/// loses a count.
pub struct ShuttleData(AtomicU32);

impl Data for ShuttleData {
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }
    fn add(&self) {
        // ORDERING: as for the words. What must order these accesses is the lock.
        let value = self.0.load(Ordering::SeqCst);
        self.0.store(value + 1, Ordering::SeqCst);
    }
    fn read(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}
