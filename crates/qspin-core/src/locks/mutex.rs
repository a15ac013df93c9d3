//! The default mutex: a word whose release is a plain store.
//!
//! # Problem
//! People do not choose locks, they take the default. It must be near the best lock of every load: as
//! cheap as a spinlock where nobody waits, one that sleeps where threads outnumber CPUs, and fair where
//! it can be without standing still.
//!
//! # Source
//! Culling after Dave Dice, "Malthusian Locks", EuroSys 2017, as in [`crate::admission::Culled`], whose
//! [turns](crate::admission) it shares; the queue of sleepers beside the lock is [`crate::sleepers`].
//!
//! # States of the word
//! ```text
//!             take                      AWAKE: so many are awake and will take the lock
//!   free (0) ───────► LOCKED            HEIR:  and nobody else may
//!     ▲  ▲               │ │
//!     │  └─── store 0 ───┘ │ (nobody sleeps)     marks | LOCKED ──release──► marks
//!     └── release ─────────┘                     marks ──take──► LOCKED | marks of others
//! ```
//! Beside LOCKED stands where the owner took the lock, for the waiters' [spin budget](crate::sleepers::SpinBudget):
//! they look for some microseconds, yield some times, and sleep. A release wakes one sleeper if nobody is awake,
//! and marks it so; while somebody is awake the others sleep on, until the thread that passes them has had its
//! turns (MUTEX-6). A newcomer may barge past all of them.
//!
//! # Short turns
//! While somebody sleeps each release is a second read-modify-write. Where sections last some hundred
//! nanoseconds that is a good part of all work, so nobody is to sleep: who takes the lock there takes everybody's
//! marks away, and the releases wake one more each until nobody is left. Where turns are longer, those who are
//! awake only take CPUs from each other, and it takes its own mark away alone. What turns are like is noted beside
//! the sleepers, when some of them are over.
//!
//! # Invariants
//! * **MUTEX-1** LOCKED is set by a compare-exchange from a word in which it was clear, and cleared by the owner
//!   that has set it.
//! * **MUTEX-2** For each one that AWAKE counts, a waiter is awake that has counted itself, or was counted by who
//!   woke it, and that will take that back: when it takes the lock, or when it has joined the sleepers and before
//!   it looks at the lock for the last time. HEIR goes with the first that does. There may be more than are
//!   counted: a store may wipe out marks, one who takes the lock after short turns takes them all away, a fourth is
//!   not counted, and who was not takes one back for another: then one more is woken than had to.
//! * **MUTEX-3** Who releases the lock, and sees nobody awake in the very step, wakes a sleeper if there is one
//!   (SLEEP-1 of the sleepers). A waiter that sleeps has seen the lock taken, or somebody awake, after it had
//!   joined them. So there is always somebody left who will release or take the lock: no sleeper is forgotten.
//! * **MUTEX-4** After the step that releases the lock nobody touches it on behalf of the release: what
//!   follows is static memory, and the lock's address as a number.
//! * **MUTEX-5** Marks count in the process in which they were made, whose generation stands beside them: a
//!   child of `fork` has none of its parent's waiters.
//! * **MUTEX-6** Nobody is passed over for ever. A thread that has had its turns past others wakes one of them,
//!   unless as many are awake as can be counted, and gives way until it is relieved. One that is woken in vain
//!   joins the queue as the first, and that has waited for too long, asleep or yielding, is the heir.
//!
//! # Limits
//! Not first come, first served. No poisoning. A signal handler that waits for a lock while what it
//! interrupts is awake for another, keeps the sleepers of that other waiting.

mod fair;
mod word;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::counting;
use crate::events::Event;
use crate::lock::{ConstLock, RawLock, RawTimedLock};
use crate::node::NodeId;
use crate::platform::{AtomicWord, ConstWord, Until};
use crate::site::Site;
use crate::sleepers::{self, Choice, End, NEVER, Pace, SleepPlatform, SpinBudget, Taken};
use crate::turns::Turns;

use word::{
    HEIR, LOCKED, PLACE, are_enough, generation, locked_here, marks, marks_in, may_be_patient,
    one_less, one_more, owner_is_here, with_marks,
};

/// The tag of those who sleep for a mutex.
pub const TAG: u32 = 0;

/// The default mutex. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct DefaultLock<W> {
    word: W,
}

impl<W: AtomicWord> DefaultLock<W> {
    /// Takes the lock from `seen`, in which it is free; and takes back the marks, if it is `marked`.
    #[inline]
    fn take<P: SleepPlatform<Word = W>>(&self, p: &P, seen: u32, marked: bool) -> bool {
        // MUTEX-1. ORDERING: Acquire pairs with the Release of `release` and `release_slow`.
        let order = p.ordering(Site::MutexTake, Acquire);
        let of = generation(p);
        let mut marks = marks_in(of, seen);
        if marked && marks != 0 {
            marks = if sleepers::turns_are_short(p, self.address(p)) { 0 } else { one_less(marks) };
        }
        let to = with_marks(of, locked_here(p), marks);
        self.word.compare_exchange(seen, to, order).is_ok()
    }

    /// The address by which those who sleep for this lock are found.
    #[inline]
    pub fn address<P: SleepPlatform<Word = W>>(&self, p: &P) -> usize {
        p.address(&self.word)
    }

    /// Acquires the lock for one that has slept elsewhere, and was woken perhaps by a release of this lock,
    /// since it was moved here: the mark that was set for it is its own (MUTEX-2).
    #[cold]
    pub fn acquire_woken<P: SleepPlatform<Word = W>>(&self, p: &P) {
        let mut wait = Wait::new(self, p, NEVER);
        wait.budget = SpinBudget::of_notified(p, self.address(p));
        wait.marked = true;
        wait.slept = true;
        wait.begin();
        // Without a deadline it does not give up.
        wait.acquire(self.word.load(Relaxed));
    }

    /// The first step of an acquisition, from a word without marks; whether that was all.
    #[inline]
    pub fn acquire_at_once<P: SleepPlatform<Word = W>>(&self, p: &P) -> bool {
        // MUTEX-1. ORDERING: as in `take`.
        let order = p.ordering(Site::MutexTry, Acquire);
        self.word.compare_exchange(0, locked_here(p), order).is_ok()
    }

    /// Acquires the lock for one that was notified of something, otherwise than by this crate's condition, by
    /// somebody who most likely has the lock still.
    #[inline]
    pub fn acquire_notified<P: SleepPlatform<Word = W>>(&self, p: &P) {
        if !RawLock::<P>::try_acquire(self, p) {
            self.acquire_notified_slow(p);
        }
    }

    #[cold]
    #[inline(never)]
    fn acquire_notified_slow<P: SleepPlatform<Word = W>>(&self, p: &P) {
        counting::count(p, Event::MutexSlowpath);
        let mut wait = Wait::new(self, p, NEVER);
        wait.budget = SpinBudget::of_notified(p, self.address(p));
        // Without a deadline it does not give up.
        wait.acquire(self.word.load(Relaxed));
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow<P: SleepPlatform<Word = W>>(&self, p: &P, deadline: u64) -> bool {
        let seen = self.word.load(Relaxed);
        if seen & LOCKED == 0 && marks(p, seen) & HEIR == 0 && self.take(p, seen, false) {
            return true;
        }
        counting::count(p, Event::MutexSlowpath);
        Wait::new(self, p, deadline).acquire(seen)
    }

    #[cold]
    #[inline(never)]
    fn release_slow<P: SleepPlatform<Word = W>>(&self, p: &P, on: usize) {
        // ORDERING: Release pairs with the Acquire of `acquire_until` and of `take`.
        let order = p.ordering(Site::MutexRelease, Release);
        let turns = Turns::of(p);
        let of = generation(p);
        let mut rotates = None;
        let mut seen = self.word.load(Relaxed);
        loop {
            let awake = marks_in(of, seen);
            if awake != 0 && !*rotates.get_or_insert_with(|| rotates_now(p, on, &turns, awake)) {
                // Somebody awake will have the lock next (MUTEX-3).
                match self.word.compare_exchange(seen, with_marks(of, 0, awake), order) {
                    Ok(_) => return given_way(&turns),
                    Err(now) => seen = now,
                }
                continue;
            }
            if !sleepers::perhaps_anybody(p, on) {
                match self.word.compare_exchange(seen, with_marks(of, 0, awake), order) {
                    Ok(_) => break,
                    Err(now) => seen = now,
                }
                continue;
            }
            return self.release_to_sleeper(p, on, seen, 0);
        }
        // MUTEX-4.
        if sleepers::anybody(p, on) {
            wake_one(p, on);
        } else {
            sleepers::found_nobody(p, on);
        }
    }

    /// Releases the lock and wakes a sleeper, if there is one, who has this `mark` beside that of being awake.
    fn release_to_sleeper<P>(&self, p: &P, on: usize, mut seen: u32, mark: u32)
    where
        P: SleepPlatform<Word = W>,
    {
        // Before: whom a handler's fork leaves behind is not marked in the child.
        let of = generation(p);
        let taken = take_one(p, on);
        let wakes = taken.as_ref().is_some_and(|taken| !taken.is_empty());
        let to = |seen| {
            let marks = marks_in(of, seen);
            with_marks(of, 0, if wakes { one_more(marks, mark) } else { marks })
        };
        // ORDERING: as in `release_slow`.
        let order = p.ordering(Site::MutexRelease, Release);
        while let Err(now) = self.word.compare_exchange(seen, to(seen), order) {
            seen = now;
        }
        // MUTEX-4.
        match taken {
            None => sleepers::wake_later(p, on),
            Some(taken) if !taken.is_empty() => {
                taken.wake(p);
                woke(p);
            }
            Some(_) => {
                if marks_in(of, seen) == 0 && sleepers::anybody(p, on) {
                    wake_one(p, on);
                }
            }
        }
    }

    /// Takes a waiter's mark back; returns the word before.
    fn unmark<P: SleepPlatform<Word = W>>(&self, p: &P) -> u32 {
        let of = generation(p);
        let mut seen = self.word.load(Relaxed);
        while marks_in(of, seen) != 0 {
            let to = with_marks(of, seen & (LOCKED | PLACE), one_less(marks_in(of, seen)));
            match self.word.compare_exchange(seen, to, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        seen
    }
}

/// Whether this thread has had its turns past others that are `awake`, and wakes one more for that at this release.
fn rotates_now<P: SleepPlatform>(p: &P, on: usize, turns: &Turns<P>, awake: u32) -> bool {
    let number = turns.number();
    if turns.are_over() || !turns.count() {
        return false;
    }
    let short = turns.mean_ns(number + 1) < u64::from(p.tuning().mutex_short_ns);
    sleepers::note_turns(p, on, short);
    short || !are_enough(awake)
}

/// Whether these marks say that somebody has taken the place of a thread whose turns are over.
fn relieves(marks: u32) -> bool {
    marks == 0 || marks & HEIR != 0
}

/// After a release past others that wait.
fn given_way<P: SleepPlatform>(turns: &Turns<P>) {
    if turns.are_over() {
        turns.give_way();
    }
}

/// After a release that has woken somebody.
fn woke<P: SleepPlatform>(p: &P) {
    given_way(&Turns::of(p));
}

fn take_one<P: SleepPlatform>(p: &P, on: usize) -> Option<Taken> {
    let mut first = true;
    sleepers::take(p, on, |_| if core::mem::take(&mut first) { Choice::Take } else { Choice::Stop })
}

/// Wakes one sleeper, after a release that has not. The lock may be gone (MUTEX-4).
#[cold]
#[inline(never)]
fn wake_one<P: SleepPlatform>(p: &P, on: usize) {
    match take_one(p, on) {
        Some(taken) => taken.wake(p),
        None => sleepers::wake_later(p, on),
    }
}

/// One wait for the lock.
struct Wait<'a, P: SleepPlatform> {
    lock: &'a DefaultLock<P::Word>,
    p: &'a P,
    deadline: u64,
    /// Whether this waiter has set a mark, or one was set for it (MUTEX-2).
    marked: bool,
    /// Whether it has slept.
    slept: bool,
    /// When it first yielded or slept; 0 if it has only looked.
    since: u64,
    budget: SpinBudget,
    pace: Pace,
    /// The owner that it has seen last; 0 for none.
    owner: u32,
}

impl<'a, P: SleepPlatform> Wait<'a, P> {
    fn new(lock: &'a DefaultLock<P::Word>, p: &'a P, deadline: u64) -> Self {
        let on = p.address(&lock.word);
        let pace = Pace::of(p, on);
        Self {
            lock,
            p,
            deadline,
            marked: false,
            slept: false,
            since: 0,
            budget: SpinBudget::new(p, on, pace.is_rare()),
            pace,
            owner: 0,
        }
    }

    fn on(&self) -> usize {
        self.p.address(&self.lock.word)
    }

    fn is_over(&self) -> bool {
        self.deadline != NEVER && self.p.now_ns() >= self.deadline
    }

    /// It yields or sleeps now, perhaps not for the first time.
    fn begin(&mut self) {
        if self.since == 0 {
            self.since = self.p.now_ns().max(1);
        }
    }

    /// MUTEX-6: whether it is to be the heir. A waiter that has only polled does not read the clock.
    fn has_waited_too_long(&mut self) -> bool {
        if !self.budget.only_spins() {
            self.begin();
        }
        let waited_ns = || self.p.now_ns().saturating_sub(self.since);
        self.since != 0 && waited_ns() >= sleepers::starves_after_ns(self.p, self.on())
    }

    /// Waits until it has the lock, or the time is over.
    fn acquire(&mut self, seen: u32) -> bool {
        let (p, word) = (self.p, &self.lock.word);
        if self.is_over() || self.is_relieved(seen) {
            self.budget = SpinBudget::none();
        }
        let mut seen = word.load(Relaxed);
        loop {
            let marks = marks(p, seen);
            if seen & LOCKED == 0 && (marks & HEIR == 0 || self.marked) {
                if self.take(seen) {
                    if self.slept {
                        Turns::of(p).begin_anew();
                    }
                    return true;
                }
                seen = word.load(Relaxed);
                continue;
            }
            if !self.budget.only_spins() && self.is_over() {
                return self.give_up();
            }
            if !self.marked && !may_be_patient(marks) {
                self.budget.beside_others(p);
            }
            if !self.budget.is_spent() {
                self.mark(seen, marks);
                seen = self.poll(seen);
                continue;
            }
            if sleepers::with_sleeper(p, |me| self.sleep(me)) != Some(true) {
                // MUTEX-2: a waiter that dozes is not awake; it looks once more when it has said so.
                if core::mem::take(&mut self.marked) {
                    self.lock.unmark(p);
                } else {
                    p.doze();
                }
            }
            seen = word.load(Relaxed);
        }
    }

    /// Takes the lock, which is free in `seen`; or goes on watching it first, if that is to be known.
    fn take(&mut self, seen: u32) -> bool {
        let (p, lock, on) = (self.p, self.lock, self.on());
        if !self.pace.probes() || self.owner == 0 {
            return lock.take(p, seen, self.marked);
        }
        let owner = self.owner;
        let is_back = |now| now & (LOCKED | PLACE) == owner;
        if self.pace.probe(p, on, &lock.word, seen, is_back) == seen {
            return Pace::take(p, on, || lock.take(p, seen, self.marked));
        }
        if self.pace.is_rare() && self.budget.only_spins() {
            self.budget = SpinBudget::new(p, on, true);
        }
        false
    }

    /// Spends a slice of its time; returns the word.
    fn poll(&mut self, seen: u32) -> u32 {
        let (p, word) = (self.p, &self.lock.word);
        if owner_is_here(p, seen) {
            self.budget.give_way(p);
            return word.load(Relaxed);
        }
        self.owner = seen & (LOCKED | PLACE);
        let mut now = seen;
        let pace = &self.pace;
        self.budget.spend(p, |pauses| {
            now = pace.poll(p, word, Until::clear(LOCKED), pauses);
            now & LOCKED != 0
        });
        now
    }

    /// MUTEX-6: whether this thread's turns are over, and who was woken for that has had the lock.
    fn is_relieved(&self, seen: u32) -> bool {
        let turns = Turns::of(self.p);
        let relieved = turns.are_over()
            && seen & LOCKED != 0
            && !sleepers::is_quiet(self.p, self.on())
            && relieves(marks(self.p, seen));
        if relieved {
            turns.begin_anew();
        }
        relieved
    }

    /// Marks the word, where that is due (MUTEX-2, MUTEX-6).
    fn mark(&mut self, seen: u32, marks: u32) {
        if seen & LOCKED == 0 || sleepers::is_quiet(self.p, self.on()) {
            return;
        }
        let of = generation(self.p);
        let marks = marks & marks_in(of, seen);
        let is_due = self.marked && marks & HEIR == 0 && self.has_waited_too_long();
        // Others may have taken the mark of this one away (MUTEX-2).
        let to = if is_due {
            counting::count(self.p, Event::MutexHeir);
            if marks == 0 { one_more(0, HEIR) } else { marks | HEIR }
        } else if marks == 0 || !self.marked && may_be_patient(marks) {
            one_more(marks, 0)
        } else {
            return;
        };
        let word = with_marks(of, seen & (LOCKED | PLACE), to);
        if self.lock.word.compare_exchange(seen, word, Relaxed).is_ok() {
            self.marked = true;
            if to & HEIR != 0 {
                // Who gave up at once would be the heir for nothing.
                self.budget = SpinBudget::of_heir(self.p, self.on());
            }
        }
    }

    /// Sleeps until somebody wakes it, or the time is over; or looks again, if the lock is free by now.
    /// Returns false if it could not.
    fn sleep(&mut self, me: NodeId) -> bool {
        let (p, lock) = (self.p, self.lock);
        let end = if self.slept { End::First } else { End::Last };
        if !sleepers::enqueue(p, me, self.on(), TAG, end) {
            return false;
        }
        self.slept = true;
        self.begin();
        // MUTEX-2.
        if core::mem::take(&mut self.marked) {
            lock.unmark(p);
        }
        // The last look (MUTEX-3).
        let seen = lock.word.load(Relaxed);
        let woken = if seen & LOCKED == 0 && marks(p, seen) == 0 {
            !sleepers::cancel(p, me)
        } else {
            sleepers::await_wake(p, me, self.deadline)
        };
        if woken {
            // Perhaps it was marked as awake by whoever has woken it.
            self.marked = true;
        }
        self.pace = Pace::of(p, self.on());
        self.budget = SpinBudget::new(p, self.on(), self.pace.is_rare());
        true
    }

    /// The time is over. What was meant for this waiter is handed on (MUTEX-3).
    #[cold]
    fn give_up(&mut self) -> bool {
        let (p, on) = (self.p, self.on());
        if core::mem::take(&mut self.marked) {
            let seen = self.lock.unmark(p);
            if seen & LOCKED == 0 && sleepers::anybody(p, on) {
                wake_one(p, on);
            }
        }
        false
    }
}

// SAFETY: MUTEX-1 gives exclusion; `MutexTry` and `MutexTake` acquire what `MutexStore` and `MutexRelease`
// release.
unsafe impl<P: SleepPlatform> RawLock<P> for DefaultLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { word: P::Word::new(0) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        // Without a deadline it does not give up.
        self.acquire_until(p, NEVER);
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        let mut seen = self.word.load(Relaxed);
        while seen & LOCKED == 0 && marks(p, seen) & HEIR == 0 {
            if self.take(p, seen, false) {
                return true;
            }
            seen = self.word.load(Relaxed);
        }
        false
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        let on = p.address(&self.word);
        if !sleepers::is_quiet(p, on) {
            return self.release_slow(p, on);
        }
        // MUTEX-1: since it was taken there were only marks. ORDERING: as in `release_slow`.
        self.word.overwrite(0, p.ordering(Site::MutexStore, Release));
        // MUTEX-4.
        if !sleepers::stored(p, on) {
            wake_one(p, on);
        }
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }
}

impl<P: SleepPlatform> RawTimedLock<P> for DefaultLock<P::Word> {
    #[inline]
    fn acquire_until(&self, p: &P, deadline: u64) -> bool {
        self.acquire_at_once(p) || self.acquire_slow(p, deadline)
    }
}

impl<W: ConstWord> ConstLock for DefaultLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO };
    type Guard = lock_api::GuardSend;
}
