//! A wait for the default mutex: it polls, yields, sleeps, and perhaps becomes the heir.
//!
//! The invariants are those of [`super`].

use core::sync::atomic::Ordering::Relaxed;

use super::word::{
    CPUS_OF_AWAKE, HEIR, LOCKED, PLACE, bits, bits_in, generation, may_stay_awake, one_more,
    owner_is_here, owners_cpu, with_bits,
};
use super::{DefaultLock, STARVES, TAG, wake_one};
use crate::counting;
use crate::events::Event;
use crate::node::NodeId;
use crate::platform::{AtomicWord, Budget, Until};
use crate::quantum::Quantum;
use crate::sleepers::{self, Absence, End, Found, NEVER, Pace, Rest, SleepPlatform, SpinBudget};

/// How often a waiter may lose the lock to others before it needs a spin budget.
const FIRST_TRIES: u32 = 8;

/// Polls of a waiter's glance where pauses are short, and by how many pauses the distances between them grow. Xeon, 2 CPUs,
/// pauses of 19 ns, 2 threads, over eight polls one pause apart, in four runs: 104 ns inside and 193 ns outside 1.06 to
/// 1.31, 150 and 200 ns 1.14 to 1.17, 300 and 300 ns 1.06 to 1.08; 1 and 1 µs and empty sections level. Eight polls three
/// pauses apart were about as good. With distances of the same time, whatever a pause takes, simulated machines of many CPUs
/// with short pauses did a little less.
const GLANCES: u32 = 5;
const GLANCE_STEP: u32 = 2;
/// Pauses that take longer than this, in nanoseconds, are distance enough: there a glance polls after each, for so long,
/// but a few times at least. AMD EPYC, 2 CPUs, pauses of 29 ns, 2 threads, over growing distances, while a line took 50 ns
/// from CPU to CPU: 100 and 100 ns 1.02 to 1.08, 150 and 200 ns 1.14, 300 and 300 ns 1.10 to 1.11, 50 and 50 ns 0.94 to
/// 0.99; while it took 200 ns and more, 0.94 to 1.17, in the mean 1.04.
const SHORT_PAUSE_NS: u32 = 24;
const GLANCE_NS: u32 = 450;

/// What came of a first slice.
pub(super) enum Watched {
    Acquired,
    InVain,
    NotAtAll,
}

impl<W: AtomicWord> DefaultLock<W> {
    /// Polls the word a few times where waiters watch, before the wait is set up: a lock whose owner is soon back is free
    /// for less time than that takes. Returns whether it acquired the lock.
    #[inline]
    pub(super) fn glance<P: SleepPlatform<Word = W>>(&self, p: &P, seen: u32) -> bool {
        let on = self.address(p);
        if !may_go_uncounted(p, on) || owner_is_here(p, seen) {
            return false;
        }
        let pause_ns = p.pause_ns();
        let (polls, step) = if pause_ns <= SHORT_PAUSE_NS {
            (GLANCES, GLANCE_STEP)
        } else {
            ((GLANCE_NS / pause_ns).max(GLANCES), 0)
        };
        for poll in 1..=polls {
            p.relax((poll * step).max(1));
            if self.newcomer(p, self.word.load(Relaxed)) {
                return true;
            }
        }
        false
    }

    /// Watches the word for one slice, where waiters watch: most waits for a short section end here, before the waiter
    /// needs a spin budget.
    #[inline]
    pub(super) fn watch<P: SleepPlatform<Word = W>>(
        &self,
        p: &P,
        pace: &mut Pace,
        mut seen: u32,
    ) -> Watched {
        let on = self.address(p);
        let pauses = if pace.watches() { SpinBudget::first_slice(p, on) } else { None };
        let Some(pauses) = pauses else { return Watched::NotAtAll };
        for _ in 0..FIRST_TRIES {
            if !may_go_uncounted(p, on) || owner_is_here(p, seen) {
                break;
            }
            if seen & LOCKED != 0 {
                let polls = Budget::Polls(pauses);
                seen = p.wait_until(&self.word, Until::clear(LOCKED), polls, Relaxed);
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
            pace.lost(p);
            seen = self.word.load(Relaxed);
        }
        Watched::NotAtAll
    }
}

/// Whether a waiter may poll for a moment without being counted: where no waiter sleeps; and where no more waiters can poll
/// than may stay awake, each on a CPU of its own, so that counting them only costs the owner the word's line, and keeps
/// sleepers asleep for long, past whom each release is a read-modify-write. But a thread that has used up its barging
/// quantum does not barge past sleepers (MUTEX-6).
#[inline]
fn may_go_uncounted<P: SleepPlatform>(p: &P, on: usize) -> bool {
    sleepers::is_quiet(p, on)
        || (1..=CPUS_OF_AWAKE).contains(&sleepers::cpus(p)) && !Quantum::of(p).is_over()
}

/// Whether these bits say that a waiter has replaced a thread whose barging quantum is used up.
fn replaces(bits: u32) -> bool {
    bits == 0 || bits & HEIR != 0
}

/// The spin budget of a waiter. One with a deadline does not rest past it.
fn budget<P: SleepPlatform>(p: &P, on: usize, deadline: u64, pace: &Pace) -> SpinBudget {
    if deadline == NEVER {
        SpinBudget::with_rests(p, on, pace.interval_ns())
    } else {
        SpinBudget::new(p, on, pace.interval_ns())
    }
}

/// One wait for the lock.
pub(super) struct Wait<'a, P: SleepPlatform> {
    lock: &'a DefaultLock<P::Word>,
    p: &'a P,
    deadline: u64,
    /// Whether this waiter has set a state bit, or one was set for it (MUTEX-2).
    pub(super) counted: bool,
    /// Whether this waiter has polled for a slice of its spin budget, before which it [may go uncounted](may_go_uncounted).
    pub(super) polled: bool,
    /// Whether this waiter has slept.
    pub(super) slept: bool,
    /// When it first yielded, rested or slept; 0 if it has only polled.
    since: u64,
    /// When it first rested since it last slept; 0 if it has not.
    rests_since: u64,
    pub(super) budget: SpinBudget,
    pace: Pace,
}

impl<'a, P: SleepPlatform> Wait<'a, P> {
    pub(super) fn new(lock: &'a DefaultLock<P::Word>, p: &'a P, deadline: u64) -> Self {
        Self::at(lock, p, deadline, Pace::of(p, lock.address(p)))
    }

    pub(super) fn at(lock: &'a DefaultLock<P::Word>, p: &'a P, deadline: u64, pace: Pace) -> Self {
        Self {
            lock,
            p,
            deadline,
            counted: false,
            polled: false,
            slept: false,
            since: 0,
            rests_since: 0,
            budget: budget(p, lock.address(p), deadline, &pace),
            pace,
        }
    }

    fn on(&self) -> usize {
        self.p.address(&self.lock.word)
    }

    fn is_over(&self) -> bool {
        self.deadline != NEVER && self.p.now_ns() >= self.deadline
    }

    /// The waiter yields, rests or sleeps now, perhaps not for the first time.
    pub(super) fn begin(&mut self) {
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

    /// MUTEX-6: whether this waiter has rested alone for a barging quantum: then it becomes the heir.
    fn has_rested_for_a_quantum(&self) -> bool {
        let (p, on) = (self.p, self.on());
        let rested_ns = || p.now_ns().saturating_sub(self.rests_since);
        self.rests_since != 0
            && self.budget.rests()
            && Rest::is_sure(p, on)
            && rested_ns() >= sleepers::quantum_ns(p, on).into()
    }

    /// Whether this waiter may rest where one does at a time, the first of the sleepers if there are any. The others
    /// sleep.
    fn may_rest_alone(&self, bits: u32) -> bool {
        bits == 0 && (self.slept || sleepers::number(self.p, self.on()) == 0)
    }

    /// Whether this waiter stays awake beside others, since its yields let other threads work. It cannot become the
    /// heir before it has slept, so when it has waited for that long it sleeps.
    fn yields_to_work(&mut self) -> bool {
        SpinBudget::yields_pay(self.p, self.on()) && !self.has_waited_too_long()
    }

    /// Waits until the lock is acquired, or the deadline has passed.
    pub(super) fn acquire(&mut self, seen: u32) -> bool {
        let (p, word) = (self.p, &self.lock.word);
        // Where yields pay it yields to the others, and need not sleep for that.
        let replaced = self.is_replaced(seen) && !SpinBudget::yields_pay(p, self.on());
        if replaced || self.is_over() {
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
                self.budget.spend_when_lost(self.pace.lost(p));
                if self.is_over() {
                    return self.give_up();
                }
                seen = word.load(Relaxed);
                continue;
            }
            if !self.budget.only_spins() && self.is_over() {
                return self.give_up();
            }
            if !self.counted && !may_stay_awake(bits) && !self.yields_to_work() {
                self.budget.beside_others(p);
            }
            if !self.budget.is_spent() {
                let polled = core::mem::replace(&mut self.polled, true)
                    || owner_is_here(p, seen)
                    || self.budget.rests();
                if polled || !may_go_uncounted(p, self.on()) {
                    self.set_bits(seen, bits);
                }
                if self.counted || !self.budget.rests() || sleepers::is_quiet(p, self.on()) {
                    seen = self.poll(seen);
                } else {
                    self.do_not_rest();
                    seen = word.load(Relaxed);
                }
                continue;
            }
            if sleepers::with_sleeper(p, |me| self.sleep(me)) != Some(true) {
                // MUTEX-2: a waiter in a timed backoff is not awake. It takes its count back, and polls once more
                // after that.
                if core::mem::take(&mut self.counted) {
                    self.lock.clear(p);
                } else {
                    p.timed_backoff();
                }
            }
            seen = word.load(Relaxed);
        }
    }

    /// Acquires the lock, which is free in `seen`.
    fn take(&mut self, seen: u32) -> bool {
        let (p, lock, counted) = (self.p, self.lock, self.counted);
        self.pace.take(p, lock.address(p), || lock.take(p, seen, counted))
    }

    /// Spends one slice of the spin budget; returns the word.
    fn poll(&mut self, seen: u32) -> u32 {
        let (p, word) = (self.p, &self.lock.word);
        if self.budget.rests() {
            return self.rest(seen);
        }
        if owner_is_here(p, seen) {
            self.budget.give_way(p);
            return word.load(Relaxed);
        }
        let mut now = seen;
        let (pace, on) = (&mut self.pace, self.lock.address(p));
        self.budget.spend(p, |pauses| {
            now = pace.poll(p, (on, owners_cpu(now)), word, Until::clear(LOCKED), pauses);
            now & LOCKED != 0
        });
        now
    }

    /// Rests, and learns from what became of the lock; returns the word.
    fn rest(&mut self, seen: u32) -> u32 {
        self.begin();
        let (p, on, word) = (self.p, self.on(), &self.lock.word);
        if self.rests_since == 0 {
            self.rests_since = p.now_ns().max(1);
        }
        self.budget.spend_rest();
        let rest = Rest::now(p, on, owners_cpu(seen));
        let mut now = word.load(Relaxed);
        if now & LOCKED == 0 {
            Rest::let_owner_come_back(p, on);
            now = word.load(Relaxed);
        }
        let found = match now & (LOCKED | PLACE) {
            0 => Found::Free,
            owner if owner == seen & (LOCKED | PLACE) => Found::SameOwner,
            _ => Found::Another,
        };
        rest.learn(p, on, found);
        if (found == Found::Free || self.budget.is_spent()) && !Rest::is_good(p, on) {
            self.do_not_rest();
        }
        now
    }

    /// Goes on without rests. Where they are good, only counted waiters rest, so that few have to wake, and releases find a
    /// sleeper (MUTEX-2): the others sleep.
    fn do_not_rest(&mut self) {
        let (p, on) = (self.p, self.on());
        self.budget = if Rest::is_good(p, on) {
            SpinBudget::none()
        } else {
            SpinBudget::new(p, on, self.pace.interval_ns())
        };
    }

    /// MUTEX-6: whether this thread's barging quantum is used up, and the waiter woken for that has acquired the
    /// lock. After short turns all are woken, and none needs to sleep.
    fn is_replaced(&self, seen: u32) -> bool {
        let quantum = Quantum::of(self.p);
        let replaced = quantum.is_over()
            && seen & LOCKED != 0
            && !sleepers::is_quiet(self.p, self.on())
            && replaces(bits(self.p, seen));
        if replaced {
            quantum.begin_anew();
        }
        let (p, on) = (self.p, self.on());
        let may_rest = || Rest::is_sure(p, on) && sleepers::number(p, on) == 0;
        replaced && !sleepers::turns_are_short(p, on) && !may_rest()
    }

    /// Sets state bits where that is due (MUTEX-2, MUTEX-6).
    fn set_bits(&mut self, seen: u32, bits: u32) {
        if seen & LOCKED == 0 || sleepers::is_quiet(self.p, self.on()) {
            return;
        }
        let of = generation(self.p);
        let bits = bits & bits_in(of, seen);
        let is_due = self.counted
            && bits & HEIR == 0
            && (self.has_rested_for_a_quantum() || self.has_waited_too_long());
        let alone = self.budget.rests() && Rest::is_sure(self.p, self.on());
        let may_be_counted = if alone { self.may_rest_alone(bits) } else { may_stay_awake(bits) };
        // Other threads may have taken this waiter's count away (MUTEX-2).
        let to = if is_due {
            counting::count(self.p, Event::MutexHeir);
            if bits == 0 { one_more(0, HEIR) } else { bits | HEIR }
        } else if bits == 0 && self.counted || !self.counted && may_be_counted {
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
        // MUTEX-6.
        let tag = if self.slept && self.has_waited_too_long() { STARVES } else { TAG };
        if !sleepers::enqueue(p, me, self.on(), tag, end) {
            return false;
        }
        self.slept = true;
        self.rests_since = 0;
        self.begin();
        // MUTEX-2.
        if core::mem::take(&mut self.counted) {
            lock.clear(p);
        }
        // The last poll (MUTEX-3).
        let seen = lock.word.load(Relaxed);
        let absence = Absence::from(p, self.on(), owners_cpu(seen));
        let woken = if seen & LOCKED == 0 && bits(p, seen) == 0 {
            !sleepers::cancel(p, me)
        } else {
            sleepers::await_wake(p, me, self.deadline)
        };
        if woken {
            // The thread that woke this waiter may have counted it as awake.
            self.counted = true;
            sleepers::wakes::woke(p, self.on(), &absence, lock.word.load(Relaxed) & LOCKED == 0);
        }
        self.pace = Pace::of(p, self.on());
        self.budget = budget(p, self.on(), self.deadline, &self.pace);
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
