//! The locks that can be chosen: the only place that knows which they are.
//!
//! # Problem
//! A lock that is chosen when the program starts must be one type and one word, whatever is chosen. That is
//! possible, since every candidate is one word that is 0 while the lock is free.
//!
//! # Invariants
//! * **CHOICE-1** Every candidate is a `repr(transparent)` lock over one word, free exactly when the word is 0.
//!   So the fields of [`SelectedLock`] are views of one word, each valid whatever its value, and a lock that no
//!   thread has touched is a free lock of every candidate.
//! * **CHOICE-2** All operations on all words of the process go to the same candidate: [`decided`] returns it,
//!   and the answer never changes. (The same bit in each candidate says whether the lock is held; reading it
//!   fixes no choice.)
//! * **CHOICE-3** Every candidate acquires a free lock by 0 → LOCKED, and releases one without waiters by
//!   LOCKED → 0. So these two steps are the same for all, and only what they do not settle is left to the
//!   chosen lock. But native is released by a subtraction, with or without waiters: that is one
//!   compare-exchange less where there are some.
//! * **CHOICE-4** A guard of any candidate may be sent to another thread: `Guard` is `GuardSend`.
//!
//! # Limits
//! The choice is one for the process: words that processes share need a lock of their own kind.

use core::fmt;
use core::mem::ManuallyDrop;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use qspin_core::lock::{ConstLock, RawLock};
use qspin_core::locks::Id;
use qspin_core::locks::backoff::BackoffLock;
use qspin_core::locks::queued::{CnaLock, CnaParavirtLock, NativeLock, ParavirtLock};
use qspin_core::platform::{AtomicWord, ConstWord, Platform};
use qspin_core::site::Site;
use qspin_core::word::LOCKED;

use super::decided::{decided, glance, is_open};

macro_rules! choices {
    ($($(#[$doc:meta])* $choice:ident $field:ident: $lock:ident;)*) => {
        /// What can be chosen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Choice {
            $($(#[$doc])* $choice,)*
        }

        impl Choice {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$choice,)*];

            /// Which lock of the register it is.
            #[must_use]
            pub const fn id(self) -> Id {
                match self {
                    $(Self::$choice => Id::$choice,)*
                }
            }

            /// The choice of this number.
            #[inline]
            pub(super) const fn numbered(number: u8) -> Option<Self> {
                $(if number == Self::$choice as u8 {
                    return Some(Self::$choice);
                })*
                None
            }
        }

        /// The lock that was chosen: see [`select`](crate::select).
        #[repr(C)]
        pub union SelectedLock<W> {
            word: ManuallyDrop<W>,
            $($field: ManuallyDrop<$lock<W>>,)*
        }

        // CHOICE-1.
        $(const _: () = assert!(Id::$choice.lock().words == 1 && !Id::$choice.lock().shared);)*

        /// What the state of the word does not settle, by the chosen lock. The first such operation fixes the
        /// choice.
        impl<W> SelectedLock<W> {
            #[inline(never)]
            fn acquire_chosen<P: Platform<Word = W>>(&self, p: &P) {
                match decided() {
                    // SAFETY: CHOICE-1; by CHOICE-2 it is the view that all others use, too.
                    $(Choice::$choice => unsafe { RawLock::<P>::acquire(&*self.$field, p) },)*
                }
            }

            /// # Safety
            /// As [`RawLock::release`].
            #[inline(never)]
            unsafe fn release_chosen<P: Platform<Word = W>>(&self, p: &P) {
                match decided() {
                    // SAFETY: as above, and the caller holds the lock.
                    $(Choice::$choice => unsafe { RawLock::<P>::release(&*self.$field, p) },)*
                }
            }
        }
    };
}

choices! {
    /// Spins on its own cache line, first come, first served: every thread has a CPU.
    Native native: NativeLock;
    /// Spins, then halts: threads do not always run.
    Paravirt paravirt: ParavirtLock;
    /// Test-and-set, pausing ever longer: threads do not always run, and cannot halt.
    Backoff backoff: BackoffLock;
    /// As native, preferring waiters near the holder: every thread has a CPU, on several nodes.
    Cna cna: CnaLock;
    /// As paravirt, preferring waiters near the holder: threads on several nodes that do not always run.
    CnaParavirt cna_paravirt: CnaParavirtLock;
}

impl Choice {
    /// The name, as `QSPIN_LOCK` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.id().name()
    }

    /// The choice of this name, with `-` or `_`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|choice| [choice.name(), choice.id().lock().module].contains(&name))
    }

    /// All names, for a message: "native, paravirt, … or …".
    #[must_use]
    pub fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|choice| choice.name()).collect();
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        format!("{} or {last}", others.join(", "))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl<W> fmt::Debug for SelectedLock<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedLock").finish_non_exhaustive()
    }
}

impl<W: AtomicWord> SelectedLock<W> {
    #[inline]
    fn word(&self) -> &W {
        // SAFETY: CHOICE-1.
        unsafe { &self.word }
    }

    /// Acquires the lock if it is free (CHOICE-3).
    #[inline]
    fn take<P: Platform<Word = W>>(&self, p: &P) -> bool {
        // ORDERING: Acquire pairs with the owner's Release, in each candidate.
        let order = p.ordering(Site::QueueTry, Acquire);
        self.word().compare_exchange(0, LOCKED, order).is_ok()
    }
}

// SAFETY: by CHOICE-2 it is always the same candidate, and each of them excludes.
unsafe impl<P: Platform> RawLock<P> for SelectedLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { native: ManuallyDrop::new(RawLock::<P>::new()) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        if is_open() || !self.take(p) {
            self.acquire_chosen(p);
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        if is_open() {
            // CHOICE-2: the lock that releases must be the one that acquired.
            let _ = decided();
        }
        // Poll first: a failing compare-exchange would still take the cache line away from the owner.
        self.word().load(Relaxed) == 0 && self.take(p)
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        if glance() == Choice::Native as u8 {
            // SAFETY: CHOICE-1, CHOICE-2; the caller holds the lock.
            unsafe { RawLock::<P>::release(&*self.native, p) };
        // ORDERING: Release pairs with the Acquire of the next acquisition.
        } else if self
            .word()
            .compare_exchange(LOCKED, 0, p.ordering(Site::QueueRelease, Release))
            .is_err()
        {
            // SAFETY: the caller's promise.
            unsafe { self.release_chosen(p) };
        }
    }

    #[inline]
    fn is_locked(&self, p: &P) -> bool {
        // SAFETY: CHOICE-1, CHOICE-2.
        unsafe { RawLock::<P>::is_locked(&*self.native, p) }
    }
}

impl<W: ConstWord> ConstLock for SelectedLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { native: ManuallyDrop::new(NativeLock::UNLOCKED) };
    // CHOICE-4.
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! with_each_view {
        ($check:ident) => {
            // SAFETY: CHOICE-1.
            $check(|lock| unsafe { &*lock.native });
            // SAFETY: CHOICE-1.
            $check(|lock| unsafe { &*lock.paravirt });
            // SAFETY: CHOICE-1.
            $check(|lock| unsafe { &*lock.backoff });
            // SAFETY: CHOICE-1.
            $check(|lock| unsafe { &*lock.cna });
            // SAFETY: CHOICE-1.
            $check(|lock| unsafe { &*lock.cna_paravirt });
        };
    }

    #[test]
    fn a_lock_for_which_nobody_waits_goes_from_0_to_locked_and_back_in_each() {
        use crate::events::NoEvents;
        use crate::platform::Threads;
        use core::sync::atomic::AtomicU32;

        fn check<L: RawLock<Threads<NoEvents>>>(view: fn(&SelectedLock<AtomicU32>) -> &L) {
            let p = Threads::<NoEvents>::NEW;
            let lock = SelectedLock::<AtomicU32>::UNLOCKED;
            view(&lock).acquire(&p);
            assert_eq!(lock.word().load(Relaxed), LOCKED);
            // SAFETY: acquired above.
            unsafe { view(&lock).release(&p) };
            assert_eq!(lock.word().load(Relaxed), 0);
            assert!(view(&lock).try_acquire(&p));
            assert_eq!(lock.word().load(Relaxed), LOCKED);
        }
        with_each_view!(check);
    }

    #[test]
    fn the_same_bit_says_that_a_lock_is_held_in_each() {
        use crate::events::NoEvents;
        use crate::platform::Threads;
        use core::sync::atomic::AtomicU32;

        fn check<L: RawLock<Threads<NoEvents>>>(view: fn(&SelectedLock<AtomicU32>) -> &L) {
            let p = Threads::<NoEvents>::NEW;
            let lock = SelectedLock::<AtomicU32>::UNLOCKED;
            let held =
                || (view(&lock).is_locked(&p), RawLock::<Threads<NoEvents>>::is_locked(&lock, &p));
            assert_eq!(held(), (false, false));
            view(&lock).acquire(&p);
            assert_eq!(held(), (true, true));
            // SAFETY: acquired above.
            unsafe { view(&lock).release(&p) };
            assert_eq!(held(), (false, false));
        }
        with_each_view!(check);
    }

    #[test]
    fn choices_have_names() {
        for &choice in Choice::ALL {
            assert_eq!(Choice::named(choice.name()), Some(choice));
        }
        assert_eq!(Choice::named("cna_paravirt"), Some(Choice::CnaParavirt));
        assert_eq!(Choice::named("nativ"), None);
        assert_eq!(Choice::named(""), None);
        assert_eq!(Choice::names(), "native, paravirt, backoff, cna or cna-paravirt");
    }
}
