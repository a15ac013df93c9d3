//! Threads by their numbers: how one is woken, and that its number is given back when it ends.
//!
//! # Invariants
//! * **PORTABLE-1** `handle` of a slot is null or a box of the handle of the thread that has the slot's number.
//!   It is read and replaced while `busy` is 1 by the thread that has set it.

use core::cell::Cell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};
use std::thread::{self, Thread};

use qspin_core::platform::CpuId;

use crate::platform::cpu;
use crate::platform::nodes::{self, FIRST_THREADS};

/// How a thread is woken. Zeroed memory is an empty slot.
pub(crate) struct Slot {
    busy: AtomicU32,
    handle: AtomicPtr<Thread>,
}

impl Slot {
    // The constant is a template: every use makes a new slot.
    #[allow(clippy::declare_interior_mutable_const)]
    const EMPTY: Self =
        Self { busy: AtomicU32::new(0), handle: AtomicPtr::new(core::ptr::null_mut()) };

    /// Applies `f` to the handle, alone (PORTABLE-1). `f` must not panic.
    fn alone<R>(&self, f: impl FnOnce(&AtomicPtr<Thread>) -> R) -> R {
        // ORDERING: Acquire pairs with the Release below.
        while self.busy.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            thread::yield_now();
        }
        let result = f(&self.handle);
        self.busy.store(0, Release);
        result
    }

    /// The handle, to be kept.
    fn handle(&self) -> Option<Thread> {
        // SAFETY: PORTABLE-1.
        self.alone(|handle| unsafe { handle.load(Relaxed).as_ref() }.cloned())
    }

    fn put(&self, new: Option<Thread>) {
        let new = new.map_or(core::ptr::null_mut(), |new| Box::into_raw(Box::new(new)));
        let old = self.alone(|handle| handle.swap(new, Relaxed));
        if !old.is_null() {
            // SAFETY: PORTABLE-1: a box, which is in no slot any more.
            drop(unsafe { Box::from_raw(old) });
        }
    }
}

/// One slot for each number of the first threads.
static SLOTS: [Slot; FIRST_THREADS - 1] = [const { Slot::EMPTY }; FIRST_THREADS - 1];

fn slot(number: u32) -> Option<&'static Slot> {
    SLOTS.get(number as usize).or_else(|| nodes::slot(number as usize))
}

/// Unparks the thread that has this number now, if one has.
#[cold]
pub(crate) fn unpark(cpu: CpuId) {
    if let Some(thread) = slot(cpu.number()).and_then(Slot::handle) {
        thread.unpark();
    }
}

/// What happens at the end of a thread that has a number: the number plus 1; 0 for none.
struct End(Cell<u32>);

impl Drop for End {
    fn drop(&mut self) {
        let Some(number) = self.0.get().checked_sub(1) else { return };
        if let Some(slot) = slot(number) {
            slot.put(None);
        }
        cpu::end(number);
    }
}

thread_local! {
    static END: End = const { End(Cell::new(0)) };
}

/// This thread has got the number `value` less 1. Returns whether it will be given back.
pub(crate) fn give_back_at_end(value: u32) -> bool {
    if let Some(slot) = slot(value - 1) {
        slot.put(Some(thread::current()));
    }
    END.try_with(|end| end.0.set(value)).is_ok()
}

/// A number of this thread among those without a [`CpuId`], below 2^31. It is used again after as many threads.
pub(crate) fn stranger() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static MINE: Cell<u32> = const { Cell::new(0) };
    }
    MINE.with(|mine| {
        if mine.get() == 0 {
            mine.set(LAST.fetch_add(1, Relaxed) % (1 << 30) + 1);
        }
        mine.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_there_while_it_is_put() {
        let slot = Slot::EMPTY;
        assert!(slot.handle().is_none());
        slot.put(Some(thread::current()));
        slot.put(Some(thread::current()));
        assert_eq!(slot.handle().map(|thread| thread.id()), Some(thread::current().id()));
        slot.put(None);
        assert!(slot.handle().is_none());
    }

    #[test]
    fn strangers_differ() {
        let mine = stranger();
        assert_eq!(stranger(), mine);
        assert_ne!(thread::spawn(stranger).join().unwrap(), mine);
    }
}
