//! The locks among which is chosen: the only place that knows which they are.
//!
//! # Problem
//! A lock that is chosen when the program starts must be one type, and one word, whatever is chosen.
//! It can be, since all candidates are one word that is 0 while nobody holds it.
//!
//! # Invariants
//! * **K1** Every candidate is a `repr(transparent)` lock over one word, free exactly when the word
//!   is 0. So the fields of [`SelectedLock`] are views of one word, each valid whatever its value,
//!   and a lock that nobody has touched is a free lock of every candidate.
//! * **K2** All operations on all words of the process go to the same candidate: [`decided`] says
//!   which, and never changes what it has once said. (Whether a lock is held says the same bit in
//!   each; that look fixes no choice.)
//! * **K3** A guard of any candidate may be sent to another thread: `Guard` is `GuardSend`.
//!
//! # Limits
//! The choice is one for the process: words that processes share need a lock of their own kind.

use core::fmt;
use core::mem::ManuallyDrop;

use qspin_core::backoff::BackoffLock;
use qspin_core::lock::{ConstLock, RawLock};
use qspin_core::platform::{ConstWord, Platform};
use qspin_core::queued::{NativeLock, ParavirtLock};

use super::decided::{decided, glance};

macro_rules! candidates {
    ($($(#[$doc:meta])* $choice:ident $field:ident $name:literal: $lock:ident $(, for now $instead:ident)?;)*) => {
        /// What can be chosen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Choice {
            $($(#[$doc])* $choice,)*
        }

        impl Choice {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$choice),*];

            /// The name, as `QSPIN_LOCK` has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$choice => $name,)*
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

            /// The choice whose lock is taken: another one where this build has no such lock.
            #[must_use]
            pub const fn lock(self) -> Self {
                match self {
                    $(Self::$choice => {
                        let lock = Self::$choice;
                        $(let lock = { let _ = lock; Self::$instead };)?
                        lock
                    })*
                }
            }
        }

        /// The lock that was chosen. See the [module](self) documentation.
        #[repr(C)]
        pub union SelectedLock<W> {
            $($field: ManuallyDrop<$lock<W>>,)*
        }

        impl<W> SelectedLock<W> {
            #[inline(never)]
            fn acquire_other<P: Platform<Word = W>>(&self, p: &P) {
                match decided() {
                    // SAFETY: K1; by K2 it is the view that all others use, too.
                    $(Choice::$choice => unsafe { RawLock::<P>::acquire(&*self.$field, p) },)*
                }
            }

            #[inline(never)]
            fn try_acquire_other<P: Platform<Word = W>>(&self, p: &P) -> bool {
                match decided() {
                    // SAFETY: as above.
                    $(Choice::$choice => unsafe { RawLock::<P>::try_acquire(&*self.$field, p) },)*
                }
            }

            /// As `release` of the trait.
            #[inline(never)]
            unsafe fn release_other<P: Platform<Word = W>>(&self, p: &P) {
                match decided() {
                    // SAFETY: as above; the caller holds the lock.
                    $(Choice::$choice => unsafe { RawLock::<P>::release(&*self.$field, p) },)*
                }
            }
        }

        $(const _: () = assert!(size_of::<$lock<core::sync::atomic::AtomicU32>>() == 4);)*
    };
}

candidates! {
    /// Spins on its own cache line, first come, first served: every thread has a CPU.
    Native native "native": NativeLock;
    /// Spins, then halts: threads do not always run.
    Paravirt paravirt "paravirt": ParavirtLock;
    /// Test-and-set, pausing ever longer: threads do not always run, and cannot halt.
    Backoff backoff "backoff": BackoffLock;
    // NUMA order plugs in here: name `CnaLock` and `CnaParavirtLock`, and strike "for now".
    /// As native, preferring waiters that are near the holder: every thread has a CPU, on
    /// several nodes.
    Cna cna "cna": NativeLock, for now Native;
    /// As paravirt, preferring waiters that are near the holder: threads on several nodes that do
    /// not always run.
    CnaParavirt cna_paravirt "cna-paravirt": ParavirtLock, for now Paravirt;
}

impl Choice {
    /// The choice of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.name() == name)
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

// The two choices of most machines stand where the lock is used, the others behind a call: a table to
// jump through at each use would be slower for all of them.
//
// SAFETY: by K2 it is one lock of the candidates, all the time; each of them excludes.
unsafe impl<P: Platform> RawLock<P> for SelectedLock<P::Word> {
    #[inline]
    fn new() -> Self {
        Self { native: ManuallyDrop::new(RawLock::<P>::new()) }
    }

    #[inline]
    fn acquire(&self, p: &P) {
        match glance() {
            // SAFETY: K1; by K2 it is the view that all others use, too.
            Some(Choice::Native) => unsafe { RawLock::<P>::acquire(&*self.native, p) },
            // SAFETY: as above.
            Some(Choice::Paravirt) => unsafe { RawLock::<P>::acquire(&*self.paravirt, p) },
            _ => self.acquire_other(p),
        }
    }

    #[inline]
    fn try_acquire(&self, p: &P) -> bool {
        match glance() {
            // SAFETY: as above.
            Some(Choice::Native) => unsafe { RawLock::<P>::try_acquire(&*self.native, p) },
            // SAFETY: as above.
            Some(Choice::Paravirt) => unsafe { RawLock::<P>::try_acquire(&*self.paravirt, p) },
            _ => self.try_acquire_other(p),
        }
    }

    #[inline]
    unsafe fn release(&self, p: &P) {
        match glance() {
            // SAFETY: as above; the caller holds the lock.
            Some(Choice::Native) => unsafe { RawLock::<P>::release(&*self.native, p) },
            // SAFETY: as above.
            Some(Choice::Paravirt) => unsafe { RawLock::<P>::release(&*self.paravirt, p) },
            // SAFETY: as above.
            _ => unsafe { self.release_other(p) },
        }
    }

    #[inline]
    fn is_locked(&self, p: &P) -> bool {
        // SAFETY: K1, K2.
        unsafe { RawLock::<P>::is_locked(&*self.native, p) }
    }
}

impl<W: ConstWord> ConstLock for SelectedLock<W> {
    #[allow(clippy::declare_interior_mutable_const)]
    const UNLOCKED: Self = Self { native: ManuallyDrop::new(NativeLock::UNLOCKED) };
    // K3.
    type Guard = lock_api::GuardSend;
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.native });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.paravirt });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.backoff });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.cna });
        // SAFETY: K1.
        check(|lock| unsafe { &*lock.cna_paravirt });
    }

    #[test]
    fn choices_have_names() {
        for &choice in Choice::ALL {
            assert_eq!(Choice::named(choice.name()), Some(choice));
            assert_eq!(choice.lock().lock(), choice.lock(), "a stand-in is there itself");
        }
        assert_eq!(Choice::named("nativ"), None);
        assert_eq!(Choice::named(""), None);
        assert_eq!(Choice::names(), "native, paravirt, backoff, cna or cna-paravirt");
    }
}
