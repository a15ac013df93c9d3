//! The default reader-writer lock: readers share it, and a thread that is not admitted at once sleeps.
//!
//! # Problem
//! The queued reader-writer lock ([`crate::locks::queued_rw`]) is fair, and collapses where threads outnumber
//! CPUs: its queue spins. Locks that let readers in whenever readers are inside starve writers.
//!
//! # Source
//! The shape is that of Linux' `qrwlock`: a word with a count of readers, and a gate through which the writers that
//! are not admitted at once go one at a time. The gate is the default mutex ([`crate::locks::mutex`]), which knows
//! how to wait; so of the threads at the gate only one waits for the word, and it needs no queue. Readers sleep
//! beside the word, and are woken all at once, as those of Linux' `rwsem` and of most locks in user space.
//!
//! # One thread at a time
//! Where sections are short, threads that acquire the lock at once take its line and the data's from each other, and
//! many do less than one alone. Waiters [learn](crate::sleepers::Pace) where that is so: there readers go through the
//! gate as well, and the owner of the gate polls the word every few microseconds only, without closing it.
//!
//! # States of the word
//! ```text
//!  31         8    7       6       5            4           3      2          1        0
//! ┌────────────┬─────────┬───────┬────────────┬───────────┬──────┬──────────┬────────┬────────┐
//! │ readers    │ WAITING │ ASKED │ UPGRADABLE │ UPGRADING │ HEIR │ SLEEPING │ CLOSED │ WRITER │
//! └────────────┴─────────┴───────┴────────────┴───────────┴──────┴──────────┴────────┴────────┘
//!  free (0) ──read──► n readers ──read──► n + 1 readers      CLOSED: the owner of the gate, a writer, is next
//!  free (0) ──write─► WRITER    ──downgrade──► 1 reader      SLEEPING: it sleeps; writers may barge meanwhile
//!  n readers ──upgradable──► n + 1 readers, UPGRADABLE       HEIR: reserved for the owner of the gate
//!  1 reader, UPGRADABLE ──upgrade──► WRITER                  UPGRADING: waits for the other readers to leave
//!                                                            ASKED: others wait to read upgradably
//!                                                            WAITING: readers sleep
//! ```
//!
//! # Invariants
//! * **RWLOCK-1** WRITER is set by a compare-exchange from a word without readers and writer, or, by the
//!   upgradable reader, from a word whose one reader it is; and cleared by that writer. The count of readers goes
//!   up by a compare-exchange from a word without WRITER.
//! * **RWLOCK-2** CLOSED, HEIR and SLEEPING are set only by the owner of the gate; it takes them all back in the
//!   step in which it acquires the lock, or before it releases the gate. HEIR is also set for it, by a fair
//!   release that finds one of the others set.
//! * **RWLOCK-3** The owner of the gate sleeps only after it (1) has joined the sleepers on the word's address,
//!   and (2) has set SLEEPING by a compare-exchange from a word that does not admit it. A release that admits it
//!   sees SLEEPING in the same step, or comes before that step, which then fails. So it is woken.
//! * **RWLOCK-4** After the step that releases the lock the releasing thread does not touch it: the waiter to
//!   wake is found in static memory by the address, which is a number, and by what it waits for, which is its
//!   tag.
//! * **RWLOCK-5** No waiter is passed over for ever. A writer with the gate closes the lock to further readers: at
//!   once where readers leave quickly, unless yields pay, and else when it has polled for a while. From then on the
//!   readers inside only leave, and the lock is its next. Only while it sleeps may writers barge past it into a free
//!   lock, until it is the heir: the starving waiter that holds a reservation. Readers may not: the one that did would read
//!   alone, on one CPU, while all others wait. A reader that starves beside the word goes through the gate, and is
//!   the heir there. The mutex bounds the wait for the gate; threads that pass those that sleep there yield to them
//!   now and then. A waiter that wants to read upgradably is the next to be woken once it was woken in vain, but
//!   newcomers that read upgradably may pass it each time: for that there is no bound.
//! * **RWLOCK-6** UPGRADABLE is set with the reader that it stands for, from a word without it, and cleared by
//!   that reader. Readers come and go beside it. A waiter does not hold the gate while it waits for the
//!   upgradable reader. When that reader upgrades, it waits only for the readers inside, which UPGRADING allows
//!   only to leave.
//! * **RWLOCK-7** The count is at most [`MAX_READERS`]: a reader that would exceed it waits.
//! * **RWLOCK-8** A waiter that wants to read upgradably sleeps only after it has joined the sleepers and has set
//!   ASKED in a word with UPGRADABLE. The step that clears UPGRADABLE clears ASKED, and wakes one such waiter.
//!   That one sets ASKED again when it is admitted, or sleeps again, or gives up, since there may be more of
//!   them.
//! * **RWLOCK-9** A reader [in an interrupt](crate::platform::Platform::in_interrupt) passes threads that only
//!   wait, and waits for a writer inside without gate and queue: the code that it interrupts may own the gate, or
//!   be the next in the queue.
//! * **RWLOCK-10** A reader sleeps only after it has joined the sleepers and has set WAITING in a word with one of
//!   the bits that keep readers out (`KEEPS_OUT`). The step that clears the last of these bits clears WAITING
//!   too, or is followed by such a step of a thread that still may touch the lock; then all readers are woken. The
//!   release of a writer does it in one step (RWLOCK-4).
//!
//! # Limits
//! Eight bytes. Not first come, first served. Of the sleepers at the gate the one with the highest priority
//! acquires it next, but the present owner of the gate is before all of them. No poisoning. A thread that reads
//! already and reads again may wait for a writer that waits for it; so may a signal handler that reads without
//! declaring itself an interrupt. A handler that writes, or that reads upgradably, may wait for the code that it
//! interrupts. A storm of readers in interrupts can starve writers. A child of `fork` may use a lock only if no
//! other thread was waiting for it at that moment.

mod fair;
mod gate;
mod readers;
mod sleep;
#[cfg(test)]
mod tests;
mod turns;
mod upgradable;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lock::{ConstLock, RawSharedLock, RawTimedLock, RawTimedSharedLock};
use crate::locks::mutex::DefaultLock;
use crate::platform::{AtomicWord, ConstWord, Until};
use crate::site::Site;
use crate::sleepers::{self, Choice, NEVER, Pace, SleepPlatform, SpinBudget};

use self::gate::{End, Wait};
use self::sleep::Slept;

const FREE: u32 = 0;
const WRITER: u32 = 1;
/// The owner of the gate, a writer, is next: no newcomers (RWLOCK-5).
const CLOSED: u32 = 2;
/// The owner of the gate sleeps.
const SLEEPING: u32 = 4;
/// Reserved for the owner of the gate.
const HEIR: u32 = 8;
/// The upgradable reader waits for the other readers to leave.
const UPGRADING: u32 = 16;
/// One of the readers may become the writer.
const UPGRADABLE: u32 = 32;
/// Others wait to read upgradably.
const ASKED: u32 = 64;
/// Readers sleep (RWLOCK-10).
const WAITING: u32 = 128;
/// Each of these bits keeps readers out that do not own the gate.
const KEEPS_OUT: u32 = WRITER | CLOSED | HEIR | UPGRADING;
/// The state bits of the owner of the gate (RWLOCK-2).
const STATE_BITS: u32 = CLOSED | SLEEPING | HEIR;
const READER: u32 = 1 << 8;
/// The count of readers.
const READERS: u32 = !(READER - 1);
/// The most readers inside: half of what the word can count.
pub const MAX_READERS: u32 = 1 << 23;

/// The longest backoff of a reader that has lost a compare-exchange to others, in pauses.
const MAX_CROWD: u32 = 64;

/// What an acquisition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Read,
    Write,
    Upgradable,
}

impl Want {
    /// Whether the owner of the gate is admitted.
    #[inline]
    const fn fits(self, word: u32) -> bool {
        match self {
            Self::Read => word & UPGRADING == 0 && Self::fits_interrupt(word),
            Self::Write => word & WRITER == 0 && word / READER == 0,
            Self::Upgradable => word & UPGRADABLE == 0 && Self::fits_interrupt(word),
        }
    }

    /// Whether a reader in an interrupt is admitted (RWLOCK-9).
    #[inline]
    const fn fits_interrupt(word: u32) -> bool {
        word & WRITER == 0 && word / READER < MAX_READERS
    }

    /// Whether a newcomer is admitted.
    #[inline]
    fn fits_newcomer(self, word: u32) -> bool {
        // RWLOCK-5.
        let may_barge = matches!(self, Self::Write) && word & SLEEPING != 0;
        self.fits(word) && word & HEIR == 0 && (word & CLOSED == 0 || may_barge)
    }

    /// What the owner of the gate waits for.
    #[inline]
    const fn until(self) -> Until {
        Until::clear(match self {
            Self::Read => WRITER | UPGRADING,
            Self::Write => WRITER | READERS,
            Self::Upgradable => WRITER | UPGRADABLE,
        })
    }

    /// What a newcomer waits for, roughly.
    #[inline]
    const fn until_newcomer(self) -> Until {
        Until::clear(self.until().mask | HEIR | CLOSED)
    }

    /// The word after the acquisition.
    #[inline]
    const fn inside(self, word: u32) -> u32 {
        match self {
            Self::Read => word + READER,
            Self::Write => word | WRITER,
            Self::Upgradable => word + (READER | UPGRADABLE),
        }
    }

    /// The site at which it acquires the lock.
    #[inline]
    const fn site(self) -> Site {
        match self {
            Self::Read | Self::Upgradable => Site::RwTakeShared,
            Self::Write => Site::RwTakeExclusive,
        }
    }
}

/// The word `to` after a step; without WAITING if nothing keeps readers out: then [`left`] wakes them (RWLOCK-10).
const fn admitting(to: u32) -> u32 {
    if to & KEEPS_OUT == 0 { to & !WAITING } else { to }
}

/// Sleepers on the word's address, by what they wait for: their tags.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
enum Sleeper {
    /// Owns the gate, and waits to be admitted.
    Gate = 1,
    /// Reads upgradably, and waits for the other readers to leave.
    Upgrading,
    /// Waits until there is no upgradable reader.
    Asking,
    /// Waits to read.
    Reader,
}

/// Wakes the first of the sleepers that wait for this; in doubt more. Called after a release (RWLOCK-4).
#[cold]
#[inline(never)]
fn wake<P: SleepPlatform>(p: &P, on: usize, whom: Sleeper) {
    let mut found = false;
    let taken = sleepers::take(p, on, |tag| {
        if found {
            Choice::Stop
        } else if tag == whom as u32 {
            found = true;
            Choice::Take
        } else {
            Choice::Leave
        }
    });
    match taken {
        Some(taken) => taken.wake(p),
        None => sleepers::wake_later(p, on),
    }
}

/// The default reader-writer lock, with `G` as its gate. See the [module](self) documentation.
#[derive(Debug)]
#[repr(C)]
pub struct DefaultRwLock<W, G = DefaultLock<W>> {
    word: W,
    gate: G,
}

impl<W: AtomicWord, G> DefaultRwLock<W, G> {
    /// The address to sleep on: a number once the lock is released (RWLOCK-4).
    #[inline]
    fn on<P: SleepPlatform<Word = W>>(&self, p: &P) -> usize {
        p.address(&self.word)
    }

    /// Acquires the lock from `seen`, which admits it, in one step.
    #[inline]
    fn come<P: SleepPlatform<Word = W>>(&self, p: &P, want: Want, seen: u32) -> Result<u32, u32> {
        // RWLOCK-1, RWLOCK-6. ORDERING: Acquire pairs with the Release at `RwLeaveShared` and
        // `RwLeaveExclusive`.
        let order = p.ordering(want.site(), Acquire);
        let came = self.word.compare_exchange(seen, want.inside(seen), order);
        if came.is_ok() {
            // What goes through the gate was counted there.
            sleepers::acquired(p, self.on(p), p.runs_on());
        }
        came
    }

    /// Acquires the lock, if it admits a newcomer.
    #[inline]
    fn newcomer<P: SleepPlatform<Word = W>>(&self, p: &P, want: Want) -> bool {
        let mut seen = self.word.load(Relaxed);
        while want.fits_newcomer(seen) {
            match self.come(p, want, seen) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Whether a writer that waits for readers stops polling: it closes the lock at once where they leave quickly
    /// (RWLOCK-5), and does not yield to them. A yield may take whole time slices, in which newcomers read; the
    /// last reader of a closed lock wakes the writer as soon as it can have the lock. But where yields pay a reader may
    /// have yielded as well, and is back sooner than a writer sleeps and wakes.
    fn stops_polling<P>(&self, p: &P, want: Want, seen: u32, budget: &SpinBudget) -> bool
    where
        P: SleepPlatform<Word = W>,
    {
        let for_readers = want == Want::Write && seen / READER != 0;
        for_readers
            && !SpinBudget::yields_pay(p, self.on(p))
            && (!budget.only_spins() || sleepers::readers_leave_quickly(p, self.on(p)))
    }

    /// Polls for a moment whether the lock can be acquired without the gate; before that the thread yields to those that
    /// sleep there, once in a while (RWLOCK-5).
    fn polls<P>(&self, p: &P, want: Want) -> bool
    where
        P: SleepPlatform<Word = W>,
        G: RawTimedLock<P>,
    {
        let gives_way = turns::give_way(p, self.gate.sleepers(p));
        let (mut budget, mut crowd) = (SpinBudget::of_rwlock(p, p.address(&self.word)), 1);
        loop {
            let seen = self.word.load(Relaxed);
            if want.fits_newcomer(seen) {
                if self.come(p, want, seen).is_ok() {
                    if gives_way {
                        turns::gave_way(p);
                    }
                    return true;
                }
                // Other threads are acquiring and releasing just now. A reader that goes on trying takes the line
                // from them at each of their steps; one that backs off for a while is rid of them sooner.
                p.relax(crowd);
                crowd = (crowd * 2).min(MAX_CROWD);
            } else if budget.is_spent() || self.stops_polling(p, want, seen, &budget) {
                return false;
            } else {
                budget.watch(p, &self.word, want.until_newcomer());
            }
        }
    }

    /// Waits for the gate and then for the word. Returns whether it has acquired the lock; the gate is released
    /// again.
    #[cold]
    #[inline(never)]
    fn acquire_slow<P>(&self, p: &P, want: Want, deadline: u64) -> bool
    where
        P: SleepPlatform<Word = W>,
        G: RawTimedLock<P>,
    {
        if want == Want::Read {
            return if p.in_interrupt() {
                self.read_in_interrupt(p, deadline)
            } else {
                self.acquire_shared_slow(p, deadline)
            };
        }
        if is_over(p, deadline) {
            return self.newcomer(p, want);
        }
        if Pace::of_rwlock(p, self.on(p)).keeps_away() {
            return self.acquire_by_gate(p, want, deadline, true, 0) == End::Inside;
        }
        self.polls(p, want) || self.acquire_by_gate(p, want, deadline, false, 0) == End::Inside
    }

    /// Waits for the gate, and with it for the word, until that has come to an end; at first `away` from the lock, if
    /// that is still its pace. The waiter has waited since `since`, or 0 if it has just begun.
    fn acquire_by_gate<P>(&self, p: &P, want: Want, deadline: u64, away: bool, since: u64) -> End
    where
        P: SleepPlatform<Word = W>,
        G: RawTimedLock<P>,
    {
        if !self.gate.acquire_until(p, deadline) {
            return End::Over;
        }
        let mut wait = Wait { lock: self, p, want, deadline, since, closed: 0 };
        let inside = away && wait.keep_away();
        let end = if inside { End::Inside } else { wait.wait() };
        // SAFETY: acquired above.
        unsafe { self.gate.release_inside(p) };
        end
    }

    /// RWLOCK-9.
    fn read_in_interrupt<P: SleepPlatform<Word = W>>(&self, p: &P, deadline: u64) -> bool {
        let mut budget = SpinBudget::of_rwlock(p, p.address(&self.word));
        loop {
            let seen = self.word.load(Relaxed);
            if Want::fits_interrupt(seen) {
                if self.come(p, Want::Read, seen).is_ok() {
                    return true;
                }
            } else if is_over(p, deadline) {
                return false;
            } else if budget.is_spent() {
                p.timed_backoff();
            } else {
                budget.watch(p, &self.word, Until::clear(WRITER));
            }
        }
    }

    /// A writer leaves, or becomes a reader: adds `come` to the word.
    #[inline]
    fn end_write<P: SleepPlatform<Word = W>>(&self, p: &P, come: u32) {
        let on = self.on(p);
        // ORDERING: Release pairs with the Acquire of `come`, of `Wait::wait` and of `take_alone`.
        let order = p.ordering(Site::RwLeaveExclusive, Release);
        let mut seen = WRITER;
        loop {
            let to = admitting(seen - WRITER + come);
            match self.word.compare_exchange(seen, to, order) {
                Ok(_) => {
                    if seen != WRITER {
                        left(p, on, seen, to);
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }
}

impl<W: AtomicWord> DefaultRwLock<W> {
    /// Forgets all waiters; owners stay. For a child of `fork` with one thread: the waiters are not in it.
    pub fn forget_waiters(&self) {
        self.word.store(self.word.load(Relaxed) & (READERS | UPGRADABLE | WRITER), Relaxed);
        // The owner of the gate waits, too.
        self.gate.forget();
    }
}

/// After the step from `before` to `now`, which has released or downgraded: wakes the waiters that can be admitted
/// now (RWLOCK-3, RWLOCK-4, RWLOCK-10).
#[cold]
#[inline(never)]
fn left<P: SleepPlatform>(p: &P, on: usize, before: u32, now: u32) {
    if now & UPGRADING != 0 && now / READER == 1 {
        wake(p, on, Sleeper::Upgrading);
    }
    // A release that leaves readers inside admits no waiter, unless the lock was a writer's before.
    if now & SLEEPING != 0 && now & WRITER == 0 && (now / READER == 0 || before & WRITER != 0) {
        wake(p, on, Sleeper::Gate);
    }
    if before & !now & WAITING != 0 {
        readers::wake_all(p, on);
    }
}

/// Whether the deadline has passed.
#[inline]
fn is_over<P: SleepPlatform>(p: &P, deadline: u64) -> bool {
    deadline != NEVER && p.now_ns() >= deadline
}

// SAFETY: RWLOCK-1 gives exclusion; `RwTakeShared`, `RwTakeExclusive`, `RwGateTake` and `RwUpgrade` acquire what
// `RwLeaveShared` and `RwLeaveExclusive` release.
unsafe impl<P: SleepPlatform, G: RawTimedLock<P>> RawSharedLock<P> for DefaultRwLock<P::Word, G> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(FREE), gate: G::new() }
    }

    #[inline]
    fn acquire_shared(&self, p: &P) {
        // Without a deadline the thread does not give up.
        self.acquire_shared_until(p, NEVER);
    }

    #[inline]
    fn try_acquire_shared(&self, p: &P) -> bool {
        self.newcomer(p, Want::Read)
    }

    #[inline]
    unsafe fn release_shared(&self, p: &P) {
        let on = self.on(p);
        // ORDERING: as in `end_write`.
        let order = p.ordering(Site::RwLeaveShared, Release);
        let before = self.word.fetch_add(READER.wrapping_neg(), order);
        if before & (SLEEPING | UPGRADING) != 0 {
            left(p, on, before, before - READER);
        }
    }

    #[inline]
    fn acquire_exclusive(&self, p: &P) {
        self.acquire_exclusive_until(p, NEVER);
    }

    #[inline]
    fn try_acquire_exclusive(&self, p: &P) -> bool {
        self.newcomer(p, Want::Write)
    }

    #[inline]
    unsafe fn release_exclusive(&self, p: &P) {
        self.end_write(p, 0);
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & !(STATE_BITS | WAITING) != 0
    }

    #[inline]
    fn is_locked_exclusive(&self, _: &P) -> bool {
        self.word.load(Relaxed) & WRITER != 0
    }
}

impl<P: SleepPlatform, G: RawTimedLock<P>> RawTimedSharedLock<P> for DefaultRwLock<P::Word, G> {
    #[inline]
    fn acquire_shared_until(&self, p: &P, deadline: u64) -> bool {
        // Poll before the attempt: an attempt takes the line away from other readers, and after a wrong guess it
        // is in vain.
        let seen = self.word.load(Relaxed);
        Want::Read.fits_newcomer(seen) && self.come(p, Want::Read, seen).is_ok()
            || self.acquire_slow(p, Want::Read, deadline)
    }

    #[inline]
    fn acquire_exclusive_until(&self, p: &P, deadline: u64) -> bool {
        self.come(p, Want::Write, FREE).is_ok() || self.acquire_slow(p, Want::Write, deadline)
    }
}

impl<W: ConstWord, G: ConstLock> ConstLock for DefaultRwLock<W, G> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO, gate: G::UNLOCKED };
    type Guard = lock_api::GuardSend;
}
