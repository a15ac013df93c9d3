//! The lock that serves: one of qspin's, chosen before the program's first instruction.
//!
//! Every exclusive lock of the register can serve: it lies in the first eight bytes of a mutex, and begins as
//! zeros. The first is the default, which costs a comparison that always goes the same way.
//!
//! # Invariants
//! * **SERVED-1** The choice changes only before the first lock operation of the process: in the library's
//!   constructor, which the dynamic linker runs before all others.
//! * **SERVED-2** `LOCKED` is the whole word of a held lock without waiters, and 0 that of a free one, for the
//!   default mutex whose owner does not say where it is, and for a lock of the queued family
//!   (`qspin_core::locks::mutex`, WORD-1 of `qspin_core::word`). With one thread, a plain load and a plain
//!   store are the step from one to the other.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32};

use lock_api::{RawMutex, RawMutexTimed};
use qspin::locks_file::{COUNTED, TRACKED};
use qspin_core::lock::Guard;
use qspin_core::locks::{Family, Id, Lock};

use crate::deadline::Deadline;
use crate::{deadline, statistics, thread};

/// The whole word of a held queued lock (SERVED-2).
const LOCKED: u32 = 1;

/// Words of a lock, wherever they lie.
pub(crate) type Words = [AtomicU32; 2];

/// How code other than the lock itself reads its words.
enum Form {
    /// The default mutex: SERVED-2 holds; what it says of waiters is stored with the process's generation, and
    /// it supports waits with a deadline.
    Marked,
    /// A word of the queued family, which contains the tail: SERVED-2 holds, and waiters can be cleared away.
    Queued,
    /// A word that describes its waiters in a way of its own.
    Opaque,
    /// A flag, which does not describe its waiters.
    Flag,
}

impl Form {
    const fn of(family: Family) -> Self {
        match family {
            Family::Sleeping => Self::Marked,
            Family::Queued => Self::Queued,
            Family::Ticket | Family::Mcs => Self::Opaque,
            Family::Flag => Self::Flag,
        }
    }
}

/// The operations on the lock that serves, for `qspin_core::for_each_lock!`: exclusive locks can serve. A
/// thread other than the owner may release each of them: where the word names the owner, that is a hint for
/// waiters that yield.
macro_rules! served {
    (() sleeping { $($sleeping:tt)* } spinning { $($spinning:tt)* } $($shared:tt)*) => {
        served! { $($sleeping)* $($spinning)* }
    };
    ($($id:ident: $module:ident = $lock:path, $about:expr;)*) => {
        /// The locks that can serve, by their number in the register.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Choice { $($id = Id::$id as u8,)* }

        impl Choice {
            const ALL: &'static [Self] = &[$(Self::$id,)*];

            /// The register's entry for it.
            const fn lock(self) -> &'static Lock {
                match self { $(Self::$id => Id::$id.lock(),)* }
            }

            const fn form(self) -> Form {
                match self { $(Self::$id => const { Form::of(Id::$id.lock().family) },)* }
            }
        }

        const _: () = { $(assert!(size_of::<qspin::$module::RawMutex>() <= size_of::<Words>());)* };

        #[inline(always)]
        fn lock_of(choice: Choice, words: &Words) {
            match choice { $(Choice::$id => { of::<qspin::$module::RawMutex>(words).lock(); })* }
        }

        #[inline(always)]
        fn try_of(choice: Choice, words: &Words) -> bool {
            match choice { $(Choice::$id => of::<qspin::$module::RawMutex>(words).try_lock().is_some(),)* }
        }

        #[inline(always)]
        fn unlock_of(choice: Choice, words: &Words) {
            match choice {
                // SAFETY: the caller has seen the lock held, and unlocks: the program promises that it is the
                // owner. A broken promise breaks this lock, and no other.
                $(Choice::$id => unsafe { of::<qspin::$module::RawMutex>(words).unlock(Guard::marker()) },)*
            }
        }

        #[inline(always)]
        fn is_locked_of(choice: Choice, words: &Words) -> bool {
            match choice { $(Choice::$id => of::<qspin::$module::RawMutex>(words).is_locked(),)* }
        }
    };
}

qspin_core::for_each_lock!(served);

/// The lock in these words.
#[inline(always)]
pub(crate) fn of<L>(words: &Words) -> &L {
    // SAFETY: a lock is one or two atomic words, with the alignment of one, and zeros are a free one.
    unsafe { &*words.as_ptr().cast::<L>() }
}

/// Which lock serves (SERVED-1).
static CHOICE: AtomicU8 = AtomicU8::new(0);

#[inline(always)]
fn chosen() -> Choice {
    let number = CHOICE.load(Relaxed);
    if number == 0 { Choice::ALL[0] } else { Choice::ALL[number as usize] }
}

/// Makes the lock of this name serve, if there is one. For the constructor (SERVED-1).
pub(crate) fn choose(name: &[u8]) -> bool {
    let wanted = core::str::from_utf8(name).ok().and_then(Id::named);
    let place = Choice::ALL.iter().position(|choice| Some(choice.lock().id) == wanted);
    if let Some(place) = place {
        CHOICE.store(place as u8, Relaxed);
    }
    place.is_some()
}

// What the fast paths must read is one word: beside an instruction that locks the bus each load shows. It lies
// where other processes can set its bits (`statistics::mode`). All zeros: the default serves, nothing is
// counted, and there may be one thread.

/// A bit: there was a second thread. A child may set it in its parent's word, which costs the parent only time.
const ORDINARY: u32 = 1;
/// A bit: another lock serves.
const SPECIAL: u32 = 8;
// From TRACKED on no release takes its fast first step, from SPECIAL on no acquisition does, either.
const _: () = assert!(ORDINARY < COUNTED && COUNTED < TRACKED && TRACKED < SPECIAL);

/// What the first step of an operation depends on.
#[derive(Clone, Copy)]
pub(crate) struct Mode(u32);

impl Mode {
    #[inline(always)]
    pub(crate) fn now() -> Self {
        Self(statistics::mode().load(Relaxed))
    }

    /// Whether what threads hold is recorded.
    #[inline(always)]
    pub(crate) fn tracks(self) -> bool {
        self.0 & TRACKED != 0
    }

    /// Whether acquisitions by [`lock_at_once`] are counted, or what threads hold is recorded.
    #[inline(always)]
    pub(crate) fn watches(self) -> bool {
        self.0 & (COUNTED | TRACKED) != 0
    }

    /// Whether acquisitions by [`lock_at_once`] are counted.
    #[inline(always)]
    pub(crate) fn counts(self) -> bool {
        self.0 & COUNTED != 0
    }
}

/// Sets the initial mode. For the constructor, after the choice, and after the page with the mode was replaced
/// (SERVED-1).
pub(crate) fn begin(counts: bool, tracks: bool) {
    let special = if CHOICE.load(Relaxed) == 0 { 0 } else { SPECIAL };
    let [counted, tracked] =
        [(counts, COUNTED), (tracks, TRACKED)].map(|(on, bit)| if on { bit } else { 0 });
    statistics::want([counts, tracks]);
    statistics::mode().fetch_or(special | counted | tracked, Relaxed);
}

/// Whether the word of the lock is what SERVED-2 says.
const fn is_plain(choice: Choice) -> bool {
    matches!(choice.form(), Form::Marked | Form::Queued)
}

/// Whether this process has one thread and the default lock serves, by plain loads and stores (SERVED-2).
#[inline(always)]
fn is_alone() -> bool {
    is_plain(DEFAULT) && CHOICE.load(Relaxed) == 0 && thread::is_alone()
}

/// A second thread was seen: from now on this is not checked again.
#[cold]
fn be_ordinary() {
    statistics::mode().fetch_or(ORDINARY, Relaxed);
}

const DEFAULT: Choice = Choice::ALL[0];

/// The first step of acquiring the lock, where the default serves. Returns whether that was all.
#[inline(always)]
pub(crate) fn lock_at_once(Mode(mode): Mode, words: &Words) -> bool {
    if mode >= SPECIAL {
        return false;
    }
    if mode & ORDINARY != 0 { try_at_once(words) } else { try_alone(words) }
}

#[inline(always)]
fn try_at_once(words: &Words) -> bool {
    match DEFAULT.form() {
        // The first step of the lock's own acquisition; the slow path handles any other word.
        Form::Marked => qspin::inside::lock_at_once(of(words)),
        // The same. ORDERING: Acquire pairs with the Release of the last owner.
        Form::Queued => words[0].compare_exchange(0, LOCKED, Acquire, Relaxed).is_ok(),
        Form::Opaque | Form::Flag => try_of(DEFAULT, words),
    }
}

#[inline(always)]
fn try_alone(words: &Words) -> bool {
    let free = is_plain(DEFAULT) && thread::is_alone() && words[0].load(Relaxed) == 0;
    if free {
        // SERVED-2.
        words[0].store(LOCKED, Relaxed);
    }
    free
}

/// Whether the first step of a release is [`unlock_at_once`]: not where a hold must be removed first.
#[inline(always)]
pub(crate) fn releases_at_once(Mode(mode): Mode) -> bool {
    mode < TRACKED
}

/// As [`lock_at_once`], of the release, where that is its first step.
#[inline(always)]
pub(crate) fn unlock_at_once(Mode(mode): Mode, words: &Words) -> bool {
    match DEFAULT.form() {
        Form::Marked if mode & ORDINARY != 0 => {
            // Releasing a free lock has no effect, except on state bits left by others.
            unlock_of(DEFAULT, words);
            true
        }
        // ORDERING: Release pairs with the Acquire of the next owner.
        Form::Queued if mode & ORDINARY != 0 => {
            words[0].compare_exchange(LOCKED, 0, Release, Relaxed).is_ok()
        }
        Form::Marked | Form::Queued
            if mode & ORDINARY == 0 && thread::is_alone() && words[0].load(Relaxed) == LOCKED =>
        {
            // SERVED-2.
            words[0].store(0, Relaxed);
            true
        }
        _ => false,
    }
}

/// The same where a hold had to be removed first, and was.
#[inline(always)]
pub(crate) fn unlock_tracked(mode: Mode, words: &Words) -> bool {
    mode.0 < SPECIAL && unlock_at_once(mode, words)
}

/// Acquires the lock if it is free and has no waiter.
#[inline(always)]
pub(crate) fn try_fast(words: &Words) -> bool {
    // A word that is not 0 may be free, with state bits of a process before a fork: the lock knows.
    if is_alone() && words[0].load(Relaxed) == 0 {
        // SERVED-2.
        words[0].store(LOCKED, Relaxed);
        return true;
    }
    be_ordinary_if_not();
    match chosen() {
        // Found by one comparison, where the others take a lookup.
        DEFAULT => try_of(DEFAULT, words),
        other => try_of(other, words),
    }
}

#[inline(always)]
fn be_ordinary_if_not() {
    if Mode::now().0 & ORDINARY == 0 {
        be_ordinary();
    }
}

/// The name of the lock that serves.
pub(crate) fn name() -> &'static str {
    Choice::ALL[CHOICE.load(Relaxed) as usize].lock().name
}

/// Whether the lock orders its waiters by where they run: then the machine is examined when the program is
/// loaded.
pub(crate) fn asks_where_cpus_are() -> bool {
    chosen().lock().near_first
}

/// Waits for the lock.
#[cold]
#[inline(never)]
pub(crate) fn lock_slow(words: &Words) {
    lock_of(chosen(), words);
}

/// The same for a thread that has just been woken by a thread that most likely still holds the lock.
#[cold]
#[inline(never)]
pub(crate) fn lock_notified(words: &Words) {
    let choice = chosen();
    match choice.form() {
        Form::Marked => {
            qspin::inside::lock_notified(of(words));
        }
        Form::Queued | Form::Opaque | Form::Flag => lock_of(choice, words),
    }
}

/// Releases the lock if it is held, after `before` if it may have a waiter. A lock that is free stays as it is.
#[inline(never)]
pub(crate) fn unlock(words: &Words, before: impl FnOnce()) {
    let choice = chosen();
    if is_alone() && words[0].load(Relaxed) == LOCKED {
        // SERVED-2.
        words[0].store(0, Relaxed);
        return;
    }
    if choice == DEFAULT && matches!(DEFAULT.form(), Form::Marked) {
        // Releasing a free lock has no effect.
        return unlock_of(DEFAULT, words);
    }
    if !is_locked_of(choice, words) {
        return;
    }
    if match choice.form() {
        Form::Marked => false,
        Form::Queued => words[0].load(Relaxed) != LOCKED,
        Form::Opaque | Form::Flag => true,
    } {
        before();
    }
    unlock_of(choice, words);
}

/// Whether the lock is held.
pub(crate) fn is_locked(words: &Words) -> bool {
    is_locked_of(chosen(), words)
}

/// Whether a thread that waits for the lock says so when it goes to sleep.
#[inline]
pub(crate) fn tells_of_sleep() -> bool {
    matches!(chosen().form(), Form::Marked)
}

/// Whether the words of the lock that serves describe its waiters, and so are wrong in a child. Those of the
/// default mutex do, but with a generation of their own; a flag does not.
#[inline]
pub(crate) fn names_waiters() -> bool {
    !matches!(chosen().form(), Form::Marked | Form::Flag)
}

/// Forgets the threads that waited in the process that this one was copied from.
///
/// Other threads may lock and unlock meanwhile if that takes no waiting. Where there is a queue that is one
/// atomic step. A lock that counts its waiters in the same place as its holders can be made anew only while
/// there is one thread, as is the rule in a child.
pub(crate) fn clear_waiters(words: &Words) {
    let choice = chosen();
    match choice.form() {
        Form::Marked | Form::Flag => {}
        Form::Queued => {
            words[0].fetch_and(LOCKED, Relaxed);
        }
        Form::Opaque if thread::count() == Some(1) => {
            let held = is_locked_of(choice, words);
            words.iter().for_each(|word| word.store(0, Relaxed));
            if held {
                try_of(choice, words);
            }
        }
        Form::Opaque => {}
    }
}

/// Waits for the lock, at most until `deadline`. Returns whether it was acquired.
#[cold]
pub(crate) fn lock_until(words: &Words, deadline: &Deadline) -> bool {
    let choice = chosen();
    if matches!(choice.form(), Form::Marked) {
        let lock = of::<qspin::mutex::RawMutex>(words);
        return deadline.wait(|time| lock.try_lock_for(time).is_some());
    }
    deadline.poll(|| !is_locked_of(choice, words) && try_of(choice, words))
}

/// Whether waits for a lock by this clock are possible.
pub(crate) fn serves_clock(clock: libc::clockid_t) -> bool {
    deadline::is_served(clock)
}
