//! The default mutex: a word whose release is a plain store.
//!
//! # Problem
//! Most programs do not choose a lock, they take the default. It must come near the best lock for every load: as
//! cheap as a spinlock where no thread waits, sleeping where threads outnumber CPUs, and fair where fairness does
//! not stall it.
//!
//! # Source
//! Culling after Dave Dice, "Malthusian Locks", EuroSys 2017, as in [`crate::admission::Culled`], with which it
//! shares the barging quantum ([culling](crate::admission)); the queue of sleepers beside the lock is
//! [`crate::sleepers`].
//!
//! # States of the word
//! ```text
//!             acquire                   AWAKE: the number of counted awake waiters
//!   free (0) ───────► LOCKED            HEIR:  only counted waiters may acquire
//!     ▲  ▲               │ │
//!     │  └─── store 0 ───┘ │ (no sleepers)      bits | LOCKED ──release──► bits
//!     └── release ─────────┘                    bits ──acquire──► LOCKED | bits of other waiters
//! ```
//! The *state bits* are AWAKE and HEIR. Beside LOCKED the word says on which CPU the owner acquired the lock, for
//! the waiters' [spin budget](crate::sleepers::SpinBudget): they poll for some microseconds, yield some times,
//! and sleep. A release that sees no counted awake waiter wakes one sleeper, or [some](crate::sleepers::wakes)
//! where the lock is one of many, and counts it in AWAKE. While a counted waiter is awake the other waiters sleep on,
//! until the thread that barges past them has used up its barging quantum (MUTEX-6). Newcomers may barge past every
//! waiter while there is no *heir*: the starving waiter that holds a reservation (HEIR).
//!
//! # Short turns
//! While a waiter sleeps each release is a second read-modify-write. Where critical sections last some hundred
//! nanoseconds that is a good part of all work, so no waiter should sleep there: a waiter that acquires the lock
//! clears all state bits, and each release wakes one more sleeper until none is left. Where turns are longer, or
//! many CPUs acquire locks, awake waiters only take CPUs or the word's line from each other, and a waiter that
//! acquires the lock takes back only its own count. How long turns are is noted in the sleepers' bucket, each time
//! that a thread's barging quantum ends.
//!
//! # Invariants
//! * **MUTEX-1** LOCKED is set by a compare-exchange from a word in which it was clear, and cleared by the owner
//!   that has set it.
//! * **MUTEX-2** For each one that AWAKE counts there is an awake waiter that counted itself, or that was counted
//!   by the thread that woke it. One that [rests](crate::sleepers::Rest) is awake in this sense: it looks again
//!   whatever others do. The waiter takes its count back when it acquires the lock, or when it has joined
//!   the sleepers and before its last poll of the lock. The first waiter that does so clears HEIR. More waiters
//!   may be awake than are counted: a plain store may wipe out state bits; a waiter that acquires the lock after
//!   short turns clears all of them; a fourth waiter is not counted, and takes back the count of another; and where
//!   hardly more waiters can poll than may stay awake, one is counted only after its first slice. Then one more
//!   sleeper is woken than necessary.
//! * **MUTEX-3** A release that, in the releasing step itself, sees no counted awake waiter wakes a sleeper if
//!   there is one (SLEEP-1 of the sleepers). A waiter that sleeps has seen, after it joined the queue, the lock
//!   taken or a counted awake waiter. So there is always a thread left that will release or acquire the lock: no
//!   wake-up is lost.
//! * **MUTEX-4** After the step that releases the lock the releasing thread does not touch it: what follows uses
//!   static memory, and the lock's address as a number.
//! * **MUTEX-5** State bits count only in the process that set them, whose generation stands beside them: a child
//!   of `fork` has none of its parent's waiters.
//! * **MUTEX-6** No waiter is passed over for ever. A thread that has used up its barging quantum wakes a
//!   sleeper, unless its turns are long and as many waiters are awake as can be counted, and yields now and then
//!   until it is replaced. Where waiters [rest](crate::sleepers::Rest) one at a time it wakes none: the one that
//!   rests becomes the heir after such a quantum. A waiter that was woken in vain rejoins the queue at its front. A
//!   waiter that has waited for too long, asleep, yielding or resting, becomes the heir. If it must sleep again,
//!   because the owner keeps the lock for longer than an heir stays awake, the release that wakes it makes it the
//!   heir.
//!
//! # Limits
//! Not first come, first served. No poisoning. A waiter without a node polls, and is in no queue: others may pass it
//! without bound. If a signal handler waits for a lock while the code that it
//! interrupted is counted as awake for another lock, the sleepers of that other lock are not woken meanwhile.

mod fair;
#[cfg(test)]
mod tests;
mod wait;
mod word;

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use crate::counting;
use crate::events::Event;
use crate::lock::{ConstLock, RawLock, RawTimedLock};
use crate::platform::{AtomicWord, ConstWord, Until};
use crate::quantum::Quantum;
use crate::site::Site;
use crate::sleepers::{self, Choice, NEVER, Pace, Rest, SleepPlatform, SpinBudget, Taken};

use wait::{Wait, Watched};
use word::{
    HEIR, LOCKED, PLACE, are_enough, bits, bits_in, generation, locked_on, one_less, one_more,
    owner_is_here, owners_cpu, with_bits,
};

/// The tag of the sleepers of a mutex.
pub const TAG: u32 = 0;
/// The tag of one that was woken in vain, and has waited for too long (MUTEX-6).
const STARVES: u32 = 1;

/// The default mutex. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct DefaultLock<W> {
    word: W,
}

impl<W: AtomicWord> DefaultLock<W> {
    /// Makes the lock free, whatever it was. For a child of `fork` with one thread, where neither the owner nor the
    /// waiters are.
    pub(crate) fn forget(&self) {
        self.word.store(0, Relaxed);
    }

    /// Acquires the lock from `seen`, in which it is free. A waiter that is `counted` takes its count back, or,
    /// after short turns, clears all state bits.
    #[inline]
    fn take<P: SleepPlatform<Word = W>>(&self, p: &P, seen: u32, counted: bool) -> bool {
        // MUTEX-1. ORDERING: Acquire pairs with the Release of `release`, `release_slow`, `release_to_sleeper`
        // and `release_fair`.
        let order = p.ordering(Site::MutexTake, Acquire);
        let of = generation(p);
        let mut bits = bits_in(of, seen);
        if counted && bits != 0 {
            bits = if sleepers::turns_are_short(p, self.address(p)) { 0 } else { one_less(bits) };
        }
        self.take_from(p, seen, with_bits(of, 0, bits), order)
    }

    /// Acquires the lock from `seen`, if it is free there for a thread that is not counted.
    #[inline]
    fn newcomer<P: SleepPlatform<Word = W>>(&self, p: &P, seen: u32) -> bool {
        seen & LOCKED == 0 && bits(p, seen) & HEIR == 0 && self.take(p, seen, false)
    }

    /// MUTEX-1: acquires the lock from `seen`, with these bits beside what an owner sets, and counts that.
    #[inline]
    fn take_from<P>(&self, p: &P, seen: u32, beside: u32, order: Ordering) -> bool
    where
        P: SleepPlatform<Word = W>,
    {
        let cpu = p.runs_on();
        let taken = self.word.compare_exchange(seen, beside | locked_on(cpu), order).is_ok();
        if taken {
            sleepers::acquired(p, p.address(&self.word), cpu);
        }
        taken
    }

    /// The address by which the sleepers of this lock are found.
    #[inline]
    pub fn address<P: SleepPlatform<Word = W>>(&self, p: &P) -> usize {
        p.address(&self.word)
    }

    /// Acquires the lock for a waiter that has slept elsewhere, was moved here, and was then woken, perhaps by a
    /// release of this lock: the count that was set for it is its own (MUTEX-2).
    #[cold]
    pub fn acquire_woken<P: SleepPlatform<Word = W>>(&self, p: &P) {
        let mut wait = Wait::new(self, p, NEVER);
        wait.budget = SpinBudget::of_notified(p, self.address(p));
        wait.counted = true;
        wait.slept = true;
        wait.begin();
        // Without a deadline the waiter does not give up.
        wait.acquire(self.word.load(Relaxed));
    }

    /// The first step of an acquisition, from a free word without state bits. Returns whether it acquired the
    /// lock.
    #[inline]
    pub fn acquire_at_once<P: SleepPlatform<Word = W>>(&self, p: &P) -> bool {
        // MUTEX-1. ORDERING: as in `take`.
        let order = p.ordering(Site::MutexTry, Acquire);
        self.take_from(p, 0, 0, order)
    }

    /// The first step of a thread that comes right back to a lock at which others may sleep, and from which waiters keep away.
    /// Where it finds the bits of those that are awake, [`Self::acquire_at_once`] would fail, at the price of one that does not.
    #[cold]
    #[inline(never)]
    fn acquire_past<P: SleepPlatform<Word = W>>(&self, p: &P) -> bool {
        self.newcomer(p, self.word.load(Relaxed))
    }

    /// Acquires the lock for a waiter that was notified, other than by this crate's condition variable, by a
    /// thread that most likely still owns the lock.
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
        // Without a deadline the waiter does not give up.
        wait.acquire(self.word.load(Relaxed));
    }

    #[cold]
    #[inline(never)]
    fn acquire_slow<P: SleepPlatform<Word = W>>(&self, p: &P, deadline: u64) -> bool {
        let on = self.address(p);
        let seen = self.word.load(Relaxed);
        // A free lock without state bits was not free at the first step: two threads have it in turns.
        let tries = seen != 0 || !Pace::is_to_keep_away(p, on);
        if tries && self.newcomer(p, seen) {
            return true;
        }
        counting::count(p, Event::MutexSlowpath);
        let pace = Pace::unless_glancing(p, on);
        if pace.is_none() && self.glance(p, seen) {
            return true;
        }
        let mut pace = pace.unwrap_or_else(|| Pace::of(p, on));
        // Where waiters keep away, they do so before their first attempt: the lock is free every few nanoseconds, and
        // the first attempt would mostly succeed, at the price that all keep away from.
        if deadline == NEVER && pace.keeps_away() && !owner_is_here(p, seen) {
            pace.interval(p, (on, owners_cpu(seen)), &self.word, Until::clear(LOCKED));
        }
        let watched =
            if deadline == NEVER { self.watch(p, &mut pace, seen) } else { Watched::NotAtAll };
        match watched {
            Watched::Acquired => true,
            Watched::NotAtAll => Wait::at(self, p, deadline, pace).acquire(seen),
            Watched::InVain => {
                let mut wait = Wait::at(self, p, deadline, pace);
                wait.budget = wait.budget.after_first_slice();
                wait.polled = true;
                wait.acquire(self.word.load(Relaxed))
            }
        }
    }

    /// Releases the lock; a thread that passes waiters `yields` once its barging quantum is used up.
    #[inline]
    fn release_passing<P: SleepPlatform<Word = W>>(&self, p: &P, yields: bool) {
        let on = p.address(&self.word);
        if !sleepers::is_quiet(p, on) {
            return self.release_slow(p, on, yields.then(|| Quantum::of(p)));
        }
        // MUTEX-1: since the lock was acquired only state bits were set.
        // ORDERING: as in `release_slow`.
        self.word.overwrite(0, p.ordering(Site::MutexStore, Release));
        // MUTEX-4.
        if !sleepers::stored(p, on) {
            wake_one(p, on);
        }
    }

    /// Releases the lock where waiters may be. Without a `quantum` the thread does not yield.
    #[cold]
    #[inline(never)]
    fn release_slow<P>(&self, p: &P, on: usize, quantum: Option<Quantum<P>>)
    where
        P: SleepPlatform<Word = W>,
    {
        // ORDERING: Release pairs with the Acquire of `acquire_at_once` and of `take`.
        let order = p.ordering(Site::MutexRelease, Release);
        let of = generation(p);
        let mut rotates = None;
        let mut seen = self.word.load(Relaxed);
        loop {
            let awake = bits_in(of, seen);
            if awake != 0
                && !*rotates.get_or_insert_with(|| rotates_now(p, on, quantum.as_ref(), awake))
            {
                // An awake waiter will acquire the lock next (MUTEX-3).
                match self.word.compare_exchange(seen, with_bits(of, 0, awake), order) {
                    Ok(_) => return given_way(on, quantum.as_ref()),
                    Err(now) => seen = now,
                }
                continue;
            }
            if !sleepers::perhaps_anybody(p, on) {
                match self.word.compare_exchange(seen, with_bits(of, 0, awake), order) {
                    Ok(_) => break,
                    Err(now) => seen = now,
                }
                continue;
            }
            self.release_to_sleeper(p, on, seen, 0);
            return given_way(on, quantum.as_ref());
        }
        // MUTEX-4.
        if sleepers::anybody(p, on) {
            wake_one(p, on);
        } else {
            sleepers::found_nobody(p, on);
        }
    }

    /// Releases the lock and wakes a sleeper or some, if there are any. They are counted as awake; `bit` is HEIR, or 0
    /// where one is the heir only if the first starves.
    fn release_to_sleeper<P>(&self, p: &P, on: usize, mut seen: u32, bit: u32)
    where
        P: SleepPlatform<Word = W>,
    {
        // Read before a sleeper is taken: if a signal handler forks in between, the child ignores the bits set
        // for a sleeper that it does not have.
        let of = generation(p);
        let (taken, starves) = take_some(p, on, sleepers::wakes::number(p, on));
        let bit = if starves { HEIR } else { bit };
        let wakes = taken.as_ref().map_or(0, Taken::count);
        let to = |seen| {
            let awake = (0..wakes).fold(bits_in(of, seen), |bits, _| one_more(bits, bit));
            with_bits(of, 0, awake)
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
            }
            Some(_) => {
                if bits_in(of, seen) == 0 && sleepers::anybody(p, on) {
                    wake_one(p, on);
                }
            }
        }
    }

    /// Takes a waiter's count back; returns the word before.
    fn clear<P: SleepPlatform<Word = W>>(&self, p: &P) -> u32 {
        let of = generation(p);
        let mut seen = self.word.load(Relaxed);
        while bits_in(of, seen) != 0 {
            let to = with_bits(of, seen & (LOCKED | PLACE), one_less(bits_in(of, seen)));
            match self.word.compare_exchange(seen, to, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        seen
    }
}

/// Whether this thread has just used up its barging quantum, with others `awake`, and wakes one more for that at
/// this release.
fn rotates_now<P: SleepPlatform>(
    p: &P,
    on: usize,
    quantum: Option<&Quantum<P>>,
    awake: u32,
) -> bool {
    let Some(quantum) = quantum else { return false };
    let number = quantum.number();
    if quantum.is_over() || !quantum.count_past(sleepers::hurried_by(p, on)) {
        return false;
    }
    let mean_ns = quantum.mean_ns(number + 1);
    sleepers::note_turns(p, on, mean_ns);
    mean_ns < u64::from(p.tuning().mutex_short_ns) || !are_enough(awake) && !Rest::is_sure(p, on)
}

/// After a release past waiters: yields when that is due.
fn given_way<P: SleepPlatform>(on: usize, quantum: Option<&Quantum<P>>) {
    if let Some(quantum) = quantum
        && quantum.is_over()
    {
        let p = quantum.p;
        // A waiter that rests does not need this CPU.
        quantum.give_way_each(sleepers::turns_between_yields(p, on), Rest::is_sure(p, on));
    }
}

/// Takes out so many sleepers, and says whether the first one starves.
fn take_some<P: SleepPlatform>(p: &P, on: usize, most: u32) -> (Option<Taken>, bool) {
    let (mut first, mut left) = (None, most);
    let taken = sleepers::take(p, on, |tag| {
        if left == 0 {
            return Choice::Stop;
        }
        left -= 1;
        first = first.or(Some(tag));
        Choice::Take
    });
    (taken, first == Some(STARVES))
}

/// Wakes one sleeper, after a release that did not. The lock may no longer exist (MUTEX-4).
#[cold]
#[inline(never)]
fn wake_one<P: SleepPlatform>(p: &P, on: usize) {
    match take_some(p, on, 1).0 {
        Some(taken) => taken.wake(p),
        None => sleepers::wake_later(p, on),
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
        // Without a deadline the waiter does not give up.
        self.acquire_until(p, NEVER);
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        let mut seen = self.word.load(Relaxed);
        while seen & LOCKED == 0 && bits(p, seen) & HEIR == 0 {
            if self.take(p, seen, false) {
                return true;
            }
            seen = self.word.load(Relaxed);
        }
        false
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        self.release_passing(p, true);
    }

    #[inline]
    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & LOCKED != 0
    }
}

impl<P: SleepPlatform> RawTimedLock<P> for DefaultLock<P::Word> {
    #[inline]
    fn acquire_until(&self, p: &P, deadline: u64) -> bool {
        // A line that another CPU has may be fetched twice where a load comes first: so only where waiters keep away.
        let on = self.address(p);
        let past = sleepers::comes_back_past_sleepers(p, on) && Pace::is_to_keep_away(p, on);
        let now = if past { self.acquire_past(p) } else { self.acquire_at_once(p) };
        now || self.acquire_slow(p, deadline)
    }

    unsafe fn release_inside(&self, p: &P) {
        self.release_passing(p, false);
    }

    #[inline]
    fn sleepers(&self, p: &P) -> u32 {
        sleepers::number(p, self.address(p))
    }
}

impl<W: ConstWord> ConstLock for DefaultLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { word: W::ZERO };
    type Guard = lock_api::GuardSend;
}
