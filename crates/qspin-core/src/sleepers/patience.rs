//! Patience: how long a waiter stays awake before it sleeps.
//!
//! # Problem
//! To sleep and to be woken costs some microseconds, and whoever wakes pays most of it on the way out of its
//! critical section. To stay awake costs the CPU, which the owner of the lock may be waiting for, or others that
//! have work to do; and every look at the lock takes the line from its owner.
//!
//! # What it does
//! A waiter looks, with pauses between that grow; then it also yields the CPU after each pause; then it is to
//! sleep. Four things shorten that:
//! * Other waiters are awake. One is enough to take the lock as soon as it is free, and one more for the case that the
//!   first has no CPU: the others only look.
//! * The owner has taken the lock on this very CPU, and runs as little as this thread does not: each pause is lost.
//!   The waiter yields at once, and where some yields do not help, the owner does not wait for the CPU alone,
//!   or is behind those who do not use this lock: it sleeps.
//! * The CPU time of the process is limited, by a quota of its container: what a waiter burns is the owner's. It looks
//!   a few times.
//! * The waiter was notified of something by a thread that has most likely got the lock itself, and that the
//!   waiter may have pushed aside just by waking up. It looks a few times.
//!
//! # Source
//! Few awake waiters: Dice, "Malthusian Locks". Not to spin for somebody who does not run: `mutex_spin_on_owner`
//! of Linux, and document 001; what a thread can know of that without privileges is said at
//! [`Platform::runs_on`](crate::platform::Platform::runs_on).
//!
//! # Limits
//! Of an owner on another CPU nothing is known: it may have been preempted there. One that has moved to another
//! CPU with the lock counts as where it took it.

use super::SleepPlatform;

/// What is left of a waiter's patience.
#[derive(Debug)]
pub struct Patience {
    looks: u32,
    /// Pause instructions before the next look, and the most of them.
    pauses: u32,
    most: u32,
    yields: u32,
    /// Yields to an owner that took the lock on this CPU.
    here: u32,
}

impl Patience {
    /// That of one who has just begun to wait, or was woken by a release.
    pub fn new<P: SleepPlatform>(p: &P) -> Self {
        let tuning = p.tuning();
        let (looks, yields) = if p.is_rationed() {
            (tuning.mutex_looks.min(tuning.mutex_rationed_looks), 0)
        } else {
            (tuning.mutex_looks, tuning.mutex_yields)
        };
        Self {
            looks,
            pauses: tuning.mutex_first_pauses,
            most: tuning.mutex_pauses,
            yields,
            here: tuning.mutex_here_yields,
        }
    }

    /// That of one past whom nobody gets in: it is soon rewarded, whatever it is otherwise.
    pub fn of_heir<P: SleepPlatform>(p: &P) -> Self {
        let tuning = p.tuning();
        let yields = tuning.mutex_heir_yields;
        let most = tuning.mutex_pauses;
        Self { looks: 0, pauses: most, most, yields, here: yields }
    }

    /// That of one who was notified by somebody who most likely has the lock.
    pub fn of_notified<P: SleepPlatform>(p: &P) -> Self {
        let tuning = p.tuning();
        Self { looks: tuning.mutex_notified_looks, yields: 0, here: 0, ..Self::new(p) }
    }

    /// That of one who waits for readers or a writer, first without the gate and then with it.
    pub fn of_rwlock<P: SleepPlatform>(p: &P) -> Self {
        let tuning = p.tuning();
        Self {
            looks: tuning.rwlock_looks,
            pauses: tuning.rwlock_first_pause,
            most: tuning.rwlock_pauses,
            yields: tuning.rwlock_yields,
            here: 0,
        }
    }

    /// That of one who is to sleep at once.
    #[must_use]
    pub const fn none() -> Self {
        Self { looks: 0, pauses: 1, most: 1, yields: 0, here: 0 }
    }

    /// Whether it is not yet to yield.
    #[inline]
    #[must_use]
    pub fn only_looks(&self) -> bool {
        self.looks > 0
    }

    /// Whether it is to sleep.
    #[inline]
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.looks == 0 && self.yields == 0
    }

    /// Enough other waiters are awake: this one is to look only.
    #[inline]
    pub fn beside_others(&mut self) {
        self.yields = 0;
    }

    /// Lets some time pass until the next look. It is not over yet.
    #[inline]
    pub fn wait<P: SleepPlatform>(&mut self, p: &P, owner_is_here: bool) {
        if owner_is_here {
            return self.give_way(p);
        }
        p.relax(self.pauses);
        if self.looks > 0 {
            self.looks -= 1;
            self.pauses = (self.pauses * 2).min(self.most);
        } else {
            self.yields -= 1;
            p.yield_cpu();
        }
    }

    /// The same to an owner that this waiter keeps from running.
    fn give_way<P: SleepPlatform>(&mut self, p: &P) {
        if self.here == 0 {
            *self = Self::none();
        } else {
            self.here -= 1;
            p.yield_cpu();
        }
    }
}
