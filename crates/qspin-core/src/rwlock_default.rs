//! The default reader-writer lock: readers share it, and who does not get in at once sleeps.
//!
//! # Problem
//! The queued reader-writer lock ([`crate::rwlock`]) is fair, and collapses where threads outnumber CPUs:
//! its queue spins. Locks that let readers in whenever readers are inside starve writers.
//!
//! # Source
//! The shape is that of Linux' `qrwlock`: a word with a count of readers, and a gate through which those
//! go one at a time who do not get in at once. The gate is the default mutex ([`crate::mutex`]), which
//! knows how to wait; so of all waiters one alone waits for the word, and it needs no queue.
//!
//! # States of the word
//! ```text
//!  31         8    4           3      2          1        0
//! ┌────────────┬───────────┬──────┬──────────┬────────┬────────┐
//! │ readers    │ UPGRADING │ HEIR │ SLEEPING │ CLOSED │ WRITER │
//! └────────────┴───────────┴──────┴──────────┴────────┴────────┘
//!  free (0) ──read──► n readers ──read──► n + 1 readers      CLOSED: no further readers beside those inside
//!  free (0) ──write─► WRITER    ──downgrade──► 1 reader      SLEEPING: whoever has the gate sleeps
//!                                                            HEIR: nobody but whoever has the gate
//!                                                            UPGRADING: who sleeps is inside itself
//! ```
//!
//! # Invariants
//! * **D1** WRITER is set by a compare-exchange from a word without readers and writer, and cleared by that
//!   writer. The count of readers goes up by a compare-exchange from a word without WRITER.
//! * **D2** CLOSED, HEIR, UPGRADING and SLEEPING are set only by whoever has the gate; it takes them all back in the step
//!   in which it takes the lock, or before it opens the gate.
//! * **D3** Whoever has the gate sleeps only after it (1) has joined the sleepers on the word's address, and
//!   (2) has set SLEEPING by a compare-exchange from a word in which it cannot get in. A release that lets it
//!   in sees SLEEPING in the same step, or comes before that step, which then fails. So it is woken.
//! * **D4** After the step that releases the lock nobody touches it on behalf of the release: whom to wake
//!   is found in static memory by the address, which is a number.
//! * **D5** Nobody is passed over for ever. A writer with the gate closes the lock to further readers as
//!   soon as it has looked for a while; from then on the readers inside only leave. A lock that is free may
//!   be taken past it, until it is the heir. Who waits for the gate is not forgotten by the mutex.
//! * **D6** Who reads upgradably has the gate, and counts as a reader: so nobody else can, no writer waits,
//!   and readers come and go. It opens the gate when it gives that up, or has become the writer.
//! * **D7** The count is at most [`MOST`]: who would make it more waits.
//!
//! # Limits
//! Eight bytes. Not first come, first served. No poisoning. A thread that reads already and reads again may
//! wait for a writer that waits for it; so may a signal handler that reads, [in an
//! interrupt](crate::platform::Platform::in_interrupt) or not: for handlers that read there is the queued
//! lock. A reader that has come to the gate, because a writer or an upgrade was in its way, stays there as
//! long as the gate is taken: also behind one that reads upgradably, whose upgrade has failed or is not asked
//! for. So two that read the lock, one of them upgradably, must not wait for each other by another lock. A child of `fork` may use a lock for which no other thread waited in
//! that moment.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{
    ConstLock, RawLock, RawSharedLock, RawTimedLock, RawTimedSharedLock, RawUpgradableLock,
};
use crate::mutex::DefaultLock;
use crate::node::NodeId;
use crate::platform::{AtomicWord, ConstWord};
use crate::site::Site;
use crate::sleepers::{self, End, NEVER, Patience, SleepPlatform};

const FREE: u32 = 0;
const WRITER: u32 = 1;
/// No further readers beside those who are inside.
const CLOSED: u32 = 2;
/// Whoever has the gate sleeps.
const SLEEPING: u32 = 4;
/// Nobody but whoever has the gate.
const HEIR: u32 = 8;
/// Whoever has the gate is inside, and waits to be the only one.
const UPGRADING: u32 = 16;
const MARKS: u32 = CLOSED | SLEEPING | HEIR | UPGRADING;
const READER: u32 = 1 << 8;
/// The most readers inside: half of what the word can count.
pub const MOST: u32 = 1 << 23;

/// The tag of those who sleep for the word.
const TAG: u32 = 0;

/// What an acquisition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Read,
    Write,
    /// To become the only one inside, where one reads upgradably already.
    Upgrade,
}

impl Want {
    /// Whether whoever has the gate gets in.
    #[inline]
    const fn fits(self, word: u32) -> bool {
        match self {
            Self::Read => word & WRITER == 0 && word / READER < MOST,
            Self::Write => word & WRITER == 0 && word / READER == 0,
            Self::Upgrade => word / READER == 1,
        }
    }

    /// Whether a newcomer gets in.
    #[inline]
    const fn fits_newcomer(self, word: u32) -> bool {
        let inside = word / READER;
        self.fits(word) && word & HEIR == 0 && (word & CLOSED == 0 || inside == 0)
    }

    /// The word once it is inside, but for the marks.
    #[inline]
    const fn inside(self, word: u32) -> u32 {
        match self {
            Self::Read => word + READER,
            Self::Write => word | WRITER,
            Self::Upgrade => word - READER + WRITER,
        }
    }
}

/// The default reader-writer lock. See the [module](self) documentation.
#[derive(Debug)]
#[repr(C)]
pub struct DefaultRwLock<W> {
    word: W,
    gate: DefaultLock<W>,
}

impl<W: AtomicWord> DefaultRwLock<W> {
    /// Where it sleeps: a number once the lock is released (D4).
    #[inline]
    fn on<P: SleepPlatform<Word = W>>(&self, p: &P) -> usize {
        p.address(&self.word)
    }

    /// Comes in, if a newcomer may. `seen` is a guess: a wrong one costs no more than a look would have.
    #[inline]
    fn newcomer<P: SleepPlatform<Word = W>>(
        &self,
        p: &P,
        want: Want,
        site: Site,
        mut seen: u32,
    ) -> bool {
        while want.fits_newcomer(seen) {
            // D1. ORDERING: Acquire pairs with the Release of `leave`.
            match self.word.compare_exchange(seen, want.inside(seen), p.ordering(site, Acquire)) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Waits for the gate and then for the word. Returns whether it is inside; the gate is open again.
    #[cold]
    #[inline(never)]
    fn acquire_slow<P: SleepPlatform<Word = W>>(
        &self,
        p: &P,
        want: Want,
        site: Site,
        deadline: u64,
    ) -> bool {
        // A moment is often enough, and spares the gate.
        let tuning = p.tuning();
        let mut pauses = 1;
        for _ in 0..tuning.mutex_looks {
            if self.newcomer(p, want, site, self.word.load(Relaxed)) {
                return true;
            }
            p.relax(pauses);
            pauses = (pauses * 2).min(tuning.mutex_pauses);
        }
        if !self.gate.acquire_until(p, deadline) {
            return false;
        }
        let inside = Wait { lock: self, p, want, deadline, since: 0 }.wait();
        // SAFETY: acquired above.
        unsafe { self.gate.release(p) };
        inside
    }

    /// Leaves: `gone` goes from the word, and `come` comes.
    #[inline]
    fn leave<P: SleepPlatform<Word = W>>(&self, p: &P, site: Site, gone: u32, come: u32) {
        let on = self.on(p);
        // ORDERING: Release pairs with the Acquire of `newcomer` and of `Wait::wait`.
        let before = self.word.fetch_add(come.wrapping_sub(gone), p.ordering(site, Release));
        if before & SLEEPING == 0 {
            return;
        }
        // A reader that leaves others behind lets nobody in, but who waits to be the only one.
        let left = (before - gone + come) / READER;
        if left == 0 || come != 0 || left == 1 && before & UPGRADING != 0 {
            wake_gate(p, on);
        }
    }

    /// Takes back the marks of whoever has the gate (D2).
    fn unmark(&self, marks: u32) {
        self.word.fetch_and(!marks, Relaxed);
    }
}

/// Wakes whoever has the gate, after the release (D4).
#[cold]
#[inline(never)]
fn wake_gate<P: SleepPlatform>(p: &P, on: usize) {
    sleepers::wake(p, on, 1);
}

/// One wait with the gate.
struct Wait<'a, P: SleepPlatform> {
    lock: &'a DefaultRwLock<P::Word>,
    p: &'a P,
    want: Want,
    deadline: u64,
    /// When it began to sleep; 0 before.
    since: u64,
}

impl<P: SleepPlatform> Wait<'_, P> {
    /// Waits until it is inside, or the time is over; its marks are gone then.
    fn wait(&mut self) -> bool {
        let (p, word) = (self.p, &self.lock.word);
        let mut patience = Patience::new(p);
        loop {
            let seen = word.load(Relaxed);
            if self.want.fits(seen) {
                let to = self.want.inside(seen & !MARKS);
                // D1, D2. ORDERING: Acquire pairs with the Release of `leave`.
                let order = p.ordering(Site::RwGateTake, Acquire);
                if word.compare_exchange(seen, to, order).is_ok() {
                    return true;
                }
                continue;
            }
            if self.deadline != NEVER && p.now_ns() >= self.deadline {
                self.lock.unmark(MARKS);
                return false;
            }
            if patience.only_looks() {
                patience.wait(p);
                continue;
            }
            // D5.
            let marks = self.marks();
            if seen & marks != marks {
                // Fails where the word has changed: it looks again.
                let _ = word.compare_exchange(seen, seen | marks, Relaxed);
                continue;
            }
            if !patience.is_over() {
                patience.wait(p);
                continue;
            }
            // No release wakes who waits for room (D7).
            let for_room = self.want == Want::Read && seen & WRITER == 0;
            if for_room || sleepers::with_sleeper(p, |me| self.sleep(me, marks)) != Some(true) {
                p.doze();
            }
            patience = Patience::new(p);
        }
    }

    /// The marks that are due.
    fn marks(&self) -> u32 {
        let closed = match self.want {
            Want::Read => 0,
            Want::Write => CLOSED,
            Want::Upgrade => CLOSED | UPGRADING,
        };
        let limit = u64::from(self.p.tuning().mutex_heir_us) * 1000;
        if self.since != 0 && self.p.now_ns().saturating_sub(self.since) >= limit {
            closed | HEIR
        } else {
            closed
        }
    }

    /// D3. Returns false if it could not.
    fn sleep(&mut self, me: NodeId, marks: u32) -> bool {
        let (p, lock) = (self.p, self.lock);
        if !sleepers::enqueue(p, me, lock.on(p), TAG, End::Last) {
            return false;
        }
        if self.since == 0 {
            self.since = p.now_ns().max(1);
        }
        let mut seen = lock.word.load(Relaxed);
        loop {
            if self.want.fits(seen) {
                // Whoever has taken it out meanwhile has meant it, and it is awake.
                let _ = sleepers::cancel(p, me);
                break;
            }
            match lock.word.compare_exchange(seen, seen | marks | SLEEPING, Relaxed) {
                Ok(_) => {
                    // Woken or too late: it looks again either way.
                    let _ = sleepers::await_wake(p, me, self.deadline);
                    break;
                }
                Err(now) => seen = now,
            }
        }
        lock.unmark(SLEEPING);
        true
    }
}

// SAFETY: D1 gives exclusion; `RwTakeShared`, `RwTakeExclusive` and `RwGateTake` acquire what
// `RwLeaveShared` and `RwLeaveExclusive` release.
unsafe impl<P: SleepPlatform> RawSharedLock<P> for DefaultRwLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(0), gate: RawLock::<P>::new() }
    }

    #[inline]
    fn acquire_shared(&self, p: &P) {
        // Without a deadline it does not give up.
        self.acquire_shared_until(p, NEVER);
    }

    #[inline]
    fn try_acquire_shared(&self, p: &P) -> bool {
        self.newcomer(p, Want::Read, Site::RwTakeShared, FREE)
    }

    #[inline]
    unsafe fn release_shared(&self, p: &P) {
        self.leave(p, Site::RwLeaveShared, READER, 0);
    }

    #[inline]
    fn acquire_exclusive(&self, p: &P) {
        self.acquire_exclusive_until(p, NEVER);
    }

    #[inline]
    fn try_acquire_exclusive(&self, p: &P) -> bool {
        self.newcomer(p, Want::Write, Site::RwTakeExclusive, FREE)
    }

    #[inline]
    unsafe fn release_exclusive(&self, p: &P) {
        self.leave(p, Site::RwLeaveExclusive, WRITER, 0);
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & !MARKS != 0
    }

    #[inline]
    fn is_locked_exclusive(&self, _: &P) -> bool {
        self.word.load(Relaxed) & WRITER != 0
    }
}

impl<P: SleepPlatform> RawTimedSharedLock<P> for DefaultRwLock<P::Word> {
    #[inline]
    fn acquire_shared_until(&self, p: &P, deadline: u64) -> bool {
        let site = Site::RwTakeShared;
        self.newcomer(p, Want::Read, site, FREE) || self.acquire_slow(p, Want::Read, site, deadline)
    }

    #[inline]
    fn acquire_exclusive_until(&self, p: &P, deadline: u64) -> bool {
        let site = Site::RwTakeExclusive;
        self.newcomer(p, Want::Write, site, FREE)
            || self.acquire_slow(p, Want::Write, site, deadline)
    }
}

// SAFETY: D6. Who reads upgradably is a reader; who upgrades is a writer by D1, since it was the only
// reader in the step that makes it one.
unsafe impl<P: SleepPlatform> RawUpgradableLock<P> for DefaultRwLock<P::Word> {
    fn acquire_upgradable_until(&self, p: &P, deadline: u64) -> bool {
        if !self.gate.acquire_until(p, deadline) {
            return false;
        }
        let want = Want::Read;
        if (Wait { lock: self, p, want, deadline, since: 0 }.wait()) {
            return true;
        }
        // SAFETY: acquired above.
        unsafe { self.gate.release(p) };
        false
    }

    fn try_acquire_upgradable(&self, p: &P) -> bool {
        if !self.gate.try_acquire(p) {
            return false;
        }
        if self.newcomer(p, Want::Read, Site::RwTakeShared, FREE) {
            return true;
        }
        // SAFETY: acquired above.
        unsafe { self.gate.release(p) };
        false
    }

    unsafe fn release_upgradable(&self, p: &P) {
        // The gate first: the step out of the word is the last that touches the lock (D4).
        // SAFETY: D6.
        unsafe { self.gate.release(p) };
        self.leave(p, Site::RwLeaveShared, READER, 0);
    }

    unsafe fn upgrade_until(&self, p: &P, deadline: u64) -> bool {
        let want = Want::Upgrade;
        if !(Wait { lock: self, p, want, deadline, since: 0 }.wait()) {
            return false;
        }
        // SAFETY: D6.
        unsafe { self.gate.release(p) };
        true
    }

    unsafe fn try_upgrade(&self, p: &P) -> bool {
        // D1. ORDERING: as in `newcomer`.
        let order = p.ordering(Site::RwTakeExclusive, Acquire);
        if self.word.compare_exchange(READER, WRITER, order).is_err() {
            return false;
        }
        // SAFETY: D6.
        unsafe { self.gate.release(p) };
        true
    }

    unsafe fn downgrade_upgradable(&self, p: &P) {
        // SAFETY: D6.
        unsafe { self.gate.release(p) };
    }

    unsafe fn downgrade(&self, p: &P) {
        self.leave(p, Site::RwLeaveExclusive, WRITER, READER);
    }
}

impl<W: ConstWord> ConstLock for DefaultRwLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO, gate: DefaultLock::UNLOCKED };
    type Guard = lock_api::GuardSend;
}
