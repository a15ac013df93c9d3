//! A reader-writer lock, a monitor and a once that sleep beside their words, right but for one flaw each.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::lock::{RawLock, RawSharedLock};
use qspin_core::locks::mutex::DefaultLock;
use qspin_core::platform::AtomicWord;
use qspin_core::sleepers::{self, End, NEVER, SleepPlatform};

/// None: the lock is right, and the checkers must say so.
pub const NO_FLAW: u8 = 0;
/// A sleeper looks at the word before it joins the sleepers, and not again.
pub const LOOKS_FIRST: u8 = 1;
/// A waiter for the condition releases the mutex before it joins the sleepers.
pub const RELEASES_FIRST: u8 = 2;
/// A release wakes one of many that wait for the word.
pub const WAKES_ONE: u8 = 3;
/// A context that sleeps with the gate keeps out all readers, also those in interrupts. A flaw only for those.
pub const CLOSES: u8 = 4;

const HELD: u32 = 1;
const WAITED: u32 = 2;

/// Sleeps beside `word` while one of the bits of `held` is set there.
fn sleep<P: SleepPlatform, const FLAW: u8>(p: &P, word: &P::Word, held: u32) {
    let slept = sleepers::with_sleeper(p, |me| {
        let mark = || loop {
            let seen = word.load(Relaxed);
            if seen & held == 0 {
                return false;
            }
            if word.compare_exchange(seen, seen | WAITED, Relaxed).is_ok() {
                return true;
            }
        };
        if FLAW == LOOKS_FIRST && !mark() {
            return true;
        }
        if !sleepers::enqueue(p, me, p.address(word), 0, End::Last) {
            return false;
        }
        let _ = if FLAW == LOOKS_FIRST || mark() {
            sleepers::await_wake(p, me, NEVER)
        } else {
            sleepers::cancel(p, me)
        };
        true
    });
    if slept != Some(true) {
        p.timed_backoff();
    }
}

/// A word that one holds at a time, and whose release wakes all that wait for it: the shape of a once.
pub struct SmallOnce<W, const FLAW: u8>(W);

// SAFETY: not even promised: that is what the checkers are to find out.
unsafe impl<P: SleepPlatform, const FLAW: u8> RawLock<P> for SmallOnce<P::Word, FLAW> {
    fn new() -> Self {
        Self(P::Word::new(0))
    }

    fn acquire(&self, p: &P) {
        while !self.try_acquire(p) {
            sleep::<P, FLAW>(p, &self.0, HELD);
        }
    }

    fn try_acquire(&self, _: &P) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`.
        self.0.compare_exchange(0, HELD, Acquire).is_ok()
    }

    unsafe fn release(&self, p: &P) {
        let on = p.address(&self.0);
        // ORDERING: Release pairs with the Acquire of `try_acquire`.
        if self.0.swap(0, Release) & WAITED != 0 {
            sleepers::wake(p, on, if FLAW == WAKES_ONE { 1 } else { u32::MAX });
        }
    }

    fn is_locked(&self, _: &P) -> bool {
        self.0.load(Relaxed) & HELD != 0
    }
}

/// A monitor with a condition that is only an address.
pub struct SmallMonitor<W, const FLAW: u8> {
    mutex: DefaultLock<W>,
    held: W,
}

impl<W: AtomicWord, const FLAW: u8> SmallMonitor<W, FLAW> {
    /// Waits for the condition; the mutex is held.
    fn wait<P: SleepPlatform<Word = W>>(&self, p: &P) {
        // SAFETY: the mutex is held.
        let release = || unsafe { self.mutex.release(p) };
        let slept = sleepers::with_sleeper(p, |me| {
            if FLAW == RELEASES_FIRST {
                release();
            }
            let joined = sleepers::enqueue(p, me, p.address(&self.held), 0, End::Last);
            if FLAW != RELEASES_FIRST {
                release();
            }
            if joined {
                let _ = sleepers::await_wake(p, me, NEVER);
            }
            joined
        });
        if slept.is_none() {
            release();
        }
        if slept != Some(true) {
            p.timed_backoff();
        }
        self.mutex.acquire(p);
    }
}

// SAFETY: not even promised: that is what the checkers are to find out.
unsafe impl<P: SleepPlatform, const FLAW: u8> RawLock<P> for SmallMonitor<P::Word, FLAW> {
    fn new() -> Self {
        Self { mutex: RawLock::<P>::new(), held: P::Word::new(0) }
    }

    fn acquire(&self, p: &P) {
        self.mutex.acquire(p);
        while self.held.load(Relaxed) != 0 {
            self.wait(p);
        }
        self.held.store(HELD, Relaxed);
        // SAFETY: acquired above, or by the last wait.
        unsafe { self.mutex.release(p) };
    }

    fn try_acquire(&self, p: &P) -> bool {
        if !self.mutex.try_acquire(p) {
            return false;
        }
        let free = self.held.load(Relaxed) == 0;
        if free {
            self.held.store(HELD, Relaxed);
        }
        // SAFETY: acquired above.
        unsafe { self.mutex.release(p) };
        free
    }

    unsafe fn release(&self, p: &P) {
        self.mutex.acquire(p);
        self.held.store(0, Relaxed);
        // SAFETY: acquired above.
        unsafe { self.mutex.release(p) };
        sleepers::wake(p, p.address(&self.held), 1);
    }

    fn is_locked(&self, _: &P) -> bool {
        self.held.load(Relaxed) != 0
    }
}

const WRITER: u32 = HELD;
const READER: u32 = 1 << 8;

/// A reader-writer lock whose waiters, behind a gate, sleep beside its word.
pub struct SmallGated<W, const FLAW: u8> {
    word: W,
    gate: DefaultLock<W>,
}

impl<W: AtomicWord, const FLAW: u8> SmallGated<W, FLAW> {
    fn wait<P: SleepPlatform<Word = W>>(&self, p: &P, enter: impl Fn() -> bool) {
        if enter() {
            return;
        }
        self.gate.acquire(p);
        while !enter() {
            sleep::<P, FLAW>(p, &self.word, !WAITED);
        }
        // SAFETY: acquired above.
        unsafe { self.gate.release(p) };
    }

    fn enter(&self, mode: u32, excluded: u32) -> bool {
        let mut seen = self.word.load(Relaxed);
        while seen & excluded == 0 {
            // ORDERING: Acquire pairs with the Release of `leave`.
            match self.word.compare_exchange(seen, seen + mode, Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn leave<P: SleepPlatform<Word = W>>(&self, p: &P, mode: u32) {
        let on = p.address(&self.word);
        let mut seen = self.word.load(Relaxed);
        loop {
            let left = seen - mode;
            let to = if left & !WAITED == 0 { 0 } else { left };
            // ORDERING: Release pairs with the Acquire of `enter`.
            match self.word.compare_exchange(seen, to, Release) {
                Ok(_) if to == 0 && left & WAITED != 0 => {
                    sleepers::wake(p, on, 1);
                    return;
                }
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

// SAFETY: not even promised: that is what the checkers are to find out.
unsafe impl<P: SleepPlatform, const FLAW: u8> RawSharedLock<P> for SmallGated<P::Word, FLAW> {
    fn new() -> Self {
        Self { word: P::Word::new(0), gate: RawLock::<P>::new() }
    }

    fn acquire_shared(&self, p: &P) {
        // The first at the gate waits for a writer inside only; a newcomer also for the waiter there.
        self.wait(p, || self.enter(READER, if FLAW == CLOSES { WRITER | WAITED } else { WRITER }));
    }

    fn try_acquire_shared(&self, _: &P) -> bool {
        self.enter(READER, WRITER)
    }

    unsafe fn release_shared(&self, p: &P) {
        self.leave(p, READER);
    }

    fn acquire_exclusive(&self, p: &P) {
        self.wait(p, || self.enter(WRITER, !WAITED));
    }

    fn try_acquire_exclusive(&self, _: &P) -> bool {
        self.enter(WRITER, !WAITED)
    }

    unsafe fn release_exclusive(&self, p: &P) {
        self.leave(p, WRITER);
    }

    fn is_locked(&self, _: &P) -> bool {
        self.word.load(Relaxed) & !WAITED != 0
    }

    fn is_locked_exclusive(&self, _: &P) -> bool {
        self.word.load(Relaxed) & WRITER != 0
    }
}
