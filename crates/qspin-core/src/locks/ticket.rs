//! The ticket lock: strictly fair, four bytes, and every waiter watches the same word.
//!
//! # Problem
//! A test-and-set lock can starve a waiter for ever. Here each waiter draws a ticket, and tickets are served in
//! order.
//!
//! # Source
//! Mellor-Crummey and Scott, TOCS 1991; Linux's x86 spinlock from 2.6.25 to 4.1 (Nick Piggin), which document
//! 001's guests run.
//!
//! # States
//! ```text
//!  31      17 16 15       1    0
//! ┌──────────┬──┬──────────┬────────┐   free: next = serving
//! │ next     │ 0│ serving  │ asleep │   held: next - serving = 1 + waiters (modulo 2^15)
//! └──────────┴──┴──────────┴────────┘
//! ```
//!
//! # Invariants
//! * **TICKET-1** A ticket is drawn once per 2^15 draws, and served only after the release of the one before it.
//! * **TICKET-2** Only the owner changes *serving*; any context may draw at any time, so both change by
//!   read-modify-writes of the whole word.
//! * **TICKET-3** A context without a node draws no ticket: it acquires the lock only where it finds it free. And
//!   a CPU waits with one ticket of a lock at most: an interrupt that waited for the lock that the interrupted
//!   level waits for would wait for ever. Nor does a CPU draw one whose number is not below 32 766. So at most
//!   32 766 tickets wait, and 32 767 are out, of 32 768.
//! * **TICKET-4** *asleep* is set only by a waiter whose ticket is out, and cleared only by the context that
//!   acquires the lock when no ticket is out. A waiter that only spins does not set it.
//! * **TICKET-5** The step that serves the next ticket is the last access to the lock by the context that
//!   releases it: the next owner may free it.
//!
//! # Limits
//! Contexts without a node, or with too high a number, wait unfairly. Collapses when threads outnumber CPUs, like
//! every strict order.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawLock};
use crate::nesting::with_node;
use crate::node::NodeId;
use crate::platform::{AtomicWord, Budget, ConstWord, Platform, Until};
use crate::site::Site;
use crate::waiting::Spin;

/// A waiter may be halted: the release has to find the waiter to kick.
pub(crate) const ASLEEP: u32 = 1;
const SERVE: u32 = 2;
const SERVING: u32 = 0xfffe;
const NEXT_SHIFT: u32 = 17;
const DRAW: u32 = 1 << NEXT_SHIFT;
/// The number of different tickets.
const TICKETS: u32 = 1 << 15;

/// The number of CPUs that may draw one (TICKET-3).
const DRAWERS: u32 = TICKETS - 2;

/// How the owner of a ticket waits, and what a release does about it.
pub trait TicketWaiting {
    /// Waits with the node `me` until `ticket` is served. Acquire ordering.
    fn await_ticket<P: Platform>(p: &P, word: &P::Word, me: NodeId, ticket: u32);

    /// After a release of the lock known as `lock`, in a step that replaced `before` (TICKET-5).
    fn served<P: Platform>(p: &P, lock: usize, before: u32);

    /// Waits without a ticket until the word is perhaps no longer `seen`.
    fn await_change<P: Platform>(p: &P, word: &P::Word, seen: u32);
}

impl TicketWaiting for Spin {
    #[inline]
    fn await_ticket<P: Platform>(p: &P, word: &P::Word, _: NodeId, ticket: u32) {
        // ORDERING: Acquire pairs with the Release of `release`.
        let order = p.ordering(Site::TicketTurn, Acquire);
        p.wait_until(word, turn_of(ticket), Budget::Unbounded, order);
    }

    #[inline]
    fn served<P: Platform>(_: &P, _: usize, _: u32) {}

    #[inline]
    fn await_change<P: Platform>(p: &P, word: &P::Word, seen: u32) {
        p.wait_until(word, Until::is_not(seen), Budget::Unbounded, Relaxed);
    }
}

/// A ticket lock. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct TicketLock<W, H = Spin> {
    word: W,
    waiting: PhantomData<H>,
}

/// The ticket that is served; the lock is held with it, unless it is yet to be drawn.
#[inline]
pub(crate) const fn serving(word: u32) -> u32 {
    (word & SERVING) / SERVE
}

/// The ticket that is drawn next.
#[inline]
pub(crate) const fn next(word: u32) -> u32 {
    word >> NEXT_SHIFT
}

/// The ticket after this one.
#[inline]
pub(crate) const fn after(ticket: u32) -> u32 {
    (ticket + 1) % TICKETS
}

/// Until this ticket is served.
#[inline]
pub(crate) const fn turn_of(ticket: u32) -> Until {
    Until { mask: SERVING, value: ticket * SERVE, equal: true }
}

#[inline]
const fn is_free(word: u32) -> bool {
    next(word) == serving(word)
}

/// What to add to the word to serve the next ticket: one, without the carry out of *serving*.
#[inline]
const fn serve_next(word: u32) -> u32 {
    if word & SERVING == SERVING { SERVE.wrapping_sub(SERVING + SERVE) } else { SERVE }
}

// SAFETY: TICKET-1 gives exclusion; `TicketServe` releases what `TicketDraw`, `TicketTry` and
// `TicketTurn` acquire, steps of others in between continuing its release sequence (TICKET-2).
unsafe impl<P: Platform, H: TicketWaiting> RawLock<P> for TicketLock<P::Word, H> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(0), waiting: PhantomData }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        if take(p, &self.word).is_err() {
            acquire_slow::<P, H>(p, &self.word);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        take(p, &self.word).is_ok()
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        let lock = p.address(&self.word);
        let seen = self.word.load(Relaxed);
        // ORDERING: Release pairs with the Acquire of the next ticket's owner (`TicketTurn`, or
        // `TicketDraw` and `TicketTry` of a newcomer).
        let before = self.word.fetch_add(serve_next(seen), p.ordering(Site::TicketServe, Release));
        H::served(p, lock, before);
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        !is_free(self.word.load(Relaxed))
    }
}

/// Acquires a free lock: draws the ticket that is served. Otherwise returns the word.
#[inline]
fn take<P: Platform>(p: &P, word: &P::Word) -> Result<(), u32> {
    let seen = word.load(Relaxed);
    if !is_free(seen) {
        return Err(seen);
    }
    // ORDERING: Acquire pairs with the Release of `release`.
    let order = p.ordering(Site::TicketTry, Acquire);
    // TICKET-4.
    word.compare_exchange(seen, seen.wrapping_add(DRAW) & !ASLEEP, order).map(drop)
}

#[cold]
#[inline(never)]
fn acquire_slow<P: Platform, H: TicketWaiting>(p: &P, word: &P::Word) {
    let served = with_node(p, |me| {
        if me.cpu().number() >= DRAWERS {
            return false;
        }
        // ORDERING: Acquire pairs with the Release of `release`, if the lock was free.
        let seen = word.fetch_add(DRAW, p.ordering(Site::TicketDraw, Acquire));
        if !is_free(seen) {
            H::await_ticket(p, word, me, next(seen));
        }
        true
    });
    if served != Some(true) {
        // TICKET-3.
        while let Err(seen) = take(p, word) {
            if !is_free(seen) {
                H::await_change(p, word, seen);
            }
        }
    }
}

impl<W: ConstWord, H> ConstLock for TicketLock<W, H> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO, waiting: PhantomData };
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests {
    use core::cell::{Cell, RefCell};
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::vec::Vec;

    use super::*;
    use crate::events::NoEvents;
    use crate::node::Node;
    use crate::platform::CpuId;
    use crate::waiting::{Bucket, Halt, hash};

    const fn word(next: u32, serving: u32, asleep: u32) -> u32 {
        (next << NEXT_SHIFT) | (serving * SERVE) | asleep
    }

    #[test]
    fn serving_wraps_without_touching_the_rest() {
        for asleep in [0, ASLEEP] {
            for next_ticket in [0, 1, 0x3fff, 0x7fff] {
                for served in [0, 1, 0x7ffe, 0x7fff] {
                    let before = word(next_ticket, served, asleep);
                    let now = before.wrapping_add(serve_next(before));
                    assert_eq!(now, word(next_ticket, after(served), asleep));
                    assert_eq!((next(now), serving(now)), (next_ticket, after(served)));
                    assert!(turn_of(after(served)).met_by(now) && !turn_of(served).met_by(now));
                }
            }
        }
    }

    #[test]
    fn next_wraps_out_of_the_word() {
        for asleep in [0, ASLEEP] {
            let before = word(0x7fff, 0x7fff, asleep);
            assert!(is_free(before));
            let drawn = before.wrapping_add(DRAW);
            assert_eq!(drawn, word(0, 0x7fff, asleep));
            assert!(!is_free(drawn));
        }
    }

    /// One CPU, which is never kicked: a waiter that halts here hangs.
    struct Alone {
        cpu: u32,
        nodes: [Node<AtomicU32>; 4],
        /// Owners that release the lock, one at each wait for it.
        owners: Cell<u32>,
        /// The tickets that were out at the last wait.
        out: Cell<u32>,
        table: [Bucket<AtomicU32, AtomicUsize>; 1],
        kicked: RefCell<Vec<NodeId>>,
    }

    impl Alone {
        fn new(cpu: u32) -> Self {
            Self {
                cpu,
                nodes: [const { Node::<AtomicU32>::UNUSED }; 4],
                owners: Cell::new(0),
                out: Cell::new(0),
                table: [Bucket::new()],
                kicked: RefCell::default(),
            }
        }
    }

    impl Platform for Alone {
        type Word = AtomicU32;
        type Address = AtomicUsize;
        type Events = NoEvents;
        fn events(&self) -> &NoEvents {
            &NoEvents
        }
        fn cpu(&self) -> Option<CpuId> {
            CpuId::new(self.cpu)
        }
        fn node(&self, id: NodeId) -> &Node<AtomicU32> {
            &self.nodes[id.level() as usize]
        }
        fn wait_until(&self, word: &AtomicU32, until: Until, _: Budget, _: Ordering) -> u32 {
            let mut seen = word.load(Relaxed);
            if !until.met_by(seen) && self.owners.get() > 0 {
                self.owners.set(self.owners.get() - 1);
                self.out.set(next(seen) - serving(seen));
                seen = seen.wrapping_add(serve_next(seen));
                word.store(seen, Relaxed);
            }
            assert!(until.met_by(seen), "no other thread is here: {seen:#010x}");
            seen
        }
        fn relax(&self, _: u32) {
            panic!("nothing to wait for");
        }
        fn fence(&self, _: Ordering) {}
        fn hash(&self) -> &[Bucket<AtomicU32, AtomicUsize>] {
            &self.table
        }
        fn kick(&self, node: NodeId) {
            self.kicked.borrow_mut().push(node);
        }
    }

    fn tickets_wrap<H: TicketWaiting>() {
        let p = Alone::new(0);
        let lock = TicketLock::<AtomicU32, H>::UNLOCKED;
        for turn in 0..3 * TICKETS {
            // Both ways to a ticket, and an ASLEEP bit that a halted waiter left behind.
            lock.word.fetch_or(ASLEEP, Relaxed);
            if turn % 2 == 0 {
                lock.acquire(&p);
                assert_eq!(lock.word.load(Relaxed) & ASLEEP, 0, "T4");
            } else {
                acquire_slow::<Alone, H>(&p, &lock.word);
            }
            assert!(lock.is_locked(&p) && !lock.try_acquire(&p));
            assert_eq!(serving(lock.word.load(Relaxed)), turn % TICKETS);
            // SAFETY: acquired just above.
            unsafe { lock.release(&p) };
            assert!(!lock.is_locked(&p));
        }
    }

    #[test]
    fn tickets_wrap_around_and_the_mark_of_a_halt_goes_with_the_last_ticket() {
        tickets_wrap::<Spin>();
        tickets_wrap::<Halt>();
    }

    /// TICKET-3.
    fn waits_as<H: TicketWaiting>(cpu: u32, draws: bool) {
        let lock = TicketLock::<AtomicU32, H>::UNLOCKED;
        let p = Alone::new(cpu);
        lock.acquire(&p);
        p.owners.set(1);
        lock.acquire(&p);
        assert_eq!(p.owners.get(), 0, "CPU {cpu} has waited for the owner");
        assert_eq!(p.out.get(), 1 + u32::from(draws), "the owner's ticket, and one that waits");
        assert_eq!(lock.word.load(Relaxed), word(2, 1, 0), "CPU {cpu} is the owner");
    }

    #[test]
    fn a_cpu_with_too_high_a_number_waits_without_a_ticket_and_acquires_the_lock() {
        for (cpu, draws) in [(32_765, true), (32_766, false), (CpuId::LIMIT - 1, false)] {
            waits_as::<Spin>(cpu, draws);
            waits_as::<Halt>(cpu, draws);
        }
    }

    /// PVTICKET-5.
    #[test]
    fn a_release_kicks_the_waiter_behind_an_entry_that_still_names_a_former_one() {
        let node = |cpu| NodeId::new(CpuId::new(cpu).unwrap(), 0).unwrap();
        let (former, meant, later) = (node(1), node(2), node(3));
        let p = Alone::new(0);
        let lock = TicketLock::<AtomicU32, Halt>::UNLOCKED;
        lock.word.store(word(3, 0, ASLEEP), Relaxed);
        let address = p.address(&lock.word);
        // The first entry was claimed for another waiter of this lock, whose node is not stored yet: there still is
        // the former one, which had waited for a ticket of the same number.
        let entries = [(1, former), (1, meant), (2, later)];
        for (ticket, waiter) in entries {
            assert!(hash::insert_ticket(&p, address, ticket, waiter).is_some());
        }
        // SAFETY: held with ticket 0.
        unsafe { lock.release(&p) };
        assert_eq!(*p.kicked.borrow(), [former, meant]);
    }

    #[test]
    fn a_release_kicks_the_waiter_whose_ticket_is_the_last_before_they_wrap() {
        let waiter = NodeId::new(CpuId::new(1).unwrap(), 0).unwrap();
        // The ticket that is drawn next is a small one again.
        for next_ticket in [0, 1] {
            let p = Alone::new(0);
            let lock = TicketLock::<AtomicU32, Halt>::UNLOCKED;
            lock.word.store(word(next_ticket, 0x7ffe, ASLEEP), Relaxed);
            assert!(hash::insert_ticket(&p, p.address(&lock.word), 0x7fff, waiter).is_some());
            // SAFETY: held with ticket 0x7ffe.
            unsafe { lock.release(&p) };
            assert_eq!(*p.kicked.borrow(), [waiter], "{next_ticket}");
        }
    }
}
