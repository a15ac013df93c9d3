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
//! and sleep. A release that sees no counted awake waiter wakes one sleeper and counts it in AWAKE. While a
//! counted waiter is awake the other waiters sleep on, until the thread that barges past them has used up its
//! barging quantum (MUTEX-6). Newcomers may barge past every waiter while there is no *heir*: the starving waiter
//! that holds a reservation (HEIR).
//!
//! # Short turns
//! While a waiter sleeps each release is a second read-modify-write. Where critical sections last some hundred
//! nanoseconds that is a good part of all work, so no waiter should sleep there: a waiter that acquires the lock
//! clears all state bits, and each release wakes one more sleeper until none is left. Where turns are longer,
//! awake waiters only take CPUs from each other, and a waiter that acquires the lock takes back only its own
//! count. How long turns are is noted in the sleepers' bucket, each time that a thread's barging quantum ends.
//!
//! # Invariants
//! * **MUTEX-1** LOCKED is set by a compare-exchange from a word in which it was clear, and cleared by the owner
//!   that has set it.
//! * **MUTEX-2** For each one that AWAKE counts there is an awake waiter that counted itself, or that was counted
//!   by the thread that woke it. The waiter takes its count back when it acquires the lock, or when it has joined
//!   the sleepers and before its last poll of the lock. The first waiter that does so clears HEIR. More waiters
//!   may be awake than are counted: a plain store may wipe out state bits; a waiter that acquires the lock after
//!   short turns clears all of them; a fourth waiter is not counted, and takes back the count of another. Then
//!   one more sleeper is woken than necessary.
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
//!   until it is replaced. A waiter that was woken in vain rejoins the queue at its front. A waiter that has
//!   waited for too long, asleep or yielding, becomes the heir.
//!
//! # Limits
//! Not first come, first served. No poisoning. If a signal handler waits for a lock while the code that it
//! interrupted is counted as awake for another lock, the sleepers of that other lock are not woken meanwhile.

mod fair;
mod word;

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use crate::counting;
use crate::events::Event;
use crate::lock::{ConstLock, RawLock, RawTimedLock};
use crate::node::NodeId;
use crate::platform::{AtomicWord, Budget, ConstWord, Until};
use crate::quantum::Quantum;
use crate::site::Site;
use crate::sleepers::{self, Choice, End, NEVER, Pace, SleepPlatform, SpinBudget, Taken};

use word::{
    HEIR, LOCKED, PLACE, are_enough, bits, bits_in, generation, locked_on, may_stay_awake,
    one_less, one_more, owner_is_here, with_bits,
};

/// How often a waiter may lose the lock to others before it needs a spin budget.
const FIRST_TRIES: u32 = 8;

/// The tag of the sleepers of a mutex.
pub const TAG: u32 = 0;

/// The default mutex. See the [module](self) documentation.
#[derive(Debug)]
#[repr(transparent)]
pub struct DefaultLock<W> {
    word: W,
}

impl<W: AtomicWord> DefaultLock<W> {
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

    /// MUTEX-1: acquires the lock from `seen`, with these bits beside what an owner sets, and counts that.
    #[inline]
    fn take_from<P>(&self, p: &P, seen: u32, beside: u32, order: Ordering) -> bool
    where
        P: SleepPlatform<Word = W>,
    {
        let cpu = p.runs_on();
        let taken = self.word.compare_exchange(seen, beside | locked_on(cpu), order).is_ok();
        if let (true, Some(cpu), Some(throughput)) = (taken, cpu, p.throughput()) {
            throughput.count(cpu);
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
        let seen = self.word.load(Relaxed);
        if seen & LOCKED == 0 && bits(p, seen) & HEIR == 0 && self.take(p, seen, false) {
            return true;
        }
        counting::count(p, Event::MutexSlowpath);
        let pace = Pace::of(p, self.address(p));
        let watched =
            if deadline == NEVER { self.watch(p, &pace, seen) } else { Watched::NotAtAll };
        match watched {
            Watched::Acquired => true,
            Watched::NotAtAll => Wait::at(self, p, deadline, pace).acquire(seen),
            Watched::InVain => {
                let mut wait = Wait::at(self, p, deadline, pace);
                wait.budget = wait.budget.after_first_slice();
                wait.acquire(self.word.load(Relaxed))
            }
        }
    }

    /// Watches the word for one slice, where waiters watch and none sleeps: most waits for a short section end
    /// here, before the waiter needs a spin budget.
    #[inline]
    fn watch<P: SleepPlatform<Word = W>>(&self, p: &P, pace: &Pace, mut seen: u32) -> Watched {
        let on = self.address(p);
        let pauses = if pace.watches() { SpinBudget::first_slice(p, on) } else { None };
        let Some(pauses) = pauses else { return Watched::NotAtAll };
        for _ in 0..FIRST_TRIES {
            if !sleepers::is_quiet(p, on) || owner_is_here(p, seen) {
                break;
            }
            if seen & LOCKED != 0 {
                let looks = Budget::Looks(pauses);
                seen = p.wait_until(&self.word, Until::clear(LOCKED), looks, Relaxed);
                if seen & LOCKED != 0 {
                    return Watched::InVain;
                }
            }
            if bits(p, seen) & HEIR != 0 {
                break;
            }
            if pace.take(p, on, || self.take(p, seen, false)) {
                SpinBudget::was_enough(p, on);
                return Watched::Acquired;
            }
            seen = self.word.load(Relaxed);
        }
        Watched::NotAtAll
    }

    #[cold]
    #[inline(never)]
    fn release_slow<P: SleepPlatform<Word = W>>(&self, p: &P, on: usize) {
        // ORDERING: Release pairs with the Acquire of `acquire_at_once` and of `take`.
        let order = p.ordering(Site::MutexRelease, Release);
        let quantum = Quantum::of(p);
        let of = generation(p);
        let mut rotates = None;
        let mut seen = self.word.load(Relaxed);
        loop {
            let awake = bits_in(of, seen);
            if awake != 0 && !*rotates.get_or_insert_with(|| rotates_now(p, on, &quantum, awake)) {
                // An awake waiter will acquire the lock next (MUTEX-3).
                match self.word.compare_exchange(seen, with_bits(of, 0, awake), order) {
                    Ok(_) => return given_way(&quantum),
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
            return self.release_to_sleeper(p, on, seen, 0);
        }
        // MUTEX-4.
        if sleepers::anybody(p, on) {
            wake_one(p, on);
        } else {
            sleepers::found_nobody(p, on);
        }
    }

    /// Releases the lock and wakes a sleeper, if there is one. The sleeper is counted as awake; `bit` is HEIR or
    /// 0.
    fn release_to_sleeper<P>(&self, p: &P, on: usize, mut seen: u32, bit: u32)
    where
        P: SleepPlatform<Word = W>,
    {
        // Read before a sleeper is taken: if a signal handler forks in between, the child ignores the bits set
        // for a sleeper that it does not have.
        let of = generation(p);
        let taken = take_one(p, on);
        let wakes = taken.as_ref().is_some_and(|taken| !taken.is_empty());
        let to = |seen| {
            let bits = bits_in(of, seen);
            with_bits(of, 0, if wakes { one_more(bits, bit) } else { bits })
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
fn rotates_now<P: SleepPlatform>(p: &P, on: usize, quantum: &Quantum<P>, awake: u32) -> bool {
    let number = quantum.number();
    if quantum.is_over() || !quantum.count() {
        return false;
    }
    let short = quantum.mean_ns(number + 1) < u64::from(p.tuning().mutex_short_ns);
    sleepers::note_turns(p, on, short);
    short || !are_enough(awake)
}

/// Whether these bits say that a waiter has replaced a thread whose barging quantum is used up.
fn replaces(bits: u32) -> bool {
    bits == 0 || bits & HEIR != 0
}

/// After a release past waiters: yields when that is due.
fn given_way<P: SleepPlatform>(quantum: &Quantum<P>) {
    if quantum.is_over() {
        quantum.give_way();
    }
}

/// After a release that has woken a sleeper.
fn woke<P: SleepPlatform>(p: &P) {
    given_way(&Quantum::of(p));
}

fn take_one<P: SleepPlatform>(p: &P, on: usize) -> Option<Taken> {
    let mut first = true;
    sleepers::take(p, on, |_| if core::mem::take(&mut first) { Choice::Take } else { Choice::Stop })
}

/// Wakes one sleeper, after a release that did not. The lock may no longer exist (MUTEX-4).
#[cold]
#[inline(never)]
fn wake_one<P: SleepPlatform>(p: &P, on: usize) {
    match take_one(p, on) {
        Some(taken) => taken.wake(p),
        None => sleepers::wake_later(p, on),
    }
}

/// What came of a first slice.
enum Watched {
    Acquired,
    InVain,
    NotAtAll,
}

/// One wait for the lock.
struct Wait<'a, P: SleepPlatform> {
    lock: &'a DefaultLock<P::Word>,
    p: &'a P,
    deadline: u64,
    /// Whether this waiter has set a state bit, or one was set for it (MUTEX-2).
    counted: bool,
    /// Whether this waiter has slept.
    slept: bool,
    /// When it first yielded or slept; 0 if it has only polled.
    since: u64,
    budget: SpinBudget,
    pace: Pace,
}

impl<'a, P: SleepPlatform> Wait<'a, P> {
    fn new(lock: &'a DefaultLock<P::Word>, p: &'a P, deadline: u64) -> Self {
        Self::at(lock, p, deadline, Pace::of(p, lock.address(p)))
    }

    fn at(lock: &'a DefaultLock<P::Word>, p: &'a P, deadline: u64, pace: Pace) -> Self {
        Self {
            lock,
            p,
            deadline,
            counted: false,
            slept: false,
            since: 0,
            budget: SpinBudget::new(p, lock.address(p), pace.interval_ns()),
            pace,
        }
    }

    fn on(&self) -> usize {
        self.p.address(&self.lock.word)
    }

    fn is_over(&self) -> bool {
        self.deadline != NEVER && self.p.now_ns() >= self.deadline
    }

    /// The waiter yields or sleeps now, perhaps not for the first time.
    fn begin(&mut self) {
        if self.since == 0 {
            self.since = self.p.now_ns().max(1);
        }
    }

    /// MUTEX-6: whether this waiter should become the heir. A waiter that has only polled does not read the
    /// clock.
    fn has_waited_too_long(&mut self) -> bool {
        if !self.budget.only_spins() {
            self.begin();
        }
        let waited_ns = || self.p.now_ns().saturating_sub(self.since);
        self.since != 0 && waited_ns() >= sleepers::starves_after_ns(self.p, self.on())
    }

    /// Waits until the lock is acquired, or the deadline has passed.
    fn acquire(&mut self, seen: u32) -> bool {
        let (p, word) = (self.p, &self.lock.word);
        if self.is_over() || self.is_replaced(seen) {
            self.budget = SpinBudget::none();
        }
        let mut seen = word.load(Relaxed);
        loop {
            let bits = bits(p, seen);
            if seen & LOCKED == 0 && (bits & HEIR == 0 || self.counted) {
                if self.take(seen) {
                    if self.slept {
                        Quantum::of(p).begin_anew();
                    }
                    return true;
                }
                seen = word.load(Relaxed);
                continue;
            }
            if !self.budget.only_spins() && self.is_over() {
                return self.give_up();
            }
            if !self.counted && !may_stay_awake(bits) {
                self.budget.beside_others(p);
            }
            if !self.budget.is_spent() {
                self.set_bits(seen, bits);
                seen = self.poll(seen);
                continue;
            }
            if sleepers::with_sleeper(p, |me| self.sleep(me)) != Some(true) {
                // MUTEX-2: a waiter in a timed backoff is not awake. It takes its count back, and polls once more
                // after that.
                if core::mem::take(&mut self.counted) {
                    self.lock.clear(p);
                } else {
                    p.doze();
                }
            }
            seen = word.load(Relaxed);
        }
    }

    /// Acquires the lock, which is free in `seen`.
    fn take(&self, seen: u32) -> bool {
        self.pace.take(self.p, self.on(), || self.lock.take(self.p, seen, self.counted))
    }

    /// Spends one slice of the spin budget; returns the word.
    fn poll(&mut self, seen: u32) -> u32 {
        let (p, word) = (self.p, &self.lock.word);
        if owner_is_here(p, seen) {
            self.budget.give_way(p);
            return word.load(Relaxed);
        }
        let mut now = seen;
        let (pace, on) = (&mut self.pace, self.lock.address(p));
        self.budget.spend(p, |pauses| {
            now = pace.poll(p, on, word, Until::clear(LOCKED), pauses);
            now & LOCKED != 0
        });
        now
    }

    /// MUTEX-6: whether this thread's barging quantum is used up, and the waiter woken for that has acquired the
    /// lock.
    fn is_replaced(&self, seen: u32) -> bool {
        let quantum = Quantum::of(self.p);
        let replaced = quantum.is_over()
            && seen & LOCKED != 0
            && !sleepers::is_quiet(self.p, self.on())
            && replaces(bits(self.p, seen));
        if replaced {
            quantum.begin_anew();
        }
        replaced
    }

    /// Sets state bits where that is due (MUTEX-2, MUTEX-6).
    fn set_bits(&mut self, seen: u32, bits: u32) {
        if seen & LOCKED == 0 || sleepers::is_quiet(self.p, self.on()) {
            return;
        }
        let of = generation(self.p);
        let bits = bits & bits_in(of, seen);
        let is_due = self.counted && bits & HEIR == 0 && self.has_waited_too_long();
        // Other threads may have taken this waiter's count away (MUTEX-2).
        let to = if is_due {
            counting::count(self.p, Event::MutexHeir);
            if bits == 0 { one_more(0, HEIR) } else { bits | HEIR }
        } else if bits == 0 || !self.counted && may_stay_awake(bits) {
            one_more(bits, 0)
        } else {
            return;
        };
        let word = with_bits(of, seen & (LOCKED | PLACE), to);
        if self.lock.word.compare_exchange(seen, word, Relaxed).is_ok() {
            self.counted = true;
            if to & HEIR != 0 {
                // Refill the spin budget; sleeping now would waste the reservation.
                self.budget = SpinBudget::of_heir(self.p, self.on());
            }
        }
    }

    /// Sleeps until woken, or until the deadline; or polls again, if the lock is free by now. Returns false if
    /// the waiter could not join the queue.
    fn sleep(&mut self, me: NodeId) -> bool {
        let (p, lock) = (self.p, self.lock);
        let end = if self.slept { End::First } else { End::Last };
        if !sleepers::enqueue(p, me, self.on(), TAG, end) {
            return false;
        }
        self.slept = true;
        self.begin();
        // MUTEX-2.
        if core::mem::take(&mut self.counted) {
            lock.clear(p);
        }
        // The last poll (MUTEX-3).
        let seen = lock.word.load(Relaxed);
        let woken = if seen & LOCKED == 0 && bits(p, seen) == 0 {
            !sleepers::cancel(p, me)
        } else {
            sleepers::await_wake(p, me, self.deadline)
        };
        if woken {
            // The thread that woke this waiter may have counted it as awake.
            self.counted = true;
        }
        self.pace = Pace::of(p, self.on());
        self.budget = SpinBudget::new(p, self.on(), self.pace.interval_ns());
        true
    }

    /// The deadline has passed. A wake-up that was meant for this waiter goes to another one (MUTEX-3).
    #[cold]
    fn give_up(&mut self) -> bool {
        let (p, on) = (self.p, self.on());
        if core::mem::take(&mut self.counted) {
            let seen = self.lock.clear(p);
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
        let on = p.address(&self.word);
        if !sleepers::is_quiet(p, on) {
            return self.release_slow(p, on);
        }
        // MUTEX-1: since the lock was acquired only state bits were set.
        // ORDERING: as in `release_slow`.
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
