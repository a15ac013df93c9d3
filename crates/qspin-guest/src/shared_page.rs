//! The shared page: memory in which guest and host tell each other what neither can see.
//!
//! The guest writes which CPU owns the lock, which wait and since when, and which ask not to be preempted; the host,
//! which it has stopped. That makes an experiment of what is otherwise an accident: a host that takes the
//! CPU from the holder, or from the next in line, just then and for as long as it wants.
//!
//! ```text
//!  guest, by a plan (crate::preempt)                   host
//!  rings the bell (a port), request += 1 ────────────► finds the owner, or the next waiter: stops that CPU
//!  waits in its critical section ◄──────────────────── answer = request
//!                                                      …, and lets it go on when the time has passed
//!
//!  the holder asks not to be preempted (keep > 0), and the host honours that:
//!                                                      owed = OWED, answer = request
//!  after its release: rings the bell, owed = PAYS ───► stops it now
//!  waits ◄──────────────────────────────────────────── owed = NOTHING
//! ```
//!
//! The bell comes first: an emulator may hold a lock of its own while a CPU writes to a port, and a CPU that
//! is stopped then would stop all that need that lock, too. So the host waits for the word after the bell.
//!
//! # Invariants
//! * **SHAREDPAGE-1** All words are atomic, and zero where no CPU has written: a host that knows nothing of the
//!   shared page does no harm, and a guest that was not asked for a plan rings no bell.
//! * **SHAREDPAGE-2** One CPU requests at a time: it holds the lock that is measured.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::options::MAX_CPUS;

/// What a shared page begins with.
pub const MAGIC: u32 = 0x7173_0001;

/// Nothing is owed.
pub const NOTHING: u32 = 0;
/// The host has waited for the end of a critical section.
pub const OWED: u32 = 1;
/// The critical section has ended: the host may have the CPU.
pub const PAYS: u32 = 2;

/// What there is of each CPU.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Seat {
    /// Since when it waits for the lock, in nanoseconds; 0 if it does not.
    pub waits_since: AtomicU64,
    /// The name of its APIC, plus 1; 0 for a CPU that has not come.
    pub apic_id: AtomicU32,
    /// Not 0: it asks not to be preempted.
    pub keep: AtomicU32,
    /// [`NOTHING`], [`OWED`] or [`PAYS`].
    pub owed: AtomicU32,
    /// The host's: not 0 while it keeps this CPU from running.
    pub stopped: AtomicU32,
}

/// The whole of it; its address is in what the guest says when it is ready.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct SharedPage {
    /// [`MAGIC`].
    pub magic: AtomicU32,
    /// The owner of the lock, plus 1; 0 for none.
    pub holder: AtomicU32,
    /// Raised by the guest with each request.
    pub request: AtomicU32,
    /// The last request that the host has dealt with.
    pub answer: AtomicU32,
    /// By the guest's numbers of CPUs.
    pub seats: [Seat; MAX_CPUS as usize],
}

impl SharedPage {
    /// A page on which no CPU has written.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const EMPTY: Self = Self {
        magic: AtomicU32::new(MAGIC),
        holder: AtomicU32::new(0),
        request: AtomicU32::new(0),
        answer: AtomicU32::new(0),
        seats: [const {
            Seat {
                waits_since: AtomicU64::new(0),
                apic_id: AtomicU32::new(0),
                keep: AtomicU32::new(0),
                owed: AtomicU32::new(0),
                stopped: AtomicU32::new(0),
            }
        }; MAX_CPUS as usize],
    };

    /// The owner of the lock.
    #[must_use]
    pub fn holder(&self) -> Option<usize> {
        let holder = self.holder.load(Acquire).checked_sub(1)? as usize;
        (holder < self.seats.len()).then_some(holder)
    }

    /// The waiter that has waited longest: the next one, where a lock is first come, first served.
    #[must_use]
    pub fn next(&self) -> Option<usize> {
        let waits = |(cpu, seat): (usize, &Seat)| match seat.waits_since.load(Acquire) {
            0 => None,
            since => Some((since, cpu)),
        };
        self.seats.iter().enumerate().filter_map(waits).min().map(|(_, cpu)| cpu)
    }

    /// Before a wait that begins at `ns`.
    #[inline]
    pub fn waits(&self, cpu: u32, ns: u64) {
        self.seats[cpu as usize].waits_since.store(ns.max(1), Relaxed);
    }

    /// After an acquisition.
    #[inline]
    pub fn holds(&self, cpu: u32) {
        self.seats[cpu as usize].waits_since.store(0, Relaxed);
        self.holder.store(cpu + 1, Relaxed);
    }

    /// Before a release.
    #[inline]
    pub fn releases(&self) {
        self.holder.store(0, Relaxed);
    }

    /// Asks the host for what the plan says, and waits until it has done it. By the holder (SHAREDPAGE-2).
    pub fn ask(&self, ring: impl FnOnce()) {
        let request = self.request.load(Relaxed).wrapping_add(1);
        ring();
        // ORDERING: Release pairs with the Acquire of the host: what this CPU has written of itself.
        self.request.store(request, Release);
        // ORDERING: Acquire pairs with the Release of the host: what it has written of this CPU.
        while self.answer.load(Acquire) != request {
            core::hint::spin_loop();
        }
    }

    /// `cpu` asks not to be preempted.
    #[inline]
    pub fn keep(&self, cpu: u32) {
        // Its CPU alone writes, and handlers put back what they have found.
        let keep = &self.seats[cpu as usize].keep;
        keep.store(keep.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// `cpu` does so no longer, and gives back what was waited for.
    #[inline]
    pub fn give_up(&self, cpu: u32, ring: impl FnOnce()) {
        let seat = &self.seats[cpu as usize];
        let left = seat.keep.load(Relaxed).wrapping_sub(1);
        seat.keep.store(left, Relaxed);
        if left == 0 && seat.owed.load(Acquire) == OWED {
            ring();
            // ORDERING: as in `ask`.
            seat.owed.store(PAYS, Release);
            while seat.owed.load(Acquire) != NOTHING {
                core::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_waiter_is_next_and_an_owner_does_not_wait() {
        let shared = SharedPage::EMPTY;
        assert_eq!((shared.holder(), shared.next()), (None, None));
        shared.waits(5, 300);
        shared.waits(2, 200);
        shared.waits(63, 400);
        assert_eq!(shared.next(), Some(2));
        shared.holds(2);
        assert_eq!((shared.holder(), shared.next()), (Some(2), Some(5)));
        shared.releases();
        assert_eq!(shared.holder(), None);
        shared.holder.store(1000, Relaxed);
        assert_eq!(shared.holder(), None, "whatever a guest writes there");
    }

    /// A host that answers `times`, and then looks no more; `ring` is what the guest rings.
    fn with_host(shared: &SharedPage, times: u32, guest: impl FnOnce(&dyn Fn())) {
        let bells = AtomicU32::new(0);
        let waits = |met: &dyn Fn() -> bool| {
            while !met() {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for bell in 1..=times {
                    waits(&|| bells.load(Relaxed) == bell);
                    waits(&|| {
                        let request = shared.request.load(Acquire);
                        let asks = request != shared.answer.load(Relaxed);
                        shared.answer.store(request, Release);
                        let pays = shared.seats[3].owed.load(Acquire) == PAYS;
                        if pays {
                            shared.seats[3].owed.store(NOTHING, Release);
                        }
                        asks || pays
                    });
                }
            });
            guest(&|| {
                bells.fetch_add(1, Relaxed);
            });
            assert_eq!(bells.load(Relaxed), times);
        });
    }

    #[test]
    fn a_request_is_rung_for_and_waits_for_its_answer() {
        let shared = SharedPage::EMPTY;
        with_host(&shared, 3, |ring| {
            for request in 1..=3 {
                shared.ask(ring);
                assert_eq!(shared.answer.load(Relaxed), request);
            }
        });
    }

    #[test]
    fn what_is_owed_is_paid_by_the_outermost_release_only() {
        let shared = SharedPage::EMPTY;
        let no_ring = || panic!("nothing is to be paid yet");
        shared.keep(3);
        shared.keep(3);
        shared.seats[3].owed.store(OWED, Relaxed);
        shared.give_up(3, no_ring);
        with_host(&shared, 1, |ring| shared.give_up(3, ring));
        shared.keep(3);
        shared.give_up(3, no_ring);
        assert_eq!(shared.seats[3].keep.load(Relaxed), 0);
    }

    #[test]
    fn its_layout_is_the_same_on_both_sides() {
        assert_eq!(core::mem::offset_of!(SharedPage, seats), 64);
        assert_eq!((size_of::<Seat>(), size_of::<SharedPage>()), (64, 8192));
    }
}
