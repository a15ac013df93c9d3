//! Which thread is known not to be running: remedy (c) of document 001, without privileges.
//!
//! # Problem
//! Spinning for a thread that is not running is useless, and on that thread's CPU it even keeps it from
//! running. Linux tells no thread whether another one is running. But it tells every thread on which CPU it is
//! itself, in its rseq area (`rseq.rs`), and other threads can read that.
//!
//! # What is known, and what is not
//! * The other thread's CPU is this thread's: the other one is not running, because this one is. Whether it is
//!   preempted or asleep is not known: a sleeping thread has a CPU, too, the one on which it ran last.
//! * Its CPU is another one: nothing is known. It may be running there, be preempted there, or sleep.
//!
//! So "is known not to run" was true when the area was read, unless this thread migrated just then; "is not
//! known" means nothing. That covers the case in which spinning harms most. The other cases need the publisher
//! of feature `ebpf`: `ebpf.rs`.
//!
//! # Invariants
//! * **RUNSTATUS-1** `area` of a slot is null, or the area of the thread that has the slot's number. That
//!   thread sets it, and clears it before it gives the number back.
//! * **RUNSTATUS-2** A thread that follows `area` first raises `readers`, and lowers it afterwards; a thread
//!   that ends clears `area`, then waits until `readers` is 0. Both do so sequentially consistently: either the
//!   reader finds null, or the ending thread finds the reader. So an area that is being read still exists.
//! * **RUNSTATUS-3** In the child of `fork` there is no reader but, perhaps, its one thread, if it forked in a
//!   signal handler. A slot that had readers begins a new *era* without readers; a reader that began in an
//!   older era does not lower the count.
//!
//! # Limits
//! Nothing is known of a thread that never waited, since it has no number. A thread for which no key destructor
//! is called stays invisible, see [`crate::platform::cpu`]. A child that forked in a handler, and returns from it into
//! the very read that the handler interrupted, may read the area of a thread that it no longer has; the memory
//! is still there unless the handler itself made and joined threads.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use qspin_core::platform::CpuId;

use super::rseq::{self, Area};
use crate::platform::nodes::{self, FIRST_THREADS};

/// What is known of one thread.
pub(crate) struct Slot {
    area: AtomicPtr<Area>,
    /// The number of readers, and the era above it (RUNSTATUS-3).
    readers: AtomicU64,
    /// The kernel's number of the thread, for `ebpf.rs`; 0 for none.
    #[cfg(feature = "ebpf")]
    pub(crate) tid: AtomicU32,
}

const ERA: u64 = 1 << 32;
const COUNT: u64 = ERA - 1;

impl Slot {
    // The constant is a template: every use makes a new slot.
    #[allow(clippy::declare_interior_mutable_const)]
    const EMPTY: Self = Self {
        area: AtomicPtr::new(core::ptr::null_mut()),
        readers: AtomicU64::new(0),
        #[cfg(feature = "ebpf")]
        tid: AtomicU32::new(0),
    };

    /// Applies `look` to the area, if there is one.
    #[inline]
    fn read<R>(&self, look: impl FnOnce(&Area) -> R) -> Option<R> {
        // RUNSTATUS-2. ORDERING: SeqCst pairs with the SeqCst of `clear`.
        let era = self.readers.fetch_add(1, SeqCst) / ERA;
        // SAFETY: RUNSTATUS-1; and by RUNSTATUS-2 the thread still exists, and so does what `as_ref` borrows.
        let found = unsafe { self.area.load(SeqCst).as_ref() }.map(look);
        let mut seen = self.readers.load(Relaxed);
        // RUNSTATUS-3. ORDERING: Release pairs with the load of `clear` that sees no reader.
        while seen / ERA == era
            && let Err(now) = self.readers.compare_exchange_weak(seen, seen - 1, Release, Relaxed)
        {
            seen = now;
        }
        found
    }

    /// Takes the area away from readers. Returns when no thread reads it any more.
    fn clear(&self) {
        // RUNSTATUS-2. ORDERING: SeqCst pairs with the SeqCst of `read`, whose Release the loads
        // acquire.
        self.area.swap(core::ptr::null_mut(), SeqCst);
        while self.readers.load(SeqCst) & COUNT != 0 {
            // SAFETY: a system call without arguments that touches no memory of ours.
            unsafe { libc::sched_yield() };
        }
    }

    /// In the child of `fork`: there is no reader (RUNSTATUS-3), and only an area that is kept still belongs to
    /// a thread.
    fn inherit(&self, keep: bool) {
        if !keep {
            self.area.store(core::ptr::null_mut(), Relaxed);
        }
        let seen = self.readers.load(Relaxed);
        if seen & COUNT != 0 {
            self.readers.store((seen & !COUNT).wrapping_add(ERA), Relaxed);
        }
    }
}

/// One slot for each number of the first threads.
static SLOTS: [Slot; FIRST_THREADS - 1] = [const { Slot::EMPTY }; FIRST_THREADS - 1];

/// Slots from here on were never used.
static USED: AtomicU32 = AtomicU32::new(0);

/// The slot of this number, if it can have been given out.
pub(crate) fn slot(number: u32) -> Option<&'static Slot> {
    SLOTS.get(number as usize).or_else(|| nodes::slot(number as usize))
}

/// The slots that were ever used.
pub(crate) fn used() -> impl Iterator<Item = (u32, &'static Slot)> {
    (0..USED.load(Relaxed)).filter_map(|number| Some((number, slot(number)?)))
}

/// This thread has got `number`, and will call [`leave`].
pub(crate) fn enter(number: u32) {
    USED.fetch_max(number.saturating_add(1), Relaxed);
    #[cfg(feature = "ebpf")]
    super::ebpf::enter(number);
    let area = rseq::mine();
    if let Some(slot) = slot(number)
        && !area.is_null()
    {
        slot.area.store(area.cast_mut(), Release);
    }
}

/// This thread is about to give `number` back.
pub(crate) fn leave(number: u32) {
    #[cfg(feature = "ebpf")]
    super::ebpf::leave(number);
    if let Some(slot) = slot(number) {
        slot.clear();
    }
}

/// In the child of `fork`, whose one thread has the number `own`, which may be no number at all.
pub(crate) fn child_begins(own: u32) {
    #[cfg(feature = "ebpf")]
    super::ebpf::child_begins(own);
    for (number, slot) in used() {
        slot.inherit(own == number);
    }
}

/// Whether anything is known without privileges: the C library has registered rseq areas.
#[must_use]
pub fn available() -> bool {
    !rseq::mine().is_null()
}

/// Whether the thread of this number is known not to be running. A hint: it may be running by now.
#[inline]
#[must_use]
pub fn known_not_to_run(cpu: CpuId) -> bool {
    #[cfg(feature = "ebpf")]
    if let Some(known) = super::ebpf::known_not_to_run(cpu) {
        return known;
    }
    let own = rseq::mine();
    // SAFETY: this thread's own area, if it has one.
    let Some(here) = (unsafe { own.as_ref() }).and_then(Area::cpu) else { return false };
    let same = |area: &Area| !core::ptr::eq(area, own) && area.cpu() == Some(here);
    slot(cpu.number()).and_then(|slot| slot.read(same)) == Some(true)
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn a_slot_is_read_while_it_has_an_area() {
        let area = Area::on_cpu(3);
        let slot = Slot::EMPTY;
        assert_eq!(slot.read(Area::cpu), None);
        slot.area.store((&raw const area).cast_mut(), Release);
        assert_eq!(slot.read(Area::cpu), Some(Some(3)));
        slot.clear();
        assert_eq!(slot.read(Area::cpu), None);
        assert_eq!(slot.readers.load(Relaxed), 0);
    }

    #[test]
    fn a_thread_that_ends_waits_for_its_readers() {
        let area = Area::on_cpu(3);
        let slot = Slot::EMPTY;
        slot.area.store((&raw const area).cast_mut(), Release);
        let (cleared, reading) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                slot.read(|_| {
                    reading.store(true, Release);
                    while !slot.area.load(SeqCst).is_null() {
                        thread::yield_now();
                    }
                    // The other thread has taken the area away, and must be waiting.
                    for _ in 0..1000 {
                        assert!(!cleared.load(SeqCst));
                        thread::yield_now();
                    }
                });
            });
            while !reading.load(SeqCst) {
                thread::yield_now();
            }
            slot.clear();
            cleared.store(true, SeqCst);
        });
    }

    #[test]
    fn a_child_has_no_readers_and_one_that_read_at_the_fork_counts_in_no_new_era() {
        let area = Area::on_cpu(3);
        let slot = Slot::EMPTY;
        slot.area.store((&raw const area).cast_mut(), Release);
        slot.read(|_| {
            slot.inherit(true);
            assert_eq!(slot.readers.load(Relaxed), ERA, "no thread, in the next era");
            assert!(slot.read(|_| ()).is_some(), "it was kept");
            slot.readers.fetch_add(1, Relaxed);
        });
        assert_eq!(slot.readers.load(Relaxed), ERA + 1, "the one of the new era is still there");
        slot.inherit(false);
        assert_eq!(slot.readers.load(Relaxed), 2 * ERA);
        assert_eq!(slot.read(|_| ()), None);
        slot.inherit(false);
        assert_eq!(slot.readers.load(Relaxed), 2 * ERA, "no thread read, so it is the same era");
    }
}
